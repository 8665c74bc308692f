"""The calls of a session that have ended, for hooks that judge by what was done before. Bounded; nothing is written."""

from __future__ import annotations

from collections import deque
from time import time
from typing import Final, NamedTuple

from ..dialects.shared.input import iso_8601, utf8
from ..jsonrpc import raw_json

_MOST: Final = 200  # calls: each hook run reads all of them, in a millisecond
_LONGEST: Final = 8192  # bytes of arguments: of longer ones a hook gets none


class _Call(NamedTuple):
    server: str
    tool: str
    arguments: bytes | None
    """None: they are too long."""
    decision: str
    result: str
    at: float
    """Seconds since 1970."""

    def json(self) -> bytes:
        members = {
            "tool_name": utf8(self.tool),
            "server": utf8(self.server),
            "decision": self.decision,
            "result": self.result,
            "timestamp": iso_8601(self.at),
        }
        call = raw_json.encode(members)
        if self.arguments is None:
            return call
        return b'%b,"tool_input":%b}' % (call[:-1], raw_json.one_line(self.arguments))


class SessionCalls:
    """The last calls, the oldest first. They are written as JSON when somebody reads them."""

    def __init__(self) -> None:
        self._written: deque[bytes] = deque(maxlen=_MOST)
        self._new: deque[_Call] = deque(maxlen=_MOST)
        self._json = b"[]"

    def json(self) -> bytes:
        """All of them, a JSON array of objects as `hooks.api.PastCall` has them."""
        if self._new:
            self._written.extend(call.json() for call in self._new)
            self._new.clear()
            self._json = b"[%b]" % b",".join(self._written)
        return self._json

    def note(self, server: str, tool: str, arguments: bytes, decision: str, result: str) -> None:
        """A call has ended, as its record says."""
        kept = arguments if len(arguments) <= _LONGEST else None
        self._new.append(_Call(server, tool, kept, decision, result, time()))
