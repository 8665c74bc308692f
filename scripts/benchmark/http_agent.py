"""The measuring side over HTTP: an agent that speaks MCP over raw sockets with little work, and verifies answers."""

from __future__ import annotations

import select
import socket
import time

from agent import Fault

CHUNK = 1 << 18
"""Bytes per read: a long result arrives in few of them."""
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"benchmark","version":"1"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":{"text":"hello"}}}'
LONE_CALL = CALL[:-2] + (
    b',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"benchmark","version":"1"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
)
"""A call of 2026-07-28, which stands alone."""
LONE_HEADERS = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %b\r\n"
END_OF_CHUNKS = b"\r\n0\r\n\r\n"


def length_of(data: bytes) -> int | None:
    """The length of a response with a Content-Length; None where it comes in chunks, -1 before its head is whole."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return -1
    for line in data[:end].lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return end + 4 + int(line[15:])
    return None if b"chunked" in data[:end].lower() else end + 4


def is_whole(data: bytes) -> bool:
    """Whether a response has arrived to its end."""
    length = length_of(data)
    return data.endswith(END_OF_CHUNKS) if length is None else 0 <= length <= len(data)


class HttpAgent:
    """A session at an address. It has answered `initialize`."""

    def __init__(self, port: int, path: str, token: str = "") -> None:
        self.port = port
        self.head = (
            f"%b {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
        ).encode() + (f"Authorization: Bearer {token}\r\n".encode() if token else b"")
        self.lone_head = self.head + LONE_HEADERS
        self.next_id = 1
        self.main = self.connect()
        answer = self.exchange(self.main, self.post(INITIALIZE))
        for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n"):
            if line.lower().startswith(b"mcp-session-id:"):
                self.head += line + b"\r\n"
        self.head += b"Mcp-Protocol-Version: 2025-06-18\r\n"
        self.exchange(self.main, self.post(INITIALIZED))

    def connect(self) -> socket.socket:
        """One more connection."""
        opened = socket.create_connection(("127.0.0.1", self.port))
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def close(self) -> None:
        """End the first connection."""
        self.main.close()

    def post(self, body: bytes) -> bytes:
        """A request."""
        return self.head % b"POST" + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def calls(self, count: int, tool: bytes = b"echo") -> list[bytes]:
        """Calls of a tool with fresh ids."""
        first, self.next_id = self.next_id, self.next_id + count
        return [self.post(CALL % (n, tool)) for n in range(first, first + count)]

    def lone_calls(self, count: int, tool: bytes = b"echo") -> list[bytes]:
        """Calls that stand alone, without a session."""
        first, self.next_id = self.next_id, self.next_id + count
        bodies = [LONE_CALL % (n, tool) for n in range(first, first + count)]
        return [self.lone_head % (b"POST", tool) + b"Content-Length: %d\r\n\r\n" % len(one) + one for one in bodies]

    def exchange(self, connection: socket.socket, request: bytes) -> bytes:
        """Send a request, and read its response to the end."""
        connection.sendall(request)
        data = connection.recv(CHUNK)
        if data and is_whole(data):
            return data
        pieces, length, held = [data], length_of(data), len(data)
        while True:
            piece = connection.recv(CHUNK)
            if not piece:
                raise Fault(f"the connection has ended after {held} bytes: {pieces[0][:150]!r}")
            pieces.append(piece)
            held += len(piece)
            if length == -1:
                pieces = [b"".join(pieces)]
                length = length_of(pieces[0])
            if (length is None and b"".join(pieces[-2:]).endswith(END_OF_CHUNKS)) or (length and 0 < length <= held):
                return b"".join(pieces)

    def verify(self, answer: bytes) -> None:
        """It is the answer of the echo tool."""
        if b" 200 " not in answer[:20] or b'"hello"' not in answer:
            raise Fault(f"not the echo tool's answer: {answer[:300]!r}")

    def latencies(self, count: int, skip: int = 0, *, alone: bool = False) -> list[float]:
        """Nanoseconds of each of `count` calls, one after another, after `skip` more that are not counted.

        With `alone` they are calls of 2026-07-28, which need no session.
        """
        times: list[float] = []
        answers = []
        clock = time.perf_counter_ns
        for request in (self.lone_calls if alone else self.calls)(skip + count):
            start = clock()
            answer = self.exchange(self.main, request)
            times.append(clock() - start)
            answers.append(answer)
        for answer in answers:
            self.verify(answer)
        return times[skip:]

    def rate(self, count: int, window: int) -> list[float]:
        """Calls per second over `window` connections with one call in flight on each."""
        connections = [self.connect() for _ in range(window)]
        requests = self.calls(count)
        start = time.perf_counter_ns()
        answers = self.in_flight(connections, requests)
        nanoseconds = time.perf_counter_ns() - start
        for each in connections:
            each.close()
        for answer in answers:
            self.verify(answer)
        return [count / nanoseconds * 1e9]

    def in_flight(self, connections: list[socket.socket], requests: list[bytes]) -> list[bytes]:
        """The answers to all requests, which go out as connections become free."""
        poll, by_number = select.epoll(), {each.fileno(): each for each in connections}
        parts, answers, count = dict.fromkeys(by_number, b""), list[bytes](), len(requests)
        requests.reverse()
        for number, each in by_number.items():
            poll.register(number, select.EPOLLIN)
            each.sendall(requests.pop())
        while len(answers) < count:
            for number, _ in poll.poll():
                piece = by_number[number].recv(CHUNK)
                if not piece:
                    raise Fault("a connection has ended")
                parts[number] += piece
                if is_whole(parts[number]):
                    answers.append(parts[number])
                    parts[number] = b""
                    if requests:
                        by_number[number].sendall(requests.pop())
        poll.close()
        return answers

    def long_result(self) -> list[float]:
        """Nanoseconds of one call with a result of 10 MB."""
        (request,) = self.calls(1, b"big")
        start = time.perf_counter_ns()
        answer = self.exchange(self.main, request)
        nanoseconds = time.perf_counter_ns() - start
        if len(answer) < 10_000_000:
            raise Fault(f"the long result has {len(answer)} bytes: {answer[:200]!r}")
        return [nanoseconds]

    def listen(self) -> socket.socket:
        """Open the stream of the session, which stays idle."""
        connection = self.connect()
        connection.sendall(self.head % b"GET" + b"\r\n")
        answer = connection.recv(CHUNK)
        if b" 200 " not in answer[:20]:
            raise Fault(f"no stream: {answer[:200]!r}")
        return connection
