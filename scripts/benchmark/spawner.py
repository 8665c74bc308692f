"""The floor of running a hook: a small Python process that only spawns a command and waits for it.

Each line of standard input is a request, `{"argv": [...], "count": N, "feed": BYTES}`; each answer is a line
with N times in nanoseconds, from just before the spawn to just after the wait. With `feed`, that many bytes
go to the command's standard input.
"""

import json
import os
import sys
import time


def spawn(argv: list[str]) -> int:
    """Nanoseconds to spawn the command and wait for it."""
    start = time.perf_counter_ns()
    os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)
    return time.perf_counter_ns() - start


def feed(argv: list[str], document: bytes) -> int:
    """Nanoseconds to spawn the command, write the document to its standard input and wait for it."""
    start = time.perf_counter_ns()
    reader, writer = os.pipe()
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
    os.close(reader)
    rest = memoryview(document)
    while rest:
        rest = rest[os.write(writer, rest) :]
    os.close(writer)
    os.waitpid(child, 0)
    return time.perf_counter_ns() - start


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin.buffer:
        wanted = json.loads(line)
        argv, count, size = wanted["argv"], wanted["count"], wanted.get("feed", 0)
        if size:
            document = bytes(size)
            times = [feed(argv, document) for _ in range(count)]
        else:
            times = [spawn(argv) for _ in range(count)]
        os.write(1, json.dumps(times).encode() + b"\n")


if __name__ == "__main__":
    main()
