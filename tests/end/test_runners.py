"""Hooks of every type behind a real `hookproxy run`: what many calls cost, and how everything ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from tests.support.program import HOOKPROXY

SERVER: Final = Path(__file__).parents[1] / "docs" / "tiny_server.py"
CONFIG: Final = """
[[hooks.PreToolUse]]
type = "python"
call = "guard:check"
matcher = "{python}"
[[hooks.PreToolUse]]
type = "python"
call = "guard:check_async"
matcher = "{python}"
[[hooks.PreToolUse]]
type = "worker"
argv = [{interpreter}, "-S", "-E", "worker.py"]
matcher = "{worker}"
[[hooks.PreToolUse]]
type = "http"
url = "http://127.0.0.1:{port}/"
matcher = "{http}"
[[hooks.PreToolUse]]
command = "cat >/dev/null"
warm = true
matcher = "{warm}"
"""


class Hook(BaseHTTPRequestHandler):
    """An HTTP hook that decides nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_words: object) -> None:
        pass


class Run:
    """A hookproxy with a hook of every type; its processes are found by a variable that all of them inherit."""

    def __init__(self, folder: Path, port: int, **matchers: str) -> None:
        (folder / "guard.py").write_text("def check(d): return {}\nasync def check_async(d): return None\n")
        (folder / "worker.py").write_text(
            "import json, sys, time\nfor line in sys.stdin:\n"
            " if json.loads(line)['tool_name'] == 'slow': time.sleep(60)\n print('{}', flush=True)\n"
        )
        names = {"python": "", "worker": "", "http": "", "warm": "", **matchers}
        config = CONFIG.format(interpreter=json.dumps(sys.executable), port=port, **names)
        (folder / "hookproxy.toml").write_text(config)
        self.mark = f"RUN_OF_A_TEST={folder}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [HOOKPROXY, "run", "--config", "hookproxy.toml", "--", sys.executable, str(SERVER)],
            cwd=folder,
            env={**os.environ, name: value},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.number = 0

    def send(self, tool: str) -> None:
        assert self.process.stdin
        self.number += 1
        call = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        print(json.dumps(call), file=self.process.stdin, flush=True)

    def receive(self) -> dict[str, object]:
        assert self.process.stdout
        answer: dict[str, object] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, tool: str) -> None:
        self.send(tool)
        assert self.receive()["result"] == {"content": [{"type": "text", "text": "{}"}]}

    def size(self) -> tuple[int, int]:
        """Its threads and its descriptors."""
        place = f"/proc/{self.process.pid}"
        return len(os.listdir(f"{place}/task")), len(os.listdir(f"{place}/fd"))

    def living(self) -> list[str]:
        """All living processes of this run."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if self.mark.encode() in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    found.append(process)
            except OSError:  # it is another's, or has just ended
                continue
        return found

    def nothing_is_left(self) -> None:
        end = time.monotonic() + 30
        while (left := self.living()) and time.monotonic() < end:
            time.sleep(0.01)
        assert left == []


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def close(run: Run) -> None:
    assert run.process.stdin
    assert run.process.stdout
    run.process.stdin.close()
    run.process.wait(30)
    run.process.stdout.close()


def test_a_thousand_calls_over_every_type_leave_nothing_behind(tmp_path: Path, port: int) -> None:
    run = Run(tmp_path, port)
    for _ in range(20):
        run.call("read")
    before = run.size()
    for _ in range(1000):
        run.call("read")
    threads, descriptors = run.size()
    assert threads <= before[0]
    assert descriptors <= before[1] + 8  # a process that waits has four, and may just be being replaced
    assert len(run.living()) <= 5  # we, the server, the worker, and what waits
    close(run)
    run.nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("tool", ["read", "slow"])
def test_however_it_ends_nothing_is_left_behind(tmp_path: Path, port: int, number: int, tool: str) -> None:
    run = Run(tmp_path, port)
    run.call("read")
    if tool == "slow":
        run.send(tool)
    run.process.send_signal(number)
    run.process.wait(30)
    close(run)
    if number != signal.SIGKILL or tool != "slow":  # killed, we cannot end a worker that does not look at its input
        run.nothing_is_left()
    else:
        for process in run.living():
            os.kill(int(process), signal.SIGKILL)


def test_a_slow_worker_does_not_delay_other_tools(tmp_path: Path, port: int) -> None:
    run = Run(tmp_path, port, worker="slow")
    run.send("slow")
    for _ in range(10):
        run.send("read")
        assert run.receive()["id"] == run.number
    run.process.terminate()
    run.process.wait(30)
    close(run)
    run.nothing_is_left()
