"""Workers that behave well, and badly in every way that a kept process can."""

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
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import command, worker
from hookproxy.runners.runner import StatefulRunner
from hookproxy.transports.epoll_loop import new_loop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


PREAMBLE = """
import json, os, signal, sys, time
def say(answer): sys.stdout.write(json.dumps(answer) + "\\n"); sys.stdout.flush()
"""
ECHO = "for line in sys.stdin: say({'got': json.loads(line), 'pid': os.getpid()})"


class Bench:
    """Workers, what was said about them, and one of them to ask."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.spec = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "w", type="worker", timeout=20)
        self.told = anyio.Event()
        self.kept: StatefulRunner = worker.open_runner([], self.report)

    def report(self, _spec: HookSpec, text: str) -> None:
        self.said.append(text)
        self.told.set()

    def write(self, code: str, **changes: Any) -> None:  # noqa: ANN401 - the fields of a HookSpec
        file = self.folder / "worker.py"
        file.write_text(PREAMBLE + code)
        spec = replace(self.spec, argv=(sys.executable, "-S", "-E", str(file)), **changes)
        if spec != self.spec:  # else it is the same hook, whose file has changed
            self.spec = spec

    async def ask(self, document: object = None) -> HookResult:
        with anyio.fail_after(30):
            line = json.dumps(document if document is not None else {"n": 1}).encode() + b"\n"
            return await self.kept.run(self.spec, Document(line, {}), dict(os.environ))

    async def answer(self, document: object = None) -> dict[str, Any]:
        result = await self.ask(document)
        assert (result.ended, result.code) == (Ended.EXITED, 0), result
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer


@pytest.fixture
async def layer(tmp_path: Path) -> AsyncIterator[Bench]:
    true = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "true", argv=("/bin/true",))
    await command.run(true, Document(b"", {}), {})  # the loop's watch is there from now on
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    layer = Bench(tmp_path)
    yield layer
    await layer.kept.aclose()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() == ""


async def test_a_worker_answers_each_document_and_stays_the_same_process(layer: Bench) -> None:
    layer.write(ECHO)
    answers = [await layer.answer({"n": n}) for n in range(100)]
    assert [one["got"] for one in answers] == [{"n": n} for n in range(100)]
    assert len({one["pid"] for one in answers}) == 1
    assert layer.said == []


async def test_a_document_is_one_line_to_every_reader(layer: Bench) -> None:
    layer.write("for line in sys.stdin: say({'lines': len(line.splitlines()), 'got': json.loads(line)})")
    text = "a\u2028b\u2029c\u0085d"
    line = b'{"t":"%b",\n\r "x":1}\n' % text.encode()
    result = await layer.kept.run(layer.spec, Document(line, {}), dict(os.environ))
    assert json.loads(result.stdout) == {"lines": 1, "got": {"t": text, "x": 1}}


@pytest.mark.parametrize("size", [70_000, 3_000_000])
async def test_long_documents_and_answers_arrive_whole(layer: Bench, size: int) -> None:
    layer.write(ECHO)
    for _ in range(2):
        assert (await layer.answer({"t": "x" * size}))["got"] == {"t": "x" * size}


async def test_documents_of_a_plain_worker_come_one_after_another(layer: Bench) -> None:
    layer.write("for line in sys.stdin: time.sleep(0.01); say(json.loads(line))")
    answers: dict[int, object] = {}

    async def ask(n: int) -> None:
        answers[n] = await layer.answer({"n": n})

    async with anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(ask, n)
    assert answers == {n: {"n": n} for n in range(20)}


async def test_a_cancel_of_a_concurrent_worker_ends_none_and_of_an_answered_one_forgets_nothing(layer: Bench) -> None:
    layer.write(
        "for line in sys.stdin: d = json.loads(line); say({'id': d['id'], 'pid': os.getpid()})", concurrent=True
    )
    first = await layer.answer({})
    for _ in range(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(layer.ask, {})
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert await layer.answer({}) == first
    gc.collect()
    assert layer.said == []


CONCURRENT = """
waiting = []
for line in sys.stdin:
    waiting.append(json.loads(line))
    if len(waiting) == 3:
        for one in reversed(waiting): say({"id": one["id"], "n": one["n"]})
        waiting.clear()
"""


async def test_answers_of_a_concurrent_worker_are_told_apart_by_id(layer: Bench) -> None:
    layer.write(CONCURRENT, concurrent=True)
    answers: dict[int, object] = {}

    async def ask(n: int) -> None:
        answers[n] = await layer.answer({"n": n})

    async with anyio.create_task_group() as tasks:
        for n in range(9):
            tasks.start_soon(ask, n)
    assert answers == {n: {"n": n} for n in range(9)}


async def test_an_answer_that_nobody_waits_for_any_more_is_no_other_documents(layer: Bench) -> None:
    layer.write(CONCURRENT, concurrent=True)
    async with anyio.create_task_group() as tasks:
        for n in range(2):
            tasks.start_soon(layer.ask, {"n": n})
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert await layer.answer({"n": 7}) == {"n": 7}
    assert layer.said == []


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
async def test_a_worker_that_breaks_the_protocol_has_failed(layer: Bench, code: str, failure: str) -> None:
    layer.write(code)
    result = await layer.ask()
    assert result.ended is Ended.FAILED
    assert failure in result.detail
    layer.write(ECHO)
    assert (await layer.answer({"n": 2}))["got"] == {"n": 2}


async def test_what_a_worker_prints_while_nobody_asks_ends_it(layer: Bench, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    layer.write(
        f"sys.stdin.readline(); say({{}}); open({str(tmp_path / 'go')!r}).read(); say({{'stale': 1}}); time.sleep(9)"
    )
    await layer.answer()
    (tmp_path / "go").write_text("")
    with anyio.fail_after(10):
        await layer.told.wait()
    assert layer.said == ["the worker printed a line that no document asked for; it is started again when it is needed"]
    layer.write(ECHO)
    assert (await layer.answer())["got"] == {"n": 1}


async def test_a_worker_that_dies_between_documents_is_started_again(layer: Bench) -> None:
    layer.write(ECHO)
    os.kill((await layer.answer())["pid"], signal.SIGKILL)
    with anyio.fail_after(10):
        await layer.told.wait()
    assert "was ended by signal 9" in layer.said[0]
    assert (await layer.answer())["got"] == {"n": 1}


async def test_a_timeout_ends_the_worker_and_its_late_answer_is_nobodys(layer: Bench) -> None:
    layer.write(
        "for line in sys.stdin:\n d = json.loads(line)\n time.sleep(d['s'])\n say(d | {'pid': os.getpid()})", timeout=3
    )
    first = await layer.answer({"s": 0})
    assert (await layer.ask({"s": 60})).ended is Ended.TIMED_OUT
    assert children() == ""  # it has been waited for
    assert (await layer.answer({"s": 0}))["pid"] != first["pid"]


async def test_a_document_that_a_worker_does_not_read_is_a_failure(layer: Bench) -> None:
    layer.write("os.close(0); time.sleep(60)")
    result = await layer.ask("x" * 1_000_000)
    assert (result.ended, result.detail) == (Ended.FAILED, "has closed its input")


async def test_a_cancel_ends_a_plain_worker(layer: Bench) -> None:
    layer.write("for line in sys.stdin:\n d = json.loads(line)\n time.sleep(d['s'])\n say(d)")
    await layer.answer({"s": 0})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(layer.ask, {"s": 1})
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert children() == ""  # it has been waited for
    assert await layer.answer({"s": 0, "n": 2}) == {"s": 0, "n": 2}


async def test_a_worker_that_never_starts_well_is_started_less_and_less_often(layer: Bench) -> None:
    layer.write("sys.exit(1)")
    begun = anyio.current_time()
    for _ in range(4):
        assert (await layer.ask()).ended is Ended.FAILED
    assert anyio.current_time() - begun > 0.3


async def test_what_a_worker_says_on_standard_error_comes_with_its_answer(layer: Bench) -> None:
    layer.write("for line in sys.stdin: sys.stderr.write('oops\\n'); sys.stderr.flush(); say({})")
    assert (await layer.ask()).stderr == b"oops\n"
    assert (await layer.ask()).stderr == b"oops\n"


async def test_noise_without_end_neither_blocks_a_worker_nor_fills_memory(layer: Bench) -> None:
    layer.write("for line in sys.stdin: sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); say({})")
    assert 0 < len((await layer.ask()).stderr) <= 65_536


async def test_a_command_that_is_not_there_is_a_failure(layer: Bench) -> None:
    layer.spec = replace(layer.spec, argv=("no-such-worker",))
    result = await layer.ask()
    assert (result.ended, result.detail) == (Ended.NOT_STARTED, "command not found: no-such-worker")


@pytest.mark.parametrize(
    "code",
    [ECHO, "sys.stdin.readline(); say({}); time.sleep(60)", "sys.stdin.readline(); say({}); os.fork(); time.sleep(60)"],
)
async def test_the_end_leaves_nothing_behind(layer: Bench, code: str) -> None:
    layer.write(code)
    await layer.answer()
    with anyio.fail_after(3):
        await layer.kept.aclose()
    assert children() == ""
