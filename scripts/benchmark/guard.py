"""The guard of agents' own tools: what its client costs, how long an answer takes, and many agents at once.

It is run by scripts/bench --guard. The guard judges by rules and limits, and records every call in full. Answers are
measured by sockets that speak as the client does: on two processors, thousands of processes would measure themselves.
"""

from __future__ import annotations

import json
import os
import random
import select
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from agent import Fault, time_limit
from report import p99, table

from hookproxy.dialects.agent_side import agent_side
from hookproxy.guard import entries

AGENTS = 20
RATE = 1000
"""Events per second of all agents."""
SECONDS = 5
"""For so long."""
STARTS = 100
"""Of the client, and of a bare interpreter, by turns."""
LIMITS = {"client": 1.5, "answer": 5.0, "flood": 25.0}
"""Times a bare interpreter; ms at the median; ms at the 99th percentile."""

_CONFIG = """
[permissions]
deny = ["Bash(rm -rf *)", "Read(**/.env)", "WebFetch(domain:evil.example)"]
ask = ["Bash(git push *)"]
allow = ["Bash(ls *)"]
[[limits]]
tool = "*"
calls = 100000
per = "hour"
[audit]
calls = "all"
"""
_VARIABLES = {**{f"VARIABLE_{number}": "x" * 40 for number in range(60)}, "PATH": os.environ["PATH"]}
"""An environment of a usual length."""


def document(agent: int, number: int) -> bytes:
    """Claude Code's document of one event: calls and their results by turns."""
    command = {"command": f"git status && ls -la src/{number // 2} | head", "description": "look around"}
    members = {
        "session_id": f"session-{agent}",
        "transcript_path": "/home/anna/.claude/projects/x/transcript.jsonl",
        "cwd": "/home/anna/project",
        "permission_mode": "default",
        "hook_event_name": "PostToolUse" if number % 2 else "PreToolUse",
        "tool_name": "Bash",
        "tool_input": command,
        "tool_use_id": f"toolu_{agent}_{number // 2}",
    }
    if number % 2:
        members["tool_response"] = {"stdout": "a line of output\n" * 30, "stderr": "", "interrupted": False}
    return json.dumps(members).encode()


def request(agent: int, number: int) -> bytes:
    """The same as the client sends it."""
    event, cwd = document(agent, number), b"/home/anna/project"
    environ = b"\0".join(f"{name}={value}".encode() for name, value in _VARIABLES.items())
    head = b"hookproxy-guard 1 claude %d %d %d\n" % (len(cwd), len(environ), len(event))
    return head + cwd + environ + event


@contextmanager
def running(home: Path) -> Iterator[Path]:
    """The path of the socket of a guard that runs with this home folder."""
    config = home / ".config" / "hookproxy" / "hookproxy.toml"
    config.parent.mkdir(parents=True)
    config.write_text(_CONFIG)
    path = home / "state" / "guard.sock"
    path.parent.mkdir(mode=0o700)
    program = str(Path(sys.executable).parent / "hookproxy")
    guard = subprocess.Popen(
        [program, "guard", "--foreground", "--socket", str(path)],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 30
        while not path.exists():
            if guard.poll() is not None or time.monotonic() > until:
                raise Fault("the guard does not start")
            time.sleep(0.02)
        yield path
    finally:
        guard.terminate()
        guard.wait()


def answers(path: Path, count: int) -> list[float]:
    """Milliseconds of each answer, one after another."""
    taken = []
    for number in range(count):
        message = request(AGENTS, number)
        begun = time.perf_counter()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(message)
            response = connection.recv(65_536)
            taken.append((time.perf_counter() - begun) * 1e3)
        if not response.startswith(b"0 "):
            raise Fault(f"the guard answers {response[:100]!r}")
    return taken


def flood(path: Path) -> tuple[float, list[float]]:
    """Events per second that were answered, and the ms of each: from when it was due, however late it was sent."""
    total, begun = RATE * SECONDS, time.perf_counter()
    free, numbers, taken = list(range(AGENTS)), [0] * AGENTS, list[float]()
    waiting: dict[int, tuple[socket.socket, int, float]] = {}
    sent = 0
    with select.epoll() as poll:
        while len(taken) < total:
            while free and sent < total and time.perf_counter() >= begun + sent / RATE:
                agent = free.pop(0)
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(path))
                connection.sendall(request(agent, numbers[agent]))
                numbers[agent] += 1
                waiting[connection.fileno()] = connection, agent, begun + sent / RATE
                poll.register(connection, select.EPOLLIN)
                sent += 1
            pause = begun + sent / RATE - time.perf_counter() if free and sent < total else 1.0
            for descriptor, _ in poll.poll(max(pause, 0.0)):
                connection, agent, due = waiting.pop(descriptor)
                response = connection.recv(65_536)
                taken.append((time.perf_counter() - due) * 1e3)
                poll.unregister(connection)
                connection.close()
                free.append(agent)
                if not response.startswith(b"0 "):
                    raise Fault(f"the guard answers {response[:100]!r}")
    return total / (time.perf_counter() - begun), taken


def cost(words: list[str], given: bytes) -> tuple[float, float]:
    """Milliseconds of processor time, and of time, that a program takes."""
    reading, writing = os.pipe()
    os.write(writing, given)
    os.close(writing)
    null = os.open(os.devnull, os.O_WRONLY)
    begun = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    pid = os.posix_spawn(words[0], words, _VARIABLES, file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    taken = time.perf_counter() - begun
    os.close(reading)
    os.close(null)
    if status:
        raise Fault(f"{words[-1]} ended with status {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1e3, taken * 1e3


def starts(path: Path) -> dict[str, list[tuple[float, float]]]:
    """The costs of the client, as the entry of Claude Code starts it, and of an interpreter that does nothing."""
    side = agent_side("claude")
    assert side is not None
    client = shlex.split(entries.command(side, str(path), "/no/program", fails_closed=False))
    bare = [client[0], "-S", "-E", "-c", "pass"]
    ways: dict[str, Callable[[int], tuple[float, float]]] = {
        "client": lambda number: cost(client, document(AGENTS + 1, number)),
        "bare": lambda _number: cost(bare, b""),
    }
    figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number in range(STARTS):
        for way in random.sample(list(ways), len(ways)):
            figures[way].append(ways[way](number))
    return figures


def measure_guard(folder: Path, markdown: bool) -> int:
    """Print the figures beside their limits. Returns 1 if the guard was wrong or over a limit."""
    folder.mkdir(mode=0o700)
    try:
        with running(folder) as path, time_limit():
            answers(path, 100)
            one_by_one = answers(path, 500)
            clients = starts(path)
            rate, together = flood(path)
    except Fault as fault:
        print(f"WRONG: {fault}")
        return 1
    used, taken = ({way: median(pair[which] for pair in pairs) for way, pairs in clients.items()} for which in (0, 1))
    ratio, answer, worst = used["client"] / used["bare"], median(one_by_one), p99(together)
    rows = [
        ["processor time of the client, times a bare python3 -S -E -c pass", f"{ratio:.2f}", f"{LIMITS['client']}"],
        ["a whole event by the client, p50, ms; a bare interpreter", f"{taken['client']:.1f}; {taken['bare']:.1f}", ""],
        ["an answer with rules and a full audit, p50, ms", f"{answer:.2f}", f"{LIMITS['answer']:g}"],
        [f"{AGENTS} agents, {rate:.0f} events a second, p50, ms", f"{median(together):.2f}", ""],
        ["… p99, ms", f"{worst:.1f}", f"{LIMITS['flood']:g}"],
    ]
    print(table(["the guard", "measured", "limit"], rows, markdown), end="\n\n")
    return int(ratio > LIMITS["client"] or answer > LIMITS["answer"] or worst > LIMITS["flood"])
