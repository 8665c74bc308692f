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
from hookproxy.transports.event_loop import new_loop
from tests.support.child_processes import children

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


class Harness:
    """A warm hook, and what was reported about it."""

    def __init__(self) -> None:
        self.reports: list[str] = []
        self.reported = anyio.Event()
        self.spec = HookSpec("claude", "/no/file: k", Event.PRE_TOOL_USE, "w", type="warm", timeout=20)
        self.runner = warm.open_runner([], self.report)

    def report(self, _spec: HookSpec, text: str) -> None:
        self.reports.append(text)
        self.reported.set()

    def hook(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a HookSpec
        self.spec = replace(self.spec, **changes)

    async def run(self, document: bytes = b"{}", **env: str) -> HookResult:
        with anyio.fail_after(30):
            return await self.runner.run(self.spec, Document(document, env), ENVIRON)

    async def spares(self, count: int = 1, *, other_than: str = "") -> list[str]:
        """Wait until there are so many spare processes, and none is the one named, and return their ids.

        A spare that was killed is among the children until it is reaped.
        """
        with anyio.fail_after(30):
            while len(found := children()) != count or other_than in found:  # noqa: ASYNC110 - there is no event for it
                await anyio.sleep(0.001)
        return list(found)


ENVIRON = dict(os.environ)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    true = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "true", argv=("/bin/true",))
    await command.run_command(true, Document(b"", {}), {})  # the loop's watch is there from now on
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    harness = Harness()
    yield harness
    await harness.runner.aclose()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() == {}


async def test_the_first_call_starts_a_process_and_the_next_uses_the_spare(harness: Harness) -> None:
    harness.hook(shell="echo $$; cat; echo oops >&2; exit 2")
    assert children() == {}
    first = await harness.run(b"1")
    assert (first.ended, first.code, first.stderr) == (Ended.EXITED, 2, b"oops\n")
    for n in (b"2", b"3"):
        (spare,) = await harness.spares()
        result = await harness.run(n)
        assert result.stdout == spare.encode() + b"\n" + n
        assert (result.code, result.stderr) == (2, b"oops\n")


async def test_a_process_is_never_used_twice(harness: Harness) -> None:
    harness.hook(shell="echo $$; cat >/dev/null")
    pids = []
    for _ in range(20):
        pids.append((await harness.run()).stdout)
        await harness.spares()
    assert len(set(pids)) == 20


@pytest.mark.parametrize("size", [70_000, 3_000_000])
async def test_a_long_document_arrives_whole(harness: Harness, size: int) -> None:
    harness.hook(argv=("cat",))
    await harness.run()
    await harness.spares()
    assert len((await harness.run(b"x" * size)).stdout) == size


async def test_folder_and_environment_are_as_for_a_new_process(harness: Harness, tmp_path: Path) -> None:
    harness.hook(shell="cat >/dev/null; pwd; env | grep -v '^_='", cwd=str(tmp_path), env=(("OWN", "1"),))
    cold = await harness.run(A="1")
    await harness.spares()
    assert sorted((await harness.run(A="1")).stdout.split(b"\n")) == sorted(cold.stdout.split(b"\n"))


async def test_a_spare_with_another_environment_is_not_used(harness: Harness) -> None:
    harness.hook(shell="cat >/dev/null; echo $A")
    await harness.run(A="1")
    await harness.spares()
    assert (await harness.run(A="2")).stdout == b"2\n"


@pytest.mark.parametrize("how", ["argv", "shell", "variable"])
async def test_a_script_that_changes_between_calls_runs_as_changed(harness: Harness, tmp_path: Path, how: str) -> None:
    script = tmp_path / "hook.sh"
    script.write_text("cat >/dev/null; echo one")
    shell = f"sh '{script}'; true" if how == "shell" else 'sh "$P"/hook.sh; true'
    harness.hook(**({"argv": ("sh", "hook.sh"), "cwd": str(tmp_path)} if how == "argv" else {"shell": shell}))
    await harness.run(P=str(tmp_path))
    (spare,) = await harness.spares()
    script.write_text("cat >/dev/null; echo another")
    assert (await harness.run(P=str(tmp_path))).stdout == b"another\n"
    await harness.spares(other_than=spare)
    assert (await harness.run(P=str(tmp_path))).stdout == b"another\n"


async def test_a_spare_is_ended_unused_when_it_is_invalidated(harness: Harness) -> None:
    harness.hook(shell="echo $$; cat >/dev/null")
    await harness.run()
    (spare,) = await harness.spares()
    harness.runner.invalidate(harness.spec)
    assert (await harness.run()).stdout != spare.encode() + b"\n"
    await harness.spares()


async def test_a_changed_configuration_replaces_the_spare(harness: Harness, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    harness.hook(shell="cat >/dev/null; echo $$", source=f"{file}: hooks.PreToolUse[0]")
    await harness.run()
    (spare,) = await harness.spares()
    file.write_text("{ }")
    assert (await harness.run()).stdout != f"{spare}\n".encode()


async def test_a_spare_that_waits_too_long_is_ended_and_the_next_call_starts_a_process(harness: Harness) -> None:
    harness.hook(shell="cat", warm_max_age=0.05)
    await harness.run()
    await harness.spares()
    await harness.spares(0)
    assert (await harness.run(b"x")).stdout == b"x"
    assert harness.reports == []


async def test_a_hook_that_ends_without_input_is_reported_once_and_gets_no_spares(harness: Harness) -> None:
    harness.hook(shell="exit 2")
    for _ in range(5):
        assert (await harness.run()).code == 2
        with anyio.fail_after(30):
            await harness.reported.wait()
    assert harness.reports == ["cannot be warm: it ends without reading its input, and is started when needed"]
    assert children() == {}


async def test_a_spare_that_is_killed_while_it_waits_is_replaced(harness: Harness) -> None:
    harness.hook(shell="cat")
    await harness.run()
    (spare,) = await harness.spares()
    os.kill(int(spare), 9)
    await harness.spares(0)
    assert (await harness.run(b"x")).stdout == b"x"
    assert len(await harness.spares()) == 1
    assert harness.reports == []


async def test_spares_are_limited_and_several_only_when_calls_overlap(harness: Harness) -> None:
    harness.hook(shell="cat", warm_spares=3)
    await harness.run()
    await harness.spares(1)
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(harness.run)
    assert len(await harness.spares(3)) == 3


async def test_a_timeout_and_a_cancel_end_it_as_any_hook(harness: Harness) -> None:
    harness.hook(shell="cat; sleep 60", timeout=0.3)
    for _ in range(2):
        assert (await harness.run()).ended is Ended.TIMED_OUT
        await harness.spares()
    with anyio.move_on_after(0.01):
        await harness.run()


async def test_a_command_that_is_not_there_is_a_failure_each_time(harness: Harness) -> None:
    harness.hook(argv=("no-such-hook",))
    for _ in range(2):
        assert (await harness.run()).ended is Ended.NOT_STARTED
        await anyio.sleep(0.01)


async def test_a_thousand_calls_leave_nothing_behind(harness: Harness) -> None:
    harness.hook(argv=("cat",), warm_spares=4)
    outputs: list[bytes] = []

    async def ask(n: int) -> None:
        async with places:
            outputs.append((await harness.run(b"%d" % n)).stdout)

    places = anyio.CapacityLimiter(8)
    async with anyio.create_task_group() as tasks:
        for n in range(1000):
            tasks.start_soon(ask, n)
    assert sorted(map(int, outputs)) == list(range(1000))


async def test_an_interpreter_is_warm_too(harness: Harness) -> None:
    harness.hook(argv=(sys.executable, "-c", "import sys; sys.stdout.write(sys.stdin.read())"))
    for n in (b"1", b"2"):
        assert (await harness.run(n)).stdout == n
        await harness.spares()
