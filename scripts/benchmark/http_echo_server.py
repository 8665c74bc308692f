"""The echo server at an address: Streamable HTTP with as little work as httptools allows.

Prints its port. Long results come as an event stream, all others as JSON.
Usage: http_echo_server.py [--cpu N] [--tls FILE]
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys

import httptools
from echo_server import respond

LONG = 65536
"""Bytes of a response that comes as an event stream."""
HEAD = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NOT_ALLOWED = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection; its requests are answered in their order."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data: bytes) -> None:
        """Feed the parser, which calls the methods below."""
        self.parser.feed_data(data)

    def on_body(self, piece: bytes) -> None:
        """Keep the body."""
        self.body += piece

    def on_message_complete(self) -> None:
        """Answer a whole request."""
        body, self.body = self.body, b""
        if self.parser.get_method() != b"POST":
            self.transport.write(NOT_ALLOWED)
            return
        answer = respond(body).rstrip(b"\n")
        if not answer:
            self.transport.write(ACCEPTED)
        elif len(answer) < LONG:
            self.transport.write(HEAD % (b"200 OK", b"application/json", len(answer)) + answer)
        else:
            event = b"event: message\ndata: " + answer + b"\n\n"
            self.transport.write(HEAD % (b"200 OK", b"text/event-stream", len(event)))
            self.transport.write(event)


async def serve(tls: ssl.SSLContext | None) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, ssl=tls)
    os.write(1, b"%d\n" % server.sockets[0].getsockname()[1])
    await server.serve_forever()


def main(words: list[str]) -> None:
    """Serve on one CPU, with the certificate and key in a file, if the command line says so."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    if "--cpu" in options and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(options["--cpu"])})
    tls = None
    if "--tls" in options:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options["--tls"])
    asyncio.run(serve(tls))


if __name__ == "__main__":
    main(sys.argv[1:])
