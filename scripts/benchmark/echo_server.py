"""The benchmark's MCP server where there is no C compiler: the twin of echo_server.c, which explains it.

Usage: echo_server.py [--cpu N] [--boot-ms N] | --drain FILE
"""

import os
import re
import sys
import time

CHUNK = 65536
"""Bytes per read: what a pipe holds, and little enough not to be mapped and unmapped each time."""
BIG_BYTES = 10_000_000
MANY_ROWS = 100_000

ID = re.compile(rb'"id" ?: ?("[^"]*"|-?\d+)')
METHOD = re.compile(rb'"method" ?: ?"([^"]*)"')
TOOL = re.compile(rb'"name":"(big|many|notify)"')
TEXT = re.compile(rb'"text" ?: ?("[^"]*")')
TOKEN = re.compile(rb'"progressToken" ?: ?("[^"]*"|\d+)')
COUNT = re.compile(rb'"count" ?: ?(\d+)')
VERSION = re.compile(rb'"protocolVersion" ?: ?("[^"]*")')

TOOLS = (
    b'{"tools":['
    b'{"name":"echo","description":"Says the text again.","inputSchema":{"type":"object",'
    b'"properties":{"text":{"type":"string"}},"required":["text"]}},'
    b'{"name":"big","description":"A text of 10 MB.","inputSchema":{"type":"object","properties":{}}},'
    b'{"name":"many","description":"10 MB of small tokens.","inputSchema":{"type":"object","properties":{}}},'
    b'{"name":"notify","description":"Reports progress.","inputSchema":{"type":"object",'
    b'"properties":{"count":{"type":"integer"},"burst":{"type":"boolean"}},"required":["count"]}}]}'
)
NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b,"progress":%d}}\n'
EMPTY = b'{"content":[],"isError":false}'

batch: list[bytes] = []
"""What is still to be written."""
long_results: dict[bytes, bytes] = {}
"""The results of `big` and `many`, made at the first call, so that starting stays cheap."""


def big() -> bytes:
    """A text of 10 MB."""
    words = rb"a line of plain text, as long as most lines are\n"
    return b'{"content":[{"type":"text","text":"%b"}],"isError":false}' % (words * (BIG_BYTES // len(words)))


def many() -> bytes:
    """10 MB of small tokens, as structuredContent and, once more, as escaped text."""
    row = b'{"n":%d,"x":0.5,"s":"ab","ok":true,"z":null}'
    rows = b'{"rows":[%b]}' % b",".join(row % n for n in range(MANY_ROWS))
    text = rows.replace(b'"', b'\\"')
    head = b'{"content":[{"type":"text","text":"%b"}],"structuredContent":%b,"isError":false}'
    return head % (text, rows)


def find(pattern: re.Pattern[bytes], line: bytes, default: bytes) -> bytes:
    """The first group of the pattern in the line, or the default."""
    found = pattern.search(line)
    return found[1] if found else default


def notify(line: bytes) -> None:
    """Send the progress messages, each in a write of its own, or leave them to be sent with the result."""
    token, count = find(TOKEN, line, b"0"), int(find(COUNT, line, b"0"))
    burst = b'"burst":true' in line
    for n in range(count):
        say(NOTE % (token, n))
        if not burst:
            flush()


def call(line: bytes, answer: bytes) -> bytes:
    """The answer to a tools/call; `answer` has a place for the result."""
    tool = find(TOOL, line, b"echo")
    if tool == b"echo":
        return answer % (b'{"content":[{"type":"text","text":%b}],"isError":false}' % find(TEXT, line, b'""'))
    if tool == b"notify":
        notify(line)
        return answer % EMPTY
    if tool not in long_results:
        long_results[tool] = big() if tool == b"big" else many()
    return answer % long_results[tool]


def respond(line: bytes) -> bytes:
    """The answer to one line, or nothing."""
    number, method = ID.search(line), find(METHOD, line, b"")
    if not number or not method:
        return b""  # a notification, or an answer
    answer = b'{"jsonrpc":"2.0","id":' + number[1] + b',"result":%b}\n'
    if method == b"tools/call":
        return call(line, answer)
    if method == b"initialize":
        return answer % (
            b'{"protocolVersion":%b,"capabilities":{"tools":{},"logging":{}},'
            b'"serverInfo":{"name":"echo","version":"1"}}' % find(VERSION, line, b'"2025-06-18"')
        )
    if method == b"tools/list":
        return answer % TOOLS
    if method in (b"ping", b"logging/setLevel"):
        return answer % b"{}"
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no such method"}}\n' % number[1]


def say(piece: bytes) -> None:
    """Append to the batch."""
    batch.append(piece)


def flush() -> None:
    """Write the batch to standard output, however little it takes at a time."""
    rest = memoryview(b"".join(batch))
    batch.clear()
    while rest:
        rest = rest[os.write(1, rest) :]


def serve() -> None:
    """Read what there is, answer every whole line of it, write once."""
    held = b""
    while piece := os.read(0, CHUNK):
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            say(respond(line))
        flush()


def main(args: list[str]) -> None:
    """Obey the arguments in order, then serve."""
    if args[:1] == ["--drain"]:
        read = 0
        while piece := os.read(0, CHUNK):
            read += len(piece)
        with open(args[1], "w") as file:
            file.write(str(read))
        return
    for option, number in zip(args[::2], args[1::2], strict=True):
        if option == "--boot-ms":
            time.sleep(int(number) / 1000)
        elif option == "--cpu" and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {int(number)})
    serve()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        os._exit(0)
