"""The gateway side by side with nginx and with bridges to servers on pipes: scripts/bench --gateway.

It is measured twice: pinned, everything on one CPU, which measures the length of the path; and spread, where each
contestant runs on one CPU, agent and servers on another. Bridges start their server themselves, so it moves to the
agent's CPU on its own.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from agent import Fault, Placement, Session, environment, move_to, time_limit
from contestants import HERE, OWN_ENVIRONMENT, address, echo_server
from http_agent import HttpAgent
from report import TIMES, table

NGINX, DIRECT_HTTP = "nginx", "direct"
OURS, SUPERGATEWAY, NPM_PROXY, PYPI_PROXY, FASTMCP = (
    "hookproxy",
    "supergateway",
    "npm mcp-proxy",
    "mcp-proxy",
    "fastmcp",
)
CONNECT, RUN = "connect", "run"
SANDBOXED, BARE = "in a sandbox", "without"
SERVER_STARTS = 30
"""Of each kind, by turns: a start takes some milliseconds, of which one is noise."""
SESSIONS = 2000
START_SECONDS = 30
"""A bridge that does not listen by then takes no part; fastmcp needs 4."""
SLOW_EVERY = 3
"""Bridges that take a millisecond for a call take part in one block of three."""
BLOCKS = 6

_NGINX = """\
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 64m;
    upstream servers {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port};
        keepalive_requests 1000000;
        location / {{
            proxy_pass http://servers;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""
_GATEWAY = """\
[gateway]
listen = ["unix:{folder}/gateway/mcp.sock", "http://127.0.0.1:{port}"]
tokens = "tokens"
per_user = {{ sessions = 100000, memory = "1TiB" }}
total = {{ sessions = 100000, memory = "1TiB" }}
max_requests = 4096

[servers.remote]
url = "{url}"
allow_http = true

[servers.pipe]
command = {command}

[servers.bare]
command = {command}
sandbox = "off"

[servers.shared]
command = {command}
share = "all"
max_sessions = 100000
"""


@dataclass(frozen=True)
class Way:
    """A started contestant, and how it is reached."""

    port: int
    path: str = "/mcp"
    token: str = ""
    pid: int = 0

    def agent(self) -> HttpAgent:
        """A session with it."""
        return HttpAgent(self.port, self.path, self.token)


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def started(argv: list[str], placement: Placement, port: int, log: Path) -> Iterator[int]:
    """Run a contestant until the block ends. Raises Fault where it does not listen."""
    move_to(placement.proxy)
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=environment(),
            start_new_session=True,
        )
    move_to(placement.agent)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    said = log.read_text(errors="replace").strip().splitlines()
                    raise Fault(said[-1] if said else "it does not listen") from None
                time.sleep(0.02)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Gateway:
    """Where our gateway is, and with what."""

    port: int
    token: str
    pid: int
    socket: str

    def way(self, server: str) -> Way:
        """To one of its servers."""
        return Way(self.port, f"/mcp/{server}", self.token, self.pid)


def hookproxy() -> str:
    """The hookproxy of this environment."""
    return str(Path(sys.executable).parent / "hookproxy")


@contextmanager
def our_gateway(folder: Path, placement: Placement, upstream: str, server: list[str]) -> Iterator[Gateway]:
    """Our gateway with a token, in front of the echo servers."""
    own, port = folder / "gateway", free_port()
    own.mkdir(mode=0o700, exist_ok=True)
    tokens = own / "tokens"
    new = [hookproxy(), "token", "new", "bench", "--file", str(tokens)]
    token = subprocess.run(new, check=True, capture_output=True, text=True).stdout.split()[-1]
    config = own / "gateway.toml"
    command = "[" + ", ".join(f'"{word}"' for word in server) + "]"
    config.write_text(_GATEWAY.format(folder=folder, port=port, url=upstream, command=command))
    argv = [hookproxy(), "serve", "--config", str(config)]
    with started(argv, placement, port, own / "log") as pid:
        yield Gateway(port, token, pid, str(own / "mcp.sock"))


@contextmanager
def nginx(folder: Path, placement: Placement, upstream: int) -> Iterator[Way]:
    """A bare reverse proxy with kept connections and without buffering."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise Fault("it is not installed")
    own, port = folder / "nginx", free_port()
    own.mkdir(exist_ok=True)
    config = own / "nginx.conf"
    config.write_text(_NGINX.format(folder=own, port=port, upstream=upstream))
    with started([found, "-p", str(own), "-c", str(config)], placement, port, own / "log") as pid:
        yield Way(port, pid=pid)


def bridge_argv(name: str, port: int, server: list[str]) -> list[str]:
    """The command of a bridge from HTTP to a server on pipes."""
    modules, node = OWN_ENVIRONMENT / "npm" / "node_modules" / ".bin", shutil.which("node") or "node"
    number, line = str(port), shlex.join(server)
    return {
        SUPERGATEWAY: [
            *(node, str(modules / "supergateway"), "--stdio", line, "--outputTransport", "streamableHttp"),
            *("--stateful", "--logLevel", "none", "--port", number),
        ],
        NPM_PROXY: [node, str(modules / "mcp-proxy"), "--host", "127.0.0.1", "--port", number, "--", *server],
        PYPI_PROXY: [
            *(str(OWN_ENVIRONMENT / "mcp-proxy" / "bin" / "mcp-proxy"), "--log-level", "ERROR"),
            *("--port", number, "--", *server),
        ],
        FASTMCP: [str(OWN_ENVIRONMENT / "bin" / "python"), str(HERE / "fastmcp_proxy.py"), f"--http={number}", *server],
    }[name]


@contextmanager
def bridge(name: str, folder: Path, placement: Placement, server: list[str]) -> Iterator[Way]:
    """Another bridge, at work."""
    port = free_port()
    with started(bridge_argv(name, port, server), placement, port, folder / f"{name}.log") as pid:
        yield Way(port, pid=pid)


Take = Callable[[HttpAgent], list[float]]
Figures = dict[str, dict[str, list[float]]]
"""Measure → contestant → one figure for each block."""


def in_blocks(agents: dict[str, HttpAgent], takes: dict[str, Take], slow: set[str], into: Figures) -> list[str]:
    """Take each measure from all contestants in shuffled order, block by block. Returns what went wrong."""
    faults = []
    for measure, take in takes.items():
        for block in range(-1, BLOCKS):  # the first one warms up
            for name in random.sample(sorted(agents), len(agents)):
                if name in slow and block % SLOW_EVERY:
                    continue
                try:
                    with time_limit():
                        figures = take(agents[name])
                except (Fault, OSError) as fault:
                    faults.append(f"{name}: {measure}: {fault}")
                    del agents[name]
                    continue
                if block >= 0:
                    into[measure][name].append(median(figures))
    return faults


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise Fault("it has ended")


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def p99_across(agents: list[HttpAgent], count: int) -> float:
    """The 99th percentile of `count` calls, one after another, each in the next session, in nanoseconds."""
    times = []
    for n in range(count):
        times += agents[n % len(agents)].latencies(1)
    return quantiles(times, n=100)[98]


def many_sessions(gateway: Gateway, into: Figures) -> None:
    """Sessions with an idle stream each, and a shared server."""
    way, count = gateway.way("shared"), 2000
    agents = [way.agent() for _ in range(10)]
    p99_across(agents, 500)
    few = median(p99_across(agents, count) for _ in range(3))
    agents += [way.agent() for _ in range(SESSIONS - 10)]
    p99_across(agents, SESSIONS)
    many = median(p99_across(agents, count) for _ in range(3))
    for agent in agents:
        agent.close()
    streams = [agent.listen() for agent in agents]
    time.sleep(2)
    before, start = cpu_seconds(gateway.pid), time.monotonic()
    time.sleep(5)
    into["idle CPU, %"][OURS] = [(cpu_seconds(gateway.pid) - before) / (time.monotonic() - start) * 100]
    into["memory with them, MB"][OURS] = [resident_mb(gateway.pid)]
    into["p99 over 10 sessions, µs"][OURS] = [few / 1e3]
    into["p99 over 2,000 sessions, µs"][OURS] = [many / 1e3]
    for stream in streams:
        stream.close()


def over_the_socket(gateway: Gateway, server: list[str], folder: Path, placement: Placement, into: Figures) -> None:
    """connect and run side by side, and what connect costs alone."""
    argv = {
        CONNECT: [hookproxy(), "connect", "pipe", "--socket", gateway.socket],
        RUN: [hookproxy(), "run", "--", *server],
    }
    sessions = {name: Session(words, placement, folder / f"{name}.log") for name, words in argv.items()}
    for block in range(-1, BLOCKS * 2):
        for name in random.sample(sorted(sessions), 2):
            figures = sessions[name].latencies(300, 10)
            if block >= 0:
                into["a call, p50 µs"][name].append(median(figures) / 1e3)
    into["memory, MB"][CONNECT] = [resident_mb(sessions[CONNECT].pid)]
    for session in sessions.values():
        session.stop()
    refused = [*argv[CONNECT][:-1], str(folder / "nobody.sock")]
    python = Path(sys.executable)
    for _ in range(15):
        for name, words in ((CONNECT, refused), ("bare Python", [str(python), "-I", "-S", "-c", ""])):
            begun = time.perf_counter_ns()
            subprocess.run(words, capture_output=True, check=False)
            into["start and end, ms"][name].append((time.perf_counter_ns() - begun) / 1e6)


def server_starts(gateway: Gateway, into: Figures) -> None:
    """How long a session takes to get its first response, with a server process of its own."""
    for n in range(-1, SERVER_STARTS):
        taken = {name: first_response(gateway, server) for name, server in ((SANDBOXED, "pipe"), (BARE, "bare"))}
        if n >= 0:
            for name, milliseconds in taken.items():
                into["a session's start, ms"][name].append(milliseconds)
            into["later than without, ms"][SANDBOXED].append(taken[SANDBOXED] - taken[BARE])


def first_response(gateway: Gateway, server: str) -> float:
    """Milliseconds from the connection to the response to initialize."""
    begun = time.perf_counter_ns()
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as lines:
        connection.settimeout(START_SECONDS)
        connection.connect(gateway.socket)
        params = '{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}'
        message = f'{{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {params}}}'
        connection.sendall(f"hookproxy 1\nserver {server}\n\n{message}\n".encode())
        if not lines.readline().startswith(b"ok") or b"result" not in lines.readline():
            raise Fault(f"{OURS}: the server {server} does not start")
        return (time.perf_counter_ns() - begun) / 1e6


def ratios(figures: Figures, over: dict[str, tuple[str, str, str, float, bool]]) -> list[list[str]]:
    """A row for each limit: the measured ratio of the medians, and whether it is kept."""
    rows = []
    for title, (measure, one, other, limit, least) in over.items():
        ours, theirs = figures[measure].get(one), figures[measure].get(other)
        if ours and theirs:
            ratio = median(ours) / median(theirs)
            kept = ratio >= limit if least else ratio <= limit
            rows.append(
                [title, f"{ratio:.2f} {TIMES}", f"{'≥' if least else '≤'} {limit:g} {TIMES}", "ok" if kept else "MISS"]
            )
    return rows


P50, RATE, LONG = "a call, p50 µs", "64 connections, thousand calls/s", "10 MB, ms"
ALONE = "a call of 2026-07-28, p50 µs"
TAKES: dict[str, Take] = {
    P50: lambda agent: [each / 1e3 for each in agent.latencies(200, 20)],
    ALONE: lambda agent: [each / 1e3 for each in agent.latencies(200, 20, alone=True)],
    RATE: lambda agent: [each / 1e3 for each in agent.rate(2000, 64)],
    LONG: lambda agent: [each / 1e6 for each in agent.long_result()],
}
SLOW_TAKES: dict[str, Take] = {
    P50: lambda agent: [each / 1e3 for each in agent.latencies(30, 5)],
    RATE: lambda agent: [each / 1e3 for each in agent.rate(192, 64)],
}


def rows_of(figures: Figures, columns: list[str]) -> list[list[str]]:
    """The median of each figure, for a table."""
    return [
        [measure, *(f"{median(by[name]):.1f}" if by.get(name) else "-" for name in columns)]
        for measure, by in figures.items()
    ]


def compare(ways: dict[str, Way], slow: set[str], takes: dict[str, Take], remarks: list[str]) -> Figures:
    """All measures of some contestants."""
    figures: Figures = defaultdict(lambda: defaultdict(list))
    agents: dict[str, HttpAgent] = {}
    for name, way in ways.items():
        try:
            with time_limit():
                agents[name] = way.agent()
        except (Fault, OSError) as fault:
            remarks.append(f"{name}: {fault}")
    remarks += in_blocks(agents, takes, slow, figures)
    for agent in agents.values():
        agent.close()
    return figures


HTTP_LIMITS = {
    "HTTP to HTTP: p50 over nginx's": (P50, OURS, NGINX, 1.4, False),
    "HTTP to HTTP: p50 of 2026-07-28 over nginx's": (ALONE, OURS, NGINX, 1.4, False),
    "HTTP to HTTP: calls/s over nginx's": (RATE, OURS, NGINX, 0.5, True),
    "HTTP to HTTP: 10 MB over nginx's": (LONG, OURS, NGINX, 0.9, False),
}
PIPE_LIMITS = {
    "HTTP to stdio: p50 over supergateway's": (P50, OURS, SUPERGATEWAY, 0.15, False),
    "HTTP to stdio: p50 over mcp-proxy's": (P50, OURS, PYPI_PROXY, 0.15, False),
    "HTTP to stdio: calls/s over supergateway's": (RATE, OURS, SUPERGATEWAY, 6, True),
    "HTTP to stdio: calls/s over mcp-proxy's": (RATE, OURS, PYPI_PROXY, 6, True),
}
SOCKET_LIMITS = {"connect: p50 over run's": (P50, CONNECT, RUN, 1.15, False)}
ABSOLUTE = {
    "start and end, ms": (CONNECT, 20.0),
    "memory, MB": (CONNECT, 10.0),
    "later than without, ms": (SANDBOXED, 15.0),
    "memory with them, MB": (OURS, 120.0),
    "idle CPU, %": (OURS, 0.5),
}
"""Limits of single figures. The CPU's is "0 %", which the clock of the kernel counts in steps of 0.2 %."""


def absolute(figures: Figures) -> list[list[str]]:
    """A row for each limit of a single figure."""
    rows = []
    for measure, (name, limit) in ABSOLUTE.items():
        if found := figures.get(measure, {}).get(name):
            middle = median(found)
            rows.append([f"{name}: {measure}", f"{middle:.1f}", f"≤ {limit:g}", "ok" if middle <= limit else "MISS"])
    return rows


def measure_gateway(placement: Placement, folder: Path, markdown: bool) -> int:
    """Measure everything in one placement and print it. Returns 1 where the gateway itself was wrong."""
    folder.mkdir()
    move_to(placement.agent)
    remarks: list[str] = []
    server = echo_server() + placement.server_options
    upstream = address(placement, None)
    parts: list[tuple[str, list[str], Figures]] = []
    limits: list[list[str]] = []
    others: Figures = defaultdict(lambda: defaultdict(list))
    with our_gateway(folder, placement, upstream, server) as gateway:
        port = int(upstream.rpartition(":")[2].partition("/")[0])
        ways = {DIRECT_HTTP: Way(port), OURS: gateway.way("remote")}
        try:
            with nginx(folder, placement, port) as other:
                figures = compare(ways | {NGINX: other}, set(), TAKES, remarks)
        except Fault as fault:
            remarks.append(f"nginx: {fault}")
            figures = compare(ways, set(), TAKES, remarks)
        parts.append(("HTTP to HTTP", [DIRECT_HTTP, NGINX, OURS], figures))
        limits += ratios(figures, HTTP_LIMITS)

        piped = compare({OURS: gateway.way("pipe")}, set(), {name: TAKES[name] for name in (P50, ALONE, RATE)}, remarks)
        for name in (SUPERGATEWAY, NPM_PROXY, PYPI_PROXY, FASTMCP):
            try:
                with bridge(name, folder, placement, server) as way:
                    for measure, by in compare({name: way}, set(), SLOW_TAKES, remarks).items():
                        piped[measure].update(by)
            except Fault as fault:
                remarks.append(f"{name}: {fault}")
        parts.append(("HTTP to stdio", [OURS, SUPERGATEWAY, NPM_PROXY, PYPI_PROXY, FASTMCP], piped))
        limits += ratios(piped, PIPE_LIMITS)

        over_the_socket(gateway, server, folder, placement, others)
        server_starts(gateway, others)
        parts.append(("over the Unix socket", [CONNECT, RUN, "bare Python", SANDBOXED, BARE], others))
        limits += ratios(others, SOCKET_LIMITS) + absolute(others)
    crowd: Figures = defaultdict(lambda: defaultdict(list))
    with our_gateway(folder, placement, upstream, server) as gateway:
        try:
            many_sessions(gateway, crowd)
        except (Fault, OSError) as fault:
            remarks.append(f"{OURS}: 2,000 sessions: {fault}")
    parts.append(("2,000 sessions, each with an idle stream", [OURS], crowd))
    limits += absolute(crowd)
    for title, columns, figures in parts:
        print(table([f"{title}, {placement.name}", *columns], rows_of(figures, columns), markdown), end="\n\n")
    print(table([f"limit, {placement.name}", "measured", "", "kept"], limits, markdown), end="\n\n")
    for remark in remarks:
        print(f"note: {remark}")
    return 1 if any(remark.startswith(f"{OURS}:") for remark in remarks) else 0
