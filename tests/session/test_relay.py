"""The two directions: what passes, in which order, in which pieces, and what happens to lines that are too long."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.model.hooks import Tool
from hookproxy.protocol.actions import (
    AgentAction,
    CallAnswered,
    CancelCall,
    Dropped,
    NotJson,
    Refused,
    ServerAction,
    SessionOpened,
    StartCall,
)
from hookproxy.protocol.calls import Call
from hookproxy.protocol.router import Router
from hookproxy.session.relay import STREAM_FROM_BYTES, Relay
from tests.support.recording_channel import RecordingChannel

LIMIT: Final = 300_000
INITIALIZE: Final = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}\n'
CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"}}\n'
SAFE: Final = b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"safe"}}\n'
NOTE: Final = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
CANCEL: Final = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'


def answer(number: int, size: int = 0) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"x":"%b"}}\n' % (number, b"x" * size)


class Scene:
    """A relay between two recording channels."""

    def __init__(self, strict: bool = True, limit: int = LIMIT) -> None:
        self.agent, self.server = RecordingChannel(), RecordingChannel()
        self.router = Router((lambda tool: tool == "danger") if strict else None)
        self.performed: list[AgentAction | ServerAction] = []
        self.lines: list[bytes] = []
        self.callbacks: list[str] = []
        self.order: list[bytes | str] = []
        self.relay = Relay(self.agent, self.server, self.router, limit, strict, self.perform)
        self.relay.start(
            lambda: self.callbacks.append("agent ended"),
            lambda: self.callbacks.append("agent gone"),
            lambda: self.callbacks.append("server ended"),
        )

    def perform(self, action: AgentAction | ServerAction, line: bytes) -> None:
        self.performed.append(action)
        self.lines.append(line)
        self.order += (*self.server.written, type(action).__name__)

    @property
    def read(self) -> set[str]:
        """The sides whose bytes are read now."""
        return {name for name, one in (("agent", self.agent), ("server", self.server)) if one.reading}

    def call(self) -> Call:
        """A call with hooks that has been forwarded."""
        self.agent.says(CALL)
        action = self.performed[-1]
        assert isinstance(action, StartCall)
        assert self.router.calls.release(action.call)
        return action.call


def test_lines_that_concern_no_hook_pass_in_one_write() -> None:
    scene = Scene()
    block = INITIALIZE + NOTE + SAFE + NOTE
    scene.agent.says(block)
    assert scene.server.written == [block]
    block = answer(8) + NOTE
    scene.server.says(block)
    assert scene.agent.written == [block]


def test_lines_pass_when_they_are_whole() -> None:
    scene = Scene()
    for at in range(len(NOTE)):
        assert scene.server.written == []
        scene.agent.says(NOTE[at : at + 1])
    assert scene.server.written == [NOTE]
    scene.server.says(NOTE[:10])
    assert scene.agent.written == []
    scene.server.says(NOTE[10:] + NOTE[:5])
    assert scene.agent.written == [NOTE]


def test_lines_before_and_after_a_call_with_hooks_keep_their_order() -> None:
    scene = Scene()
    scene.agent.says(INITIALIZE + NOTE + CALL + SAFE + b"nonsense\n" + NOTE)
    assert scene.server.got == INITIALIZE + NOTE + SAFE + NOTE
    assert [type(action) for action in scene.performed] == [SessionOpened, StartCall, Refused]
    assert scene.lines[1:] == [CALL, b"nonsense\n"]
    assert scene.order[1:3] == [INITIALIZE + NOTE, "StartCall"]


def test_a_line_that_must_be_re_encoded_passes_re_encoded() -> None:
    scene = Scene()
    scene.agent.says(NOTE.replace(b",", b",\r") + NOTE)
    assert scene.server.got == NOTE.replace(b",", b", ") + NOTE
    assert scene.performed == []


def test_the_session_opens_once() -> None:
    scene = Scene()
    scene.agent.says(NOTE)
    scene.agent.says(INITIALIZE)
    scene.agent.says(INITIALIZE.replace(b'"i"', b'"j"') + SAFE)
    assert [type(action) for action in scene.performed] == [SessionOpened]


def test_without_hooks_bytes_are_sent_on_before_they_are_read() -> None:
    scene = Scene(strict=False)
    pieces = [b'{"id":', b"1,", b"not json\n\xff", CALL, CALL + b"x" * 100]
    for piece in pieces:
        scene.agent.says(piece)
    assert scene.server.written == pieces
    assert [action for action in scene.performed if not isinstance(action, SessionOpened)] == []


def test_without_hooks_a_request_without_a_line_end_is_known() -> None:
    scene = Scene(strict=False)
    scene.agent.says(SAFE.strip())
    scene.agent.ends()
    assert scene.server.got == SAFE.strip()
    assert scene.router.pending, "the end of the run waits for what is pending"


def test_an_unterminated_last_line_is_a_message() -> None:
    scene = Scene()
    scene.agent.says(NOTE + NOTE.strip())
    assert scene.server.got == NOTE
    scene.agent.ends()
    assert scene.server.got == NOTE + NOTE.strip()
    assert scene.callbacks == ["agent ended"]
    judged = Scene()
    judged.agent.says(CALL.strip())
    judged.agent.ends()
    assert isinstance(judged.performed[-1], StartCall)
    assert judged.server.got == b""


def test_lines_of_waiting_calls_do_not_run_into_an_unterminated_last_line() -> None:
    scene = Scene()
    scene.agent.says(CALL + NOTE.strip())
    scene.agent.ends()
    scene.relay.to_server(CALL)
    assert scene.server.got == NOTE + CALL


def test_a_line_of_the_agent_beyond_the_limit_is_refused_and_the_next_one_is_not() -> None:
    scene = Scene()
    long = SAFE.replace(b'"safe"', b'"%b"' % (b"x" * LIMIT))
    for at in range(0, len(long), 50_000):
        scene.agent.says(long[at : at + 50_000])
    scene.agent.says(NOTE)
    (refused,) = scene.performed
    assert isinstance(refused, Refused)
    assert "max_message_bytes" in refused.why
    assert str(LIMIT) in refused.why
    assert scene.server.got == NOTE


def test_an_unterminated_last_line_beyond_the_limit_is_refused_too() -> None:
    scene = Scene()
    for _ in range(10):
        scene.agent.says(b"x" * 50_000)
    scene.agent.ends()
    assert [type(action) for action in scene.performed] == [Refused]
    assert scene.server.got == b""


HIDING: Final = b'{"jsonrpc":"2.0","method":"notifications/x","params":[\r%b\r]}\r\n' % answer(7).strip()
"""To a reader that also splits at carriage returns, the response to call 7 is on a line of its own."""


def test_no_response_that_hooks_must_see_hides_in_another_message() -> None:
    scene = Scene()
    scene.call()
    scene.server.says(HIDING)
    scene.server.says(NOTE + HIDING)
    visible = HIDING.replace(b"\r{", b" {").replace(b"\r]", b" ]")
    assert scene.agent.got == visible + NOTE + visible
    scene.server.says(HIDING.strip())
    scene.server.ends()
    assert scene.agent.got == visible + NOTE + visible + visible.strip()


def test_no_response_to_a_cancelled_call_with_hooks_hides_in_another_message() -> None:
    scene = Scene()
    scene.call()
    scene.agent.says(CANCEL)
    scene.server.says(HIDING)
    assert b"\r{" not in scene.agent.got
    assert b'"id":7' in scene.agent.got, "as data"


def test_if_no_response_must_be_withheld_the_bytes_are_the_servers_own() -> None:
    for scene in (Scene(), Scene(strict=False)):
        scene.server.says(HIDING)
        scene.server.says(NOTE + HIDING)
        assert scene.agent.got == HIDING + NOTE + HIDING


def test_a_long_response_that_no_hook_must_see_passes_in_pieces() -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    line = answer(8, 1_000_000)
    for at in range(0, len(line), 50_000):
        scene.server.says(line[at : at + 50_000])
        if at > STREAM_FROM_BYTES:
            assert scene.agent.got == line[: at + 50_000], "no longer than needed is anything kept"
    assert scene.agent.got == line
    assert not scene.router.pending


@pytest.mark.parametrize("after", [b"", NOTE, NOTE[:10]])
def test_what_follows_a_long_line_is_a_line_of_its_own(after: bytes) -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    line = answer(8, 200_000)
    scene.server.says(line[:100_000])
    scene.server.says(line[100_000:] + after)
    scene.server.says(NOTE[len(after) % len(NOTE) :])
    assert scene.agent.got == line + NOTE * (2 if after == NOTE else 1)


def test_our_own_lines_wait_until_a_long_line_has_ended() -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    line = answer(8, 200_000)
    scene.server.says(line[:100_000])
    scene.relay.to_agent(b'{"ours":1}')
    scene.relay.to_agent(b'{"ours":2}\n')
    scene.server.says(line[100_000:-1])
    assert b"ours" not in scene.agent.got
    scene.server.says(b"\n" + NOTE)
    assert scene.agent.got == line + b'{"ours":1}\n{"ours":2}\n' + NOTE


def test_our_own_lines_are_not_lost_when_a_long_line_never_ends() -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    head = answer(8, 200_000)[:100_000]
    scene.server.says(head)
    scene.relay.to_agent(b'{"ours":1}\n')
    scene.server.ends()
    assert scene.agent.got == head + b'\n{"ours":1}\n'
    assert scene.callbacks == ["server ended"]


def test_a_long_response_to_a_call_with_hooks_is_read_whole() -> None:
    scene = Scene()
    call = scene.call()
    line = answer(7, 200_000)
    for at in range(0, len(line), 50_000):
        assert scene.agent.written == []
        scene.server.says(line[at : at + 50_000])
    assert scene.performed[-1] == CallAnswered(call)
    assert scene.lines[-1] == line
    assert scene.agent.written == []


def test_a_long_late_response_to_a_cancelled_call_with_hooks_does_not_pass() -> None:
    scene = Scene()
    scene.call()
    scene.agent.says(CANCEL)
    line = answer(7, 200_000)
    for at in range(0, len(line), 50_000):
        scene.server.says(line[at : at + 50_000])
    assert scene.agent.got == b""
    assert [type(action) for action in scene.performed] == [SessionOpened, StartCall, CancelCall, Dropped]


def test_a_response_that_has_begun_when_its_call_is_cancelled_is_dropped() -> None:
    scene = Scene()
    scene.call()
    line = answer(7, 200_000)
    scene.server.says(line[:100_000])
    scene.agent.says(CANCEL)
    scene.server.says(line[100_000:150_000])
    scene.server.says(line[150_000:])
    assert scene.agent.got == b""


def test_a_long_second_response_to_a_call_with_hooks_is_dropped() -> None:
    scene = Scene()
    call = scene.call()
    scene.server.says(answer(7))
    assert scene.router.calls.finish(call)
    line = answer(7, 200_000)
    scene.server.says(line[:100_000])
    scene.server.says(line[100_000:])
    assert scene.agent.got == b""


@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"sampling/createMessage","params":{"x":"%b"},"jsonrpc":"2.0","id":8}\n',
        b'{"id":8,"jsonrpc":"2.0","method":"sampling/createMessage","params":{"x":"%b"}}\n',
    ],
)
def test_a_long_request_of_the_server_answers_no_request_of_the_agent(line: bytes) -> None:
    """Both number their requests from the same start."""
    scene = Scene()
    scene.agent.says(SAFE)
    request = line % (b"x" * 200_000)
    scene.server.says(request[:100_000])
    scene.server.says(request[100_000:])
    scene.server.says(answer(8))
    assert scene.agent.got == request + answer(8)


def test_a_response_beyond_the_limit_becomes_an_error_of_this_call() -> None:
    scene = Scene()
    call = scene.call()
    line = answer(7, LIMIT)
    for at in range(0, len(line), 50_000):
        scene.server.says(line[at : at + 50_000])
    assert scene.performed[-1] == CallAnswered(call)
    callbacks = json.loads(scene.lines[-1])
    assert callbacks["id"] == 7
    assert str(len(line)) in callbacks["error"]["message"]
    scene.server.says(NOTE)
    assert scene.agent.got == NOTE


def test_long_output_that_is_not_json_does_not_reach_the_agent() -> None:
    scene = Scene()
    for _ in range(10):
        scene.server.says(b"log " * 10_000)
    scene.server.says(b"\n" + NOTE)
    assert scene.agent.got == NOTE
    assert isinstance(scene.performed[-1], NotJson)


def test_the_last_line_of_the_server_passes_without_a_line_end() -> None:
    scene = Scene()
    scene.server.says(NOTE + NOTE.strip())
    scene.server.ends()
    assert scene.agent.got == NOTE + NOTE.strip()
    noisy = Scene()
    noisy.server.says(b"Segmentation fault")
    noisy.server.ends()
    assert noisy.agent.got == b""
    assert isinstance(noisy.performed[-1], NotJson)


SECRET: Final = b'{"content":[{"type":"text","text":"SECRET %b"}]}' % (b"y" * 2000)
ENDINGS: Final = {
    "an id far from the end": b'x"},"id":7,"result":%b}\n' % SECRET,
    "an escaped id": b'x"},"\\u0069d":7,"result":%b}\n' % SECRET,
    "an escaped id at the end": b'x"},"result":%b,"i\\u0064":7}\n' % SECRET,
    "an id in capitals": b'x"},"ID":7,"Result":%b}\n' % SECRET,
    "an id with a NUL": b'x"},"id\\u0000":7,"result\\u0000":%b}\n' % SECRET,
    "an id with bytes that are not UTF-8": b'x"},"i\xffd":7,"result":%b}\n' % SECRET,
    "an id after a comment": b'x"}/*"*/,"id"/*"*/:7,"result":%b}\n' % SECRET,
    "an id after many blanks": b'x"},"id"%b:7,"result":%b}\n' % (b" " * 5000, SECRET),
    "a line after CR": b'x",\r{"id":7,"result":%b}\r]}}\n' % SECRET,
    "a line at the end after CR": b'x"},"y":[\r{"id":7,"result":%b}\n' % SECRET,
    "a line in a string": b'x\xe2\x80\xa8"},\xe2\x80\xa8{"id":7,"result":%b}\xe2\x80\xa8}\n' % SECRET,
    "no line end": b'x"},"id":7,"result":%b}' % SECRET,
    "an id in a message that is no response": b'x"},"method":"ping","id":7}\n',
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
@pytest.mark.parametrize("size", [3, 100, 100_000])
def test_a_long_line_on_its_way_never_becomes_the_response_to_a_call_that_has_come_since(
    ending: bytes, size: int
) -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    scene.server.says(answer(8, 200_000)[:100_000])
    scene.agent.says(CALL)
    assert isinstance(scene.performed[-1], StartCall)
    for at in range(0, len(ending), size):
        scene.server.says(ending[at : at + size])
        assert b"SECRET" not in scene.agent.got
    scene.server.says(NOTE if ending.endswith(b"\n") else b"")
    scene.server.ends()
    assert b"SECRET" not in scene.agent.got
    assert b'"ping"' not in scene.agent.got
    dropped = scene.performed[-1]
    assert isinstance(dropped, Dropped)
    assert dropped.id == b"8", "the request whose response this seemed to be gets an error"
    assert scene.agent.got.endswith(NOTE if ending.endswith(b"\n") else b"!\n")
    assert not any(map(is_json, scene.agent.got.splitlines()[:1]))


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("ending", [b'{[\\"\\\\', b"\xe2\x80\xa8", b'","y":{"id":7,"result":{}},"z":"'])
def test_an_honest_long_line_passes_whole_although_a_call_has_come_since(ending: bytes) -> None:
    line = answer(8, 200_000).replace(b'"}}\n', ending + b'"}}\n')
    for size in (1000, 70_000):
        scene = Scene()
        scene.agent.says(SAFE)
        scene.server.says(line[:100_000])
        scene.agent.says(CALL)
        for at in range(100_000, len(line), size):
            scene.server.says(line[at : at + size])
        assert json.loads(scene.agent.got) == json.loads(line)
        assert [type(action) for action in scene.performed] == [SessionOpened, StartCall]
        assert scene.router.requests == {}


def test_a_long_line_that_began_when_no_listed_tool_was_judged_is_broken_off_if_a_call_is_judged_now() -> None:
    scene = Scene()
    scene.router.tools["safe"] = Tool("safe")
    scene.router.judged_tools.forget(["safe"])
    scene.agent.says(SAFE)
    line = answer(8, 200_000)
    scene.server.says(line[:100_000])
    scene.agent.says(CALL)
    scene.server.says(line[100_000:] + NOTE)
    assert scene.agent.got == line[:100_000] + b"!\n" + NOTE
    dropped = scene.performed[-1]
    assert isinstance(dropped, Dropped)
    assert dropped.id == b"8"


def test_a_long_line_that_would_fill_memory_while_a_response_is_withheld_is_broken_off() -> None:
    scene = Scene()
    scene.agent.says(SAFE)
    line = answer(8, 1_000_000)
    scene.server.says(line[:100_000])
    scene.agent.says(CALL)
    for at in range(100_000, len(line), 50_000):
        scene.server.says(line[at : at + 50_000])
    scene.server.says(NOTE)
    assert scene.agent.got == line[:100_000] + b"!\n" + NOTE
    dropped = scene.performed[-1]
    assert isinstance(dropped, Dropped)
    assert dropped.id == b"8"


def test_a_line_of_ours_never_becomes_two() -> None:
    with pytest.raises(AssertionError):
        Scene().relay.to_server(b'{"a":1}\n{"b":2}\n')


def test_output_that_is_not_json_is_removed_from_between_messages() -> None:
    scene = Scene()
    scene.server.says(NOTE + b"listening\n" + NOTE)
    assert scene.agent.got == NOTE + NOTE
    assert scene.lines == [b"listening\n"]


def test_a_side_that_does_not_read_pauses_the_other() -> None:
    scene = Scene()
    scene.agent.is_full(True)
    assert scene.read == {"agent"}
    scene.agent.is_full(False)
    assert scene.read == {"agent", "server"}
    scene.server.is_full(True)
    assert scene.read == {"server"}
    scene.server.is_full(False)
    assert scene.read == {"agent", "server"}


def test_reading_from_the_agent_resumes_when_no_reason_to_pause_is_left() -> None:
    scene = Scene()
    scene.server.is_full(True)
    scene.relay.pause_agent("held", True)
    scene.server.is_full(False)
    assert scene.read == {"server"}
    scene.relay.pause_agent("held", False)
    assert scene.read == {"agent", "server"}
    scene.relay.pause_agent("held", False)
    assert scene.read == {"agent", "server"}


def test_the_callback_runs_after_lines_from_the_server() -> None:
    scene = Scene()
    passed: list[int] = []
    scene.relay.on_passed = lambda: passed.append(len(scene.agent.got))
    scene.server.says(NOTE)
    scene.server.says(NOTE[:5])
    assert passed == [len(NOTE)]


def test_the_callback_runs_when_the_agent_goes() -> None:
    scene = Scene()
    scene.agent.goes()
    assert scene.callbacks == ["agent gone"]
    scene.server.goes()
    assert scene.callbacks == ["agent gone"], "a server that does not read may still answer"


# --- a long response that goes to the agent beside all other messages ---


class Response:
    """As Passage."""

    size: int | None = None

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.end_of_it = ""

    def write(self, piece: bytes) -> None:
        assert not self.end_of_it
        self.pieces.append(piece)

    def end(self) -> None:
        assert not self.end_of_it
        self.end_of_it = "whole"

    def abort(self) -> None:
        assert not self.end_of_it
        self.end_of_it = "broken off"


def beside(scene: Scene, refuse: bytes = b"") -> dict[bytes, Response]:
    """The responses that go beside other messages, by their ids. Those with the id `refuse` do not."""
    found: dict[bytes, Response] = {}

    def find(raw_id: bytes) -> Response | None:
        return None if raw_id == refuse else found.setdefault(raw_id, Response())

    scene.relay.long_line.find_passage = find
    scene.agent.says(INITIALIZE)
    scene.server.says(b'{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25"}}\n')
    for raw_id in (b"8", b"9", b"10"):
        scene.agent.says(SAFE.replace(b"8", raw_id))
    scene.agent.written.clear()
    scene.performed.clear()
    return found


@pytest.mark.parametrize("size", [1000, 65_535, 70_000, 200_000])
def test_a_long_response_goes_beside_other_messages_while_it_comes(size: int) -> None:
    scene = Scene()
    found = beside(scene)
    long = answer(8, 200_000)
    stream = NOTE + long + NOTE + answer(10) + long.replace(b":8,", b":9,") + NOTE
    for at in range(0, len(stream), size):
        scene.server.says(stream[at : at + size])
    assert b"".join(found[b"8"].pieces) == long[:-1]
    assert b"".join(found[b"9"].pieces) == long.replace(b":8,", b":9,")[:-1]
    assert [one.end_of_it for one in found.values()] == ["whole", "whole"]
    assert len(found[b"8"].pieces) > 1 or size > 150_000
    assert scene.agent.got == NOTE + NOTE + answer(10) + NOTE
    assert not scene.performed


def test_other_messages_reach_the_agent_while_a_long_response_comes() -> None:
    scene = Scene()
    found = beside(scene)
    scene.server.says(answer(8, 200_000)[:100_000])
    assert len(b"".join(found[b"8"].pieces)) == 100_000
    assert not scene.relay.passing
    scene.relay.to_agent(NOTE)
    assert scene.agent.got == NOTE


def test_a_response_that_may_not_go_beside_others_goes_on_their_way() -> None:
    scene = Scene()
    found = beside(scene, refuse=b"8")
    long = answer(8, 200_000)
    for at in range(0, len(long), 50_000):
        scene.server.says(long[at : at + 50_000])
    assert not found
    assert scene.agent.got == long


def test_a_response_that_becomes_too_long_is_broken_off_and_the_next_message_is_read() -> None:
    scene = Scene()
    found = beside(scene)
    long = answer(8, 1_000_000)
    for at in range(0, len(long), 50_000):
        scene.server.says(long[at : at + 50_000])
    assert found[b"8"].end_of_it == "broken off"
    assert len(b"".join(found[b"8"].pieces)) <= LIMIT
    (dropped,) = scene.performed
    assert isinstance(dropped, Dropped)
    assert f"more than {LIMIT} bytes" in dropped.why
    scene.server.says(NOTE)
    assert scene.agent.got == NOTE


def test_a_server_that_ends_in_a_long_response_breaks_it_off() -> None:
    scene = Scene()
    found = beside(scene)
    scene.server.says(answer(8, 200_000)[:100_000])
    scene.server.ends()
    assert found[b"8"].end_of_it == "broken off"
    assert [type(one) for one in scene.performed] == [Dropped]
    assert scene.agent.got == b""
