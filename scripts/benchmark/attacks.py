"""What an honest user notices of attacks on the gateway: the rows of scripts/bench --gateway about them.

Each attack runs in a process of its own, as nice as possible: an attacker has other processors than the gateway.
Quiet seconds are measured before each attack. `python attacks.py` measures them alone.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles

from agent import Fault, Placement, environment, move_to
from contestants import HERE, address
from gateway import Figures, free_port, hookproxy, resident_mb, started
from http_agent import HttpAgent
from report import TIMES, table

SECONDS = 3.0
"""Of quiet and of attack, for each row: a thousand calls, so that the p99 is not that of a few."""
PAUSE = 0.002
"""Between two calls of the honest user, who would else take the processor from everybody."""
MOST_TIMES, MOST_MB = 5.0, 300.0
"""What the p99 may become, as times of the quiet one, and the gateway's memory."""
CONNECTIONS = 12_000
"""Of a flood of connections, or as many as this machine lets one process open."""
BODY = 7_900_000
QUIET, ATTACKED = "quiet", "attacked"
_STORE, _ENDLESS = "ATTACKED_STORE", "ATTACKED_PORT"
"""Variables of an attack: where the gateway looks for its store, and for the server without an end."""

_CONFIG = """\
[gateway]
listen = ["http://127.0.0.1:{port}"{tls}]
tokens = "tokens"
probes = "http://127.0.0.1:{probes}"
{table}
[permissions]
deny = ["forbidden"]
[gateway.store]
url = "unix://{folder}/store.sock"
[servers.remote]
url = "{url}"
allow_http = true
[servers.heavy]
command = {heavy}
[servers.endless]
url = "http://127.0.0.1:{endless}/mcp"
"""
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%b}}'
_CLIENT_HELLO = bytes.fromhex("1603010200010001fc0303")  # the head of a record whose rest never comes


def bodies() -> dict[str, bytes]:
    """Long bodies that are slow to read in one way or another."""
    return {
        "only brackets": b"[" * BODY,
        "closing before opening": b"][" * (BODY // 2),
        "deep arrays in a call": _CALL % (b"{" + b'"a":[' + b"[" * 100 + b"]" * 100 + b"]}"),
        "many deep arrays": _CALL % (b'{"a":[' + b",".join([b"[" * 100 + b"]" * 100] * (BODY // 201)) + b"]}"),
        "twin keys": b"{" + b'"a":1,' * (BODY // 6) + b'"b":1}',
        "many keys": b"{" + b",".join(b'"k%d":1' % number for number in range(BODY // 16)) + b"}",
        "numbers": _CALL % (b'{"a":[' + b"1," * (BODY // 2) + b"1]}"),
        "escapes": _CALL % (b'{"a":"' + b"\\u0041" * (BODY // 6) + b'"'),
        "a fault at the end": _CALL % (b'{"text":"' + b"x" * BODY + b'"}') + b"x",
        "a long text": _CALL % (b'{"text":"' + b"x" * BODY + b'"}'),
        "a long id": b'{"jsonrpc":"2.0","id":' + b"1" * BODY + b',"method":"x"}',
    }


# --- the attacks, each in a process of its own until it is killed ---


def send_bodies(port: int, token: str, threads: int = 4) -> None:
    """Send long bodies on some connections."""
    shapes = list(bodies().values())

    def send() -> None:
        agent: HttpAgent | None = None
        number = 0
        while True:
            with suppress(OSError, Fault):
                if agent is None:
                    agent = HttpAgent(port, "/mcp/remote", token)
                else:
                    agent.main = agent.connect()
                while True:
                    number += 1
                    answer = agent.exchange(agent.main, agent.post(shapes[number % len(shapes)]))
                    if b"onnection: close" in answer:
                        break
            time.sleep(0.01)

    for _ in range(threads - 1):
        threading.Thread(target=send, daemon=True).start()
    send()


def send_unknown(port: int, _token: str) -> None:
    """Send long bodies with a token that is not known, on as many connections as one after another opens."""
    head = (
        f"POST /mcp/remote HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer hkp_nobody\r\n"
        f"Content-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n"
    ).encode()
    body = b"[" * BODY

    def send() -> None:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(head)
                connection.sendall(body)

    for _ in range(7):
        threading.Thread(target=send, daemon=True).start()
    send()


def hold(port: int, first: bytes) -> None:
    """Open many connections, say something on each, and keep them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(CONNECTIONS, (hard if hard != resource.RLIM_INFINITY else CONNECTIONS) - 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 50, hard))
    held: list[socket.socket] = []
    while True:
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            connection.sendall(first)
            held.append(connection)
        if len(held) >= most:
            for closed in held[: most // 2]:
                closed.close()
            del held[: most // 2]


def begin_tls(port: int, _token: str) -> None:
    """Begin TLS on many connections, and go on with none."""
    hold(port, _CLIENT_HELLO)


def stay_after_refusal(port: int, _token: str) -> None:
    """Send a request without a token on many connections, and keep them."""
    hold(port, f"GET /mcp/remote HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())


def begin_heads(port: int, _token: str) -> None:
    """Begin a request on many connections, and never end it."""
    hold(port, f"POST /mcp/remote HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Long: ".encode() + b"x" * 8192)


def send_tiny_chunks(port: int, token: str) -> None:
    """Send a body in chunks of one byte."""
    agent = HttpAgent(port, "/mcp/remote", token)
    head = agent.head % b"POST" + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        with suppress(OSError), agent.connect() as connection:
            connection.sendall(head + b"1\r\nx\r\n" * 100_000)


def open_sessions(port: int, token: str) -> None:
    """Open sessions at a server that takes much memory, as many as there are."""

    def open_one() -> None:
        while True:
            with suppress(OSError, Fault):
                HttpAgent(port, "/mcp/heavy", token).close()

    for _ in range(15):
        threading.Thread(target=open_one, daemon=True).start()
    open_one()


def answer_without_end(port: int, token: str) -> None:
    """Call a server at an address whose responses are one line that does not end."""
    start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: "
    listener = socket.create_server(("127.0.0.1", int(os.environ[_ENDLESS])))
    threading.Thread(target=_flood, args=(listener, start, b"x" * 65536, 1 << 40), daemon=True).start()
    while True:
        with suppress(OSError, Fault):
            HttpAgent(port, "/mcp/endless", token).close()
        time.sleep(0.01)


def be_the_store(_port: int, _token: str) -> None:
    """Answer each command of the gateway to its store with 200 MB."""
    with suppress(FileNotFoundError):
        os.unlink(os.environ[_STORE])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ[_STORE])
    listener.listen()
    _flood(listener, b"$209715200\r\n", b"x" * 65536, 209_715_200)


def _flood(listener: socket.socket, start: bytes, piece: bytes, size: int) -> None:
    """Answer whatever comes on each connection with so many bytes."""

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while connection.recv(65536):
                connection.sendall(start)
                for _ in range(size // len(piece)):
                    connection.sendall(piece)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


ATTACKS: dict[str, Callable[[int, str], None]] = {
    "long bodies of a user": send_bodies,
    "long bodies without a token": send_unknown,
    "half handshakes": begin_tls,
    "connections after a 401": stay_after_refusal,
    "half heads": begin_heads,
    "chunks of one byte": send_tiny_chunks,
    "sessions of a heavy server": open_sessions,
    "a line without an end": answer_without_end,
    "a store that answers 200 MB": be_the_store,
}


# --- the honest user ---


@contextmanager
def attacked_by(name: str, port: int, token: str, placement: Placement) -> Iterator[None]:
    """Run an attack until the block ends."""
    argv = [sys.executable, __file__, name, str(port), token]
    process = subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(0.7)  # until it is under way
        yield
        if process.poll() is not None:
            raise Fault(f"the attack has ended by itself: {name}")
    finally:
        process.kill()
        process.wait()
        move_to(placement.agent)


def calls_for(agent: HttpAgent, seconds: float, pid: int) -> tuple[float, float]:
    """The p99 of calls in microseconds, and the most memory of the gateway meanwhile. Raises Fault if a call fails."""
    times: list[float] = []
    end, most = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        times += agent.latencies(1)
        if len(times) % 100 == 0:
            most = max(most, resident_mb(pid))
        time.sleep(PAUSE)
    return quantiles(times, n=100)[98] / 1e3, max(most, resident_mb(pid))


def is_ready(port: int) -> bool:
    """Whether /readyz answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return b" 200 " in connection.recv(1024)


def certificate(folder: Path) -> str:
    """The table of a certificate, or nothing where there is no openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return ""
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([openssl, "req", "-x509", *curve, *files], check=True, capture_output=True)
    return '[gateway.tls]\ncertificate = "cert.pem"\nkey = "key.pem"'


def measure_attacks(placement: Placement, folder: Path) -> tuple[Figures, list[list[str]], list[str]]:
    """The p99 of an honest user's calls, quiet and under each attack; the limits, and what went wrong."""
    own, port, probes, tls_port = folder / "attacked", free_port(), free_port(), free_port()
    own.mkdir(mode=0o700)
    tls = certificate(own)
    tokens = {}
    for user in ("honest", "attacker"):
        new = [hookproxy(), "token", "new", user, "--file", str(own / "tokens")]
        tokens[user] = subprocess.run(new, check=True, capture_output=True, text=True).stdout.split()[-1]
    secure = f', "https://127.0.0.1:{tls_port}"' if tls else ""
    config = own / "gateway.toml"
    url = address(placement, None)
    endless = free_port()
    os.environ |= {_STORE: str(own / "store.sock"), _ENDLESS: str(endless)}
    heavy = json.dumps([sys.executable, "-S", "-E", str(HERE / "heavy_server.py")])
    config.write_text(
        _CONFIG.format(
            port=port, probes=probes, tls=secure, table=tls, url=url, folder=own, heavy=heavy, endless=endless
        )
    )
    figures: Figures = defaultdict(lambda: defaultdict(list))
    limits: list[list[str]] = []
    remarks: list[str] = []
    with started([hookproxy(), "serve", "--config", str(config)], placement, port, own / "log") as pid:
        agent = HttpAgent(port, "/mcp/remote", tokens["honest"])
        calls_for(agent, 1.0, pid)
        for name in ATTACKS:
            if name == "half handshakes" and not tls:
                continue
            try:
                quiet, _ = calls_for(agent, SECONDS, pid)
                with attacked_by(name, tls_port if name == "half handshakes" else port, tokens["attacker"], placement):
                    p99, most = calls_for(agent, SECONDS, pid)
                    ready = is_ready(probes)
                    HttpAgent(port, "/mcp/remote", tokens["honest"]).close()  # a new session is possible, too
            except (Fault, OSError) as fault:
                remarks.append(f"hookproxy: {name}: {fault}")
                agent = HttpAgent(port, "/mcp/remote", tokens["honest"])
                continue
            figures[f"{name}: p99, µs"][QUIET].append(quiet)
            figures[f"{name}: p99, µs"][ATTACKED].append(p99)
            figures[f"{name}: memory, MB"][ATTACKED].append(most)
            for title, value, limit, unit in (
                (f"{name}: p99 over the quiet one", p99 / quiet, MOST_TIMES, TIMES),
                (f"{name}: memory", most, MOST_MB, "MB"),
            ):
                kept = "ok" if value <= limit else "MISS"
                limits.append([title, f"{value:.1f} {unit}", f"≤ {limit:g} {unit}", kept])
            if not ready:
                remarks.append(f"hookproxy: {name}: /readyz did not answer 200")
    return figures, limits, remarks


def report_attacks(placement: Placement, folder: Path, markdown: bool) -> int:
    """Measure all attacks, and print what they did. Returns 1 where a call failed."""
    figures, limits, remarks = measure_attacks(placement, folder)
    rows = [
        [title, *(f"{by[column][0]:.0f}" if by.get(column) else "-" for column in (QUIET, ATTACKED))]
        for title, by in figures.items()
    ]
    print(table([f"under attack, {placement.name}", QUIET, ATTACKED], rows, markdown), end="\n\n")
    print(table([f"limit, {placement.name}", "measured", "", "kept"], limits, markdown), end="\n\n")
    for remark in remarks:
        print(f"note: {remark}")
    return 1 if remarks else 0


def main() -> int:
    """Run an attack that is named, or measure all."""
    if len(sys.argv) > 1:
        with suppress(OSError):
            os.nice(19)
        ATTACKS[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        return report_attacks(Placement("free", None, None), Path(name).resolve(), False)


if __name__ == "__main__":
    sys.exit(main())
