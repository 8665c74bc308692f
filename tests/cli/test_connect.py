"""`hookproxy connect`: what it says to a gateway, what it imports, and its errors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.cli import connect
from hookproxy.gateway import preamble
from hookproxy.model.errors import UserError
from tests.end.agent import HOOKPROXY

_ALLOWED = {
    "hookproxy",
    "hookproxy.__main__",
    "hookproxy.cli",
    "hookproxy.cli.main",
    "hookproxy.cli.common",
    "hookproxy.cli.connect",
    "hookproxy.processes",
    "hookproxy.processes.platforms",
    "_socket",
    "gc",
    "hookproxy.cli.late_tls",
}


def run(
    tmp_path: Path,
    gateway: Callable[[socket.socket], None],
    *arguments: str,
    python: tuple[str, ...] = (),
    ends_input: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Run it against a gateway that treats one connection like this."""
    listener = socket.socket(socket.AF_UNIX)
    path = tmp_path / "s"
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            gateway(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    env = {"PATH": os.environ["PATH"], "HOOKPROXY_SOCKET": str(path)}
    try:
        command = [sys.executable, *python, HOOKPROXY, "connect", *arguments]
        if ends_input:
            return subprocess.run(command, input=b"hello\n", capture_output=True, timeout=30, env=env, cwd=tmp_path)
        stdin, agent = os.pipe()
        with open(stdin, "rb"), open(agent, "wb"):
            return subprocess.run(command, stdin=stdin, capture_output=True, timeout=30, env=env, cwd=tmp_path)
    finally:
        thread.join(30)
        listener.close()


def received(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n\n"):
        data += connection.recv(4096)
    return data


def echo(connection: socket.socket) -> None:
    received(connection)
    connection.sendall(b"ok\n")
    while piece := connection.recv(4096):
        connection.sendall(piece)


def test_it_asks_for_its_server_and_passes_all_bytes_on(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def gateway(connection: socket.socket) -> None:
        asked.append(received(connection))
        connection.sendall(b"ok\n{}")
        while piece := connection.recv(4096):
            connection.sendall(piece)

    done = run(tmp_path, gateway, "git")
    assert preamble.read(asked[0]) == preamble.Preamble("git", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}hello\n", b"")


def test_it_imports_next_to_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, echo, "git", python=("-X", "importtime", "-I"))
    names = [line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line]
    ours = names[names.index("site") + 1 :]
    assert {one for one in ours if not one.startswith("encodings")} <= _ALLOWED


def test_a_refusal_is_an_error_with_its_hint(tmp_path: Path) -> None:
    def gateway(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(preamble.error("there is no server git\task somebody"))

    done = run(tmp_path, gateway, "git")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr == b"error: there is no server git\nhint: ask somebody\n"


def test_a_refusal_before_anything_was_asked_is_shown_too(tmp_path: Path) -> None:
    def gateway(connection: socket.socket) -> None:
        connection.sendall(preamble.error("too many connections"))

    done = run(tmp_path, gateway, "git")
    assert done.returncode == 2
    assert b"error: too many connections" in done.stderr


def test_a_connection_that_is_closed_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, lambda connection: connection.close(), "git")
    assert done.returncode == 2
    assert b"the gateway has closed the connection" in done.stderr


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (b"The MCP server has ended (exited with status 3)\n", "The MCP server has ended (exited with status 3)"),
        (b"a \x1b[2Kb\n", "a \\x1b[2Kb"),
        (b"\xff\n", "\N{REPLACEMENT CHARACTER}"),
        (b"", connect.WITHOUT_REASON),
        (None, connect.WITHOUT_REASON),
    ],
)
def test_when_the_gateway_ends_the_session_its_reason_is_shown(
    tmp_path: Path, reason: bytes | None, shown: str
) -> None:
    def gateway(connection: socket.socket) -> None:
        received(connection)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(connection, [b"ok\n"], [theirs.fileno()] if reason is not None else [])
            connection.sendall(b"{}\n")
            ours.sendall(reason or b"")

    done = run(tmp_path, gateway, "git", ends_input=False)
    assert done.returncode == 1
    assert done.stdout == b"{}\n"
    assert done.stderr.decode() == f"hookproxy: {shown}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "NAME"),
        (("a", "b"), "unrecognized arguments"),
        (("a", "--nonsense"), "there is no option --nonsense"),
        (("a", "--socket", "/no/such/socket"), "cannot reach the gateway at /no/such/socket"),
        (("a", "--socket", "/" + "x" * 300), "cannot reach the gateway"),
        (("a\nb",), "cannot contain a line break"),
    ],
)
def test_errors_of_its_command_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    env = {"PATH": os.environ["PATH"]}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        env["HOOKPROXY_SOCKET"] = str(tmp_path / "s")
        done = subprocess.run([HOOKPROXY, "connect", *arguments], capture_output=True, timeout=30, env=env)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_options_may_stand_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOKPROXY_SOCKET", raising=False)
    assert connect._options(["a"]) == ("a", connect.DEFAULT_SOCKET, [], None)
    assert connect._options(["a", "--socket", "/s"]) == ("a", "/s", [], None)
    assert connect._options(["--socket", "/s", "a"]) == ("a", "/s", [], None)
    assert connect._options(["--socket=/s", "a", "--", "cat", "--", "x"]) == ("a", "/s", ["cat", "--", "x"], None)
    monkeypatch.setenv("HOOKPROXY_SOCKET", "/e")
    assert connect._options(["a"]) == ("a", "/e", [], None)


def test_what_looks_like_a_secret_in_a_command_is_not_in_the_error() -> None:
    with pytest.raises(UserError, match=r"cannot start the server /no/API_KEY=\[masked: \w+\]: No such file") as error:
        connect._start(["/no/API_KEY=hunter2hunter2"], (0, 1))
    assert (error.value.status, "hunter2" in str(error.value)) == (127, False)
