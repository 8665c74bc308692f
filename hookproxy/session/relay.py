"""Passes lines that concern no hook between agent and server, within one callback of the event loop (law 2).

Each piece of bytes takes the first way on which it can go:

    from the agent   one short call that nothing judges ▶ a block of such calls ▶ line by line, as the router says
    from the server  the rest of a long line (`long_line`) ▶ one short response ▶ a block of them ▶ line by line

What must hold: lines leave in the order in which they came. A line that is held, refused or changed leaves by
`to_agent` or `to_server`, after the lines before it. While the agent has the beginning of a long line, what else is for
it waits in `_queued`. Without `strict`, nothing can be refused, so lines from the agent are sent before they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..protocol import feedback
from ..protocol.actions import PASS, AgentAction, Dropped, Refused, Send, ServerAction, SessionOpened
from ..protocol.fast_scan import END_BYTES, ReadCall, request_id, response_id
from ..protocol.router import Router
from ..transports.channel import Channel, OffersCalls, TakesCalls
from ..transports.lines import Lines, TooLong
from .long_line import LongLine, Mode, Perform
from .tap import TakeBytes, Tap

if TYPE_CHECKING:
    from .long_agent_lines import LongAgentLines, Look

STREAM_FROM_BYTES: Final = 65536  # an unfinished line of this size passes in pieces, if nobody needs all of it

MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024  # limit for a line from the server where no hook reads lines

_LONG_BYTES: Final = 8 * 1024 * 1024  # a block of this size needs room that may not be there; smaller ones are frequent
_ROOM: Final = 6  # times the line: what it takes at most, with hooks on it

_WHOLE: Final = Mode.WHOLE


class Relay:
    """The two directions between an agent and a server. With `strict`, no line passes that cannot be read.

    It is long because both directions share their fast paths and their backpressure: who may not read, and why, depends
    on what the other direction has not written.
    """

    def __init__(  # noqa: PLR0913  # its parts, and limits
        self,
        agent: Channel,
        server: Channel,
        router: Router,
        limit: int,
        strict: bool,
        perform: Perform,
        stream_from: int = STREAM_FROM_BYTES,
    ) -> None:
        self.agent = agent
        self.server = server
        self._router = router
        self._strict = strict
        self.as_line_to_server: Callable[[bytes], bytes] = raw_json.one_line if server.reads_lines else bytes
        self.as_line_to_agent: Callable[[bytes], bytes] = raw_json.one_line if agent.reads_lines else bytes
        """Make of a message what every reader of its peer takes for one line."""
        self._perform = perform
        self._limit = limit
        self._stream_from = stream_from
        self._agent_limit = limit, "max_message_bytes"
        self._short = min(stream_from, limit)  # bytes: each line of fewer is handled as all are
        self._agent_lines = Lines(limit, request_id)
        self._server_lines = Lines(limit if strict else max(limit, MAX_UNREAD_BYTES), response_id)
        self.long_line = LongLine(agent.write, router, limit, perform, self.as_line_to_agent)
        self._queued: list[bytes] = []
        self._pauses: set[str] = set()
        self._opened = False
        self._partial_line_sent = False  # the server ended within a line, and the agent has its beginning
        self._replacing = False
        self._send_call = self._send_call_line
        self._deliver_response: Callable[[bytes, bytes], None] | None = None  # None: the agent's side gets lines
        self._long_agent_lines: LongAgentLines | None = None  # None: they are read at once
        self.on_passed: Callable[[], None] = _nothing
        """Called after lines from the server have been processed."""
        self.tap: Tap | None = None
        """Gets all bytes as well, if it is there at the start; None: nobody does."""

    def start(
        self, on_agent_end: Callable[[], None], on_agent_gone: Callable[[], None], on_server_end: Callable[[], None]
    ) -> None:
        """Start reading. Each callback for an end of input is called after the last line has been processed."""

        from_agent: TakeBytes = self._agent_bytes
        from_server: TakeBytes = self._server_bytes
        if self.tap is not None:
            from_agent, from_server = self.tap.connect(from_agent, from_server)

        def agent_ended() -> None:
            if self._long_agent_lines is not None and self._long_agent_lines.holds_end(agent_ended):
                return
            self._agent_last_line()
            if self.tap is not None:
                self.tap.agent_ended()
            on_agent_end()

        def server_ended() -> None:
            self._server_last_line()
            if self.tap is not None:
                self.tap.server_ended()
            on_server_end()

        def agent_is_full(full: bool) -> None:
            (self.server.pause if full else self.server.resume)()

        pause_agent = partial(self.pause_agent, "the server does not read")
        self.agent.start(from_agent, agent_ended, agent_is_full, on_agent_gone)
        self.server.start(from_server, server_ended, pause_agent, _nothing)  # it may still write then

    def connect_calls(self, agent: OffersCalls) -> None:
        """Pass calls on as the channels have read them, where nothing judges them. Call it before the start."""
        assert self._strict, "else lines are sent on before they are read"
        if self.tap is not None:
            return  # it gets what is read from the agent, and then only lines come
        agent.pass_call, self._deliver_response = self._pass_call, agent.deliver_response
        if isinstance(self.server, TakesCalls):
            self._send_call, self.server.pass_response = self.server.send_call, self._pass_response

    def look_at_long_lines(
        self, look: Look, spawn: Callable[[Callable[..., Coroutine[object, object, None]]], None]
    ) -> None:
        """Let long lines of the agent be looked at before they are read. Call it before the start."""
        assert self._strict, "else lines are sent on before they are read"
        from .long_agent_lines import LongAgentLines  # for gateways only

        lines = self._agent_lines
        if look.limit < self._limit:
            self._agent_limit = look.limit, "max_request_bytes"
            lines.limit_to(look.limit)
        self._long_agent_lines = LongAgentLines(
            look,
            lines,
            spawn,
            self.pause_agent,
            self._agent_bytes,
            lambda line: self._agent_block([line]),
            lambda refused: self._perform(refused, b""),
        )

    def _pass_call(self, call: ReadCall) -> bool:
        if not self._opened or len(call.line) >= self._limit:
            return False
        roots = self._router.roots
        for_server = call if roots is None else roots.in_call(call)
        if for_server is None or not self._router.pass_call(call.name, call.id):
            return False
        self._send_call(for_server)
        return True

    def _send_call_line(self, call: ReadCall) -> None:
        self.server.write(call.line + b"\n")

    def _pass_response(self, raw_id: bytes, line: bytes) -> bool:
        if self.passing or self._deliver_response is None or not self._router.pass_response(raw_id):
            return False
        self._deliver_response(raw_id, line)
        self.on_passed()
        return True

    def _is_line(self, lines: Lines, piece: bytes) -> bool:
        """True if a piece is one short line: nearly every one is."""
        return len(piece) - 1 == piece.find(b"\n") < self._short and not lines.begun

    def pause_agent(self, reason: str, paused: bool) -> None:
        """Pause or resume reading from the agent for a reason; it is read again when no reason is left."""
        if paused == (reason in self._pauses):
            return
        (self._pauses.add if paused else self._pauses.discard)(reason)
        (self.agent.pause if self._pauses else self.agent.resume)()

    # --- from the agent ---

    def _agent_bytes(self, piece: bytes) -> None:  # noqa: C901  # calls cost more here
        if not self._strict:  # nothing can be refused, so it is sent on before it is read
            self.server.write(piece)
        if self._opened and self._is_line(self._agent_lines, piece) and self._router.scan_call(piece):
            if self._strict:
                self.server.write(piece)
            return
        if self._long_agent_lines is not None and self._long_agent_lines.holds(piece):
            return
        block = self._agent_lines.feed(piece)
        if self._agent_lines.lost:
            self._refuse_lost()
        if block.find(b"\n") == len(block) - 1:
            self._agent_block([block] if block else [])
        elif len(block) > _LONG_BYTES or not self._router.scan_from_agent(block):
            self._agent_block(_lines(block))
        elif self._strict:
            self.server.write(block)

    def _agent_block(self, lines: list[bytes]) -> None:
        passing: list[bytes] = []
        for line in lines:
            action = self._from_agent(line)
            if self._router.handshake.opened and not self._opened:
                self._opened = True
                self._perform(SessionOpened(), line)
            if action is PASS:
                passing.append(line)
            elif isinstance(action, Send):
                passing.append(action.line)
            else:
                if passing:
                    _send(self.server, passing)
                self._perform(action, line)
        if passing and self._strict:
            _send(self.server, passing)

    def _from_agent(self, line: bytes) -> AgentAction:
        """The router's action; a line that takes more memory than there is is refused, and the session goes on."""
        try:
            _require_room(line)
            return self._router.from_agent(line)
        except MemoryError:
            if not self._strict:  # it has been sent already
                return PASS
            raw_id = request_id(line[:END_BYTES], line[-END_BYTES:])
            return Refused(feedback.out_of_memory(len(line)), raw_id or b"null")

    def _refuse_lost(self) -> None:
        for lost in self._agent_lines.lost if self._strict else ():
            reason = feedback.message_too_long(lost.size, *self._agent_limit)
            self._perform(Refused(reason, lost.id or b"null"), b"")
        self._agent_lines.lost.clear()

    def _agent_last_line(self) -> None:
        """The text after the last line end: many readers take it for a message as well."""
        line = self._agent_lines.take()
        self._refuse_lost()
        if not line:
            return
        action = self._from_agent(line)
        if not self._strict:  # it has been sent already; the router now expects a response
            return
        if action is PASS or isinstance(action, Send):
            line = action.line if isinstance(action, Send) else line
            self.server.write(line + b"\n" if self._router.calls else line)  # lines of waiting calls come after it
        else:
            self._perform(action, line)

    def to_server(self, line: bytes) -> None:
        """Send a whole line to the server."""
        if line.find(b"\n", 0, -1) >= 0:
            raise AssertionError("one message must not become two lines")
        self.server.write(line if line.endswith(b"\n") else line + b"\n")

    # --- from the server ---

    def _server_bytes(self, piece: bytes) -> None:
        if self.long_line.mode is not _WHOLE:
            piece = self._continue_long_line(piece)
        elif self._is_line(self._server_lines, piece) and (raw_id := self._router.scan_response(piece)):
            if self._deliver_response is not None:
                self._deliver_response(raw_id, piece[:-1])
            else:
                self.agent.write(piece)
            self.on_passed()
            return
        block = self._server_lines.feed(piece)
        if self._server_lines.lost:
            self._replace_lost()
        if block:
            if len(block) <= _LONG_BYTES and self._router.scan_from_server(block):
                self.agent.write(block)
            else:
                self._server_block([block] if block.find(b"\n") == len(block) - 1 else _lines(block))
            self.on_passed()
        if self._server_lines.begun >= self._stream_from and self._router.may_pass_in_pieces(self._server_lines.head):
            self.long_line.begin(self._server_lines.take())

    def _continue_long_line(self, piece: bytes) -> bytes:
        """Pass the next bytes of a long line on; return those after it."""
        rest = self.long_line.read(piece)
        if self.long_line.mode is _WHOLE:
            self.on_passed()
            if self._queued:
                _send(self.agent, self._queued)
        return rest

    def _server_block(self, lines: list[bytes]) -> None:
        passing: list[bytes] = []
        for line in map(self.as_line_to_agent, lines) if self._router.withholds_responses else lines:
            action = self._from_server(line)
            if action is PASS:
                passing.append(line)
            else:
                if passing:
                    _send(self.agent, passing)
                self._perform(action, line)
        if passing:
            _send(self.agent, passing)

    def _from_server(self, line: bytes) -> ServerAction:
        """The router's action; a response that takes more memory than there is becomes an error."""
        try:
            _require_room(line)
            return self._router.from_server(line)
        except MemoryError:
            raw_id = response_id(line[:END_BYTES], line[-END_BYTES:])
            if raw_id is None:
                return Dropped(f"a message of {len(line)} bytes, for which there is not enough memory")
            return self._router.from_server(feedback.response_out_of_memory(raw_id, len(line)))

    @property
    def passing(self) -> bool:
        """A long line is being sent to the agent in pieces."""
        mode = self.long_line.mode
        return mode is Mode.PIECES or mode is Mode.BROKEN

    def _server_last_line(self) -> None:
        """The text after the last line end: passed on as it is if it is JSON."""
        self._partial_line_sent = self.long_line.end_of_input()
        line = self._server_lines.take()
        if line:
            line = self.as_line_to_agent(line) if self._router.withholds_responses else line
            action = self._from_server(line)
            if action is PASS:
                self.agent.write(line)
                self._partial_line_sent = True
            else:
                self._perform(action, line)
        for queued in self._queued:
            self.to_agent(queued)

    def to_agent(self, line: bytes) -> None:
        """Send a whole line to the agent; it waits while a long line is being sent in pieces."""
        line = line if line.endswith(b"\n") else line + b"\n"
        if self.passing:
            self._queued.append(line)
        else:
            self.agent.write(b"\n" + line if self._partial_line_sent else line)
            self._partial_line_sent = False

    @property
    def is_substitute(self) -> bool:
        """The response that is being handled is not the server's: an error stands in its place."""
        return self._replacing or self.server.is_substitute

    def _replace_lost(self) -> None:
        lines = [replacement(lost, self._limit) for lost in self._server_lines.lost]
        self._server_lines.lost.clear()
        self._replacing = True
        self._server_block(lines)
        self._replacing = False
        self.on_passed()


def replacement(lost: TooLong, limit: int) -> bytes:
    """An error in place of a response that is too long for hooks; text that is not JSON in place of others."""
    if lost.id is not None:
        return feedback.response_too_long(lost.id, lost.size, limit)
    return feedback.message_too_long(lost.size, limit).encode() + b"\n"


def _send(channel: Channel, lines: list[bytes]) -> None:
    channel.write(lines[0] if len(lines) == 1 else b"".join(lines))
    lines.clear()


def _require_room(line: bytes) -> None:
    """Raise MemoryError if memory is short for a long line: msgspec would crash. (Unwritten bytes take none.)"""
    if len(line) > _LONG_BYTES:
        bytes(_ROOM * len(line))


def _nothing() -> None:
    pass


def _lines(block: bytes) -> list[bytes]:
    """The lines of a block that ends with a line end, each with its `\\n`."""
    if len(block) <= _LONG_BYTES:
        return [line + b"\n" for line in block[:-1].split(b"\n")]
    lines: list[bytes] = []
    end = 0
    while end < len(block):  # slower for many lines, but a long one is copied once instead of three times
        start, end = end, block.index(b"\n", end) + 1
        lines.append(block[start:end])
    return lines
