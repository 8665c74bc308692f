"""A hook as a web service: serves on a free port, then becomes the command that is given, with the port put in a file.

hook_server.py FILE COMMAND...: PORT in the text of FILE is replaced. The server ends when the command has ended.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


class Hook(asyncio.Protocol):
    """Answers each request with an empty object, which says nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As documented."""
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        """As documented."""
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, rest = self.received.partition(b"\r\n\r\n")
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if len(rest) < size:
                return
            self.received = rest[size:]
            self.transport.write(ANSWER)


async def serve(listener: socket.socket, living: int) -> None:
    """Serve until the other end of `living` is closed."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(living, ended.set)
    await loop.create_server(Hook, sock=listener)
    await ended.wait()


def main() -> None:
    """Fork the server, become the command."""
    file, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    living, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        asyncio.run(serve(listener, living))
        os._exit(0)
    path = Path(file)
    path.write_text(path.read_text().replace("PORT", str(listener.getsockname()[1])))
    os.set_inheritable(held, True)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
