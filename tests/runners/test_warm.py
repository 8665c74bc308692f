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
        self.kept = warm.keep([], self.say)

    def say(self, _spec: HookSpec, text: str) -> None:
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
async def bench() -> AsyncIterator[Bench]:
    true = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "true", argv=("/bin/true",))
    await command.run(true, Document(b"", {}), {})  # the loop's watch is there from now on
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    bench = Bench()
    yield bench
    await bench.kept.aclose()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() == []


async def test_the_first_call_runs_cold_and_the_next_by_the_process_that_waits(bench: Bench) -> None:
    bench.hook(shell="echo $$; cat; echo oops >&2; exit 2")
    assert children() == []
    first = await bench.run(b"1")
    assert (first.ended, first.code, first.stderr) == (Ended.EXITED, 2, b"oops\n")
    for n in (b"2", b"3"):
        (waiting,) = await bench.waits()
        result = await bench.run(n)
        assert result.stdout == waiting.encode() + b"\n" + n
        assert (result.code, result.stderr) == (2, b"oops\n")


async def test_a_process_is_never_used_twice(bench: Bench) -> None:
    bench.hook(shell="echo $$; cat >/dev/null")
    pids = []
    for _ in range(20):
        pids.append((await bench.run()).stdout)
        await bench.waits()
    assert len(set(pids)) == 20


@pytest.mark.parametrize("size", [70_000, 3_000_000])
async def test_a_long_document_arrives_whole(bench: Bench, size: int) -> None:
    bench.hook(argv=("cat",))
    await bench.run()
    await bench.waits()
    assert len((await bench.run(b"x" * size)).stdout) == size


async def test_folder_and_environment_are_as_for_a_new_process(bench: Bench, tmp_path: Path) -> None:
    bench.hook(shell="cat >/dev/null; pwd; env | grep -v '^_='", cwd=str(tmp_path), env=(("OWN", "1"),))
    cold = await bench.run(A="1")
    await bench.waits()
    assert sorted((await bench.run(A="1")).stdout.split(b"\n")) == sorted(cold.stdout.split(b"\n"))


async def test_a_process_with_another_environment_is_not_used(bench: Bench) -> None:
    bench.hook(shell="cat >/dev/null; echo $A")
    await bench.run(A="1")
    await bench.waits()
    assert (await bench.run(A="2")).stdout == b"2\n"


@pytest.mark.parametrize("how", ["argv", "shell", "variable"])
async def test_a_script_that_changes_between_calls_runs_as_it_is_now(bench: Bench, tmp_path: Path, how: str) -> None:
    script = tmp_path / "hook.sh"
    script.write_text("cat >/dev/null; echo one")
    shell = f"sh '{script}'; true" if how == "shell" else 'sh "$P"/hook.sh; true'
    bench.hook(**({"argv": ("sh", "hook.sh"), "cwd": str(tmp_path)} if how == "argv" else {"shell": shell}))
    await bench.run(P=str(tmp_path))
    (waiting,) = await bench.waits()
    script.write_text("cat >/dev/null; echo another")
    assert (await bench.run(P=str(tmp_path))).stdout == b"another\n"
    assert (await bench.waits()) != [waiting]
    assert (await bench.run(P=str(tmp_path))).stdout == b"another\n"


async def test_what_waits_is_ended_unused_once_a_file_that_no_word_names_has_been_written(bench: Bench) -> None:
    bench.hook(shell="echo $$; cat >/dev/null")
    await bench.run()
    (waiting,) = await bench.waits()
    bench.kept.renew(bench.spec)
    assert (await bench.run()).stdout != waiting.encode() + b"\n"
    await bench.waits()


async def test_a_configuration_that_changes_replaces_what_waits(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    bench.hook(shell="cat >/dev/null; echo $$", source=f"{file}: hooks.PreToolUse[0]")
    await bench.run()
    (waiting,) = await bench.waits()
    file.write_text("{ }")
    assert (await bench.run()).stdout != f"{waiting}\n".encode()


async def test_what_waits_too_long_is_ended_and_the_next_call_runs_cold(bench: Bench) -> None:
    bench.hook(shell="cat", warm_max_age=0.05)
    await bench.run()
    await bench.waits()
    await bench.waits(0)
    assert (await bench.run(b"x")).stdout == b"x"
    assert bench.said == []


async def test_a_hook_that_ends_without_input_is_said_once_and_runs_cold(bench: Bench) -> None:
    bench.hook(shell="exit 2")
    for _ in range(5):
        assert (await bench.run()).code == 2
        with anyio.fail_after(10):
            await bench.told.wait()
    assert bench.said == ["is not fit to be warm: it ends without its input, and is started when needed"]
    assert children() == []


async def test_a_process_that_is_killed_while_it_waits_is_not_missed(bench: Bench) -> None:
    bench.hook(shell="cat")
    await bench.run()
    (waiting,) = await bench.waits()
    os.kill(int(waiting), 9)
    await bench.waits(0)
    assert (await bench.run(b"x")).stdout == b"x"
    assert len(await bench.waits()) == 1
    assert bench.said == []


async def test_processes_that_wait_are_bounded_and_more_only_where_calls_overlap(bench: Bench) -> None:
    bench.hook(shell="cat", warm_spares=3)
    await bench.run()
    await bench.waits(1)
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(bench.run)
    assert len(await bench.waits(3)) == 3


async def test_a_timeout_and_a_cancel_end_it_as_any_hook(bench: Bench) -> None:
    bench.hook(shell="cat; sleep 60", timeout=0.3)
    for _ in range(2):
        assert (await bench.run()).ended is Ended.TIMED_OUT
        await bench.waits()
    with anyio.move_on_after(0.01):
        await bench.run()


async def test_a_command_that_is_not_there_is_trouble_each_time(bench: Bench) -> None:
    bench.hook(argv=("no-such-hook",))
    for _ in range(2):
        assert (await bench.run()).ended is Ended.NOT_STARTED
        await anyio.sleep(0.01)


async def test_a_thousand_calls_leave_nothing_behind(bench: Bench) -> None:
    bench.hook(argv=("cat",), warm_spares=4)
    answers: list[bytes] = []

    async def ask(n: int) -> None:
        async with places:
            answers.append((await bench.run(b"%d" % n)).stdout)

    places = anyio.CapacityLimiter(8)
    async with anyio.create_task_group() as tasks:
        for n in range(1000):
            tasks.start_soon(ask, n)
    assert sorted(map(int, answers)) == list(range(1000))


async def test_an_interpreter_is_warm_too(bench: Bench) -> None:
    bench.hook(argv=(sys.executable, "-c", "import sys; sys.stdout.write(sys.stdin.read())"))
    for n in (b"1", b"2"):
        assert (await bench.run(n)).stdout == n
        await bench.waits()
