"""Spans and metrics of judged calls, sent to an OpenTelemetry collector in the background: no call waits for it.

Imported only if `[otel]` is enabled. Names are those of the semantic conventions for MCP as of October 2026, which are
in development; other names begin with `hookproxy.`. Arguments and results are never sent.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .. import __version__
from ..jsonrpc import raw_json
from ..model.hooks import HookRun
from ..model.principal import OF_ACCOUNT, Principal
from ..protocol.calls import Call

if TYPE_CHECKING:
    from .call_record import Record

FLUSH: Final = 0.5
"""Seconds that the end of a run waits for the collector: agents kill a server that takes longer than two to exit."""

QUEUE: Final = 2048
"""The most spans that wait for the collector; more are dropped."""

_LONGEST_NAME: Final = 256  # characters of a tool's name, an id or another text that agents choose
_LONGEST_STATE: Final = 512  # characters of trace context that W3C requires all to accept; longer ones are dropped
_MOST_TOOLS: Final = 200  # different tools in metrics: each is a series in the collector
_OTHER: Final = "_OTHER"
_TRANSPORT: Final = ("network.transport", "network.protocol.name")
# Seconds; the bounds are those of the conventions.
_CALL_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_HOOK_BUCKETS: Final = (0.001, 0.002, 0.005, *_CALL_BUCKETS)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_ERROR_RESULTS: Final = ("refused", "cancelled", "lost")  # results that are also the `error.type`


class _SdkMessages(logging.Handler):
    """What the SDK says about its exports, from threads of its own: each sentence once, in the words of hookproxy.

    Without it, Python prints each message to standard error as it is, again and again, also when a run ends.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.report: Callable[[str], None] | None = None
        self._reported: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Report a message that was not reported before. Its details, such as a traceback, are left out."""
        template = f"{record.name}: {record.msg}"
        if self.report is None or template in self._reported:
            return
        self._reported.add(template)
        text = record.getMessage().partition("\n")[0]
        self.report(f"telemetry: {text[:_LONGEST_STATE]}; calls go on, and this is not reported again")


_SDK_MESSAGES: Final = _SdkMessages()
_SDK_LOGGER: Final = logging.getLogger("opentelemetry")
_SDK_LOGGER.addHandler(_SDK_MESSAGES)
_SDK_LOGGER.propagate = False


def report_to(report: Callable[[str], None]) -> None:
    """Report problems of exports there, from any thread."""
    _SDK_MESSAGES.report = report


def _unchanged(text: str) -> str:
    return text


class Collector:
    """Sends spans and metrics to `endpoint`, or to the address in OpenTelemetry's own variables.

    All audits of a process share one (`acquire`): two that send the same series would overwrite each other's numbers.
    """

    def __init__(
        self, endpoint: str, writer: Mapping[str, object], verdict_of: Callable[[HookRun], str], instance: str = ""
    ) -> None:
        """`writer` has `user`, `host` and `pid`. `instance` is the name of a gateway; empty: of this process alone."""
        resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME") or "hookproxy",
                "service.version": __version__,
                **_instance(instance),
                "host.name": str(writer["host"]),
                "process.pid": os.getpid(),
                "user.name": str(writer["user"]),
            }
        )
        base = endpoint.rstrip("/")
        spans = OTLPSpanExporter(f"{base}/v1/traces" if base else None)
        measurements = OTLPMetricExporter(f"{base}/v1/metrics" if base else None)
        self._exporters = (spans, measurements)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(spans, max_queue_size=QUEUE))
        reader = PeriodicExportingMetricReader(measurements)
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("hookproxy", __version__)
        meter = self._meters.get_meter("hookproxy", __version__)
        self.calls = _histogram(meter, "mcp.server.operation.duration", _CALL_BUCKETS, "Calls, with the time of hooks.")
        self.hooks = _histogram(meter, "hookproxy.hook.duration", _HOOK_BUCKETS, "Runs of hooks.")
        self.verdict_of = verdict_of
        self._tools: set[str] = set()

    def begin(
        self, record: Record, call: Call, caller: Mapping[str, str], shown: Callable[[str], str] = _unchanged
    ) -> Span:
        """Begin the span of a call; it continues the trace that the agent names in `params._meta`.

        `caller` has the attributes of who calls, as `caller_attributes`; `shown` is how a text that the agent has
        chosen is shown: without what is hidden.
        """
        context = {name: _meta_text(call, name) for name in ("traceparent", "tracestate")}
        carrier = {name: text for name, text in context.items() if 0 < len(text) <= _LONGEST_STATE}
        tool = shown(record.tool)[:_LONGEST_NAME]
        request_id = raw_json.text(record.id) or record.id.decode(errors="replace")
        span = self._tracer.start_span(
            f"tools/call {tool}",
            context=_PROPAGATOR.extract(carrier, context=Context()),
            kind=trace.SpanKind.SERVER,
            attributes={
                **_operation(tool),
                **caller,
                "jsonrpc.request.id": shown(request_id)[:_LONGEST_NAME],
                "mcp.session.id": record.session,
                "hookproxy.server": record.server,
                "hookproxy.agent": shown(record.agent)[:_LONGEST_NAME],
                "hookproxy.call": record.call,
                **({"mcp.protocol.version": shown(record.protocol)[:_LONGEST_NAME]} if record.protocol else {}),
            },
        )
        return Span(self, span, call, tool, {name: caller[name] for name in _TRANSPORT if name in caller})

    def metric_name(self, tool: str) -> str:
        """The tool's name for metrics, or `_OTHER` if there are too many tools."""
        if len(self._tools) < _MOST_TOOLS:
            self._tools.add(tool)
        return tool if tool in self._tools else _OTHER

    def close(self) -> None:
        """Send what is left, for at most FLUSH seconds. What cannot be sent any more is not reported."""
        _SDK_MESSAGES.report = None
        ends = [Thread(target=shutdown, daemon=True) for shutdown in (self._tracers.shutdown, self._meters.shutdown)]
        until = monotonic() + FLUSH
        for end in ends:
            end.start()
        for end in ends:
            end.join(max(until - monotonic(), 0))
        for exporter in self._exporters:
            exporter.shutdown()  # no further tries if the collector does not respond


class Span:
    """The span of one call."""

    def __init__(
        self, collector: Collector, span: trace.Span, call: Call, tool: str, transport: Mapping[str, str]
    ) -> None:
        """`tool` is the tool's name as it is shown."""
        self._tool = tool
        self._transport = transport
        self._collector = collector
        self._span = span
        self._call = call
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
        self.env = (("TRACEPARENT", carrier.get("traceparent", "")), ("TRACESTATE", carrier.get("tracestate", "")))
        """Variables that carry the trace context to hooks."""

    def end(self, record: Record) -> None:
        """End the span of a finished call, and record its metrics."""
        span = self._span
        error = _error_attributes(record, self._call)
        for run in record.hook_runs:
            self._add_hook_run(run)
        span.set_attribute("hookproxy.decision", record.decision)
        span.set_attribute("hookproxy.result", record.result)
        if error:
            span.set_attributes(error)
            span.set_status(trace.StatusCode.ERROR)
        span.end()
        attributes = {**_operation(self._collector.metric_name(self._tool)), **self._transport, **error}
        attributes["hookproxy.decision"] = record.decision
        self._collector.calls.record(record.ms / 1000, attributes)

    def _add_hook_run(self, run: HookRun) -> None:
        attributes = {
            "hookproxy.hook": run.spec.label[:_LONGEST_NAME],
            "hookproxy.event": str(run.spec.event),
            "hookproxy.verdict": self._collector.verdict_of(run),
        }
        self._collector.hooks.record(run.result.ms / 1000, attributes)
        self._span.add_event("hook", {**attributes, "hookproxy.ms": run.result.ms})


def _instance(name: str) -> dict[str, str]:
    """The id of this service: a gateway's name, else what OpenTelemetry's own variable says, else a new one."""
    if not name and "service.instance.id=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        return {}
    return {"service.instance.id": name or str(uuid4())}


# --- one for each collector ---

_SHARED: Final[dict[tuple[str, str], tuple[Collector, int]]] = {}  # by endpoint and instance, with how many use it


def acquire(
    endpoint: str, writer: Mapping[str, object], verdict_of: Callable[[HookRun], str], instance: str
) -> Collector:
    """The collector of this process, with the arguments of Collector. Whoever gets it gives it back by `release`."""
    key = endpoint, instance
    collector, users = _SHARED.get(key) or (Collector(endpoint, writer, verdict_of, instance), 0)
    _SHARED[key] = collector, users + 1
    return collector


def release(collector: Collector) -> None:
    """It is not used any more. After the last use, it sends what is left."""
    for key, (one, users) in list(_SHARED.items()):
        if one is collector:
            if users > 1:
                _SHARED[key] = one, users - 1
            else:
                del _SHARED[key]
                one.close()


def _histogram(meter: metrics.Meter, name: str, bounds: Sequence[float], what: str) -> metrics.Histogram:
    return meter.create_histogram(name, unit="s", description=what, explicit_bucket_boundaries_advisory=bounds)


def _error_attributes(record: Record, call: Call) -> dict[str, str]:
    """The error attributes of a failed call: its result, or the code of a JSON-RPC error; empty if it did not fail."""
    if record.result in _ERROR_RESULTS:
        return {"error.type": record.result}
    if record.result != "error":
        return {}
    if call.response is None or call.response.error is None:
        return {"error.type": "tool_error"}
    code = b""
    with suppress(ValueError, KeyError):
        code = bytes(raw_json.fields(call.response.error)["code"])
    shown = code.decode() if raw_json.is_integer(code) and len(code) <= len("-2147483648") else _OTHER
    return {"error.type": shown, "rpc.response.status_code": shown}


def _operation(tool: str) -> dict[str, str]:
    return {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
    }


def caller_attributes(principal: Principal | None) -> dict[str, str]:
    """Who calls, and over which transport: agents of a gateway that the kernel knows come over a Unix socket."""
    if principal is None:
        return {"network.transport": "pipe"}
    known = {"enduser.id": principal.name, "user.name": principal.name, "user.id": principal.id}
    known = {name: text[:_LONGEST_NAME] for name, text in known.items()}
    if principal.id.startswith(OF_ACCOUNT):
        return {**known, "network.transport": "unix"}
    return {**known, "network.transport": "tcp", "network.protocol.name": "http"}


def _meta_text(call: Call, name: str) -> str:
    """The member of `_meta` as text, or nothing; the propagator checks its form."""
    return raw_json.text(bytes(call.meta[name])) or "" if name in call.meta else ""
