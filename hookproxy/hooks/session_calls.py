"""The calls of a session that have ended, for hooks that judge by what was done before. Bounded; nothing is written."""

from __future__ import annotations

from collections import deque
from time import time
from typing import Final

from ..dialects.shared.input import iso_8601, utf8
from ..jsonrpc import raw_json

_MOST: Final = 200  # calls: each hook run reads all of them, in a millisecond
_LONGEST: Final = 8192  # bytes of arguments: of longer ones a hook gets none


class SessionCalls:
    """The last calls, the oldest first."""

    def __init__(self) -> None:
        self._calls: deque[bytes] = deque(maxlen=_MOST)
        self._json = b"[]"

    @property
    def json(self) -> bytes:
        """All of them, a JSON array of objects as `hooks.api.PastCall` has them."""
        if not self._json:
            self._json = b"[%b]" % b",".join(self._calls)
        return self._json

    def note(self, server: str, tool: str, arguments: bytes, decision: str, result: str) -> None:
        """A call has ended, as its record says."""
        members = {
            "tool_name": utf8(tool),
            "server": utf8(server),
            "decision": decision,
            "result": result,
            "timestamp": iso_8601(time()),
        }
        call = raw_json.encode(members)
        if len(arguments) <= _LONGEST:
            call = b'%b,"tool_input":%b}' % (call[:-1], raw_json.one_line(arguments))
        self._calls.append(call)
        self._json = b""
