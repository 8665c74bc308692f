"""A deadline that comes late: what has ended while this process could not look has ended, and did not time out."""

from __future__ import annotations

import asyncio
import http.server
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import command, mcp_tool, python, worker
from hookproxy.runners import http as http_runner
from hookproxy.runners.event_watch import TimeLimit, get_watch
from hookproxy.runners.run_process import HookProcess
from hookproxy.transports.event_loop import new_loop

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TIMEOUT = 1.0  # seconds that a hook has, and in which a stall begins on a busy machine too; the stall is longer
RESPONSE = 1.5  # seconds for what a server must have done by the end of the stall


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def stall(until: Callable[[], object], seconds: float = TIMEOUT) -> None:
    """Keep the event loop in one callback until this has happened and all deadlines are over."""
    reading, writing = os.pipe()
    watch = get_watch(asyncio.get_running_loop())
    end = time.monotonic() + seconds

    def busy() -> None:
        watch.close_fd(reading)
        os.close(writing)
        until()
        while (rest := end - time.monotonic()) >= 0:
            time.sleep(rest)

    watch.add_fd(reading, busy)
    os.write(writing, b"x")


def spec(**changes: object) -> HookSpec:
    return HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "guard", timeout=TIMEOUT, **changes)  # type: ignore[arg-type]  # fields of a HookSpec


@pytest.mark.parametrize("printed", ["", "x" * 100, "x" * 200_000], ids=["nothing", "little", "more than a pipe holds"])
async def test_a_denial_given_in_time_counts_although_the_loop_was_stalled_beyond_the_timeout(
    printed: str, tmp_path: Path
) -> None:
    (tmp_path / "printed").write_text(printed)
    hook = spec(shell="read -r line <gate; cat printed >&2; exit 2", cwd=str(tmp_path))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pid, fds, _ = command.start(command.prepare(hook, Document(b"", {}), dict(os.environ)))
    watch = get_watch(asyncio.get_running_loop())
    begun = time.monotonic()
    hook_process = HookProcess(watch, (pid, fds, 0), b"", TIMEOUT, begun)

    with anyio.fail_after(30):
        while hook_process.due == begun + 0.02:  # until its output is read
            await anyio.lowlevel.checkpoint()

    def ended() -> None:
        gate.write_bytes(b"line\n")
        if len(printed) < 65536:  # else it waits for us to read
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    stall(ended)
    with anyio.fail_after(30):
        await hook_process.wait()
    result = hook_process.result()
    assert (result.ended, result.code, len(result.stderr)) == (Ended.EXITED, 2, len(printed))


async def test_a_hook_that_has_not_ended_is_still_ended_after_a_stall() -> None:
    begun = time.monotonic()
    stall(lambda: None)
    with anyio.fail_after(30):
        result = await command.run_command(spec(shell="sleep 60"), Document(b"", {}), dict(os.environ))
    assert result.ended is Ended.TIMED_OUT
    assert time.monotonic() - begun < 10


async def test_a_workers_answer_counts_although_the_loop_was_stalled(tmp_path: Path) -> None:
    script = "import sys\nfor line in sys.stdin:\n print('{\"a\":1}', flush=True)\n open('answered', 'w').close()"
    hook = spec(argv=(sys.executable, "-S", "-E", "-c", script), cwd=str(tmp_path), type="worker")
    runner = worker.open_runner([hook], lambda _spec, _text: None)
    answered = tmp_path / "answered"

    async def run() -> HookResult:
        return await runner.run(hook, Document(b"{}", {}), dict(os.environ))

    results: list[HookResult] = []

    async def keep() -> None:
        results.append(await run())

    def wait() -> None:
        while not answered.exists():
            pass

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            await anyio.lowlevel.checkpoint()
            stall(wait)
        await runner.aclose()
    assert (results[0].ended, results[0].stdout) == (Ended.EXITED, b'{"a":1}')


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    body = b"x" * 1_000_000

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_arguments: object) -> None:
        pass


async def test_an_http_response_counts_although_the_loop_was_stalled() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        hook = replace(spec(type="http", url=f"http://127.0.0.1:{server.server_port}/"), timeout=RESPONSE)
        runner = http_runner.open_runner([hook], lambda _spec, _text: None)
        results: list[HookResult] = []

        async def keep() -> None:
            results.append(await runner.run(hook, Document(b"{}", {}), {}))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep)
                await anyio.lowlevel.checkpoint()
                stall(lambda: None, RESPONSE)
            await runner.aclose()
        server.shutdown()
        thread.join()
    assert (results[0].ended, len(results[0].stdout)) == (Ended.EXITED, len(_Answers.body))


async def test_a_connection_made_during_a_stall_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_runner, "_LONGEST_CONNECT", RESPONSE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        hook = replace(spec(type="http", url=f"http://127.0.0.1:{server.server_port}/"), timeout=60)
        runner = http_runner.open_runner([hook], lambda _spec, _text: None)
        results: list[HookResult] = []

        async def keep() -> None:
            results.append(await runner.run(hook, Document(b"{}", {}), {}))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep)
                await anyio.lowlevel.checkpoint()
                stall(lambda: None, RESPONSE)
            await runner.aclose()
        server.shutdown()
        thread.join()
    assert (results[0].ended, results[0].detail) == (Ended.EXITED, "")


async def test_a_python_function_that_returned_during_a_stall_has_returned() -> None:
    threads, returned = python.Threads(), threading.Event()

    def function() -> bytes:
        returned.set()
        return b"{}"

    results: list[bytes] = []

    async def keep() -> None:
        results.append(await threads.run_function(function, TIMEOUT))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            await anyio.lowlevel.checkpoint()
            stall(returned.wait)
    threads.close()
    assert results == [b"{}"]


async def test_a_tools_answer_to_a_hook_counts_although_the_loop_was_stalled() -> None:
    reading, writing = os.pipe()
    answered = anyio.Event()
    watch = get_watch(asyncio.get_running_loop())

    def on_answer() -> None:
        watch.close_fd(reading)
        answered.set()

    watch.add_fd(reading, on_answer)

    async def call_tool(_server: str, _tool: str, _arguments: bytes) -> bytes:
        await answered.wait()
        return b"{}"

    results: list[HookResult] = []

    async def keep() -> None:
        hook = spec(type="mcp_tool", server="s", tool="t")
        results.append(await mcp_tool.runner_for(call_tool)(hook, Document(b"{}", {}), {}))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            await anyio.lowlevel.checkpoint()
            stall(lambda: os.write(writing, b"x"))
    os.close(writing)
    assert results[0].ended is Ended.EXITED


async def test_a_time_limit_that_is_over_on_time_and_one_that_is_over_late_both_end_what_does_not_end() -> None:
    watch = get_watch(asyncio.get_running_loop())
    with anyio.fail_after(30):
        with pytest.raises(TimeoutError), TimeLimit(watch, 0.01):
            await anyio.sleep_forever()
        stall(lambda: None)
        with pytest.raises(TimeoutError), TimeLimit(watch, 0.01):
            await anyio.sleep_forever()
