"""Long lines of an agent are looked at elsewhere before they are read, and all lines stay in order."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Final

import anyio
import anyio.abc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.protocol.actions import AgentAction, Refused, ServerAction
from hookproxy.protocol.router import Router
from hookproxy.session.relay import Relay
from hookproxy.transports.lines import LONG_BYTES
from tests.support.examples import examples
from tests.support.recording_channel import RecordingChannel

pytestmark = pytest.mark.anyio

LIMIT: Final = 4 * LONG_BYTES


def call(number: int, size: int, more: bytes = b"") -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":{"a":"%b"}}}%b\n' % (
        number,
        b"x" * size,
        more,
    )


class Scene:
    """A relay whose long lines are looked at, between two recording channels."""

    limit = LIMIT

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self.agent, self.server = RecordingChannel(), RecordingChannel()
        self.looked_at: list[bytes] = []
        self.refused: list[Refused] = []
        self.ended = False
        self.may_go_on = anyio.Event()
        self.may_go_on.set()
        relay = Relay(self.agent, self.server, Router(lambda _tool: False), 1 << 26, True, self.perform)

        def spawn(function: Callable[..., Coroutine[object, object, None]]) -> None:
            tasks.start_soon(function)

        relay.look_at_long_lines(self, spawn)
        relay.start(self.end, lambda: None, lambda: None)

    def perform(self, action: AgentAction | ServerAction, _line: bytes) -> None:
        if isinstance(action, Refused):
            self.refused.append(action)

    def end(self) -> None:
        self.ended = True

    async def why_refused(self, pieces: Sequence[bytes]) -> str:
        """Lines that end with an exclamation mark."""
        self.looked_at.append(b"".join(pieces))
        await self.may_go_on.wait()
        return "It shouts" if pieces[-1].endswith(b"!\n") else ""

    def note_time(self, size: int, seconds: float) -> None:
        assert size >= LONG_BYTES
        assert seconds >= 0


async def test_a_short_line_is_not_looked_at() -> None:
    async with anyio.create_task_group() as tasks:
        scene = Scene(tasks)
        scene.agent.says(call(1, 10))
        assert scene.server.got == call(1, 10)
    assert not scene.looked_at


async def test_what_comes_after_a_long_line_waits_for_it_and_nothing_more_is_read() -> None:
    async with anyio.create_task_group() as tasks:
        scene = Scene(tasks)
        scene.may_go_on = anyio.Event()
        scene.agent.says(call(1, LONG_BYTES) + call(2, 10))
        scene.agent.says(call(3, 10))
        assert not scene.agent.reading
        assert not scene.server.got
        scene.agent.ends()
        assert not scene.ended
        scene.may_go_on.set()
    assert scene.server.got == call(1, LONG_BYTES) + call(2, 10) + call(3, 10)
    assert scene.agent.reading
    assert scene.ended


async def test_a_line_that_may_not_be_read_is_refused_with_its_id() -> None:
    async with anyio.create_task_group() as tasks:
        scene = Scene(tasks)
        scene.agent.says(call(7, LONG_BYTES, b"!") + call(8, 10))
    assert scene.server.got == call(8, 10)
    assert [(refused.why, refused.id) for refused in scene.refused] == [("It shouts.", b"7")]


async def test_a_line_over_the_limit_is_dropped_with_the_name_of_the_limit() -> None:
    async with anyio.create_task_group() as tasks:
        scene = Scene(tasks)
        long = call(7, 2 * LIMIT)
        for at in range(0, len(long), 50_000):
            scene.agent.says(long[at : at + 50_000])
        scene.agent.says(call(8, 10))
    assert scene.server.got == call(8, 10)
    assert f"{LIMIT} (max_request_bytes)" in scene.refused[0].why
    assert not scene.looked_at


@examples(12)
@given(
    st.lists(st.sampled_from([10, 10, LONG_BYTES, 2 * LONG_BYTES]), min_size=1, max_size=6),
    st.lists(st.integers(1, 65_536), max_size=8),
)
def test_lines_stay_in_order_however_they_are_cut(sizes: list[int], cuts: list[int]) -> None:
    text = b"".join(call(number, size) for number, size in enumerate(sizes))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            scene = Scene(tasks)
            at = 0
            for cut in (*cuts, *[65_536] * (len(text) // 65_536 + 1)):  # as a pipe is read
                if at < len(text):
                    scene.agent.says(text[at : at + cut])
                at += cut
            scene.agent.ends()
        assert scene.server.got == text
        assert scene.looked_at == [call(n, size) for n, size in enumerate(sizes) if size >= LONG_BYTES]
        assert scene.ended

    anyio.run(run)
