"""A day's worth of calls through the gateway as fast as it goes: scripts/soak.

A day is 24 hours with a call each second. Half of an hour's calls stand alone; the others are in sessions of 50 calls,
half of them at a process of their own, half at one for all. Each session has an open stream; every second one is left
without a word, the others are ended. After each hour all that is left must end by itself, and what the gateway holds
then is compared with what it held after the sixth hour, when all code has run and all caches are filled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from agent import Placement
from contestants import HERE
from gateway import free_port, hookproxy, resident_mb, started
from http_agent import HttpAgent

HOUR = 3600
CALLS_PER_SESSION = 50
WARM_HOURS = 6
MAX_GROWTH_MB = 4.0
"""In the 64,800 calls after the sixth hour this is 65 bytes a call, less than anything that is kept for each takes."""
REST_SECONDS = 60
"""Sessions end a second after their last use, their processes at once; a loaded machine needs more."""

_CONFIG = """\
[gateway]
listen = ["http://127.0.0.1:{port}"]
tokens = "tokens"
probes = "http://127.0.0.1:{probes}"
per_user = {{ sessions = 1000, memory = "1TiB" }}
total = {{ sessions = 1024, memory = "1TiB" }}
[audit]
file = "audit.jsonl"
calls = "all"
[permissions]
deny = ["forbidden"]
[servers.own]
command = {command}
idle_seconds = 1
[servers.all]
command = {command}
share = "all"
idle_seconds = 1
"""
_STATELESS = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":{"text":"hello"},"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
)


class Growth(Exception):
    """The gateway holds more than it should."""


@dataclass(frozen=True)
class Held:
    """What a gateway holds at a moment."""

    memory: float
    """Megabytes of resident memory."""
    descriptors: int
    threads: int
    children: int

    @staticmethod
    def by(pid: int) -> Held:
        """What this process holds now."""
        tasks = os.listdir(f"/proc/{pid}/task")
        children = [one for task in tasks for one in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
        servers = sum(not is_guardian(child) for child in children)
        return Held(resident_mb(pid), len(os.listdir(f"/proc/{pid}/fd")), len(tasks), servers)


def is_guardian(pid: str) -> bool:
    """Whether this process is the one that ends all others if the gateway is killed: it stays."""
    try:
        return b"hookproxy-guardian" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:  # it has ended meanwhile
        return True


class Day:
    """The agents of a gateway."""

    def __init__(self, port: int, probes: int, token: str, pid: int) -> None:
        self._port, self._probes, self._token, self.pid = port, probes, token, pid
        self._sessions = 0

    def hour(self) -> None:
        """All calls of an hour."""
        for _ in range(HOUR // 2 // CALLS_PER_SESSION):
            self._sessions += 1
            self._session("own" if self._sessions % 2 else "all", ends=self._sessions % 4 < 2)
        for server in ("own", "all"):
            self._stateless(server, HOUR // 4)

    def _session(self, server: str, *, ends: bool) -> None:
        agent = HttpAgent(self._port, f"/mcp/{server}", self._token)
        stream = agent.listen()
        agent.latencies(CALLS_PER_SESSION - 1)
        (refused,) = agent.calls(1, b"forbidden")
        if b"forbidden" not in agent.exchange(agent.main, refused):
            raise Growth("a call that a rule denies was not refused")
        if ends:
            agent.exchange(agent.main, agent.head % b"DELETE" + b"Content-Length: 0\r\n\r\n")
        stream.close()
        agent.close()

    def _stateless(self, server: str, count: int) -> None:
        agent = HttpAgent.__new__(HttpAgent)  # without a session
        agent.port = self._port
        head = (
            f"POST /mcp/{server} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
        ).encode()
        connection = agent.connect()
        for number in range(count):
            body = _STATELESS % (number, b"echo")
            agent.verify(agent.exchange(connection, head + b"Content-Length: %d\r\n\r\n" % len(body) + body))
        connection.close()

    def at_rest(self) -> Held:
        """What the gateway holds when all sessions and their processes have ended. Raises Growth if they do not."""
        deadline = time.monotonic() + REST_SECONDS
        while True:
            held, sessions = Held.by(self.pid), self._open_sessions()
            if not held.children and not sessions:
                return held
            if time.monotonic() > deadline:
                raise Growth(f"{sessions} sessions and {held.children} processes have not ended in {REST_SECONDS} s")
            time.sleep(0.1)

    def _open_sessions(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._probes}/metrics") as response:
            lines = response.read().decode().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("hookproxy_sessions{"))


def run(day: Day, hours: int) -> None:
    """Send the calls of so many hours, and print what the gateway holds after each. Raises Growth."""
    print("hour   calls    seconds   memory, MB   descriptors   threads   processes", flush=True)
    begin, warm = time.monotonic(), None
    for hour in range(1, hours + 1):
        day.hour()
        held = day.at_rest()
        row = f"{held.memory:10.1f}   {held.descriptors:11}   {held.threads:7}   {held.children:9}"
        print(f"{hour:4}   {hour * HOUR:6}   {time.monotonic() - begin:7.0f}   {row}", flush=True)
        if hour == WARM_HOURS:
            warm = held
        elif warm is not None:
            check(warm, held)


def check(warm: Held, held: Held) -> None:
    """Raise Growth where more is held than before."""
    if held.memory > warm.memory + MAX_GROWTH_MB:
        raise Growth(f"memory has grown from {warm.memory:.1f} to {held.memory:.1f} MB")
    if held.descriptors > warm.descriptors:
        raise Growth(f"descriptors have grown from {warm.descriptors} to {held.descriptors}")
    if held.threads > warm.threads:
        raise Growth(f"threads have grown from {warm.threads} to {held.threads}")


def main() -> int:
    """Start a gateway, and let it live through a day."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=int, default=24, help="hours with a call each second (default: 24)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here, port, probes = Path(folder), free_port(), free_port()
        command = json.dumps([sys.executable, "-S", "-E", str(HERE / "echo_server.py")])
        (here / "gateway.toml").write_text(_CONFIG.format(port=port, probes=probes, command=command))
        new_token = [hookproxy(), "token", "new", "day", "--file", str(here / "tokens")]
        token = subprocess.run(new_token, check=True, capture_output=True, text=True).stdout.strip()
        serve = [hookproxy(), "serve", "--config", str(here / "gateway.toml")]
        everywhere = Placement("anywhere", None, None)
        with started(serve, everywhere, port, here / "gateway.log") as pid:
            try:
                run(Day(port, probes, token, pid), options.hours)
            except Growth as growth:
                print(f"error: {growth}", file=sys.stderr)
                return 1
        records = (here / "audit.jsonl").read_bytes().count(b"\n")
    print(f"nothing has grown; the audit has {records} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
