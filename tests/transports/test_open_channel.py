"""A channel is opened over any pair of descriptors, in the loop that can serve it."""

from __future__ import annotations

import os

import anyio
import pytest

from hookproxy.model.errors import UserError
from hookproxy.transports.epoll_loop import new_loop
from hookproxy.transports.pipe import Pipe, open_channel


def test_a_channel_owns_both_descriptors_and_waits_for_neither() -> None:
    source, theirs = os.pipe()
    part, sink = os.pipe()

    async def open_and_close() -> None:
        channel = open_channel(source, sink)
        assert isinstance(channel, Pipe)
        channel.start(lambda _piece: None, lambda: None, lambda _full: None, lambda: None)
        channel.write(b"x")
        assert os.read(part, 1) == b"x"
        channel.close()

    before = set(os.listdir("/proc/self/fd"))
    anyio.run(open_and_close, backend_options={"loop_factory": new_loop})
    assert len(set(os.listdir("/proc/self/fd"))) == len(before) - 2
    os.close(theirs)
    os.close(part)


def test_where_there_is_no_epoll_that_is_said() -> None:
    async def open_it() -> None:
        with pytest.raises(UserError, match="no epoll"):
            open_channel(0, 1)

    anyio.run(open_it)
