"""The guard's socket: when it ends, and what it leaves."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from hookproxy import __version__
from hookproxy.config.load import load
from hookproxy.dialects.agent_side import HookOutput
from hookproxy.guard import server
from hookproxy.guard.exchange import Request
from hookproxy.guard.judge import Judge
from hookproxy.guard.server import AnotherRuns, Guard
from hookproxy.guard.status import Status

pytestmark = pytest.mark.anyio


async def answer(_request: Request) -> HookOutput:
    return HookOutput(b"{}")


class Answering:
    """Answers events by a function."""

    current: Judge  # no run asks

    def __init__(self, judge: Callable[[Request], Awaitable[HookOutput]] = answer) -> None:
        self._judge = judge

    async def judge(self, request: Request) -> HookOutput:
        return await self._judge(request)

    def status(self) -> Status:
        return Status(pid=os.getpid(), since=0, version="", config="", problem="", fails_closed=False)


def request() -> bytes:
    return b"hookproxy-guard 1 claude 1 1 2\n/\0{}"


async def test_it_ends_when_nobody_has_asked_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "guard"
    guard = Guard(str(folder), print)
    with pytest.raises(AnotherRuns):
        Guard(str(folder), print)
    with anyio.fail_after(30):
        await guard.serve(Answering(), 0.01)
    assert list(folder.iterdir()) == []
    Guard(str(folder), print).close()


async def test_it_ends_when_its_socket_was_removed_and_leaves_that_of_another_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LOOK_SECONDS", 0.01)
    folder = tmp_path / "guard"
    guard = Guard(str(folder), print)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard.serve, Answering(), 60)
            await anyio.sleep(0.05)
            with pytest.raises(AnotherRuns):
                Guard(str(folder), print)  # it has not ended for nothing
            folder.rename(tmp_path / "removed")
            other = Guard(str(folder), print)
    assert (folder / "guard.sock").exists()
    other.close()
    assert not (folder / "guard.sock").exists()


async def test_a_guard_whose_socket_alone_was_removed_makes_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LOOK_SECONDS", 0.01)
    guard = Guard(str(tmp_path / "guard"), print)
    (tmp_path / "guard" / "guard.sock").unlink()
    with anyio.fail_after(30):
        await guard.serve(Answering(), 60)
    Guard(str(tmp_path / "guard"), print).close()


async def test_a_line_of_a_run_may_come_in_any_pieces(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text("")
    loaded = load(str(tmp_path / "hookproxy.toml"), [], None, {"HOME": str(tmp_path)}, str(tmp_path))
    join = b'{"type":"Join","version":"%b","server":"files","session":"own"}\n' % __version__.encode()
    pieces = [
        b"hookproxy-guard 1 run\n" + join[:9],
        join[9:20],
        join[20:] + b'{"type"',
        b':"Approvals"}\n{',
        b'"type":',
    ]
    guard = Guard(str(tmp_path / "guard"), print)
    answering = Answering()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            answering.current = judge = Judge(loaded, tasks, print)
            tasks.start_soon(guard.serve, answering, 60)
            async with await anyio.connect_unix(tmp_path / "guard" / "guard.sock") as client:
                heard = b""
                for piece in pieces:
                    await client.send(piece)
                    await anyio.wait_all_tasks_blocked()
                while heard.count(b"\n") < 2:
                    heard += await client.receive()
            guard.end(at_once=True)
            await judge.aclose()
    assert heard == b'{"session":"own"}\n' * 2


async def test_it_does_not_end_while_it_judges(tmp_path: Path) -> None:
    asked, judged = anyio.Event(), anyio.Event()

    async def wait(_request: Request) -> HookOutput:
        asked.set()
        await judged.wait()
        return HookOutput(b"{}")

    guard = Guard(str(tmp_path / "guard"), print)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard.serve, Answering(wait), 0.2)
            async with await anyio.connect_unix(tmp_path / "guard" / "guard.sock") as client:
                await client.send(request())
                await asked.wait()
                guard.end(at_once=False)
                await anyio.lowlevel.checkpoint()
                judged.set()
                assert await client.receive() == b"0 2 0\n{}"


async def test_an_event_for_which_there_is_no_room_is_refused_and_not_left_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(_request: Request) -> HookOutput:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(server, "_MOST_HELD", 10)
    monkeypatch.setattr(server, "_WAITING_SECONDS", 0.01)
    guard = Guard(str(tmp_path / "guard"), print)
    long_request = b"hookproxy-guard 1 claude 1 1 6\n/\0{    }"
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard.serve, Answering(wait), 1000)
            async with await anyio.connect_unix(tmp_path / "guard" / "guard.sock") as first:
                await first.send(long_request)
                async with await anyio.connect_unix(tmp_path / "guard" / "guard.sock") as second:
                    await second.send(long_request)
                    assert (await second.receive()).startswith(b"2 0 ")
            guard.end(at_once=True)


@pytest.mark.parametrize("begun", [b"", request()[:5], request()])
async def test_if_it_ends_at_once_nobody_can_ask_it_any_more_when_a_client_hears_of_it(
    begun: bytes, tmp_path: Path
) -> None:
    async def wait(_request: Request) -> HookOutput:
        await anyio.sleep_forever()
        raise AssertionError

    guard = Guard(str(tmp_path / "guard"), print)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard.serve, Answering(wait), 1000)
            async with await anyio.connect_unix(tmp_path / "guard" / "guard.sock") as client:
                await client.send(begun or b"h")
                await anyio.lowlevel.checkpoint()
                guard.end(at_once=True)
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await client.receive()
            with pytest.raises(OSError, match=r"connection attempts|No such file"):
                await anyio.connect_unix(tmp_path / "guard" / "guard.sock")
