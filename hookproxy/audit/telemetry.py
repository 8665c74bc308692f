"""Spans and metrics of judged calls, sent to an OpenTelemetry collector in the background: no call waits for it.

Imported only where `[otel]` is enabled. Names are those of the semantic conventions for MCP, as of October 2026, which
are in development; what they have no name for begins with `hookproxy.`. Arguments and results are never sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from time import monotonic
from typing import Final, Protocol

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
from ..protocol.calls import Call

FLUSH: Final = 0.5
"""Seconds that a run's end waits for the collector: agents kill a server that does not leave within two."""

QUEUE: Final = 2048
"""Spans that wait for the collector at most; more are dropped."""

_LONGEST: Final = 256  # characters of a name: agents choose those of tools, and ids
_LONGEST_STATE: Final = (
    512  # characters: what W3C asks of all. A web hook's server refuses a request with too long ones
)
_NAMES: Final = 200  # different tools in metrics: each is a series that the collector keeps
_OTHER: Final = "_OTHER"
_SECONDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # by the conventions
_HOOK_SECONDS: Final = (0.001, 0.002, 0.005, *_SECONDS)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_FAILED: Final = ("refused", "cancelled", "lost")  # results that are the `error.type` themselves


class Told(Protocol):
    """What is known of a call when it is over: the audit's record."""

    session: str
    server: str
    tool: str
    id: bytes
    agent: str
    hook_runs: list[HookRun]
    decision: str
    result: str
    ms: float


class Collector:
    """Where spans and metrics go: `endpoint`, or where the variables of OpenTelemetry itself say."""

    def __init__(self, endpoint: str, writer: Mapping[str, object], verdict_of: Callable[[HookRun], str]) -> None:
        """`writer` has `user`, `host` and `pid`."""
        resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME") or "hookproxy",
                "service.version": __version__,
                "host.name": str(writer["host"]),
                "process.pid": os.getpid(),
                "user.name": str(writer["user"]),
            }
        )
        base = endpoint.rstrip("/")
        spans = OTLPSpanExporter(f"{base}/v1/traces" if base else None)
        figures = OTLPMetricExporter(f"{base}/v1/metrics" if base else None)
        self._exporters = (spans, figures)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(spans, max_queue_size=QUEUE))
        reader = PeriodicExportingMetricReader(figures)
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("hookproxy", __version__)
        meter = self._meters.get_meter("hookproxy", __version__)
        self.calls = _histogram(meter, "mcp.server.operation.duration", _SECONDS, "Calls, with the time of hooks.")
        self.hooks = _histogram(meter, "hookproxy.hook.duration", _HOOK_SECONDS, "Runs of hooks.")
        self.verdict_of = verdict_of
        self._tools: set[str] = set()

    def begin(self, told: Told, call: Call) -> Span:
        """A call has come: its span continues the trace that the agent names in `params._meta`."""
        said = {name: _meta(call, name) for name in ("traceparent", "tracestate")}
        carrier = {name: text for name, text in said.items() if 0 < len(text) <= _LONGEST_STATE}
        tool = told.tool[:_LONGEST]
        span = self._tracer.start_span(
            f"tools/call {tool}",
            context=_PROPAGATOR.extract(carrier, context=Context()),
            kind=trace.SpanKind.SERVER,
            attributes={
                **_operation(tool),
                "jsonrpc.request.id": (raw_json.text(told.id) or told.id.decode(errors="replace"))[:_LONGEST],
                "mcp.session.id": told.session,
                "hookproxy.server": told.server,
                "hookproxy.agent": told.agent[:_LONGEST],
            },
        )
        return Span(self, span, call)

    def known(self, tool: str) -> str:
        """The tool's name for metrics, as long as there are not too many."""
        if len(self._tools) < _NAMES:
            self._tools.add(tool)
        return tool if tool in self._tools else _OTHER

    def close(self) -> None:
        """Send what is left, as far as it can be sent in FLUSH seconds."""
        ends = [Thread(target=each, daemon=True) for each in (self._tracers.shutdown, self._meters.shutdown)]
        until = monotonic() + FLUSH
        for end in ends:
            end.start()
        for end in ends:
            end.join(max(until - monotonic(), 0))
        for exporter in self._exporters:
            exporter.shutdown()  # a collector that does not answer is not tried again


class Span:
    """One call under way."""

    def __init__(self, collector: Collector, span: trace.Span, call: Call) -> None:
        self._collector = collector
        self._span = span
        self._call = call
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
        self.env = (("TRACEPARENT", carrier.get("traceparent", "")), ("TRACESTATE", carrier.get("tracestate", "")))
        """By these variables hooks go on with the trace."""

    def end(self, told: Told) -> None:
        """The call is over, as `told` says."""
        span, tool = self._span, told.tool[:_LONGEST]
        failed = self._failed(told)
        for one in told.hook_runs:
            self._ran(one)
        span.set_attribute("hookproxy.decision", told.decision)
        span.set_attribute("hookproxy.result", told.result)
        if failed:
            span.set_attributes(failed)
            span.set_status(trace.StatusCode.ERROR)
        span.end()
        attributes = {**_operation(self._collector.known(tool)), **failed, "hookproxy.decision": told.decision}
        self._collector.calls.record(told.ms / 1000, attributes)

    def _failed(self, told: Told) -> dict[str, str]:
        """The attributes of a failure; none: it did not fail."""
        if told.result in _FAILED:
            return {"error.type": told.result}
        if told.result != "error":
            return {}
        code = self._code()
        return {"error.type": code, "rpc.response.status_code": code} if code else {"error.type": "tool_error"}

    def _code(self) -> str:
        """The code of a JSON-RPC error; empty: the answer is none."""
        said = self._call.response
        if said is None or said.error is None:
            return ""
        try:
            code = bytes(raw_json.fields(said.error)["code"])
        except (ValueError, KeyError):
            return _OTHER
        return code.decode() if raw_json.is_integer(code) and len(code) <= len("-2147483648") else _OTHER

    def _ran(self, one: HookRun) -> None:
        attributes = {
            "hookproxy.hook": one.spec.label[:_LONGEST],
            "hookproxy.event": str(one.spec.event),
            "hookproxy.verdict": self._collector.verdict_of(one),
        }
        self._collector.hooks.record(one.result.ms / 1000, attributes)
        self._span.add_event("hook", {**attributes, "hookproxy.ms": one.result.ms})


def _histogram(meter: metrics.Meter, name: str, bounds: Sequence[float], what: str) -> metrics.Histogram:
    return meter.create_histogram(name, unit="s", description=what, explicit_bucket_boundaries_advisory=bounds)


def _operation(tool: str) -> dict[str, str]:
    return {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "network.transport": "pipe",
    }


def _meta(call: Call, name: str) -> str:
    """What the agent says; the propagator takes nothing that is not as it must be."""
    return raw_json.text(bytes(call.meta[name])) or "" if name in call.meta else ""
