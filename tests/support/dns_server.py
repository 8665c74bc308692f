"""A DNS server for names of one zone, as that of a cluster's pods: all that exist are on this machine."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_A: Final = 1  # the type of a record with an IPv4 address
_HEADER: Final = struct.Struct("!6H")
_FOUND: Final = 0x8580  # a response, with authority, recursion is available; RFC 1035, 4.1.1
_NO_SUCH_NAME: Final = 0x8583
_SECONDS: Final = 1  # that an answer may be kept
_LONGEST: Final = 4096  # bytes of a question


class DnsServer:
    """Answers until it is closed. `names` are those that exist, in lower case; it may be changed at any time."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])

    def run(self) -> None:
        """Answer; returns when somebody sends nothing."""
        while True:
            data, peer = self._socket.recvfrom(_LONGEST)
            if not data:
                return
            self._socket.sendto(self._answer(data), peer)

    def end(self) -> None:
        """Let `run` return."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as another:
            another.sendto(b"", ("127.0.0.1", self.port))

    def close(self) -> None:
        self._socket.close()

    def _answer(self, data: bytes) -> bytes:
        number = _HEADER.unpack_from(data)[0]
        labels, at = [], _HEADER.size
        while length := data[at]:
            labels.append(data[at + 1 : at + 1 + length].decode().lower())
            at += 1 + length
        question = data[_HEADER.size : at + 5]
        kind = struct.unpack_from("!H", data, at + 1)[0]
        exists = ".".join(labels) in self.names
        found = b""
        if exists and kind == _A:  # its name is that of the question
            found = struct.pack("!HHHIH", 0xC00C, _A, 1, _SECONDS, 4) + socket.inet_aton("127.0.0.1")
        flags = _FOUND if exists else _NO_SUCH_NAME
        return _HEADER.pack(number, flags, 1, int(bool(found)), 0, 0) + question + found


@contextmanager
def answering() -> Iterator[DnsServer]:
    """A server in a thread of this process."""
    server = DnsServer()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join()
        server.close()
