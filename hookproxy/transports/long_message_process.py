"""The process that looks at long messages for `long_messages`: one after another, from a socket on standard input.

A message comes with its depth and its length before it, and its answer goes back with a length. It is nicer than the
process that waits for it, so that a flood of long messages takes no time from short ones.
"""

from __future__ import annotations

import os
import resource
import socket
import struct
from contextlib import suppress
from typing import Final

from ..jsonrpc.survey import why_unreadable

HEADER: Final = struct.Struct("!IQ")
"""The depth, and the bytes of the message."""

ANSWER: Final = struct.Struct("!I")
"""The bytes of the answer."""

_NICER: Final = 10  # of 19: it gets a tenth of a processor that others want as well
_MEMORY: Final = 2 * 1024**3  # bytes of addresses: a message with the most values takes a tenth of it


def main() -> None:
    """Answer until the socket is closed."""
    with suppress(OSError):
        os.nice(_NICER)
    with suppress(OSError, ValueError):  # a system without this limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with socket.socket(fileno=0) as peer:
        while header := _received(peer, HEADER.size):
            depth, size = HEADER.unpack(header)
            message = _received(peer, size)
            if len(message) < size:
                return
            try:
                answer = why_unreadable(message, depth).encode()
            except MemoryError:
                answer = b"It takes more memory to read than there is"
            peer.sendall(ANSWER.pack(len(answer)) + answer)


def _received(peer: socket.socket, size: int) -> bytes:
    """So many bytes; fewer: the socket is closed."""
    received = bytearray(size)
    view, at = memoryview(received), 0
    while at < size:
        count = peer.recv_into(view[at:])
        if not count:
            return b""
        at += count
    return bytes(received)
