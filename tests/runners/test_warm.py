"""Warm hooks: a process that waits is used once, is as a new one would be, and none is left behind."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import command, warm
from hookproxy.transports.epoll_loop import new_loop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


class Bench:
    """A warm hook, and what was said about it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.told = anyio.Event()
        self.spec = HookSpec("claude", "/no/file: k", Event.PRE_TOOL_USE, "w", type="warm", timeout=20)
        self.kept = warm.open_runner([], self.report)

    def report(self, _spec: HookSpec, text: str) -> None:
        self.said.append(text)
        self.told.set()

    def hook(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a HookSpec
        self.spec = replace(self.spec, **changes)

    async def run(self, document: bytes = b"{}", **env: str) -> HookResult:
        with anyio.fail_after(30):
            return await self.kept.run(self.spec, Document(document, env), ENVIRON)

    async def waits(self, count: int = 1) -> list[str]:
        """Wait until so many processes wait; gives their ids."""
        with anyio.fail_after(10):
            while len(found := children()) != count:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.001)
        return found


ENVIRON = dict(os.environ)


@pytest.fixture
async def layer() -> AsyncIterator[Bench]:
    true = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "true", argv=("/bin/true",))
    await command.run(true, Document(b"", {}), {})  # the loop's watch is there from now on
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    layer = Bench()
    yield layer
    await layer.kept.aclose()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() == []


async def test_the_first_call_runs_cold_and_the_next_by_the_process_that_waits(layer: Bench) -> None:
    layer.hook(shell="echo $$; cat; echo oops >&2; exit 2")
    assert children() == []
    first = await layer.run(b"1")
    assert (first.ended, first.code, first.stderr) == (Ended.EXITED, 2, b"oops\n")
    for n in (b"2", b"3"):
        (waiting,) = await layer.waits()
        result = await layer.run(n)
        assert result.stdout == waiting.encode() + b"\n" + n
        assert (result.code, result.stderr) == (2, b"oops\n")


async def test_a_process_is_never_used_twice(layer: Bench) -> None:
    layer.hook(shell="echo $$; cat >/dev/null")
    pids = []
    for _ in range(20):
        pids.append((await layer.run()).stdout)
        await layer.waits()
    assert len(set(pids)) == 20


@pytest.mark.parametrize("size", [70_000, 3_000_000])
async def test_a_long_document_arrives_whole(layer: Bench, size: int) -> None:
    layer.hook(argv=("cat",))
    await layer.run()
    await layer.waits()
    assert len((await layer.run(b"x" * size)).stdout) == size


async def test_folder_and_environment_are_as_for_a_new_process(layer: Bench, tmp_path: Path) -> None:
    layer.hook(shell="cat >/dev/null; pwd; env | grep -v '^_='", cwd=str(tmp_path), env=(("OWN", "1"),))
    cold = await layer.run(A="1")
    await layer.waits()
    assert sorted((await layer.run(A="1")).stdout.split(b"\n")) == sorted(cold.stdout.split(b"\n"))


async def test_a_process_with_another_environment_is_not_used(layer: Bench) -> None:
    layer.hook(shell="cat >/dev/null; echo $A")
    await layer.run(A="1")
    await layer.waits()
    assert (await layer.run(A="2")).stdout == b"2\n"


@pytest.mark.parametrize("how", ["argv", "shell", "variable"])
async def test_a_script_that_changes_between_calls_runs_as_it_is_now(layer: Bench, tmp_path: Path, how: str) -> None:
    script = tmp_path / "hook.sh"
    script.write_text("cat >/dev/null; echo one")
    shell = f"sh '{script}'; true" if how == "shell" else 'sh "$P"/hook.sh; true'
    layer.hook(**({"argv": ("sh", "hook.sh"), "cwd": str(tmp_path)} if how == "argv" else {"shell": shell}))
    await layer.run(P=str(tmp_path))
    (waiting,) = await layer.waits()
    script.write_text("cat >/dev/null; echo another")
    assert (await layer.run(P=str(tmp_path))).stdout == b"another\n"
    assert (await layer.waits()) != [waiting]
    assert (await layer.run(P=str(tmp_path))).stdout == b"another\n"


async def test_what_waits_is_ended_unused_once_a_file_that_no_word_names_has_been_written(layer: Bench) -> None:
    layer.hook(shell="echo $$; cat >/dev/null")
    await layer.run()
    (waiting,) = await layer.waits()
    layer.kept.invalidate(layer.spec)
    assert (await layer.run()).stdout != waiting.encode() + b"\n"
    await layer.waits()


async def test_a_configuration_that_changes_replaces_what_waits(layer: Bench, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    layer.hook(shell="cat >/dev/null; echo $$", source=f"{file}: hooks.PreToolUse[0]")
    await layer.run()
    (waiting,) = await layer.waits()
    file.write_text("{ }")
    assert (await layer.run()).stdout != f"{waiting}\n".encode()


async def test_what_waits_too_long_is_ended_and_the_next_call_runs_cold(layer: Bench) -> None:
    layer.hook(shell="cat", warm_max_age=0.05)
    await layer.run()
    await layer.waits()
    await layer.waits(0)
    assert (await layer.run(b"x")).stdout == b"x"
    assert layer.said == []


async def test_a_hook_that_ends_without_input_is_said_once_and_runs_cold(layer: Bench) -> None:
    layer.hook(shell="exit 2")
    for _ in range(5):
        assert (await layer.run()).code == 2
        with anyio.fail_after(10):
            await layer.told.wait()
    assert layer.said == ["cannot be warm: it ends without reading its input, and is started when needed"]
    assert children() == []


async def test_a_process_that_is_killed_while_it_waits_is_not_missed(layer: Bench) -> None:
    layer.hook(shell="cat")
    await layer.run()
    (waiting,) = await layer.waits()
    os.kill(int(waiting), 9)
    await layer.waits(0)
    assert (await layer.run(b"x")).stdout == b"x"
    assert len(await layer.waits()) == 1
    assert layer.said == []


async def test_processes_that_wait_are_bounded_and_more_only_where_calls_overlap(layer: Bench) -> None:
    layer.hook(shell="cat", warm_spares=3)
    await layer.run()
    await layer.waits(1)
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(layer.run)
    assert len(await layer.waits(3)) == 3


async def test_a_timeout_and_a_cancel_end_it_as_any_hook(layer: Bench) -> None:
    layer.hook(shell="cat; sleep 60", timeout=0.3)
    for _ in range(2):
        assert (await layer.run()).ended is Ended.TIMED_OUT
        await layer.waits()
    with anyio.move_on_after(0.01):
        await layer.run()


async def test_a_command_that_is_not_there_is_a_failure_each_time(layer: Bench) -> None:
    layer.hook(argv=("no-such-hook",))
    for _ in range(2):
        assert (await layer.run()).ended is Ended.NOT_STARTED
        await anyio.sleep(0.01)


async def test_a_thousand_calls_leave_nothing_behind(layer: Bench) -> None:
    layer.hook(argv=("cat",), warm_spares=4)
    answers: list[bytes] = []

    async def ask(n: int) -> None:
        async with places:
            answers.append((await layer.run(b"%d" % n)).stdout)

    places = anyio.CapacityLimiter(8)
    async with anyio.create_task_group() as tasks:
        for n in range(1000):
            tasks.start_soon(ask, n)
    assert sorted(map(int, answers)) == list(range(1000))


async def test_an_interpreter_is_warm_too(layer: Bench) -> None:
    layer.hook(argv=(sys.executable, "-c", "import sys; sys.stdout.write(sys.stdin.read())"))
    for n in (b"1", b"2"):
        assert (await layer.run(n)).stdout == n
        await layer.waits()
