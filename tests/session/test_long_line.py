"""A long line passes in pieces, in one mode at a time, and the next line is read whatever became of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hookproxy.protocol.actions import AgentAction, Dropped, ServerAction
from hookproxy.protocol.router import Router
from hookproxy.session.long_line import LongLine, Mode
from hookproxy.transports.channel import Passage


class Beside(Passage):
    size = None

    def __init__(self) -> None:
        self.got = bytearray()
        self.ends: list[str] = []

    def write(self, piece: bytes) -> None:
        self.got += piece

    def end(self) -> None:
        self.ends.append("end")

    def abort(self) -> None:
        self.ends.append("abort")


HEAD = b'{"jsonrpc":"2.0","id":1,"result":{"text":"'
Scene = tuple[LongLine, bytearray, Router, list[AgentAction | ServerAction]]


@pytest.fixture
def scene() -> Scene:
    agent, router = bytearray(), Router(lambda tool: tool == "judged")
    actions: list[AgentAction | ServerAction] = []
    return (
        LongLine(agent.extend, router, 100, lambda action, _line: actions.append(action), bytes),
        agent,
        router,
        actions,
    )


def judge(router: Router) -> None:
    """A judged call is in flight from now on."""
    router.from_agent(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"judged"}}\n')


def test_a_line_that_nobody_reads_passes_as_it_comes(scene: Scene) -> None:
    long_line, agent, *_ = scene
    long_line.begin(HEAD)
    modes = [long_line.mode]
    assert long_line.read(b"more") == b""
    assert long_line.read(b'"}}\nnext') == b"next"
    assert [*modes, long_line.mode] == [Mode.PIECES, Mode.WHOLE]
    assert agent == HEAD + b'more"}}\n'


def test_a_line_that_fills_memory_while_a_call_is_judged_is_broken_and_its_rest_dropped(scene: Scene) -> None:
    long_line, agent, router, actions = scene
    long_line.begin(HEAD)
    judge(router)
    long_line.read(b"x" * 101)
    assert (long_line.mode, bytes(agent[-2:])) == (Mode.BROKEN, b"!\n")
    before = bytes(agent)
    assert long_line.read(b'secret"}}\nnext') == b"next"
    assert (long_line.mode, bytes(agent)) == (Mode.WHOLE, before)
    assert [type(action) for action in actions] == [Dropped]


@pytest.mark.parametrize("ends", [True, False], ids=["line ends", "server ends"])
def test_the_request_of_a_broken_line_gets_an_error_wherever_its_id_stands(scene: Scene, ends: bool) -> None:
    long_line, _, router, actions = scene
    router.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    long_line.begin(HEAD.replace(b'"id":1,', b""))
    judge(router)
    long_line.read(b"x" * 101)
    long_line.read(b'"},"i')
    long_line.read(b'd":1}' + b"\n" * ends)
    assert ends or not long_line.end_of_input()
    assert [action.id for action in actions if isinstance(action, Dropped)] == [b"1"]


@pytest.mark.parametrize("end", [lambda line: line.read(b'"}}\nnext'), lambda line: line.end_of_input()])
def test_a_response_beside_the_others_is_cut_off_when_it_is_too_long(
    scene: Scene, end: Callable[[LongLine], object]
) -> None:
    long_line, agent, _, actions = scene
    beside = Beside()
    long_line.find_passage = lambda _id: beside
    long_line.begin(HEAD)
    assert (long_line.mode, bytes(beside.got)) == (Mode.BESIDE, HEAD)
    long_line.read(b"x" * 101)
    assert (long_line.mode, beside.ends) == (Mode.CUT, ["abort"])
    end(long_line)
    assert (long_line.mode, beside.ends, bytes(agent)) == (Mode.WHOLE, ["abort"], b"")
    assert len(actions) == 1


def test_a_response_beside_the_others_ends_with_its_line_or_is_cut_off_with_the_server(scene: Scene) -> None:
    long_line, *_ = scene
    beside = Beside()
    long_line.find_passage = lambda _id: beside
    long_line.begin(HEAD)
    assert long_line.read(b'"}}\nnext') == b"next"
    long_line.begin(HEAD)
    assert not long_line.end_of_input()
    assert beside.ends == ["end", "abort"]


def test_at_the_end_of_input_the_agent_may_have_a_line_without_its_end(scene: Scene) -> None:
    long_line, *_ = scene
    long_line.begin(HEAD)
    assert long_line.end_of_input()
    assert long_line.mode is Mode.WHOLE
    assert not long_line.end_of_input()
