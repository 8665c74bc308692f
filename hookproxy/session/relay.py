"""Bytes in, switchboard, bytes out, within one callback of the event loop: frames that concern no hook (law 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..jsonrpc import raw_json
from ..protocol import feedback
from ..protocol.actions import PASS, Dropped, FromAgent, FromServer, Refused, Send, SessionOpened
from ..protocol.calls import id_key
from ..protocol.fast_scan import answered_id, ids_in, requested_id
from ..protocol.router import Router
from ..transports.channel import Channel
from ..transports.lines import Lines, StreamedLine, TooLong

PIECEWISE: Final = 65536  # bytes of an unfinished line from which on it passes in pieces, if nobody must see it whole

UNJUDGED: Final = 64 * 1024 * 1024  # bytes of a line from the server that is kept although nothing is judged: noise

Perform = Callable[[FromAgent | FromServer, bytes], None]
"""Performs an effect other than PASS and Send, of the line that is given."""


class Relay:
    """The two directions between an agent and a server. With `strict`, no line passes that could not be read."""

    def __init__(
        self, agent: Channel, server: Channel, router: Router, limit: int, strict: bool, perform: Perform
    ) -> None:
        self.agent = agent
        self.server = server
        self._board = router
        self._strict = strict
        self._perform = perform
        self._limit = limit
        self._agent_lines = Lines(limit, requested_id)
        self._server_lines = Lines(limit if strict else max(limit, UNJUDGED), answered_id)
        self._passage: StreamedLine | None = None
        self._kept_back: list[bytes] = []
        self._pauses: set[str] = set()
        self._opened = False
        self._ragged = False  # the server ended in the middle of a line, and the agent has its beginning
        self.on_passed: Callable[[], None] = _nothing
        """Called whenever lines from the server have been dealt with."""

    def start(
        self, on_agent_end: Callable[[], None], on_agent_gone: Callable[[], None], on_server_end: Callable[[], None]
    ) -> None:
        """Begin. Each end of input is told after the last line before it has been dealt with."""

        def agent_ended() -> None:
            self._agent_tail()
            on_agent_end()

        def server_ended() -> None:
            self._server_tail()
            on_server_end()

        self.agent.start(self._agent_bytes, agent_ended, self._agent_is_full, on_agent_gone)
        self.server.start(
            self._server_bytes,
            server_ended,
            lambda full: self.pause_agent("the server does not read", full),
            _nothing,  # it may go on to write: what it has read it answers
        )

    def pause_agent(self, reason: str, on: bool) -> None:
        """Read nothing from the agent while any reason for it stands."""
        if on == (reason in self._pauses):
            return
        (self._pauses.add if on else self._pauses.discard)(reason)
        (self.agent.pause if self._pauses else self.agent.resume)()

    def _agent_is_full(self, full: bool) -> None:
        (self.server.pause if full else self.server.resume)()

    # --- from the agent ---

    def _agent_bytes(self, piece: bytes) -> None:
        if not self._strict:  # nothing can be refused: on it goes, and then we look what it was
            self.server.write(piece)
        block = self._agent_lines.feed(piece)
        if self._agent_lines.lost:
            self._refuse_lost()
        if block.find(b"\n") == len(block) - 1:
            self._agent_block([block] if block else [])
        elif not self._board.glance_from_agent(block):
            self._agent_block(_lines(block))
        elif self._strict:
            self.server.write(block)

    def _agent_block(self, lines: list[bytes]) -> None:
        passing: list[bytes] = []
        for line in lines:
            effect = self._board.from_agent(line)
            if self._board.handshake.opened and not self._opened:
                self._opened = True
                self._perform(SessionOpened(), line)
            if effect is PASS:
                passing.append(line)
            elif isinstance(effect, Send):
                passing.append(effect.line)
            else:
                if passing:
                    self._send(self.server, passing)
                self._perform(effect, line)
        if passing and self._strict:
            self._send(self.server, passing)

    def _refuse_lost(self) -> None:
        for lost in self._agent_lines.lost:
            if self._strict:
                why = feedback.too_long(lost.size, self._limit)
                self._perform(Refused(why, lost.id or b"null"), b"")
        self._agent_lines.lost.clear()

    def _agent_tail(self) -> None:
        """What stands after the last line end: a frame as well, to many readers."""
        line = self._agent_lines.take()
        self._refuse_lost()
        if not line:
            return
        effect = self._board.from_agent(line)
        if not self._strict:  # it has gone already, and now it is known that it may be answered
            return
        if effect is PASS or isinstance(effect, Send):
            line = effect.line if isinstance(effect, Send) else line
            self.server.write(line + b"\n" if self._board.calls else line)  # held calls' lines come after it
        else:
            self._perform(effect, line)

    def to_server(self, line: bytes) -> None:
        """A line of our choice, whole."""
        self.server.write(line if line.endswith(b"\n") else line + b"\n")

    # --- from the server ---

    def _server_bytes(self, piece: bytes) -> None:
        if self._passage is not None:
            piece = self._pass_on(self._passage, piece)
        block = self._server_lines.feed(piece)
        if self._server_lines.lost:
            block = b"".join(map(self._instead, self._server_lines.lost)) + block
            self._server_lines.lost.clear()
        if block:
            if self._board.glance_from_server(block):
                self.agent.write(block)
            else:
                self._server_block([block] if block.find(b"\n") == len(block) - 1 else _lines(block))
            self.on_passed()
        if self._server_lines.begun >= PIECEWISE and self._board.may_pass_in_pieces(self._server_lines.head):
            self._begin_passage()

    def _server_block(self, lines: list[bytes]) -> None:
        passing: list[bytes] = []
        for line in map(raw_json.one_line, lines) if self._board.withholds else lines:
            effect = self._board.from_server(line)
            if effect is PASS:
                passing.append(line)
            else:
                if passing:
                    self._send(self.agent, passing)
                self._perform(effect, line)
        if passing:
            self._send(self.agent, passing)

    @property
    def passing(self) -> bool:
        """A long line is on its way to the agent in pieces."""
        return self._passage is not None

    def _begin_passage(self) -> None:
        """Let the unfinished line go."""
        head = self._server_lines.take()
        self._passage = StreamedLine(head)
        self.agent.write(head)

    def _pass_on(self, passage: StreamedLine, piece: bytes) -> bytes:
        """The part of `piece` that is not of the long line on its way."""
        mine, rest, ended = passage.split(piece, keep_end=bool(self._board.calls))
        self.agent.write(mine)
        if ended:
            self._passage = None
            self._end_passage(passage)
            self.on_passed()
            if self._kept_back:
                self._send(self.agent, self._kept_back)
        return rest

    def _end_passage(self, passage: StreamedLine) -> None:
        """Let the line's end go, unless it makes the line the answer to a call that was not there when it began."""
        ids = map(id_key, ids_in(passage.last))
        if any(key in self._board.calls or key in self._board.requests.hook_tool_calls for key in ids):
            self.agent.write(b"!\n")  # no JSON, so that nobody takes the line for anything
            self._perform(Dropped("the end of a message that would have answered a call before its hooks"), b"")
            return
        self.agent.write(passage.waiting)
        if passage.id is not None:
            self._board.requests.settle(id_key(passage.id))  # nobody had to see it

    def _server_tail(self) -> None:
        """What stands after the last line end: passed on as it is if it is JSON."""
        if self._passage is not None:
            self.agent.write(self._passage.waiting)
            self._passage = None
            self._ragged = True
        line = self._server_lines.take()
        if line:
            line = raw_json.one_line(line) if self._board.withholds else line
            effect = self._board.from_server(line)
            if effect is PASS:
                self.agent.write(line)
                self._ragged = True
            else:
                self._perform(effect, line)
        for kept in self._kept_back:
            self.to_agent(kept)

    def to_agent(self, line: bytes) -> None:
        """A line of our choice, whole: it waits while a long line is on its way."""
        line = line if line.endswith(b"\n") else line + b"\n"
        if self._passage is not None:
            self._kept_back.append(line)
        else:
            self.agent.write(b"\n" + line if self._ragged else line)
            self._ragged = False

    def _instead(self, lost: TooLong) -> bytes:
        """An answer that is too long to be judged becomes an error; other such messages become noise."""
        if lost.id is not None:
            return feedback.answer_too_long(lost.id, lost.size, self._limit)
        return feedback.too_long(lost.size, self._limit).encode() + b"\n"

    def _send(self, channel: Channel, lines: list[bytes]) -> None:
        channel.write(lines[0] if len(lines) == 1 else b"".join(lines))
        lines.clear()


def _nothing() -> None:
    pass


def _lines(block: bytes) -> list[bytes]:
    """Its lines, each with its `\\n`; the block ends with one."""
    return [line + b"\n" for line in block[:-1].split(b"\n")]
