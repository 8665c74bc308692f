"""Reads a stream of server-sent events, as the HTML standard (section 9.2) says; each event's data becomes one line.

An event never takes more memory than its limit: of a longer one, only both ends are kept (`_head`, and what is left in
`_data` or `_line`), and how much was dropped between them. A long message that nobody must see whole is passed on to
`_write` while it comes instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ...protocol.fast_scan import END_BYTES

_BOM: Final = b"\xef\xbb\xbf"
_MAX_ID_BYTES: Final = 4096  # of an event's id, which becomes a header: servers write some 50
_MAX_RETRY_DIGITS: Final = 9  # of `retry`, in milliseconds: eleven days


class Event(Struct, frozen=True):
    """One event. The data has no line end: those between its `data` lines have become blanks."""

    data: bytes
    type: bytes = b""


class LongEvent(Struct, frozen=True):
    """In the place of an event over the limit: its first and last bytes, and how many there were."""

    head: bytes
    tail: bytes
    size: int


class PassedEvent(Struct, frozen=True):
    """The end of an event whose data was passed on."""


class EventReader:
    """Reads one stream. An unfinished event at its end is dropped, as the standard says."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = False
        self._after_cr = False  # the LF of a CRLF may come in the next piece
        self._line = bytearray()  # the unfinished line
        self._data: bytes | bytearray | None = None  # of the unfinished event; None: no data line yet
        self._type = b""
        self._id: bytes | None = None
        self._dropped = 0  # bytes of the unfinished event that are dropped; its head is in `_head`
        self._head = b""
        self._dropped_of_line = 0  # as above, of an unfinished line that is not data
        self.last_id = b""
        """The id of the last event that had one; empty: it cannot be resumed."""
        self._write: Callable[[bytes], None] | None = None  # gets the data of the event that is being passed on
        self._in_passed_line = False
        self.retry: float | None = None
        """Seconds after which the server wants a closed stream to be opened again."""

    def feed(self, piece: bytes) -> list[Event | LongEvent | PassedEvent]:
        """Return the events that this piece completes."""
        if self._in_passed_line and piece:
            piece = self._pass_line(piece)
        elif self._after_cr and piece:
            self._after_cr, piece = False, piece.removeprefix(b"\n")
        if not piece:
            return []
        if not self._begun:
            piece = self._without_bom(piece)
        events: list[Event | LongEvent | PassedEvent] = []
        for line in piece.splitlines(keepends=True):
            if line[-1] not in b"\r\n":
                self._keep(line)
            elif event := self._end_line(line.rstrip(b"\r\n")):
                events.append(event)
        self._after_cr = piece.endswith(b"\r")
        return events

    @property
    def unfinished_message(self) -> bytes:
        """The data of a message so far, if its first line has not ended; empty: there is none."""
        if self._line[:5] != b"data:" or self._data is not None or self._dropped or self._type not in (b"", b"message"):
            return b""
        return bytes(self._line[6 if self._line[5:6] == b" " else 5 :])

    def pass_on(self, write: Callable[[bytes], None]) -> None:
        """Give the rest of the unfinished message to `write` as it comes; its event is a PassedEvent then."""
        write(self.unfinished_message)
        self._line.clear()
        self._write, self._in_passed_line = write, True

    def _pass_line(self, piece: bytes) -> bytes:
        """Pass on what belongs to the line; return what comes after its end."""
        assert self._write is not None
        end = piece.find(b"\n")
        if (cr := piece.find(b"\r", 0, end if end >= 0 else len(piece))) >= 0:
            end = cr
        if end < 0:
            self._write(piece)
            return b""
        self._write(piece[:end])
        self._in_passed_line = False
        rest = piece[end:]
        self._after_cr = rest == b"\r"
        return rest[2 if rest.startswith(b"\r\n") else 1 :]

    def _end_line(self, line: bytes) -> Event | LongEvent | PassedEvent | None:
        """Handle the rest of a line, without its end; return the event that it completes."""
        if self._line:
            self._keep(line)
            line = bytes(self._line)
            self._line.clear()
        self._dropped_of_line = 0
        if not line:
            return self._dispatch()
        self._field(line)
        return None

    def _without_bom(self, piece: bytes) -> bytes:
        """The stream's beginning without its byte order mark; empty while too little of it has come to know."""
        self._line += piece
        if len(self._line) < len(_BOM) and _BOM.startswith(self._line):
            return b""
        self._begun = True
        start = bytes(self._line)
        self._line.clear()
        return start.removeprefix(_BOM)

    def _keep(self, part: bytes) -> None:
        """Add to the unfinished line. Of a data line that is too long only both ends are kept."""
        self._line += part
        if len(self._line) + len(self._data or b"") > self._limit and len(self._line) > 4 * END_BYTES:
            self._drop_middle()

    def _drop_middle(self) -> None:
        """Keep the line's field name and its last bytes; of an event's data also the first ones."""
        name, _, value = bytes(self._line[: 2 * END_BYTES]).partition(b":")
        tail = b"%b:%b" % (name, bytes(self._line[-END_BYTES:]))
        if name == b"data":
            start = b"%b %b" % (bytes(self._data), value) if self._data else value.lstrip(b" ")
            self._head = self._head or start[:END_BYTES]
            self._dropped += len(self._line) + len(self._data or b"") - END_BYTES
            self._data = None
        else:
            self._dropped_of_line += len(self._line) - len(tail)
        self._line = bytearray(tail)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._type = value[:_MAX_ID_BYTES]
        elif name == b"id":
            if b"\0" not in value and len(value) <= _MAX_ID_BYTES:
                self._id = value
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:_MAX_RETRY_DIGITS]) / 1000

    def _add_data(self, value: bytes) -> None:
        if self._write is not None:
            self._write(b" " + value)
            return
        if self._data is None:
            self._data = value
            if len(value) > self._limit:
                self._head, self._dropped = value[:END_BYTES], len(value) - END_BYTES
                self._data = value[-END_BYTES:]
            return
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data)
        self._data += b" "
        self._data += value
        if len(self._data) > self._limit:
            self._head = self._head or bytes(self._data[:END_BYTES])
            self._dropped += len(self._data) - END_BYTES
            del self._data[:-END_BYTES]

    def _dispatch(self) -> Event | LongEvent | PassedEvent | None:
        data, dropped, head, kind = self._data, self._dropped, self._head, self._type
        self._data, self._dropped, self._head, self._type = None, 0, b"", b""
        if self._id is not None:
            self.last_id = self._id
        passed, self._write = self._write is not None, None
        if dropped:
            rest = bytes(data or b"")
            return LongEvent(head, rest[-END_BYTES:], dropped + len(rest))
        if passed:
            return PassedEvent()
        if data is None:
            return None
        return Event(bytes(data), kind)

    @property
    def dropped(self) -> int:
        """Bytes of the unfinished event that are dropped, because it is over the limit; it may never end."""
        return self._dropped + self._dropped_of_line

    @property
    def dropped_head(self) -> bytes:
        """The first bytes of the data that is over the limit; empty: a line that is not data is."""
        return self._head if self._dropped else b""

    @property
    def kept(self) -> int:
        """Bytes of the unfinished event that are in memory."""
        return len(self._line) + len(self._data or b"")
