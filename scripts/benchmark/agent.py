"""The measuring side: starts a contestant, speaks MCP over its pipes with little work, verifies answers.

Only the exchange itself is timed: requests are made before, and answers are read and verified after.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

CHUNK = 65536
"""A Linux pipe's capacity, in bytes: more never arrives in one read."""
LIMIT = 60
"""Seconds that one measurement may take: fastmcp needs one second at most, so whoever takes longer hangs."""
FAREWELL = 2.0
"""Seconds for a contestant to end by itself after its input has ended."""
LONG_RESULT = 10_000_000
"""The least length of the line with a long result, in bytes."""
TEXT_LINE = b"2026-01-01 12:00:00 GET /files/report.txt 200, by the user alice, in 12 ms\n"
"""A line of texts of any length: as tools give them, with what a rule for secrets must look at."""
PROGRESS = re.compile(rb'"progress":(\d+)')

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":"start","method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"benchmark","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
LIST = b'{"jsonrpc":"2.0","id":"list","method":"tools/list"}\n'
CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
    b'{"name":"%b","arguments":{%b},"_meta":{"progressToken":%d}}}\n'
)


class Fault(Exception):
    """A contestant does not start, hangs, or lost, changed or reordered messages."""


@dataclass(frozen=True)
class Placement:
    """Which CPU everything runs on; None leaves it to the scheduler."""

    name: str
    agent: int | None
    """The agent's and the server's."""
    proxy: int | None
    """The proxy's and its hooks'."""

    @property
    def server_options(self) -> list[str]:
        """What brings the server, which starts where the proxy is, to its own CPU."""
        return [] if self.agent == self.proxy else ["--cpu", str(self.agent)]


def move_to(cpu: int | None) -> None:
    """Pin this process, and what it starts from now on."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise Fault when the block takes too long, at no cost for what is measured."""

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise Fault(f"no answer within {LIMIT} s")

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)


def environment() -> dict[str, str]:
    """Ours without PYTHON*: settings such as PYTHONDONTWRITEBYTECODE would skew what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


class Peer:
    """A started process, and the pipes to its standard input and output."""

    def __init__(self, argv: list[str], placement: Placement, log: Path) -> None:
        self.log = log
        """Where its standard error goes."""
        reader, self.to = os.pipe()
        self.back, writer = os.pipe()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        pipes = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(log), flags, 0o600),
        ]
        move_to(placement.proxy)
        self.started = time.perf_counter_ns()
        try:
            self.pid = os.posix_spawn(argv[0], argv, environment(), file_actions=pipes, setpgroup=0)
        except OSError as error:
            raise Fault(f"{argv[0]}: {error.strerror}") from error
        finally:
            move_to(placement.agent)
            os.close(reader)
            os.close(writer)

    def read(self) -> bytes:
        """The next piece of its output."""
        piece = os.read(self.back, CHUNK)
        if not piece:
            said = self.log.read_text(errors="replace").strip().splitlines()
            raise Fault("it ended" + (f": {said[-1]}" if said else ""))
        return piece

    def read_line(self) -> bytes:
        """Its output up to a newline that ends a piece: one line, as nobody speaks unasked here."""
        pieces = [self.read()]
        while not pieces[-1].endswith(b"\n"):
            pieces.append(self.read())
        return b"".join(pieces)

    def write(self, request: bytes) -> None:
        """Send the bytes."""
        try:
            os.write(self.to, request)
        except BrokenPipeError:
            self.read()

    def stop(self) -> None:
        """End its input, wait a little, then kill its group."""
        os.close(self.to)
        deadline = time.monotonic() + FAREWELL
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            time.sleep(0.002)
        os.close(self.back)


class Spawner(Peer):
    """spawner.py: the floor of running a hook."""

    def times(self, argv: list[str], count: int, feed: int = 0) -> list[float]:
        """Nanoseconds of each spawn and wait; `feed` bytes go to the command's standard input."""
        self.write(json.dumps({"argv": argv, "count": count, "feed": feed}).encode() + b"\n")
        return [float(each) for each in json.loads(self.read_line())]


class Session(Peer):
    """An MCP session with a contestant: it has answered `initialize` and `tools/list`."""

    def __init__(self, argv: list[str], placement: Placement, log: Path) -> None:
        super().__init__(argv, placement, log)
        self.next_id = 1
        try:
            self.write(INITIALIZE)
            self.wait_for(b'"id":"start"')
            self.ready = time.perf_counter_ns() - self.started
            """Nanoseconds from the start of the process to its answer to `initialize`."""
            self.write(INITIALIZED + LIST)
            self.wait_for(b'"id":"list"')
        except Fault:
            self.stop()
            raise

    def wait_for(self, sign: bytes) -> None:
        """Read until a line holds the sign."""
        while sign not in (line := self.read_line()):
            if b'"error"' in line:
                raise Fault(line.decode(errors="replace")[:200])

    def requests(self, count: int, tool: bytes = b"echo", arguments: bytes = b'"text":"hello"') -> list[bytes]:
        """Calls of a tool with fresh ids."""
        first, self.next_id = self.next_id, self.next_id + count
        return [CALL % (n, tool, arguments, n) for n in range(first, first + count)]

    def verify(self, lines: list[bytes], count: int) -> None:
        """The lines answer the last `count` requests, each once, as the echo tool does."""
        answers = [json.loads(line) for line in lines]
        ids = sorted(answer["id"] for answer in answers)
        if ids != list(range(self.next_id - count, self.next_id)):
            raise Fault(f"{count} calls, but the answers' ids are not theirs")
        texts = {answer["result"]["content"][0]["text"] for answer in answers}
        if texts != {"hello"}:
            raise Fault(f"the echo tool's answers are changed: {sorted(texts)[:2]}")

    def verify_id(self, line: bytes) -> None:
        """The line is the successful answer to the last request."""
        answer = json.loads(line)
        if answer.get("id") != self.next_id - 1 or answer.get("result", {}).get("isError"):
            raise Fault(f"not the answer to the last call: {line[:100].decode(errors='replace')}")

    def latencies(self, count: int, skip: int = 0) -> list[float]:
        """Nanoseconds of each of `count` calls, one after another, after `skip` more that are not counted."""
        requests, answers = self.requests(skip + count), []
        times: list[float] = []
        clock = time.perf_counter_ns
        for request in requests:
            start = clock()
            self.write(request)
            answer = self.read_line()
            times.append(clock() - start)
            answers.append(answer)
        self.verify(answers, skip + count)
        return times[skip:]

    def rate(self, count: int, window: int) -> list[float]:
        """Calls per second with `window` in flight: for each answer another request, in its own write."""
        requests, pieces = self.requests(count), []
        start = time.perf_counter_ns()
        sent = answered = 0
        while answered < count:
            for request in requests[sent : answered + window]:
                self.write(request)
            sent = answered + window
            pieces.append(self.read())
            answered += pieces[-1].count(b"\n")
        nanoseconds = time.perf_counter_ns() - start
        self.verify(b"".join(pieces).splitlines(), count)
        return [count / nanoseconds * 1e9]

    def notification_rate(self, count: int, burst: bool = False) -> list[float]:
        """Notifications per second, from one call that sends `count` of them until its result."""
        (request,) = self.requests(1, b"notify", b'"count":%d,"burst":%b' % (count, b"true" if burst else b"false"))
        pieces, arrived = [], 0
        start = time.perf_counter_ns()
        self.write(request)
        while arrived <= count:
            pieces.append(self.read())
            arrived += pieces[-1].count(b"\n")
            if arrived <= count and b'"result"' in pieces[-1]:
                raise Fault(f"{count + 1 - arrived} of {count} notifications lost or late")
        nanoseconds = time.perf_counter_ns() - start
        whole = b"".join(pieces)
        if [int(number) for number in PROGRESS.findall(whole)] != list(range(count)):
            raise Fault("notifications lost, changed or out of order")
        self.verify_id(whole.splitlines()[-1])
        return [count / nanoseconds * 1e9]

    def text_latencies(self, count: int, size: int) -> list[float]:
        """Nanoseconds of each of `count` calls whose result is a text of so many bytes, as their argument is."""
        text = (TEXT_LINE * (size // len(TEXT_LINE) + 1))[:size]
        times: list[float] = []
        for request in self.requests(count, b"echo", b'"text":"%b"' % text.replace(b"\n", b"\\n")):
            start = time.perf_counter_ns()
            self.write(request)
            answer = self.read_line()
            times.append(time.perf_counter_ns() - start)
            if json.loads(answer)["result"]["content"][0]["text"].encode() != text:
                raise Fault(f"a text of {size} bytes is changed")
        return times

    def long_result(self, tool: bytes) -> list[float]:
        """Nanoseconds of one call with a result of 10 MB."""
        (request,) = self.requests(1, tool, b"")
        start = time.perf_counter_ns()
        self.write(request)
        line = self.read_line()
        nanoseconds = time.perf_counter_ns() - start
        self.verify_id(line)
        if len(line) < LONG_RESULT:
            raise Fault(f"the result of {tool.decode()} has {len(line)} bytes")
        return [nanoseconds]

    def memory(self) -> list[float]:
        """Resident MB of the contestant's own process: idle, after a result of 10 MB, and at its peak."""
        time.sleep(0.3)
        idle, _ = self.resident()
        self.long_result(b"big")
        time.sleep(0.1)
        return [idle, *self.resident()]

    def resident(self) -> tuple[float, float]:
        """Resident memory now and at its peak, in MB (VmRSS and VmHWM)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        sizes = dict(re.findall(r"(\w+):\s+(\d+) kB", status))
        return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024
