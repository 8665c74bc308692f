"""The agent's side of requests that stand alone (2026-07-28) as a channel: many POSTs, one line of messages.

Each POST is a client of its own of a multiplexer, so that ids and progress tokens of different agents never meet.
Law: to close a POST's stream before its response is to cancel its request.
"""

# ruff: noqa: D102  # methods without a docstring are described by Channel
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...protocol.calls import Progress
from ...protocol.fast_scan import ReadCall
from ...protocol.feedback import remote_failure, unread_response
from ...protocol.multiplex import SERVER, Multiplexer, Send
from ..user_load import LONG_BYTES, UserLoad
from .agent_lines import BEAT_SECONDS, ENDED, AgentEnd
from .agent_stream import AgentStream
from .messages import CALL_TOOL, Message, answered_ids, error_code
from .responder import Responder

_MAX_BEHIND: Final = 4 * 1024 * 1024
"""Bytes that wait for one agent that does not read, besides one message: at more it is disconnected, as `shared_server`
ends a session."""

_MAX_ALL_BEHIND: Final = 32 * 1024 * 1024
"""The same of all agents of the user: at more, nothing is read from the server until one of them reads, or has not read
for so long that the listener disconnects it."""

_STREAM_AFTER_SECONDS: Final = 1.0
"""A response that takes longer becomes a stream at the next comment, so that the connection is not silent."""

_STATUSES: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
"""Of responses with such errors, as MCP 2026-07-28 (streamable-http) and the SDKs have them. Others are 200."""

_LONGEST_ERROR: Final = 65_536  # bytes: errors are short, and to read a long result for its status takes time

_OWNER: Final = "the user"
"""All requests are of one user: what one of them creates, such as a task, belongs to all."""


class StatelessChannel(AgentEnd):
    """The agent's side of all stateless requests of one user to one server."""

    def __init__(self, max_bytes: int, report: Callable[[str], None], load: UserLoad | None = None) -> None:
        """`load` is that of the user."""
        super().__init__(max_bytes, load)
        self._multiplexer = Multiplexer(one_owner=True, report=report)
        self._streams: dict[int, tuple[AgentStream, bytes]] = {}  # with the id of the request, by client
        self._behind: dict[Responder, int] = {}  # bytes for agents that do not read
        self._is_full = False

    @property
    def in_use(self) -> bool:
        """A request is in flight."""
        return bool(self._streams)

    def post(self, line: bytes, message: Message, responder: Responder) -> None:
        """A message of the agent. Raises TooManyRequests."""
        self._input.check_room(line)
        client = self._multiplexer.attach(_OWNER)
        if not message.ids or message.is_response:
            responder.respond(202)
            self._dispatch(self._multiplexer.from_client(client, line))
            self._dispatch(self._multiplexer.detach(client))
            return
        stream = self._await_response(client, message.ids[0], responder, is_call=message.method == CALL_TOOL)
        if message.method == "subscriptions/listen":
            stream.begin()
        self._dispatch(self._multiplexer.from_client(client, line))

    def post_call(self, call: ReadCall, responder: Responder) -> bool:
        """As `post` for a call that was read already. False: nothing was done, and `post` must have it."""
        if self._input.waits or (passed := self._multiplexer.pass_call(_OWNER, call)) is None:
            return False
        client, numbered = passed
        self._await_response(client, call.id, responder, is_call=True)
        if self.pass_call(numbered):
            return True
        self._multiplexer.take_back(numbered.id)
        del self._streams[client]
        self._load.requests -= 1
        responder.on_gone = responder.on_full = None
        return False

    def _await_response(self, client: int, raw_id: bytes, responder: Responder, *, is_call: bool) -> AgentStream:
        """Make the stream of a request of a client."""
        stream = AgentStream(responder)
        stream.is_call = is_call
        stream.opened = self._loop.time()
        self._streams[client] = stream, raw_id
        self._load.requests += 1
        responder.on_gone = lambda: self._leave(client)
        responder.on_full = lambda full: self._set_full(responder, full=full)
        if self._beat is None:
            self._start_beat()
        return stream

    def fail_waiting(self, why: str) -> None:
        """Answer all requests in flight with an error that says what is known of them; `why` has no full stop."""
        streams, self._streams = self._streams, {}
        self._load.requests -= len(streams)
        progress = Progress.NOT_SENT if self._on_end is None else Progress.NO_RESPONSE
        for client, (stream, raw_id) in streams.items():
            stream.finish(remote_failure(raw_id, why, progress, is_call=stream.is_call))
            self._multiplexer.detach(client)

    def _leave(self, client: int) -> None:
        """The request of a client has ended, or the agent has closed its stream."""
        self.last_used = self._loop.time()
        if self._streams.pop(client, None) is not None:
            self._load.requests -= 1
            self._dispatch(self._multiplexer.detach(client))

    def _dispatch(self, sends: list[Send]) -> None:
        for send in sends:
            if send.refused is not None:
                self.on_refused(*send.refused)
            if send.to == SERVER:
                self._input.feed(send.line)
            elif send.to in self._streams:
                self._deliver(send.to, send.line)

    def _deliver(self, client: int, line: bytes) -> None:
        """Give a line to the agent of a client."""
        stream, raw_id = self._streams[client]
        responder = stream.responder
        is_response = bool(answered_ids(line))
        if len(line) >= LONG_BYTES and not self._load.takes(len(line)):
            if not is_response:
                return
            line = unread_response(raw_id, len(line), is_call=stream.is_call)
        if is_response:
            stream.finish(line, _status(line))
            self._leave(client)
        else:
            stream.send(line)
        if responder in self._behind:
            self._note_behind(responder, len(line))

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        passed = self._multiplexer.pass_response(raw_id, line)
        if passed is None:
            self._dispatch(self._multiplexer.from_server(line + b"\n"))
            return
        client, own = passed
        stream, raw_own_id = self._streams.pop(client)
        self._load.requests -= 1
        self.last_used = self._loop.time()
        if len(own) >= LONG_BYTES and not self._load.takes(len(own)):
            own = unread_response(raw_own_id, len(own), is_call=True).rstrip(b"\n")
        stream.finish(own)
        if self._behind and stream.responder in self._behind:
            self._note_behind(stream.responder, len(own))

    def _set_full(self, responder: Responder, *, full: bool) -> None:
        self._load.note_full(responder, full=full)
        if full:
            self._behind[responder] = 0
        else:
            self._behind.pop(responder, None)
            self._tell_full()

    def _note_behind(self, responder: Responder, size: int) -> None:
        """An agent does not read: it holds up no other until too much waits, and is disconnected before."""
        if self._behind[responder] and self._behind[responder] + size > _MAX_BEHIND:
            self._behind.pop(responder)
            client = next((key for key, (stream, _) in self._streams.items() if stream.responder is responder), SERVER)
            responder.abort()
            self._leave(client)
        else:
            self._behind[responder] += size
        self._tell_full()

    def _tell_full(self) -> None:
        is_full = sum(self._behind.values()) > _MAX_ALL_BEHIND
        if is_full != self._is_full:
            self._is_full = is_full
            if self._on_end is not None:
                self._on_full(is_full)

    def _start_beat(self) -> None:
        if self._beat is None and not self.gone:
            self._beat = self._loop.call_later(BEAT_SECONDS, self._beat_all)

    def _beat_all(self) -> None:
        self._beat = None
        now = self._loop.time()
        for stream, _ in self._streams.values():
            if now - stream.opened > _STREAM_AFTER_SECONDS:
                stream.begin()
            stream.beat()
        if self._streams:
            self._start_beat()

    # --- Channel ---

    def write(self, piece: bytes) -> None:
        for line in self._output.feed(piece):
            self._dispatch(self._multiplexer.from_server(line))

    def end_output(self) -> None:
        """What still waits gets an error."""
        self.has_ended = True
        self.fail_waiting(self.why_ended() or ENDED)

    def close(self) -> None:
        if not self.gone:
            self.end_output()
        self.gone = True
        if self._beat is not None:
            self._beat.cancel()


def _status(line: bytes) -> int:
    """The status of a response."""
    if len(line) > _LONGEST_ERROR or b'"error"' not in line:
        return 200
    return _STATUSES.get(error_code(line) or 0, 200)
