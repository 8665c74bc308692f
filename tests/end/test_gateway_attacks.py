"""What an attacker can do to the others, with or without a token: their calls are answered, and an administrator's too.

How long they take meanwhile is measured by scripts/bench --gateway.
"""

from __future__ import annotations

import http.client
import json
import resource
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.end.agent import SERVER
from tests.end.test_gateway_bounds import until
from tests.end.test_gateway_faults import resident_mb
from tests.end.test_gateway_http import ACCEPT, HttpGateway, call, text_of
from tests.support.free_ports import free_port
from tests.support.program import HOOKPROXY

pytestmark = pytest.mark.slow

BODY: Final = 2_000_000
"""Bytes of a long body: enough that each costs a second where it is read in one go, and in the worst way."""

MOST_MB: Final = 300
CONFIG: Final = f"[servers.tools]\ncommand = {json.dumps(SERVER)}\nshare = 'all'\n"
CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":%b}}}'
SHAPES: Final = {
    "only brackets": b"[" * BODY,
    "closing before opening": b"][" * (BODY // 2),
    "closing, then opening": b"]" * (BODY // 2) + b"[" * (BODY // 2),
    "brackets in a call": CALL % (b"[" * BODY),
    "deep arrays": CALL % (b"[" + b",".join([b"[" * 100 + b"]" * 100] * (BODY // 201)) + b"]"),
    "arrays in objects": CALL % (b'[{"a":' * (BODY // 6)),
    "twin keys": b"{" + b'"a":1,' * (BODY // 6) + b'"b":1}',
    "many keys": b"{" + b",".join(b'"k%d":1' % number for number in range(BODY // 16)) + b"}",
    "keys of params": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{'
    + b",".join(b'"k%d":1' % number for number in range(BODY // 16))
    + b"}}",
    "numbers": CALL % (b"[" + b"1," * (BODY // 2) + b"1]"),
    "a long number": CALL % (b"1" * BODY) + b"x",
    "a long id": b'{"jsonrpc":"2.0","id":' + b"1" * BODY + b',"method":"x"',
    "a long key": b'{"' + b"k" * BODY + b'":1}',
    "escapes": CALL % (b'"' + b"\\u0041" * (BODY // 6)),
    "backslashes": b'{"a":"' + b"\\" * BODY,
    "quotes": b'"' * BODY,
    "blanks": b"{" + b" " * BODY + b"x}",
    "not UTF-8": CALL % (b'"' + b"\xff" * BODY + b'"'),
    "a fault at the end": CALL % (b'"' + b"x" * BODY + b'"') + b"x",
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    gateway = HttpGateway(tmp_path_factory.mktemp("gateway"), CONFIG)
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


@contextmanager
def attack(run: Callable[[], None], threads: int = 3) -> Iterator[None]:
    """Run it again and again in some threads, until the block ends. It must have run to its end at least once."""
    is_over, has_run = threading.Event(), threading.Event()

    def repeat() -> None:
        while not is_over.is_set():
            with suppress(OSError):  # the gateway ends connections
                run()
            has_run.set()

    attackers = [threading.Thread(target=repeat) for _ in range(threads)]
    for attacker in attackers:
        attacker.start()
    try:
        yield
        assert has_run.wait(30)
    finally:
        is_over.set()
        for attacker in attackers:
            attacker.join()


def honest_calls(gateway: HttpGateway, session: str, count: int = 30) -> None:
    """Calls of an honest user, each on a connection of its own: none of them fails."""
    for number in range(1, count + 1):
        status, _, body = gateway.ask("bob", call(number, "echo", text=f"t{number}"), session)
        assert (status, f"t{number}" in text_of(body)) == (200, True), body


def head(gateway: HttpGateway, token: str, more: str, session: str = "") -> bytes:
    fields = {"Host": f"127.0.0.1:{gateway.port}", "Authorization": f"Bearer {token}", **ACCEPT}
    if session:
        fields["Mcp-Session-Id"] = session
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /mcp/tools HTTP/1.1\r\n{lines}{more}\r\n".encode()


def exchange(gateway: HttpGateway, request: bytes) -> bytes:
    """Send a request, and read its response up to the end of its head."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        with suppress(OSError):
            connection.sendall(request)
        return connection.recv(65536)


def test_no_body_of_a_user_keeps_others_from_their_calls(gateway: HttpGateway) -> None:
    session, own = gateway.opened("bob"), gateway.opened("alice")
    statuses: dict[str, set[bytes]] = {}
    shapes = iter(SHAPES.items())
    lock = threading.Lock()

    def send() -> None:
        with lock:
            shape, body = next(shapes, ("only brackets", SHAPES["only brackets"]))
        length = f"Content-Length: {len(body)}\r\n"
        answer = exchange(gateway, head(gateway, gateway.tokens["alice"], length, own) + body)
        statuses.setdefault(shape, set()).add(answer[9:12])

    with attack(send):
        while len(statuses) < len(SHAPES):
            honest_calls(gateway, session, 5)
    refused = {b"400", b"429", b"503", b""}
    assert {shape: found for shape, found in statuses.items() if not found <= refused} == {}
    assert resident_mb(gateway.pid) < MOST_MB


def test_a_long_line_over_the_unix_socket_keeps_nobody_from_their_calls(gateway: HttpGateway) -> None:
    session = gateway.opened("bob")
    refused = []

    def send() -> None:
        with gateway.open(b"hookproxy 1\nserver tools\n\n") as connection, connection.makefile("rb") as answers:
            assert answers.readline() == b"ok\n"
            for body in (SHAPES["only brackets"], SHAPES["deep arrays"]):
                connection.sendall(body + b"\n")
                refused.append(json.loads(answers.readline())["error"]["message"])

    with attack(send, threads=1):
        honest_calls(gateway, session)
    assert all("more than 250000 JSON values" in why for why in refused)


def test_the_bodies_of_whoever_is_unknown_are_not_read(gateway: HttpGateway) -> None:
    session = gateway.opened("bob")
    request = head(gateway, "hkp_nobody", "Content-Length: 8000000\r\n")

    def send() -> None:
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
            connection.sendall(request)
            assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")
            connection.sendall(b"[" * 8_000_000)

    with attack(send):
        honest_calls(gateway, session)
    assert resident_mb(gateway.pid) < MOST_MB


@pytest.mark.parametrize("more", ["Transfer-Encoding: chunked\r\n", "Content-Length: 9\r\nExpect: 100-continue\r\n"])
def test_who_sends_a_body_in_tiny_pieces_keeps_nobody_from_their_calls(gateway: HttpGateway, more: str) -> None:
    session = gateway.opened("bob")
    request = head(gateway, gateway.tokens["alice"], more)

    def send() -> None:
        exchange(gateway, request + b"1;x=y\r\n[\r\n" * 50_000)

    with attack(send):
        honest_calls(gateway, session)


def test_connections_that_nobody_is_known_on_do_not_keep_others_out(gateway: HttpGateway) -> None:
    """They are idle, in the middle of a head, or have just been refused: more than one address may have."""
    session = gateway.opened("bob")
    refused = head(gateway, "hkp_nobody", "Content-Length: 0\r\n")
    with ExitStack() as stack:
        for number in range(600):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=60))
            with suppress(OSError):  # it is closed already
                connection.sendall((b"", b"POST / HTTP/1.1\r\nX: ", refused)[number % 3])
        honest_calls(gateway, session)
        until(lambda: gateway.descriptors < 700)  # connections of others may not be closed yet
    assert resident_mb(gateway.pid) < MOST_MB


def test_a_refused_connection_is_closed_and_a_flood_of_them_is_a_line_in_the_log(gateway: HttpGateway) -> None:
    before = len(gateway.log)
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
            connection.sendall(head(gateway, "hkp_somebody", "Content-Length: 0\r\n"))
            received = b""
            while piece := connection.recv(4096):  # up to its end
                received += piece
            assert received.startswith(b"HTTP/1.1 401 ")
    lines = [line for line in gateway.log[before:].splitlines() if "127.0.0.1 was refused" in line]
    assert len(lines) <= 3, lines


# --- a gateway of its own for each ---


class OwnGateway(HttpGateway):
    """A gateway with probes at an address of their own, and whatever is in `table`."""

    def __init__(self, folder: Path, table: str = "") -> None:
        self.probes = free_port()
        self.table = table
        super().__init__(folder, CONFIG)

    def write(self, config: str) -> None:
        super().write(config)
        more = f'tokens = "tokens"\nprobes = "http://127.0.0.1:{self.probes}"\n{self.table}'
        self.path.write_text(self.path.read_text().replace('tokens = "tokens"\n', more, 1))

    @property
    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.probes, timeout=30)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()


@contextmanager
def own_gateway(folder: Path, table: str = "") -> Iterator[OwnGateway]:
    gateway = OwnGateway(folder, table)
    try:
        yield gateway
    finally:
        gateway.kill()


def test_without_descriptors_probes_and_an_administrator_are_served_and_agents_make_room(tmp_path: Path) -> None:
    with own_gateway(tmp_path) as gateway, ExitStack() as stack:
        session = gateway.opened("bob")
        _, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (gateway.descriptors + 40, hard))
        for _ in range(150):  # more than there is room for
            stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=60))
        assert gateway.is_ready
        reload = [HOOKPROXY, "reload", "--socket", str(gateway.socket)]
        said = subprocess.run(reload, capture_output=True, text=True, timeout=60, check=False)
        assert "is in force as before" in said.stdout, said
        honest_calls(gateway, session)
        assert gateway.is_ready


def test_half_handshakes_keep_nobody_out(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=a"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([openssl, "req", "-x509", *curve, *names, *files], check=True, capture_output=True)
    port = free_port()
    (tmp_path / "gateway").mkdir()
    table = f'[gateway.tls]\ncertificate = "{tmp_path}/cert.pem"\nkey = "{tmp_path}/key.pem"\n'

    class Secure(OwnGateway):
        def write(self, config: str) -> None:
            super().write(config)
            text = self.path.read_text().replace(f':{self.port}"]', f':{self.port}", "https://127.0.0.1:{port}"]', 1)
            self.path.write_text(text)

    gateway = Secure(tmp_path / "gateway", table)
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    try:
        with ExitStack() as stack:
            for number in range(600):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                with suppress(OSError):  # it is closed already
                    connection.sendall((b"", b"\x16", bytes.fromhex("1603010200010001fc0303"))[number % 3])
            for _ in range(5):
                honest = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
                honest.request(
                    "POST", "/mcp/tools", "{}", {**ACCEPT, "Authorization": f"Bearer {gateway.tokens['bob']}"}
                )
                assert honest.getresponse().status == 400
                honest.close()
            assert gateway.is_ready
            assert gateway.descriptors < 700
            assert resident_mb(gateway.pid) < MOST_MB
    finally:
        gateway.kill()
