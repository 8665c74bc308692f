"""In a process with many sessions, what fails while bytes are read ends one of them."""

from __future__ import annotations

import os
import socket

import anyio
import anyio.lowlevel
import pytest

from hookproxy.transports.event_loop import contain_failures
from hookproxy.transports.pipe import open_channel
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def test_a_session_whose_reader_fails_ends_and_the_others_go_on() -> None:
    reports: list[str] = []
    contain_failures(reports.append)
    (ours, theirs), (our_other, their_other) = socket.socketpair(), socket.socketpair()
    failing = open_channel(os.dup(ours.fileno()), ours.detach())
    going_on = open_channel(os.dup(our_other.fileno()), our_other.detach())
    ended, came = anyio.Event(), anyio.Event()

    def fail(piece: bytes) -> None:
        raise RuntimeError(f"a defect in {piece!r}")

    failing.start(fail, ended.set, lambda _full: None, lambda: None)
    going_on.start(lambda _piece: came.set(), lambda: None, lambda _full: None, lambda: None)
    theirs.send(b"one")
    their_other.send(b"two")
    with anyio.fail_after(30):
        await ended.wait()
        await came.wait()
    assert failing.gone
    assert "a defect in b'one'" in reports[0]
    going_on.write(b"three")
    assert their_other.recv(10) == b"three"
    for channel in (failing, going_on):
        channel.close()
    theirs.close()
    their_other.close()


async def test_a_failure_while_the_end_is_told_is_reported_too() -> None:
    reports: list[str] = []
    contain_failures(reports.append)
    ours, theirs = socket.socketpair()
    failed = anyio.Event()

    def fail(*_args: object) -> None:
        failed.set()
        raise RuntimeError("a defect")

    channel = open_channel(os.dup(ours.fileno()), ours.detach())
    channel.start(fail, fail, lambda _full: None, lambda: None)
    theirs.send(b"x")
    with anyio.fail_after(30):
        await failed.wait()
        await anyio.lowlevel.checkpoint()
    assert len(reports) == 2
    assert "its end has failed, too" in reports[1]
    channel.close()
    theirs.close()
