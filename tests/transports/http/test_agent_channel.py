"""A session over HTTP: which stream a line goes to, resumption, slow readers, and the end; real connections."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http import agent_channel, agent_lines, messages
from hookproxy.transports.http.agent_channel import AgentChannel
from hookproxy.transports.http.agent_lines import MAX_KEPT_LINES
from hookproxy.transports.http.agent_stream import RESUMABLE
from hookproxy.transports.http.responder import HeaderLines, Headers, Responder
from hookproxy.transports.user_load import UserLoad
from tests.support.http_agent import Exchange as HttpExchange
from tests.support.http_agent import HttpAgent, Server, agent_of, line

pytestmark = pytest.mark.anyio

_MARK: Final = re.compile(rb'"mark": ([0-9]+)')
_EVENT: Final = re.compile(rb"id: ([0-9]+-[0-9]+)")

LONG: Final = "x" * (2 * 1024 * 1024)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request(number: int, method: str = "tools/list") -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method}


def result(number: int, value: object = None) -> bytes:
    return line(id=number, result={"value": value})


@asynccontextmanager
async def session(*, starts: bool = True) -> AsyncIterator[tuple[AgentChannel, Server, HttpAgent]]:
    channel = AgentChannel(100 * 1024 * 1024, ((b"mcp-session-id", b"s"),))
    server = Server()
    if starts:
        channel.start(server.on_bytes, server.on_end, server.on_full, server.on_gone)
    async with agent_of(channel, channel.listen) as agent:
        yield channel, server, agent
        channel.close()


async def listened_and_left(channel: AgentChannel, server: Server, agent: HttpAgent) -> None:
    """An agent had a stream for what the server sends, and has lost it."""
    listening = await agent.get()
    channel.write(line(method="notifications/first"))
    await listening.message()
    listening.leave()
    await server.until(lambda: not channel.in_use)


@pytest.fixture
def streams_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Responses become streams without a delay."""
    monkeypatch.setattr(agent_channel, "_STREAM_AFTER_SECONDS", 0.0)


async def test_a_response_goes_to_the_post_of_its_request_as_json() -> None:
    async with session() as (channel, server, agent):
        first, second = await agent.post(request(1)), await agent.post(request(2))
        await server.until(lambda: len(server.lines) == 2)
        channel.write(result(2, "b") + result(1, "a"))
        for exchange, value in ((first, b"a"), (second, b"b")):
            await exchange.head()
            assert exchange.status == 200
            assert exchange.headers["content-type"] == "application/json"
            assert exchange.headers["mcp-session-id"] == "s"
            assert b'"value": "%b"' % value in await exchange.body()


async def test_a_notification_gets_an_empty_202() -> None:
    async with session() as (_, server, agent):
        exchange = await (await agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).head()
        assert (exchange.status, await exchange.body()) == (202, b"")
        assert len(server.lines) == 1


async def test_what_the_server_sends_by_itself_goes_to_the_newest_post_and_to_no_other_stream() -> None:
    async with session() as (channel, server, agent):
        listening = await agent.get()
        first, second = await agent.post(request(1)), await agent.post(request(2))
        await server.until(lambda: len(server.lines) == 2)
        newest = server.lines[-1]["id"]
        channel.write(line(id=7, method="elicitation/create"))
        channel.write(result(1) + result(2))
        channel.write(line(method="notifications/last"))
        on_post, other = (second, first) if newest == 2 else (first, second)
        question = await (await on_post.head()).message()
        assert question is not None
        assert question["id"] == 7
        assert "result" in (await on_post.message() or {})
        assert await on_post.message() is None
        assert b"elicitation" not in await (await other.head()).body()
        assert await listening.message() == {"jsonrpc": "2.0", "method": "notifications/last"}


async def test_what_the_server_sends_while_nobody_listens_comes_to_the_next_stream() -> None:
    async with session() as (channel, _, agent):
        channel.write(line(method="notifications/first"))
        listening = await agent.get()
        assert await listening.message() == {"jsonrpc": "2.0", "method": "notifications/first"}


async def test_what_is_kept_while_nobody_listens_is_bounded_in_bytes() -> None:
    async with session() as (channel, _, agent):
        for _ in range(4):
            channel.write(line(method="notifications/long", params={"text": LONG}))
        channel.write(line(method="notifications/last"))
        listening = await agent.get()
        message = await listening.message()
        assert message is not None
        assert message["method"] == "notifications/last"


async def test_a_closed_channel_keeps_nothing_and_calls_nobody_back(streams_at_once: None) -> None:
    async with session() as (channel, server, agent):
        channel.write(line(id=1, method="elicitation/create"))  # kept for 30 s
        stream = await agent.post(request(2))
        await server.until(lambda: len(server.lines) == 1)
        await stream.head()
        channel.write(result(2))  # can be resumed for a minute
        assert channel._timers
        assert channel._streams
        timers = [*channel._timers]
        channel.close()
        assert all(timer.cancelled() for timer in timers)
        assert not channel._streams


async def test_a_request_of_the_server_that_cannot_be_kept_gets_an_error() -> None:
    async with session() as (channel, server, _):
        for number in range(MAX_KEPT_LINES + 1):
            channel.write(line(id=number, method="elicitation/create"))
        assert [one["id"] for one in server.lines] == [MAX_KEPT_LINES]
        assert "error" in server.lines[0]


async def test_a_request_to_an_agent_that_has_never_listened_gets_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_channel, "_FIRST_STREAM_SECONDS", 0.0)
    async with session() as (channel, server, agent):
        channel.write(line(id=7, method="elicitation/create"))
        assert [(one["id"], "error" in one) for one in server.lines] == [(7, True)]
        listening = await agent.get()
        channel.write(line(method="notifications/last"))
        assert (await listening.message() or {})["method"] == "notifications/last", "it is not asked too late"


async def test_a_request_of_the_server_that_nobody_comes_for_gets_an_error_soon_after_the_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_channel, "_FIRST_STREAM_SECONDS", 0.2)
    async with session() as (channel, server, _):
        channel.write(line(id=7, method="elicitation/create"))
        assert not server.lines
        await server.until(lambda: len(server.lines) == 1)
        assert (server.lines[0]["id"], "error" in server.lines[0]) == (7, True)


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_request_of_the_server_waits_for_an_agent_that_has_left_but_not_for_ever(
    comes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_channel, "_KEPT_SECONDS", 20.0 if comes_back else 0.001)
    async with session() as (channel, server, agent):
        await listened_and_left(channel, server, agent)
        channel.write(line(id=7, method="elicitation/create"))
        if not comes_back:
            await server.until(lambda: len(server.lines) == 1)
            assert (server.lines[0]["id"], "error" in server.lines[0]) == (7, True)
        listening = await agent.get()
        channel.write(line(method="notifications/last"))
        first = await listening.message() or {}
        assert first["method"] == ("elicitation/create" if comes_back else "notifications/last")
        assert len(server.lines) == (0 if comes_back else 1)


async def test_a_request_that_has_reached_the_agent_gets_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with session() as (channel, server, agent):
        await listened_and_left(channel, server, agent)
        channel.write(line(id=7, method="elicitation/create"))
        [timer] = channel._timers
        listening = await agent.get()
        assert (await listening.message() or {})["id"] == 7
        timer._run()
        assert not server.lines


@pytest.mark.usefixtures("streams_at_once")
async def test_a_lost_connection_does_not_end_the_request_and_its_stream_is_resumed() -> None:
    async with session() as (channel, server, agent):
        post = await (await agent.post(request(1))).head()
        event = await post.event()
        assert event is not None
        assert event[1] == ""  # from here on it can be resumed
        post.leave()
        await server.until(lambda: not channel.in_use)
        channel.write(line(method="notifications/while-away") + result(1, "a"))
        again = await agent.get(event[0])
        assert (await again.message() or {})["method"] == "notifications/while-away"
        assert "result" in (await again.message() or {})
        assert await again.message() is None
        assert [one["method"] for one in server.lines] == ["tools/list"]  # nothing was cancelled


@pytest.mark.usefixtures("streams_at_once")
async def test_a_resumed_stream_has_only_its_own_events_and_only_those_after_the_named_one() -> None:
    async with session() as (channel, server, agent):
        listening = await agent.get()
        post = await (await agent.post(request(1))).head()
        primed = await post.event()
        channel.write(line(method="notifications/one") + line(method="notifications/two"))
        first = await post.event()
        assert primed is not None
        assert first is not None
        post.leave()
        await server.until(lambda: not channel.in_use or True)
        again = await agent.get(first[0])
        assert (await again.message() or {})["method"] == "notifications/two"
        channel.write(result(1) + line(method="notifications/later"))
        assert "result" in (await again.message() or {})
        assert await again.message() is None
        assert (await listening.message() or {})["method"] == "notifications/later"


@pytest.mark.parametrize("event", ["1-0", "99-1", "x", "-", "1-", "1-1-1", "9" * 50 + "-1"])
async def test_an_unknown_event_is_refused(event: str) -> None:
    async with session() as (_, _, agent):
        exchange = await agent.send("GET", headers={"Last-Event-ID": event.encode().decode("latin-1")})
        assert (await exchange.head()).status == 400


@pytest.mark.usefixtures("streams_at_once")
async def test_many_finished_requests_do_not_displace_a_stream_that_can_be_resumed() -> None:
    async with session() as (channel, server, agent):
        post = await (await agent.post(request(0))).head()
        event = await post.event()
        assert event is not None
        post.leave()
        await server.until(lambda: not channel.in_use)
        for number in range(1, RESUMABLE + 10):
            other = await agent.post(request(number))
            await server.until(lambda expected=number: server.lines[-1]["id"] == expected)  # type: ignore[misc]  # a lambda with a default
            channel.write(result(number))
            await other.head()
        channel.write(result(0, "a"))
        assert "result" in (await (await agent.get(event[0])).message() or {})


@pytest.mark.usefixtures("streams_at_once")
async def test_the_events_that_are_kept_are_bounded_in_bytes() -> None:
    async with session() as (channel, _, agent):
        for number in range(5):
            post = await (await agent.post(request(number))).head()
            await post.event()
            channel.write(result(number, LONG))
            assert await post.event() is not None
            assert await post.event() is None
        assert channel.kept_bytes <= 2 * len(LONG)


@pytest.mark.usefixtures("streams_at_once")
async def test_a_stream_that_has_ended_is_forgotten_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_channel, "_RESUME_SECONDS", 0.0)
    async with session() as (channel, _, agent):
        post = await (await agent.post(request(1))).head()
        event = await post.event()
        channel.write(result(1, LONG))
        while await post.event() is not None:
            pass
        assert event is not None
        assert (await agent.get(event[0])).status == 400
        assert channel.kept_bytes == 0


async def test_a_new_stream_takes_over_what_the_lost_one_has_not_sent() -> None:
    async with session() as (channel, server, agent):
        listening = await agent.get()
        event = await listening.event()
        channel.write(line(method="notifications/sent"))
        assert (await listening.message() or {})["method"] == "notifications/sent"
        listening.leave()
        await server.until(lambda: not channel.in_use)
        channel.write(line(method="notifications/unsent"))
        again = await agent.get()
        assert (await again.message() or {})["method"] == "notifications/unsent"
        assert event is not None
        assert (await agent.get(event[0])).status == 400  # it would bring the same line a second time


async def test_a_request_whose_id_is_in_flight_is_refused_and_the_first_one_goes_on() -> None:
    async with session() as (channel, server, agent):
        first = await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 1)
        second = await (await agent.post(request(1))).head()
        assert b'"error"' in await second.body()
        channel.write(result(1, "a"))
        assert b'"value": "a"' in await (await first.head()).body()
        assert len(server.lines) == 1


async def test_a_result_that_nobody_asked_for_reaches_nobody() -> None:
    async with session() as (channel, server, agent):
        post = await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 1)
        channel.write(result(2) + result(1) + result(1))
        await post.head()
        assert b'"id": 1' in await post.body()


async def test_a_long_result_that_is_read_slowly_does_not_stop_the_session_for_good() -> None:
    async with session() as (channel, server, agent):
        post = await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 1)
        channel.write(result(1, LONG * 4))
        await (await post.head()).body()
        await server.until(lambda: not server.full)


@pytest.mark.usefixtures("streams_at_once")
async def test_a_reader_that_stops_and_resumes_elsewhere_does_not_stop_the_session_for_good() -> None:
    async with session() as (channel, server, agent):
        post = await (await agent.post(request(1))).head()
        event = await post.event()
        for _ in range(4):
            channel.write(line(method="notifications/long", params={"text": LONG}))
        await server.until(lambda: server.full)
        assert event is not None
        again = await agent.get(event[0])
        assert await again.event() is not None
        await server.until(lambda: not server.full)


async def test_what_comes_before_the_server_reads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_lines, "MAX_UNREAD_LINES", 3)
    async with session(starts=False) as (channel, server, agent):
        notification = {"jsonrpc": "2.0", "method": "notifications/progress"}
        statuses = [(await (await agent.post(notification)).head()).status for _ in range(5)]
        assert statuses == [202, 202, 202, 429, 429]
        channel.start(server.on_bytes, server.on_end, server.on_full, server.on_gone)
        assert len(server.lines) == 3


async def test_the_end_of_the_session_answers_all_requests_that_wait_once() -> None:
    async with session() as (channel, server, agent):
        listening = await agent.get()
        posts = [await agent.post(request(number)) for number in range(10)]
        await server.until(lambda: len(server.lines) == 10)
        channel.close()
        channel.close()
        for number, post in enumerate(posts):
            body = await (await post.head()).body()
            assert b'"id":%d' % number in body.replace(b" ", b"")
            assert b'"error"' in body
        assert await listening.message() is None


async def test_an_end_that_comes_before_the_session_has_started_ends_it() -> None:
    async with session(starts=False) as (channel, server, _):
        channel.end()
        channel.end()
        channel.start(server.on_bytes, server.on_end, server.on_full, server.on_gone)
        assert server.ends == 1
        channel.end()
        assert server.ends == 1


async def test_a_session_is_used_until_its_agent_leaves() -> None:
    async with session() as (channel, server, agent):
        channel.last_used = 0.0
        listening = await agent.get()
        assert channel.in_use
        listening.leave()
        await server.until(lambda: not channel.in_use)
        assert channel.last_used > 0.0  # the agent may come back as long as if it had called


async def test_64_agents_that_all_use_the_same_id_get_their_own_results() -> None:
    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(session()) for _ in range(64)]
        posts = [await agent.post(request(1)) for _, _, agent in sessions]
        for _, server, _ in sessions:
            await server.until(lambda lines=server.lines: bool(lines))  # type: ignore[misc]  # a lambda with a default
        for number, (channel, _, _) in enumerate(sessions):
            channel.write(result(1, number))
        for number, post in enumerate(posts):
            assert b'"value": %d}' % number in await (await post.head()).body()


async def test_on_a_silent_stream_only_comments_come_and_each_between_two_events(
    monkeypatch: pytest.MonkeyPatch, streams_at_once: None
) -> None:
    """An event in place of a comment would be a message that nobody has sent, and get an id."""
    monkeypatch.setattr(agent_channel, "BEAT_SECONDS", 0.002)
    async with session() as (channel, server, agent):
        listening, post = await agent.get(), await (await agent.post(request(1))).head()
        await server.until(lambda: len(server.lines) == 1)
        seen: dict[HttpExchange, list[str]] = {listening: [], post: []}
        for number in range(10):
            if number % 3 == 0:
                channel.write(line(method="notifications/message", params={"data": "x" * 5000, "number": number}))
            for stream, blocks in seen.items():
                blocks.append(await stream.block() or "")
        channel.write(result(1, 7))
        while (block := await post.block()) is not None:
            seen[post].append(block)
        for blocks in seen.values():
            comments = [one for one in blocks if one == ": "]
            others = [one for one in blocks if one != ": "]
            assert len(comments) >= 3
            assert all(re.fullmatch(r"id: [0-9]+-[0-9]+\n(retry: [0-9]+\n)?data: .*", one) for one in others), others
        messages_seen = [one for one in seen[post] if "data: {" in one]
        assert len(messages_seen) == 5
        plain = await (await agent.post({"jsonrpc": "2.0", "method": "notifications/x"})).head()
        assert await plain.body() == b""


class _Responder(Responder):
    """A responder without a connection, that notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.on_gone = self.on_full = None
        self._open = True

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def unsent(self) -> Callable[[], int]:
        return lambda: 1

    def respond(self, status: int, headers: Headers | HeaderLines = (), body: bytes = b"") -> None:
        self.start(status, headers, body)
        self._open = False

    def start(
        self,
        status: int,
        headers: Headers | HeaderLines = (),
        piece: bytes = b"",
        length: int | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        assert not self.sent, "a response begins once"
        assert self._open
        self.sent += [b"%d" % status, piece]

    def write(self, piece: bytes) -> None:
        assert self.sent, "a response begins with its head"
        if self._open:
            self.sent.append(piece)

    def end(self, piece: bytes = b"") -> None:
        self._open = False

    def abort(self) -> None:
        self._open = False

    def lose(self) -> None:
        """The agent breaks off the connection."""
        if self._open:
            self._open = False
            if self.on_gone is not None:
                self.on_gone()

    @property
    def marks(self) -> list[int]:
        """The numbers of the lines that were sent."""
        return [int(found) for found in _MARK.findall(b"".join(self.sent))]

    @property
    def last_event(self) -> bytes:
        found: list[bytes] = _EVENT.findall(b"".join(self.sent))
        return found[-1] if found else b""


_STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(("post", "get", "resume", "lose", "line", "answer", "stream", "cancel", "full")),
        st.integers(0, 5),
    ),
    max_size=40,
)


# --- responses that are sent in pieces ---


async def test_a_response_in_pieces_goes_to_its_post_and_the_others_go_on() -> None:
    async with session() as (channel, server, agent):
        first, second = await agent.post(request(1)), await agent.post(request(2))
        await server.until(lambda: len(server.lines) == 2)
        ends: list[str] = []
        passage = channel.open_passage(b"1", lambda: ends.append("end"))
        assert passage is not None
        passage.write(b'{"id":1,')
        await first.head()
        assert (first.status, first.headers["content-type"], first.headers["mcp-session-id"]) == (
            200,
            "application/json",
            "s",
        )
        channel.write(result(2))
        await second.head()
        channel.write(result(1, "late"))
        assert channel.in_use
        passage.write(b'"result":1}')
        passage.end()
        assert await first.body() == b'{"id":1,"result":1}'
        assert ends == ["end"]
        assert not channel.in_use


async def test_a_response_that_is_a_stream_already_is_not_sent_in_pieces() -> None:
    async with session() as (channel, server, agent):
        await agent.post(request(1))
        await server.until(lambda: bool(server.lines))
        channel.write(line(method="notifications/message", params={}))
        assert channel.open_passage(b"1", lambda: None) is None
        assert channel.open_passage(b"2", lambda: None) is None, "nobody waits for it"


@pytest.mark.parametrize("ending", ["abort", "close"])
async def test_a_response_in_pieces_that_does_not_end_breaks_off(ending: str) -> None:
    async with session() as (channel, server, agent):
        first = await agent.post(request(1))
        await server.until(lambda: bool(server.lines))
        ends: list[str] = []
        passage = channel.open_passage(b"1", lambda: ends.append("end"))
        assert passage is not None
        passage.write(b'{"id":1,')
        await first.head()
        passage.abort() if ending == "abort" else channel.close()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await first.body()
        passage.write(b"dropped")
        passage.end()
        assert ends == ["end"]


@given(_STEPS)
async def test_whatever_happens_no_line_is_on_two_streams_and_no_request_is_answered_twice(  # noqa: C901  # one case for each step
    steps: list[tuple[str, int]],
) -> None:
    load = UserLoad()
    channel = AgentChannel(1024, (), load)
    server = Server()
    channel.start(server.on_bytes, server.on_end, server.on_full, server.on_gone)
    marks = count()
    responders: list[_Responder] = []
    streams: dict[_Responder, int] = {}  # which responders are one stream that was resumed

    def opened(stream: int | None = None) -> _Responder:
        responders.append(one := _Responder())
        streams[one] = len(streams) if stream is None else stream
        return one

    for step, number in steps:
        chosen = responders[number % len(responders)] if responders else None
        if step == "post":
            body = line(id=number, method="tools/list")
            channel.post(body, messages.read(body), opened())
        elif step == "get":
            channel.listen(opened(), b"")
        elif step == "line":
            channel.write(line(method="notifications/message", params={"mark": next(marks)}))
        elif step == "answer":
            channel.write(line(id=number, result={"mark": next(marks)}))
        elif step == "cancel":
            body = line(method="notifications/cancelled", params={"requestId": number})
            channel.post(body, messages.read(body), opened())
        elif step == "stream":
            for waiting in channel.waiting:
                waiting.begin()
        elif chosen is not None and step == "lose":
            chosen.lose()
        elif chosen is not None and step == "resume" and chosen.last_event:
            again = _Responder()
            if channel.listen(again, chosen.last_event):
                responders.append(again)
                streams[again] = streams[chosen]
        elif chosen is not None and step == "full" and chosen.is_open and chosen.on_full is not None:
            chosen.on_full(True)
            chosen.on_full(False)
        assert load.requests == len(channel.waiting)
    channel.close()
    places: dict[int, set[int]] = {}
    for one in responders:
        assert not one.is_open or not one.sent
        assert len(set(one.marks)) == len(one.marks), "no line comes twice on one connection"
        assert one.marks == sorted(one.marks), "the order of the server stays"
        for mark in one.marks:
            places.setdefault(mark, set()).add(streams[one])
    assert all(len(found) == 1 for found in places.values())
    assert not server.full
    assert load.requests == 0
    assert not load.has_unread
    assert not load.keepers
