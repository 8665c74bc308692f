"""One user cannot have all of a gateway: sessions and memory are bounded, further sessions wait, others go on.

Each attack here ends in seconds; what it does to the times of an honest user is a row of `scripts/soak --attacks`.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.end.test_gateway_faults import resident_mb
from tests.end.test_gateway_http import INITIALIZE, HttpGateway, call, request, stateless, text_of

pytestmark = pytest.mark.slow

SERVER = [sys.executable, "-S", "-E", str(Path(__file__).with_name("memory_server.py"))]
MB = 1 << 20
PATIENCE = 30.0


@contextmanager
def gateway_of(folder: Path, gateway: str, servers: str = "") -> Iterator[HttpGateway]:
    command = f"command = {json.dumps(SERVER)}\n"
    process = HttpGateway(
        folder, f'{gateway}\n[servers.tools]\n{command}[servers.all]\n{command}share = "all"\n{servers}'
    )
    try:
        yield process
        assert process.end() == 0, process.log
    finally:
        process.kill()


def initialize(gateway: HttpGateway, user: str, server: str = "tools") -> tuple[int, dict[str, str], str]:
    return gateway.ask(user, request(0, "initialize", INITIALIZE), server=server)


def stateless_echo(gateway: HttpGateway, user: str) -> tuple[int, dict[str, str], str]:
    message, headers = stateless("echo")
    return gateway.ask(user, message, headers=headers)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def metric(gateway: HttpGateway, name: str) -> float:
    lines = gateway.ask("alice", method="GET", target="/metrics")[2].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def has_waiting(gateway: HttpGateway, number: int) -> bool:
    return metric(gateway, "hookproxy_sessions_waiting") == number


def test_a_session_without_room_waits_and_gets_the_room_of_one_that_ends(tmp_path: Path) -> None:
    with gateway_of(tmp_path, "queue_seconds = 30\n[gateway.per_user]\nsessions = 2\n") as gateway:
        sessions = [gateway.opened("alice"), gateway.opened("alice")]
        with ThreadPoolExecutor(2) as others:
            waiting = [others.submit(gateway.opened, "alice") for _ in range(2)]
            until(partial(has_waiting, gateway, 2))
            assert "echo" in text_of(gateway.ask("bob", call(1, "echo"), gateway.opened("bob"))[2])
            for left, session in ((1, sessions[0]), (0, sessions[1])):
                assert gateway.ask("alice", session=session, method="DELETE")[0] == 200
                until(partial(has_waiting, gateway, left))
            for one in waiting:
                assert "echo" in text_of(gateway.ask("alice", call(1, "echo"), one.result(PATIENCE))[2])


def test_requests_that_stand_alone_wait_for_room_together(tmp_path: Path) -> None:
    with gateway_of(tmp_path, "queue_seconds = 30\n[gateway.per_user]\nsessions = 1\n") as gateway:
        session = gateway.opened("alice")
        with ThreadPoolExecutor(3) as others:
            waiting = [others.submit(stateless_echo, gateway, "alice") for _ in range(3)]
            until(partial(has_waiting, gateway, 1))
            assert gateway.ask("alice", session=session, method="DELETE")[0] == 200
            for one in waiting:
                assert "echo" in text_of(one.result(PATIENCE)[2])


@pytest.mark.parametrize(
    ("table", "status", "words"),
    [
        ("[gateway.per_user]\nsessions = 1\n", 429, "alice has 1 session, and may not have more (gateway.per_user)"),
        ("[gateway.total]\nsessions = 1\n", 503, "all users together have 1 session, and may not have more"),
        ('[[limits]]\nusers = ["alice"]\nservers = ["tools"]\nsessions = 1\n', 429, "alice has 1 session"),
        ('[[limits]]\nusers = ["alice"]\nsessions = 1\ntogether = true\n', 503, "alice together have 1 session"),
    ],
)
def test_a_session_that_has_waited_for_too_long_is_refused_in_words(
    tmp_path: Path, table: str, status: int, words: str
) -> None:
    top = "queue_seconds = 0.1\n" + table if table.startswith("[gateway") else f"queue_seconds = 0.1\n{table}"
    with gateway_of(tmp_path, top) as gateway:
        gateway.opened("alice")
        refused, headers, body = initialize(gateway, "alice")
        assert (refused, headers.get("retry-after")) == (status, "1")
        error = json.loads(body)
        assert error["id"] == 0
        assert words in error["error"]["message"]
        assert "it has waited 0.1 s for room" in error["error"]["message"]
        assert initialize(gateway, "bob")[0] == (503 if "total" in table else 200)


@pytest.mark.parametrize(("tool", "server"), [("grow", "tools"), ("child", "tools"), ("grow", "all")])
def test_a_server_that_grows_too_much_is_ended_with_a_message_and_others_go_on(
    tmp_path: Path, tool: str, server: str
) -> None:
    memory = '[gateway.per_user]\nmemory = "150MiB"\n[gateway.total]\nmemory = "300MiB"\n'
    with gateway_of(tmp_path, memory) as gateway:
        small, grown = gateway.opened("alice"), gateway.opened("alice", server)
        bobs = gateway.opened("bob")
        size = 400 * MB if server == "all" else 200 * MB
        gateway.ask("alice", call(1, tool, size=size), grown, server)
        log = gateway.logged("is ended: ")
        assert ("gateway.total" if server == "all" else "gateway.per_user") in log
        body = gateway.ask("alice", call(2, "echo"), grown, server)[2]
        assert "of memory" in body or "no such session" in body
        for user, session in (("alice", small), ("bob", bobs)):
            assert "echo" in text_of(gateway.ask(user, call(3, "echo"), session)[2])
        until(lambda: metric(gateway, "hookproxy_server_memory_bytes") < 100 * MB)
        assert metric(gateway, "hookproxy_servers_ended_total") == 1
        assert "echo" in text_of(gateway.ask("alice", call(4, "echo"), gateway.opened("alice", server), server)[2])


def test_no_server_is_started_where_too_much_memory_is_used(tmp_path: Path) -> None:
    with gateway_of(tmp_path, 'queue_seconds = 0.1\n[gateway.per_user]\nmemory = "150MiB"\n') as gateway:
        gateway.ask("alice", call(1, "grow", size=130 * MB), gateway.opened("alice"))
        until(lambda: metric(gateway, "hookproxy_server_memory_bytes") > 130 * MB)
        opened = 0
        while (refused := initialize(gateway, "alice"))[0] == 200:
            opened += 1
            assert opened < 10
        assert refused[0] == 429
        assert "of memory, and may use 150 MiB (gateway.per_user)" in refused[2] or "is ended" in gateway.log
        assert initialize(gateway, "bob")[0] == 200


def test_a_user_has_so_many_bytes_of_calls_and_others_have_theirs(tmp_path: Path) -> None:
    limit = '[[limits]]\nusers = ["alice", "carol"]\nbytes = "2KiB"\nper = "hour"\n'
    with gateway_of(tmp_path, limit) as gateway:
        for user in ("alice", "bob"):
            session = gateway.opened(user)
            assert "echo" in text_of(gateway.ask(user, call(1, "echo", text="x" * 1500), session)[2])
            assert "echo" in text_of(gateway.ask(user, call(2, "echo", text="x" * 1500), session)[2])
            third = text_of(gateway.ask(user, call(3, "echo"), session)[2])
            assert ("no more than 2 KiB of arguments and results per hour" in third) is (user == "alice")


class NonsenseStore:
    """A store that is healthy, and then answers each command with 200 MB, or without an end."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder / 'store.sock'}"
        self.is_healthy = True
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "store.sock"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(65536):
                    connection.sendall(b":1\r\n" if self.is_healthy else b"$209715200\r\n" + b"x" * 209_715_200)
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()


def test_under_the_attacks_of_one_user_and_a_store_that_answers_nonsense_no_call_of_another_user_fails(
    tmp_path: Path,
) -> None:
    store = NonsenseStore(tmp_path)
    limit = '[[limits]]\nservers = ["limited"]\ncalls = 1000\nper = "minute"\n'
    limited = f"[servers.limited]\ncommand = {json.dumps(SERVER)}\n"
    tables = (
        f'queue_seconds = 0.2\n[gateway.per_user]\nmemory = "300MiB"\n[gateway.store]\nurl = "{store.url}"\n{limit}'
    )
    with gateway_of(tmp_path, tables, limited) as gateway, ThreadPoolExecutor(16) as attackers:
        bobs = gateway.opened("bob")
        store.is_healthy = False
        attacks = [attackers.submit(initialize, gateway, "alice") for _ in range(256)]
        answered = 0
        while not all(attack.done() for attack in attacks):
            assert "echo" in text_of(gateway.ask("bob", call(answered, "echo"), bobs)[2])
            answered += 1
        assert answered > 10
        statuses = {attack.result()[0] for attack in attacks}
        assert statuses == {200, 429}
        assert metric(gateway, "hookproxy_sessions{") <= 34
        assert resident_mb(gateway.pid) < 300
        assert gateway.log.count("cannot be reached") == 1
        refused = gateway.ask("bob", call(1, "echo"), gateway.opened("bob", "limited"), "limited")[2]
        assert "cannot be reached now" in refused
    store.close()
