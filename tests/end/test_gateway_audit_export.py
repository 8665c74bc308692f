"""The audit of a real gateway reaches a collector whole: while it is away, when it comes back, and across kill -9."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.cluster import wait_until
from tests.support.free_ports import free_port
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

SERVER = Path(__file__).with_name("tool_server.py")


class Collector:
    """It takes OTLP logs over HTTP, as JSON, and says what the test wants."""

    def __init__(self) -> None:
        self.port = free_port()
        self.lines: list[dict[str, object]] = []
        self.tokens: set[str] = set()
        self.status = 200
        self.refuses = b"\0"
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name in http.server
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 400 if collector.refuses in body else collector.status
                if status == 200:
                    collector.tokens.add(self.headers.get("Authorization", ""))
                    assert self.path == "/v1/logs"
                    for resource in json.loads(body)["resourceLogs"]:
                        for record in resource["scopeLogs"][0]["logRecords"]:
                            collector.lines.append(json.loads(record["body"]["stringValue"]))
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    try:
        yield one
    finally:
        one.stop()


def config_of(folder: Path, collector: Collector) -> str:
    (folder / "token").write_text("sekret-4711-0815-2342\n")
    (folder / "token").chmod(0o600)
    return f"""
[gateway.audit_export]
url = "http://127.0.0.1:{collector.port}/v1/logs"
token = "file:token"
[audit]
file = "audit.jsonl"
calls = "all"
begun = false
max_file_bytes = 65536
[servers.tools]
command = {json.dumps([sys.executable, "-S", "-E", str(SERVER)])}
"""


def call_often(gateway: GatewayProcess, count: int, tool: str = "echo") -> None:
    """A session with so many calls, one after another."""
    with gateway.open(b"hookproxy 1\nserver tools\n\n") as connection, connection.makefile("rwb") as file:
        assert file.readline().startswith(b"ok")
        for number in range(count):
            call = {"name": tool, "arguments": {"pad": "x" * 2000}}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            file.write(json.dumps(message).encode() + b"\n")
            file.flush()
            assert file.readline()


def in_files(folder: Path) -> list[str]:
    """The ids of all calls in the audit file and those to which it was rotated."""
    lines = [line for file in folder.glob("audit.jsonl*") for line in _lines(file)]
    return sorted(str(line["call"]) for line in lines if "call" in line)


def _lines(file: Path) -> list[dict[str, object]]:
    if file.suffix in (".sent", ".new"):
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_nothing_is_lost_while_the_collector_is_away_or_the_gateway_is_killed(
    tmp_path: Path, collector: Collector
) -> None:
    gateway = GatewayProcess(tmp_path, config_of(tmp_path, collector))
    try:
        call_often(gateway, 30)
        gateway.logged("cannot be sent to")
        wait_until(lambda: len(in_files(tmp_path)) == 30, lambda: gateway.log)
        collector.start()
        wait_until(lambda: len(collector.lines) == 30, lambda: gateway.log)
        gateway.logged("again")
        collector.stop()
        call_often(gateway, 40)
        wait_until(lambda: len(in_files(tmp_path)) == 70, lambda: gateway.log)
        gateway.kill()
        collector.start()
        gateway = GatewayProcess(tmp_path, config_of(tmp_path, collector))
        wait_until(lambda: len(collector.lines) >= 70, lambda: gateway.log)
        call_often(gateway, 5)
        wait_until(lambda: len(collector.lines) >= 75, lambda: gateway.log)
        assert sorted(str(line["call"]) for line in collector.lines) == in_files(tmp_path)
        assert len(list(tmp_path.glob("audit.jsonl.[0-9]*"))) > 1, "the file was rotated meanwhile"
        assert gateway.log.count("cannot be sent") <= 1, "it is said once"
        assert collector.tokens == {"Bearer sekret-4711-0815-2342"}
        assert "sekret" not in gateway.log + str(collector.lines)
    finally:
        gateway.kill()


def test_a_line_that_the_collector_refuses_holds_up_no_other(tmp_path: Path, collector: Collector) -> None:
    collector.start()
    collector.refuses = b"poison"
    gateway = GatewayProcess(tmp_path, config_of(tmp_path, collector))
    try:
        for tool in ("echo", "poison", "echo"):
            call_often(gateway, 3, tool)
        gateway.logged("the collector has refused a line of")
        wait_until(lambda: len(collector.lines) == 6, lambda: gateway.log)
        wait_until(lambda: gateway.log.count("has refused a line of") == 3, lambda: gateway.log)
        assert {line["tool"] for line in collector.lines} == {"echo"}
    finally:
        gateway.kill()


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
def test_after_any_other_answer_it_is_tried_again(tmp_path: Path, collector: Collector, status: int) -> None:
    collector.start()
    collector.status = status
    gateway = GatewayProcess(tmp_path, config_of(tmp_path, collector))
    try:
        call_often(gateway, 3)
        gateway.logged(f"it responds with {status}; it is tried again")
        assert collector.lines == []
        collector.status = 200
        wait_until(lambda: len(collector.lines) == 3, lambda: gateway.log)
    finally:
        gateway.kill()
