"""A long line of the server that passes in pieces, because nobody needs all of it (law 2).

    mode      what is done with the next bytes                      it ends with
    WHOLE     whole lines are read; `begin` takes a line that is     begin ─▶ PIECES, or BESIDE if a channel offers
              not finished                                           a Passage for its response
    PIECES    they go to the agent; nothing else may interrupt       line end ─▶ WHOLE;  a response that is withheld
              them, so other messages wait                           meanwhile may be in them ─▶ BROKEN
    BROKEN    they are dropped: the agent has an invalid line, and   line end ─▶ WHOLE
              at the end its request gets an error
    BESIDE    they go to the Passage, beside all other messages      line end ─▶ WHOLE;  over the limit ─▶ CUT
    CUT       they are dropped: the Passage is aborted               line end ─▶ WHOLE

What must hold: no call is forwarded in PIECES and BROKEN (`RunningCalls.forward`), and nothing that may be a response
to a judged call passes unread. If a call is judged before the line has ended, the line's end is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from ..protocol.actions import AgentAction, Dropped, ServerAction
from ..protocol.calls import id_key
from ..protocol.fast_scan import response_id
from ..protocol.router import Router
from ..transports.channel import Passage
from ..transports.lines import StreamedLine, split_line

Perform = Callable[[AgentAction | ServerAction, bytes], None]
"""Performs an action, other than PASS and Send, on a line."""


class Mode(Enum):
    """What is done with the next bytes of the server."""

    WHOLE = auto()
    PIECES = auto()
    BROKEN = auto()
    BESIDE = auto()
    CUT = auto()


class LongLine:
    """The long line that passes now, if there is one."""

    def __init__(
        self,
        to_agent: Callable[[bytes], None],
        router: Router,
        limit: int,
        perform: Perform,
        as_line: Callable[[bytes], bytes],
    ) -> None:
        """`as_line` makes of a message one line for every reader of the agent's side."""
        self.mode = Mode.WHOLE
        self.find_passage: Callable[[bytes], Passage | None] = lambda _id: None
        """As in OffersPassages."""
        self._to_agent = to_agent
        self._router = router
        self._limit = limit
        self._perform = perform
        self._as_line = as_line
        self._line: StreamedLine  # in PIECES
        self._response: Passage  # in BESIDE
        self._bytes = 0  # of it so far

    def begin(self, head: bytes) -> None:
        """Send the beginning of an unfinished line."""
        raw_id = response_id(head, b"")
        if raw_id is not None and (response := self.find_passage(raw_id)) is not None:
            self.mode, self._response, self._bytes = Mode.BESIDE, response, 0
            self._send_beside(head)
            return
        # To follow it takes time. If no listed tool is judged, nothing is withheld: if a call of another tool is judged
        # before the line has ended, which happens at most once, the line is broken off, and its request gets an error.
        self.mode, self._line = Mode.PIECES, StreamedLine(self._router.judged_tools.may_judge, head)
        self._to_agent(self._line.add(head))

    def read(self, piece: bytes) -> bytes:
        """Handle the line's next bytes; return those that come after the line."""
        part, rest, has_ended = split_line(piece)
        if self.mode is Mode.PIECES:
            self._send(part)
        elif self.mode is Mode.BROKEN:
            self._line.drop(part)
        elif self.mode is Mode.BESIDE:
            self._send_beside(part[:-1] if has_ended else part)
        if has_ended:
            self._end()
        return rest

    def _send(self, part: bytes) -> None:
        """Send the agent the next bytes; nothing passes while a response is withheld: a call may have come since."""
        withholds = self._router.withholds_responses
        if ready := self._line.add(part, hold=withholds):
            self._to_agent(ready)
        if withholds and self._line.kept_bytes > self._limit:
            self.mode = Mode.BROKEN
            self._make_invalid()

    def _send_beside(self, part: bytes) -> None:
        self._bytes += len(part)
        if self._bytes <= self._limit:
            self._response.write(part)
        else:
            self.mode = Mode.CUT
            self._cut(f"it has more than {self._limit} bytes")

    def _end(self) -> None:
        mode, self.mode = self.mode, Mode.WHOLE
        if mode is Mode.BESIDE:
            self._response.end()
        elif mode is Mode.PIECES:
            self._end_line()
        elif mode is Mode.BROKEN:
            self._end_request()

    def end_of_input(self) -> bool:
        """The server has ended. True: within a line, of which the agent has all bytes but no line end."""
        mode, self.mode = self.mode, Mode.WHOLE
        if mode is Mode.BESIDE:
            self._cut("the server has ended")
        elif mode is Mode.BROKEN:
            self._end_request()
        return mode is Mode.PIECES and self._end_line()  # many readers take the text for a message as well

    def _end_line(self) -> bool:
        """Send the line's end, unless some reader may take the line for a response that is withheld: then False."""
        if self._router.withholds_responses:
            raw_id = self._line.clear_id()
            if raw_id is None or self._router.is_taken(id_key(raw_id)):
                self._break()
                return False
            self._to_agent(self._as_line(self._line.take()))
        elif self._line.kept_bytes:
            self._to_agent(self._line.take())
        if self._line.id is not None:
            self._router.requests.settle(id_key(self._line.id))  # nobody had to read it
        return True

    def _break(self) -> None:
        """End the whole line so that it is invalid JSON, and nobody reads it as a message."""
        self._make_invalid()
        self._end_request()

    def _make_invalid(self) -> None:
        self._line.take()
        self._to_agent(b"!\n")

    def _end_request(self) -> None:
        """End the request whose response the line was: where that stands may be known at the end only."""
        self._perform(self._router.dropped_as_unclear(self._line.id or b""), b"")

    def _cut(self, why: str) -> None:
        """End a response so that the agent does not take what it has for a whole one."""
        self._response.abort()
        self._perform(Dropped(f"the rest of a response, of which a part was sent already: {why}"), b"")
