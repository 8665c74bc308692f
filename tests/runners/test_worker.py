"""Workers that behave well, and badly in every way that a long-lived process can."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import force_setattr, replace

from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import command, worker
from hookproxy.runners.runner import StatefulRunner
from hookproxy.transports.event_loop import new_loop
from tests.support.child_processes import children

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


PREAMBLE = """
import json, os, signal, sys, time
def out(output): sys.stdout.write(json.dumps(output) + "\\n"); sys.stdout.flush()
"""
ECHO = "for line in sys.stdin: out({'got': json.loads(line), 'pid': os.getpid()})"


class Harness:
    """A worker hook, its runner, and what was reported about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports: list[str] = []
        self.spec = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "w", type="worker", timeout=20)
        self.reported = anyio.Event()
        self.runner: StatefulRunner = worker.open_runner([], self.report)

    def report(self, _spec: HookSpec, text: str) -> None:
        self.reports.append(text)
        self.reported.set()

    def write(self, code: str, **changes: Any) -> None:  # noqa: ANN401 - the fields of a HookSpec
        file = self.folder / "worker.py"
        file.write_text(PREAMBLE + code)
        spec = replace(self.spec, argv=(sys.executable, "-S", "-E", str(file)), **changes)
        if spec != self.spec:  # else it is the same hook, whose file has changed
            self.spec = spec

    async def run(self, document: object = None) -> HookResult:
        with anyio.fail_after(30):
            line = json.dumps(document if document is not None else {"n": 1}).encode() + b"\n"
            return await self.runner.run(self.spec, Document(line, {}), dict(os.environ))

    async def output(self, document: object = None) -> dict[str, Any]:
        result = await self.run(document)
        assert (result.ended, result.code) == (Ended.EXITED, 0), result
        output: dict[str, Any] = json.loads(result.stdout)
        return output


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    true = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "true", argv=("/bin/true",))
    await command.run_command(true, Document(b"", {}), {})  # the loop's watch is there from now on
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    harness = Harness(tmp_path)
    yield harness
    await harness.runner.aclose()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() == {}


async def test_a_worker_prints_a_line_for_each_document_and_stays_the_same_process(harness: Harness) -> None:
    harness.write(ECHO)
    outputs = [await harness.output({"n": n}) for n in range(100)]
    assert [one["got"] for one in outputs] == [{"n": n} for n in range(100)]
    assert len({one["pid"] for one in outputs}) == 1
    assert harness.reports == []


async def test_a_document_is_one_line_to_every_reader(harness: Harness) -> None:
    harness.write("for line in sys.stdin: out({'lines': len(line.splitlines()), 'got': json.loads(line)})")
    text = "a\u2028b\u2029c\u0085d"
    line = b'{"t":"%b",\n\r "x":1}\n' % text.encode()
    result = await harness.runner.run(harness.spec, Document(line, {}), dict(os.environ))
    assert json.loads(result.stdout) == {"lines": 1, "got": {"t": text, "x": 1}}


@pytest.mark.parametrize("size", [70_000, 3_000_000])
async def test_long_documents_and_outputs_arrive_whole(harness: Harness, size: int) -> None:
    harness.write(ECHO)
    for _ in range(2):
        assert (await harness.output({"t": "x" * size}))["got"] == {"t": "x" * size}


async def test_documents_of_a_plain_worker_come_one_after_another(harness: Harness) -> None:
    harness.write("for line in sys.stdin: time.sleep(0.01); out(json.loads(line))")
    outputs: dict[int, object] = {}

    async def run(n: int) -> None:
        outputs[n] = await harness.output({"n": n})

    async with anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(run, n)
    assert outputs == {n: {"n": n} for n in range(20)}


async def test_a_cancel_does_not_end_a_concurrent_worker(harness: Harness) -> None:
    harness.write(
        "for line in sys.stdin: d = json.loads(line); out({'id': d['id'], 'pid': os.getpid()})", concurrent=True
    )
    first = await harness.output({})
    for _ in range(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.run, {})
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert await harness.output({}) == first
    gc.collect()
    assert harness.reports == []


CONCURRENT = """
waiting = []
for line in sys.stdin:
    waiting.append(json.loads(line))
    if len(waiting) == 3:
        for one in reversed(waiting): out({"id": one["id"], "n": one["n"]})
        waiting.clear()
"""


async def test_outputs_of_a_concurrent_worker_are_matched_by_id(harness: Harness) -> None:
    harness.write(CONCURRENT, concurrent=True)
    outputs: dict[int, object] = {}

    async def run(n: int) -> None:
        outputs[n] = await harness.output({"n": n})

    async with anyio.create_task_group() as tasks:
        for n in range(9):
            tasks.start_soon(run, n)
    assert outputs == {n: {"n": n} for n in range(9)}


async def test_the_output_of_a_cancelled_document_is_not_taken_for_that_of_another(harness: Harness) -> None:
    harness.write(CONCURRENT, concurrent=True)
    async with anyio.create_task_group() as tasks:
        for n in range(2):
            tasks.start_soon(harness.run, {"n": n})
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert await harness.output({"n": 7}) == {"n": 7}
    assert harness.reports == []


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("sys.exit(3)", "exited with status 3"),
        ("sys.stdin.readline(); sys.exit(0)", "exited with status 0"),
        ("sys.stdin.readline(); os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("sys.stdin.readline(); sys.stdout.write('{\"a\":'); sys.stdout.flush(); os._exit(1)", "exited with status 1"),
        ("sys.stdin.readline(); os.close(1); time.sleep(60)", "has closed its output"),
        ("sys.stdin.readline(); print('ready', flush=True); time.sleep(60)", "not a JSON object: 'ready'"),
        ("print(flush=True); sys.stdin.readline(); time.sleep(60)", "not a JSON object: ''"),
        ("sys.stdin.readline(); print('[]', flush=True); time.sleep(60)", "not a JSON object: '[]'"),
        ("sys.stdin.readline(); sys.stdout.write('{}\\n{}\\n'); sys.stdout.flush(); time.sleep(60)", ""),
        ("sys.stdin.readline(); sys.stdout.write('{}\\n{'); sys.stdout.flush(); time.sleep(60)", ""),
        (
            "sys.stdin.readline(); sys.stdout.write('x' * 11_000_000); sys.stdout.flush(); time.sleep(60)",
            "bytes on one",
        ),
        ("sys.stdin.readline(); os.fork() or time.sleep(60); sys.exit(4)", "exited with status 4"),
    ],
)
async def test_a_worker_that_breaks_the_protocol_fails(harness: Harness, code: str, failure: str) -> None:
    harness.write(code)
    result = await harness.run()
    assert result.ended is Ended.FAILED
    assert failure in result.detail
    harness.write(ECHO)
    assert (await harness.output({"n": 2}))["got"] == {"n": 2}


async def test_unexpected_output_ends_a_worker(harness: Harness, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    harness.write(
        f"sys.stdin.readline(); out({{}}); open({str(tmp_path / 'go')!r}).read(); out({{'stale': 1}}); time.sleep(9)"
    )
    await harness.output()
    (tmp_path / "go").write_text("")
    with anyio.fail_after(30):
        await harness.reported.wait()
    assert harness.reports == [
        "the worker printed a line that belongs to no document; it is started again when it is needed"
    ]
    harness.write(ECHO)
    assert (await harness.output())["got"] == {"n": 1}


async def test_a_worker_that_dies_between_documents_is_started_again(harness: Harness) -> None:
    harness.write(ECHO)
    os.kill((await harness.output())["pid"], signal.SIGKILL)
    with anyio.fail_after(30):
        await harness.reported.wait()
    assert "was ended by signal 9" in harness.reports[0]
    assert (await harness.output())["got"] == {"n": 1}


async def test_a_timeout_ends_the_worker_and_its_late_output_is_dropped(harness: Harness) -> None:
    harness.write("for line in sys.stdin:\n d = json.loads(line)\n time.sleep(d['s'])\n out(d | {'pid': os.getpid()})")
    first = await harness.output({"s": 0})
    force_setattr(harness.spec, "timeout", 0.2)  # not before it has started, which may take long on a busy machine
    assert (await harness.run({"s": 60})).ended is Ended.TIMED_OUT
    assert children() == {}  # it has been waited for
    force_setattr(harness.spec, "timeout", 20)
    assert (await harness.output({"s": 0}))["pid"] != first["pid"]


async def test_a_document_that_a_worker_does_not_read_is_a_failure(harness: Harness) -> None:
    harness.write("os.close(0); time.sleep(60)")
    result = await harness.run("x" * 1_000_000)
    assert (result.ended, result.detail) == (Ended.FAILED, "has closed its input")


async def test_a_cancel_ends_a_plain_worker(harness: Harness) -> None:
    harness.write("for line in sys.stdin:\n d = json.loads(line)\n time.sleep(d['s'])\n out(d)")
    await harness.output({"s": 0})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(harness.run, {"s": 1})
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert children() == {}  # it has been waited for
    assert await harness.output({"s": 0, "n": 2}) == {"s": 0, "n": 2}


async def test_a_worker_that_keeps_failing_is_restarted_with_growing_delays(harness: Harness) -> None:
    harness.write("sys.exit(1)")
    begun = anyio.current_time()
    for _ in range(4):
        assert (await harness.run()).ended is Ended.FAILED
    assert anyio.current_time() - begun > 0.3


async def test_standard_error_of_a_worker_comes_with_its_output(harness: Harness) -> None:
    harness.write("for line in sys.stdin: sys.stderr.write('oops\\n'); sys.stderr.flush(); out({})")
    assert (await harness.run()).stderr == b"oops\n"
    assert (await harness.run()).stderr == b"oops\n"


async def test_endless_standard_error_neither_blocks_a_worker_nor_fills_memory(harness: Harness) -> None:
    harness.write("for line in sys.stdin: sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); out({})")
    assert 0 < len((await harness.run()).stderr) <= 65_536


async def test_a_command_that_is_not_there_is_a_failure(harness: Harness) -> None:
    harness.spec = replace(harness.spec, argv=("no-such-worker",))
    result = await harness.run()
    assert (result.ended, result.detail) == (Ended.NOT_STARTED, "command not found: no-such-worker")


@pytest.mark.parametrize(
    "code",
    [
        ECHO,
        "sys.stdin.readline(); out({}); time.sleep(60)",
        "sys.stdin.readline(); out({}); os.fork(); time.sleep(60)",
    ],
)
async def test_the_end_leaves_nothing_behind(harness: Harness, code: str) -> None:
    harness.write(code)
    await harness.output()
    with anyio.fail_after(30):
        await harness.runner.aclose()
    assert children() == {}


async def test_output_over_the_limit_is_noted_and_the_limit_grows_with_the_document(harness: Harness) -> None:
    harness.write("for line in sys.stdin: out({'got': 'é' * (len(line) // 2)})")
    result = await harness.run("x" * 4_000_000)  # each `é` is escaped, so its answer is three times as long
    assert (result.ended, len(result.stdout) > 11_000_000) == (Ended.EXITED, True)
    harness.write("for line in sys.stdin: out({'got': 'x' * 11_000_000})", timeout=19)
    result = await harness.run()
    assert (result.ended, result.cut) == (Ended.FAILED, True)
