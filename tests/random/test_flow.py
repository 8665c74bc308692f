"""Law 1 for labels: whatever the order, no sink gets a call that the agent sent after it had read from a source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.settings import Settings
from tests.support.examples import examples
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
POLICY: Final = Settings(
    flow_sources=(Source(FlowMatch(tools=("read",), methods=("resources/read",)), ("secret",), "flow.sources[0]"),),
    flow_sinks=(Sink(FlowMatch(tools=("send",), methods=("prompts/get",)), ("secret",), "flow.sinks[0]", "deny"),),
)
CALLS: Final[dict[str, tuple[str, Json]]] = {
    "read": ("tools/call", {"name": "read", "arguments": {"x": "1"}}),
    "resource": ("resources/read", {"uri": "a:b"}),
    "send": ("tools/call", {"name": "send", "arguments": {"x": "1"}}),
    "prompt": ("prompts/get", {"name": "p"}),
    "other": ("tools/call", {"name": "other", "arguments": {}}),
}
SOURCES: Final = ("read", "resource")
SINKS: Final = ("send", "prompt")
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(sorted(CALLS))),
        st.tuples(st.sampled_from(("result", "error", "cancel", "log", "progress")), st.integers(0, 9)),
    ),
    max_size=25,
)


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode() + b"\n"


class Trace:
    """What was sent, and what each side has got so far."""

    def __init__(self, run: Rig) -> None:
        self._run = run
        self.kinds: list[str] = []  # of each call, by its id
        self.after_reading: set[int] = set()  # the calls that the agent sent after it had read from a source
        self.open: list[int] = []  # the calls that the server has not answered
        self.cancelled: set[int] = set()
        self.has_read = False
        self.answered = False  # a source has answered: what waits for that comes before the answer
        self.received: list[int] = []  # the calls that the server got

    async def step(self, what: str, value: str | int) -> None:
        if what == "call":
            number = len(self.kinds)
            self.kinds.append(str(value))
            self.after_reading |= {number} if self.has_read else set()
            method, params = CALLS[str(value)]
            sent = {**params, "_meta": {"progressToken": number}}
            await self._run.agent.deliver(line(id=number, method=method, params=sent))
        elif self.open:
            await self._answer(what, self.open[int(value) % len(self.open)])
        await self.settle()

    async def _answer(self, what: str, number: int) -> None:
        if what == "cancel":
            self.cancelled.add(number)
            await self._run.agent.deliver(line(method="notifications/cancelled", params={"requestId": number}))
        elif what == "log":
            await self._run.server.deliver(
                line(method="notifications/message", params={"level": "info", "data": "SECRET"})
            )
        elif what == "progress":
            params = {"progressToken": number, "progress": 1, "message": "SECRET"}
            await self._run.server.deliver(line(method="notifications/progress", params=params))
        else:
            self.open.remove(number)
            self.answered |= self.kinds[number] in SOURCES and number not in self.cancelled
            answer = {"result": {"content": []}} if what == "result" else {"error": {"code": -1, "message": "no"}}
            await self._run.server.deliver(line(id=number, **answer))

    async def settle(self) -> None:
        """A ping there and back comes after all that could happen before."""
        for _ in range(2):
            await self._run.agent.send(line(id="sync", method="ping"))
            while (message := await self._run.server.message()).get("method") != "ping":
                self._received(message)
            await self._run.server.send(line(id="sync", result={}))
            while (message := await self._run.agent.message()).get("id") != "sync":
                self._read(message)

    def _received(self, message: Json) -> None:
        number = message.get("id")
        if isinstance(number, int) and "method" in message:
            self.received.append(number)
            self.open.append(number)

    def _read(self, message: Json) -> None:
        """The agent gets a message: what a source has said, it has read."""
        number = message.get("id")
        if isinstance(number, int) and number in self.received and self.kinds[number] in SOURCES:
            self.has_read = True
        if "SECRET" in json.dumps(message) and self._may_be_of_source(message["params"]):
            raise AssertionError("a notification shows what a source may have said before its result")

    def _may_be_of_source(self, params: Json) -> bool:
        """A log message may be of any call in flight; progress names one."""
        waiting = set() if self.answered else set(self.open) - self.cancelled
        named = waiting & {params["progressToken"]} if "progressToken" in params else waiting
        return any(self.kinds[number] in SOURCES for number in named)


@given(STEPS)
@examples(30)
@pytest.mark.slow
async def test_no_sink_gets_a_call_that_was_sent_after_a_source_was_read(steps: Sequence[tuple[str, Any]]) -> None:
    async with rig(settings=POLICY) as run:
        trace = Trace(run)
        with anyio.fail_after(30):
            for step in steps:
                await trace.step(*step)
    for number in trace.received:
        assert not (trace.kinds[number] in SINKS and number in trace.after_reading)
    refused = {number for number, kind in enumerate(trace.kinds) if kind in SINKS} - set(trace.received)
    assert refused <= trace.after_reading  # nothing is refused that was sent before
