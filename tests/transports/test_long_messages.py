"""Long messages are looked at by a process of its own, which only refuses."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import hookproxy
from hookproxy.transports.long_messages import LongMessages

pytestmark = pytest.mark.anyio

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"%b"}}}'


@pytest.fixture
async def messages() -> AsyncIterator[LongMessages]:
    """They have their process."""
    made = LongMessages(print)
    yield made
    made.close()


def pieces(message: bytes) -> list[bytes]:
    return [message[:100_000], message[100_000:]]


async def test_a_message_that_can_be_read_passes_and_others_are_refused(messages: LongMessages) -> None:
    for message, why in (
        (CALL % (b"x" * 1_000_000), ""),
        (b"[" * 1_000_000, "It has more than 250000 JSON values"),
        (CALL % (b"x" * 200_000) + b"x", "It is not JSON that can be read"),
    ):
        assert await messages.why_refused("alice", pieces(message), 128) == why


async def test_a_process_that_ends_refuses_its_message_and_the_next_message_has_another(
    messages: LongMessages,
) -> None:
    assert await messages.why_refused("alice", [CALL % b"x"], 128) == ""
    assert messages._helper is not None
    os.kill(messages._helper.process.pid, signal.SIGKILL)
    assert await messages.why_refused("alice", [CALL % b"x"], 128) == "It could not be read in time"
    assert await messages.why_refused("alice", [CALL % b"x"], 128) == ""


async def test_whoever_gives_up_waiting_leaves_no_half_message_for_the_next(messages: LongMessages) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(messages.why_refused, "alice", pieces(b"[" * 4_000_000), 128)
            await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert await messages.why_refused("alice", [CALL % b"x"], 128) == ""


async def test_users_take_turns(messages: LongMessages) -> None:
    """Whoever sends many waits for himself: of each user, one message at most is before another's."""
    order: list[str] = []

    async def ask(user: str) -> None:
        await messages.why_refused(user, [CALL % b"x"], 128)
        order.append(user)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask, "alice")
        tasks.start_soon(ask, "bob")
    assert order.index("bob") <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says it")
async def test_the_process_has_nothing_of_ours(messages: LongMessages) -> None:
    await messages.why_refused("alice", [CALL % b"x"], 128)
    assert messages._helper is not None
    pid = messages._helper.process.pid
    descriptors = {os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")}
    assert descriptors <= {"socket", "/dev/null"}
    assert os.getsid(pid) == pid
    assert b"HOME" not in await anyio.Path(f"/proc/{pid}/environ").read_bytes()
    messages.close()
    assert not await anyio.Path(f"/proc/{pid}").exists()


async def test_it_is_found_whatever_hooks_in_python_have_made_of_the_path(
    messages: LongMessages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hookproxy").mkdir()
    (tmp_path / "hookproxy" / "__init__.py").write_text("raise SystemExit")
    root = str(Path(hookproxy.__file__).parents[1])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(entry for entry in sys.path if entry != root)])
    assert await messages.why_refused("alice", [CALL % b"x"], 128) == ""
