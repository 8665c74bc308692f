"""Spans and metrics reach a collector over OTLP/HTTP, hooks go on with the agent's trace, and no call waits."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hookproxy.audit import telemetry
from hookproxy.audit.call_record import Record
from hookproxy.audit.log import Audit
from hookproxy.audit.telemetry import FLUSH, Collector
from hookproxy.config.load import load
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Permission, Verdict
from hookproxy.model.principal import Principal
from hookproxy.model.settings import Settings
from hookproxy.protocol.calls import Call
from hookproxy.protocol.responses import Response
from tests.support.otlp_receiver import Receiver, attributes, receiver

__all__ = ["receiver"]

pytestmark = pytest.mark.slow

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT: Final = f"00-{TRACE}-00f067aa0ba902b7-01"
SERVER: Final = Path(__file__).parents[1] / "docs" / "tiny_server.py"
TEST_TIMEOUT: Final = 30  # seconds until a test gives up on what should come at once


def call(meta: dict[str, object] | None = None, tool: str = "write", id_: bytes = b"7") -> Call:
    raw = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in (meta or {}).items()}
    return Call(b"7", id_, b"", tool, b"{}", raw, False, False)


def record(tool: str = "write", result: str = "ok", decision: str = "allow", id_: bytes = b"7") -> Record:
    return Record("session", "files", tool, id_, b"{}", agent="Lean 1", result=result, decision=decision, ms=20.0)


@contextmanager
def collected(endpoint: str) -> Iterator[Audit]:
    before = set(threading.enumerate())
    audit = Audit(Settings(otel=True, otel_endpoint=endpoint))
    try:
        yield audit
    finally:
        audit.close()
        for one in set(threading.enumerate()) - before:  # else it would work on beside the tests that follow
            one.join(TEST_TIMEOUT)


def test_a_span_has_the_attributes_of_the_conventions(receiver: Receiver) -> None:
    spec = HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, "guard.sh", argv=("guard.sh",))
    with collected(receiver.endpoint) as audit:
        one = record()
        one.protocol = "2025-11-25"
        assert dict(audit.begin(one, call({"traceparent": PARENT, "tracestate": "rojo=1"})))["TRACESTATE"] == "rojo=1"
        one.hook_runs = [HookRun(spec, HookResult(Ended.EXITED, ms=3.0), Verdict(Permission.ALLOW))]
        audit.write(one)
    assert receiver.paths == {"/v1/traces", "/v1/metrics"}
    (span,) = receiver.spans
    assert span.name == "tools/call write"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, "00f067aa0ba902b7")
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert attributes(span.attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write",
        "network.transport": "pipe",
        "jsonrpc.request.id": "7",
        "mcp.session.id": "session",
        "hookproxy.server": "files",
        "hookproxy.agent": "Lean 1",
        "hookproxy.call": one.call,
        "mcp.protocol.version": "2025-11-25",
        "hookproxy.decision": "allow",
        "hookproxy.result": "ok",
    }
    (event,) = span.events
    assert attributes(event.attributes) == {
        "hookproxy.hook": "guard.sh",
        "hookproxy.event": "PreToolUse",
        "hookproxy.verdict": "allow",
        "hookproxy.ms": 3.0,
    }
    assert receiver.resource["service.name"] == "hookproxy"
    names = {"host.name", "user.name", "process.pid", "service.version", "service.instance.id"}
    assert names <= receiver.resource.keys()


class _Hidden:
    """As `audit.lines.Removes`, for one secret."""

    def known_values(self, text: str) -> str:
        return self.text(text)

    def text(self, text: str) -> str:
        return text.replace("hunter2-hunter2", "{{secret:X:00000000}}")

    def json(self, raw: bytes) -> bytes:
        return self.text(raw.decode()).encode()


def test_what_is_hidden_is_in_no_span_and_in_no_metric(receiver: Receiver) -> None:
    name = "say hunter2-hunter2"
    with collected(receiver.endpoint) as audit:
        audit.hide(_Hidden())
        one = record(tool=name, id_=b'"hunter2-hunter2"')
        one.agent = "agent hunter2-hunter2"
        audit.begin(one, call(tool=name))
        audit.write(one)
    (span,) = receiver.spans
    assert span.name == "tools/call say {{secret:X:00000000}}"
    assert "hunter2" not in f"{span}{receiver.metrics}"


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (
            Principal("uid:1000", "anna", ("dev",)),
            {"enduser.id": "anna", "user.name": "anna", "user.id": "uid:1000", "network.transport": "unix"},
        ),
        (
            Principal("token:bob", "bob"),
            {
                **{"enduser.id": "bob", "user.name": "bob", "user.id": "token:bob"},
                **{"network.transport": "tcp", "network.protocol.name": "http"},
            },
        ),
    ],
)
def test_a_span_says_who_calls_and_over_which_transport(
    receiver: Receiver, principal: Principal, expected: dict[str, str]
) -> None:
    before = set(threading.enumerate())
    audit = Audit(Settings(otel=True, otel_endpoint=receiver.endpoint), principal, "p", instance="gateway-a")
    one = record()
    audit.begin(one, call())
    audit.write(one)
    audit.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(TEST_TIMEOUT)
    (span,) = receiver.spans
    found = attributes(span.attributes)
    names = ("enduser", "user", "network")
    assert {name: found[name] for name in found if name.startswith(names)} == expected
    assert receiver.resource["service.instance.id"] == "gateway-a"
    (point,) = receiver.metrics["mcp.server.operation.duration"]
    measured = attributes(point.attributes)
    assert measured["network.transport"] == expected["network.transport"]
    assert "enduser.id" not in measured, "users are many"


def test_the_variable_of_opentelemetry_names_a_run(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine,team=x")
    with collected(receiver.endpoint) as audit:
        one = record()
        audit.begin(one, call())
        audit.write(one)
    assert (receiver.resource["service.instance.id"], receiver.resource["team"]) == ("mine", "x")


def test_all_audits_of_a_process_count_together(receiver: Receiver) -> None:
    with collected(receiver.endpoint) as first:
        settings = Settings(otel=True, otel_endpoint=receiver.endpoint)
        second = Audit(settings)
        for audit in (first, second):
            one = record()
            audit.begin(one, call())
            audit.write(one)
        second.close()
        assert receiver.spans == []  # the other one still sends
    (point,) = receiver.metrics["mcp.server.operation.duration"]
    assert point.count == 2


def test_metrics_count_calls_and_runs_of_hooks(receiver: Receiver) -> None:
    spec = HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, "guard.sh", argv=("guard.sh",))
    with collected(receiver.endpoint) as audit:
        for decision, result in (("allow", "ok"), ("allow", "ok"), ("deny", "refused")):
            one = record(decision=decision, result=result)
            audit.begin(one, call())
            one.hook_runs = [HookRun(spec, HookResult(Ended.EXITED, ms=3.0), Verdict())]
            audit.write(one)
    points = receiver.metrics["mcp.server.operation.duration"]
    counts = {attributes(point.attributes)["hookproxy.decision"]: point.count for point in points}
    assert counts == {"allow": 2, "deny": 1}
    assert points[0].explicit_bounds[0] == 0.01
    assert points[0].sum == pytest.approx(0.04)
    (runs,) = receiver.metrics["hookproxy.hook.duration"]
    assert (runs.count, runs.sum) == (3, pytest.approx(0.009))


@pytest.mark.parametrize(
    ("result", "error", "expected"),
    [
        ("ok", None, {}),
        ("pending", None, {}),
        ("refused", None, {"error.type": "refused"}),
        ("cancelled", None, {"error.type": "cancelled"}),
        ("lost", None, {"error.type": "lost"}),
        ("error", None, {"error.type": "tool_error"}),
        ("error", b'{"code":-32602,"message":"no"}', {"error.type": "-32602", "rpc.response.status_code": "-32602"}),
        ("error", b'{"code":"x"}', {"error.type": "_OTHER", "rpc.response.status_code": "_OTHER"}),
        ("error", b"7", {"error.type": "_OTHER", "rpc.response.status_code": "_OTHER"}),
    ],
)
def test_a_failure_has_a_type(receiver: Receiver, result: str, error: bytes | None, expected: dict[str, str]) -> None:
    with collected(receiver.endpoint) as audit:
        one, of = record(result=result), call()
        audit.begin(one, of)
        of.response = Response(error=msgspec.Raw(error)) if error else Response(result={})
        audit.write(one)
    (span,) = receiver.spans
    found = attributes(span.attributes)
    assert {name: found[name] for name in found if name.startswith(("error", "rpc"))} == expected
    assert span.status.code == (Status.STATUS_CODE_ERROR if expected else Status.STATUS_CODE_UNSET)


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"traceparent": 7},
        {"traceparent": ["x"]},
        {"traceparent": "nonsense"},
        {"traceparent": f"{PARENT}\n"},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": PARENT[:-3] + "-zz", "tracestate": "\0"},
        {"tracestate": "a=b"},
        {"traceparent": PARENT, "tracestate": "a=\x1b[2J\0,b"},
        {"traceparent": PARENT, "tracestate": {"a": "b"}},
        {"traceparent": "x" * 100_000, "tracestate": "y" * 100_000},
        {"traceparent": PARENT, "tracestate": ",".join(f"k{number}={'v' * 200}" for number in range(31))},
    ],
)
def test_hooks_get_a_valid_trace_context_whatever_the_agent_sends(receiver: Receiver, meta: dict[str, object]) -> None:
    with collected(receiver.endpoint) as audit:
        one = record()
        env = dict(audit.begin(one, call(meta)))
        audit.write(one)
    version, trace_id, span_id, flags = env["TRACEPARENT"].split("-")
    assert (version, len(trace_id), len(span_id)) == ("00", 32, 16)
    assert flags in ("01", "03"), "sampled, and perhaps random"
    assert env["TRACESTATE"].isprintable()
    assert len(env["TRACESTATE"]) <= 512
    (span,) = receiver.spans
    assert (span.trace_id.hex(), span.span_id.hex()) == (trace_id, span_id)


def test_what_the_agent_does_not_sample_is_not_sent(receiver: Receiver) -> None:
    with collected(receiver.endpoint) as audit:
        one = record()
        env = dict(audit.begin(one, call({"traceparent": PARENT[:-1] + "0"})))
        audit.write(one)
    assert env["TRACEPARENT"].startswith(f"00-{TRACE}-")
    assert env["TRACEPARENT"].endswith("-00")
    assert receiver.spans == []


def test_invented_tool_names_do_not_each_make_a_series(receiver: Receiver) -> None:
    with collected(receiver.endpoint) as audit:
        for number in range(300):
            one = record(f"{number}{'x' * 1000}")
            audit.begin(one, call())
            audit.write(one)
    points = receiver.metrics["mcp.server.operation.duration"]
    names = {attributes(point.attributes)["gen_ai.tool.name"] for point in points}
    assert len(names) == 201
    assert "_OTHER" in names
    assert max(map(len, names)) == 256


def times_without_responses() -> None:
    """Print the seconds that 5000 calls take, and then the closing, when the collector does not respond."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf:
        audit = Audit(Settings(otel=True, otel_endpoint=f"http://127.0.0.1:{deaf.getsockname()[1]}"))
        begun = time.monotonic()
        for _ in range(5000):  # more than the queue holds
            one = record()
            audit.begin(one, call())
            audit.write(one)
        written = time.monotonic()
        audit.close()
        closed = time.monotonic()
    sys.stdout.write(json.dumps([written - begun, closed - written]))


def test_no_call_waits_for_a_collector_that_does_not_respond() -> None:
    script = "from tests.audit.test_telemetry import times_without_responses; times_without_responses()"
    command = [sys.executable, "-c", script]  # here its threads would try again, at random, beside other tests
    ended = subprocess.run(command, cwd=SERVER.parents[2], capture_output=True, timeout=2 * TEST_TIMEOUT)
    calls, end = json.loads(ended.stdout)
    assert calls < 20, "5000 calls"
    assert end < FLUSH + 3


# --- a real run ---


REST: Final = """
        [audit]
        file = "audit.jsonl"
        [[hooks.PostToolUse]]
        command = 'printf "%s %s\\n" "$TRACEPARENT" "$TRACESTATE" >> seen'
        """


def run(folder: Path, endpoint: str, *lines: dict[str, object], rest: str = REST) -> subprocess.CompletedProcess[bytes]:
    (folder / "hookproxy.toml").write_text(
        f"""
        [otel]
        enabled = true
        endpoint = "{endpoint}/"
        [[hooks.PreToolUse]]
        command = 'printf "%s %s\\n" "$TRACEPARENT" "$TRACESTATE" >> seen; case "$(cat)" in *secret*) exit 2;; esac'
        {rest}
        """
    )
    command = [
        sys.executable,
        "-m",
        "hookproxy",
        "run",
        "--config",
        str(folder / "hookproxy.toml"),
        "--",
        sys.executable,
    ]
    sent = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines)
    return subprocess.run([*command, str(SERVER)], input=sent, capture_output=True, timeout=TEST_TIMEOUT, cwd=folder)


def tool_call(number: int, text: str, **meta: str) -> dict[str, object]:
    params = {"name": "echo", "arguments": {"text": text}, "_meta": meta}
    return {"id": number, "method": "tools/call", "params": params}


def test_hooks_get_the_agents_trace_context(tmp_path: Path, receiver: Receiver) -> None:
    done = run(
        tmp_path,
        receiver.endpoint,
        tool_call(1, "fine", traceparent=PARENT, tracestate="rojo=1"),
        tool_call(2, "secret"),
    )
    responses = {response["id"]: response["result"] for response in map(json.loads, done.stdout.splitlines())}
    assert responses[1]["content"][0]["text"] == '{"text": "fine"}'
    assert responses[2]["isError"]
    spans = {attributes(span.attributes)["jsonrpc.request.id"]: span for span in receiver.spans}
    assert spans.keys() == {"1", "2"}
    assert spans["1"].trace_id.hex() == TRACE
    assert attributes(spans["2"].attributes)["error.type"] == "refused"
    assert spans["2"].parent_span_id == b""
    seen = (tmp_path / "seen").read_text().splitlines()
    sampled = sorted(line.replace("-03 ", "-01 ") for line in seen)  # 03: at random, besides
    first = f"00-{TRACE}-{spans['1'].span_id.hex()}-01 rojo=1"
    second = f"00-{spans['2'].trace_id.hex()}-{spans['2'].span_id.hex()}-01 "
    assert sampled == sorted([first, first, second])
    assert len((tmp_path / "audit.jsonl").read_bytes().splitlines()) == 2


def test_a_missing_collector_harms_no_call(tmp_path: Path) -> None:
    done = run(tmp_path, "http://127.0.0.1:9", tool_call(1, "fine"))
    (response,) = map(json.loads, done.stdout.splitlines())
    assert response["result"]["content"][0]["text"] == '{"text": "fine"}'
    assert done.returncode == 0
    assert b"Exporter" not in done.stderr


def test_what_the_sdk_says_is_reported_once_in_one_line_and_nowhere_else(capfd: pytest.CaptureFixture[str]) -> None:
    reports: list[str] = []
    logger = logging.getLogger("opentelemetry.exporter.otlp")
    telemetry.report_to(reports.append)
    for reason in ("refused\nTraceback: …", "timed out"):
        logger.warning("cannot export, because it was %s", reason)
    logger.info("sends")
    Collector("http://127.0.0.1:9", {"user": "u", "host": "h", "pid": 1}, lambda _run: "").close()
    logger.error("exporter is shut down")
    assert reports == ["telemetry: cannot export, because it was refused; calls go on, and this is not reported again"]
    assert capfd.readouterr().err == ""


def test_telemetry_is_imported_only_if_configured(tmp_path: Path) -> None:
    look = (
        "import sys; from hookproxy.audit.log import Audit; from hookproxy.model.settings import Settings;"
        f"Audit(Settings(audit_file={str(tmp_path / 'a')!r})).failure();"
        "unwanted = ('hookproxy.jsonrpc.redact', 'rich');"
        "print([name for name in sys.modules if 'opentelemetry' in name or name in unwanted])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, encoding="utf-8", timeout=TEST_TIMEOUT)
    assert done.stdout == "[]\n"


def test_telemetry_that_is_not_installed_stops_start_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text("[otel]\nenabled = true\n")
    assert load(str(file), [], None, {}, str(tmp_path)).settings.otel
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(ConfigError) as raised:
        load(str(file), [], None, {}, str(tmp_path))
    assert raised.value.message == f"{file}: otel.enabled: opentelemetry.sdk is not installed"
    assert "pip install 'hookproxy[otel]'" in raised.value.hint
    file.write_text('[otel]\nendpoint = "localhost:4318"\n')
    with pytest.raises(ConfigError, match=r"otel\.endpoint"):
        load(str(file), [], None, {}, str(tmp_path))


def test_a_successful_call_is_recorded_as_such_without_other_hooks(tmp_path: Path, receiver: Receiver) -> None:
    run(tmp_path, receiver.endpoint, tool_call(1, "fine"), rest="")
    (span,) = receiver.spans
    recorded = attributes(span.attributes)
    assert (recorded["hookproxy.result"], recorded.get("error.type")) == ("ok", None)
