"""A server that several sessions use: slow sessions, sessions that leave, long lines, and the end of the server."""

from __future__ import annotations

import json
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.protocol.multiplex import Multiplexer
from hookproxy.transports import shared_server
from hookproxy.transports.shared_server import SessionChannel, SharedServer
from tests.support.recording_channel import RecordingChannel

pytestmark = pytest.mark.anyio

LIMIT: Final = 2000
QUEUED: Final = 1000
CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}\n'


class Session:
    """The session's side of a channel."""

    def __init__(self, shared: Shared) -> None:
        self.lines: list[bytes] = []
        self.ends = 0
        self.gone = 0
        self.full: list[bool] = []
        self.writes_on_bytes = b""
        self.channel: SessionChannel = shared.server.open_channel()

    def start(self) -> Session:
        self.channel.start(self.on_bytes, self.on_end, self.full.append, self.on_gone)
        return self

    def on_bytes(self, piece: bytes) -> None:
        self.lines.append(piece)
        if self.writes_on_bytes:
            piece, self.writes_on_bytes = self.writes_on_bytes, b""
            self.channel.write(piece)
            assert self.lines[-1] != piece

    def on_end(self) -> None:
        self.ends += 1

    def on_gone(self) -> None:
        self.gone += 1


class Shared:
    """A server that is played by the test, and its sessions."""

    def __init__(self) -> None:
        self.peer = RecordingChannel()
        self.reports: list[str] = []
        self.ends = 0
        self.left = 0
        multiplexer = Multiplexer(one_owner=True, report=self.reports.append)
        self.server = SharedServer(self.peer, multiplexer, LIMIT, self.reports.append, QUEUED)
        self.server.start(self.on_end)
        self.server.on_left = self.on_left

    def on_end(self) -> None:
        self.ends += 1

    def on_left(self) -> None:
        self.left += 1

    def session(self) -> Session:
        return Session(self).start()

    def call(self, session: Session, size: int = 0) -> int:
        """The session sends a call; return its number at the server."""
        session.channel.write(CALL)
        number = json.loads(self.peer.got.splitlines()[-1])["id"]
        assert isinstance(number, int)
        return number

    def answer(self, number: int, text: str = "") -> None:
        self.peer.says(b'{"jsonrpc":"2.0","id":%d,"result":"%b"}\n' % (number, text.encode()))


@pytest.fixture
async def shared() -> Shared:
    return Shared()


async def turn() -> None:
    """Let the callbacks run that are scheduled."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()


async def test_each_session_gets_its_lines_in_the_servers_own_callback(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    first, second = shared.call(one), shared.call(two)
    block = b"".join(b'{"jsonrpc":"2.0","id":%d,"result":%d}\n' % (number, number) for number in (second, first))
    shared.peer.says(block[:30])
    assert not one.lines
    assert not two.lines
    shared.peer.says(block[30:])
    assert one.lines == [b'{"jsonrpc":"2.0","id":1,"result":%d}\n' % first]
    assert two.lines == [b'{"jsonrpc":"2.0","id":1,"result":%d}\n' % second]


async def test_a_line_that_comes_in_pieces_goes_to_the_server_whole(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    one.channel.write(CALL[:20])
    two.channel.write(CALL + CALL[:5])
    one.channel.write(CALL[20:])
    assert [json.loads(line)["id"] for line in shared.peer.got.splitlines()] == [1, 2]


async def test_a_refusal_does_not_come_while_the_session_writes(shared: Shared) -> None:
    one = shared.session()
    number = shared.call(one)
    one.channel.write(b"not JSON\n")
    assert not one.lines
    shared.answer(number)  # it comes after the refusal
    await turn()
    assert [b"error" in line for line in one.lines] == [True, False]
    one.writes_on_bytes = b"not JSON\n"
    shared.answer(shared.call(one))
    await turn()
    assert [b"error" in line for line in one.lines] == [True, False, False, True]


async def test_lines_before_the_start_are_kept(shared: Shared) -> None:
    one = Session(shared)
    one.channel.write(b"not JSON\n")
    await turn()
    one.start()
    await turn()
    assert len(one.lines) == 1


async def test_a_slow_session_is_ended_and_the_others_go_on(shared: Shared) -> None:
    slow, other = shared.session(), shared.session()
    slow.channel.pause()
    for _ in range(4):  # 300 bytes that wait as the oldest line, and three times 300 bytes besides
        assert not slow.channel.gone
        shared.answer(shared.call(slow), "x" * 300)
        shared.answer(shared.call(other), "y" * 300)
    await turn()
    assert (slow.lines, slow.ends, slow.gone) == ([], 1, 1)
    assert slow.channel.ended.is_set
    assert len(other.lines) == 4
    assert shared.server.sessions == 1
    assert shared.left == 1
    assert shared.reports == ["a session that does not read its messages was ended"]
    slow.channel.pause()
    slow.channel.write(CALL)
    assert shared.peer.got.count(b"tools/call") == 8


async def test_one_long_line_may_wait_for_a_slow_session(shared: Shared) -> None:
    slow = shared.session()
    number = shared.call(slow)
    slow.channel.pause()
    shared.answer(number, "x" * (LIMIT - 100))
    await turn()
    assert not slow.lines
    slow.channel.resume()
    await turn()
    assert [len(line) > QUEUED for line in slow.lines] == [True]


async def test_a_long_line_that_may_not_wait_becomes_an_error(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_server, "LONG_BYTES", 100)
    slow, other = shared.session(), shared.session()
    asked: list[int] = []

    def takes(size: int) -> bool:
        asked.append(size)
        return False

    slow.channel.takes = takes
    shared.answer(shared.call(slow), "short")
    assert not asked
    shared.answer(shared.call(slow), "x" * 200)
    shared.answer(shared.call(other), "y" * 200)
    slow.channel.deliver(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%b"}}\n' % (b"x" * 200))
    error = json.loads(slow.lines[1])
    assert error["id"] == 1
    assert "has answered the request, but the response is withheld" in error["error"]["message"]
    assert len(slow.lines) == 2, "a message that is no response is left out"
    assert [len(line) > 200 for line in other.lines] == [True]
    assert len(asked) == 2


async def test_a_server_that_does_not_read_pauses_all_sessions(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    shared.peer.is_full(True)
    three = shared.session()
    shared.peer.is_full(False)
    assert [session.full for session in (one, two, three)] == [[True, False]] * 3
    assert shared.peer.reading, "the server is never paused: it would hold up all"


async def test_a_line_over_the_limit_ends_only_the_call_that_it_answers(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    lost, other = shared.call(one), shared.call(two)
    shared.answer(lost, "x" * (LIMIT + 1))
    shared.answer(other, "fine")
    assert json.loads(one.lines[0])["error"]["code"] == -32603
    assert b"fine" in two.lines[0]
    shared.answer(shared.call(one), "again")
    assert b"again" in one.lines[1]


async def test_a_line_over_the_limit_of_a_session_is_refused_to_it_alone(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    one.channel.write(CALL[:-3] + b',"arguments":"' + b"x" * LIMIT + b'"}}\n')
    shared.answer(shared.call(two))
    await turn()
    assert json.loads(one.lines[0])["id"] == 1
    assert b"error" in one.lines[0]
    assert len(two.lines) == 1


async def test_each_message_that_the_shared_server_must_not_get_is_noted_before_it_is_refused(shared: Shared) -> None:
    one, noted = shared.session(), list[tuple[str, bytes, bytes]]()
    one.channel.on_refused = lambda why, raw_id, line: noted.append((why, raw_id, line))
    hostile = [
        b"[%b]\n" % CALL.strip(),
        CALL.replace(b'"id":1', b'"id":1,"id":2'),
        CALL.replace(b'"id":1', b'"id":null'),
        b"not JSON\n",
        b'{"jsonrpc":"2.0","method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":5}}\n',
        CALL[:-3] + b',"arguments":"' + b"x" * LIMIT + b'"}}\n',
    ]
    for line in hostile:
        one.channel.write(line)
    await turn()
    answers = [json.loads(line) for line in one.lines]
    assert [json.loads(raw_id) for _, raw_id, _ in noted] == [answer["id"] for answer in answers]
    assert [line for _, _, line in noted] == [*hostile[:-1], b""]


async def test_when_the_server_ends_every_session_sees_the_end_after_its_last_line(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    number = shared.call(one)
    two.channel.pause()
    shared.answer(shared.call(two))
    shared.peer.says(b'{"jsonrpc":"2.0","id":%d,"result":"unfinished"}' % number)
    shared.peer.ends()
    await turn()
    assert b"unfinished" in one.lines[0]
    assert (one.ends, two.ends, shared.ends) == (1, 0, 1)
    assert two.channel.ended.is_set
    two.channel.drain()
    assert (len(two.lines), two.ends) == (1, 1)
    late = shared.session()
    await turn()
    assert (late.ends, late.channel.gone) == (1, True)
    late.channel.write(CALL)
    assert shared.server.sessions == 0


async def test_a_session_whose_input_has_ended_gets_its_last_response_and_then_the_end(shared: Shared) -> None:
    one = shared.session()
    number = shared.call(one)
    one.channel.end_output()
    await turn()
    assert (one.ends, one.channel.is_ending) == (0, True)
    shared.answer(number, "last")
    await turn()
    assert b"last" in one.lines[0]
    assert one.ends == 1
    assert shared.server.sessions == 0
    assert b"cancelled" not in shared.peer.got


async def test_a_session_without_open_requests_ends_at_once(shared: Shared) -> None:
    one = shared.session()
    one.channel.end_output()
    await turn()
    assert one.ends == 1
    with anyio.fail_after(30):
        await one.channel.flushed()


async def test_text_without_a_line_end_is_sent_when_the_input_has_ended(shared: Shared) -> None:
    one = shared.session()
    one.channel.write(CALL[:-1])
    assert not shared.peer.written
    one.channel.end_output()
    assert shared.peer.got.endswith(b"\n")
    assert not one.channel.gone


@pytest.mark.parametrize("closes", [True, False])
async def test_a_session_that_leaves_cancels_its_calls(shared: Shared, closes: bool) -> None:
    one, two = shared.session(), shared.session()
    number = shared.call(one)
    (one.channel.close if closes else one.channel.abandon)()
    await turn()
    assert b'"requestId":%d' % number in shared.peer.got
    assert (one.ends, one.channel.ended.is_set) == (0 if closes else 1, True)
    shared.answer(number, "late")
    shared.answer(shared.call(two))
    assert (one.lines, len(two.lines)) == ([], 1)
    one.channel.close()
    assert shared.left == 1


async def test_sessions_see_the_end_of_a_process_whose_output_another_one_holds_open(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    shared.call(one)
    shared.server.close()  # its process has ended, and no end of the output has come
    await turn()
    assert (one.ends, two.ends) == (1, 1)
    assert shared.ends == 1
    late = shared.session()
    await turn()
    assert late.ends == 1
