"""The gateway's Unix socket: where it may be, who may connect, and whom the kernel names."""

from __future__ import annotations

import grp
import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.transports import unix_socket
from tests.support.managed_folder import NOBODY, ROOT_ONLY, as_user


def test_a_socket_has_its_mode_from_the_start_and_no_process_inherits_it(tmp_path: Path) -> None:
    path = tmp_path / "s"
    before = os.umask(0o022)
    with closing(unix_socket.listen(str(path), 0o660, None)) as listener:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert not listener.get_inheritable()
        assert not listener.getblocking()
    assert os.umask(before) == 0o022


def test_a_socket_can_have_a_group(tmp_path: Path) -> None:
    group = grp.getgrgid(os.getgid())
    with closing(unix_socket.listen(str(tmp_path / "s"), 0o660, group.gr_name)):
        assert (tmp_path / "s").stat().st_gid == group.gr_gid
    with pytest.raises(UserError, match="there is no group no-such-group"):
        unix_socket.listen(str(tmp_path / "t"), 0o660, "no-such-group")


def test_an_abandoned_socket_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    unix_socket.listen(path, 0o600, None).close()
    assert os.path.exists(path)
    unix_socket.listen(path, 0o600, None).close()


def test_a_socket_at_which_somebody_listens_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with closing(unix_socket.listen(path, 0o600, None)), pytest.raises(UserError, match="listens there already"):
        unix_socket.listen(path, 0o600, None)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_anything_else_in_its_place_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    (tmp_path / "other").write_text("kept")
    if kind == "file":
        path.write_text("kept")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "other")
    with pytest.raises(UserError, match="there is something else"):
        unix_socket.listen(str(path), 0o600, None)
    assert path.exists()


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UserError, match="others can write the folder") as caught:
        unix_socket.listen(str(folder / "s"), 0o600, None)
    shared = "name a folder that only the gateway's account can write"  # nobody should chmod /tmp
    assert caught.value.hint == (shared if mode & 0o1000 else f"chmod go-w {folder}")


def test_a_missing_folder_is_named_with_what_creates_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the folder of the socket") as caught:
        unix_socket.listen(str(tmp_path / "none" / "s"), 0o600, None)
    assert "install -d" in caught.value.hint


def test_a_path_that_is_too_long_is_refused_with_a_word(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too long"):
        unix_socket.listen(str(tmp_path / ("x" * 200)), 0o600, None)


@ROOT_ONLY
def test_a_group_of_which_the_account_is_no_member_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    script = (
        "import os, sys\n"
        "from hookproxy.transports import unix_socket\n"
        "os.chdir(sys.argv[1]); os.fchown(os.open('.', 0), 65534, 65534)\n"
        "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)\n"
        "try:\n    unix_socket.listen('./s', 0o660, 'adm')\n"
        "except unix_socket.UserError as error:\n    print(error.message, '/', error.hint)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("gateway.socket_group: the gateway's account is not in the group adm / ")
    assert "SupplementaryGroups=adm" in ended.stdout


@ROOT_ONLY
def test_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(UserError, match=f"belongs to user {NOBODY}"):
        unix_socket.listen(str(folder / "s"), 0o600, None)


def test_the_kernel_names_the_account_that_has_connected() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert unix_socket.uid_of_peer(here) == os.getuid()


@ROOT_ONLY
def test_it_is_the_account_of_the_moment_of_connecting(tmp_path: Path) -> None:
    listener = unix_socket.listen(str(tmp_path / "s"), 0o666, None)
    tmp_path.chmod(0o755)
    code = "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
    command = [*as_user(4711), sys.executable, "-S", "-E", "-c", code, "s"]
    client = subprocess.Popen(command, cwd=tmp_path)
    try:
        listener.setblocking(True)
        connection, _ = listener.accept()
        with connection:
            assert unix_socket.uid_of_peer(connection) == 4711
    finally:
        listener.close()
        assert client.wait(30) == 0


def test_a_connection_over_tcp_has_no_account() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted, pytest.raises(OSError, match=r"."):
            unix_socket.uid_of_peer(accepted)
        assert client.fileno() >= 0


def test_sockets_of_systemd_are_taken_only_by_the_process_they_are_for() -> None:
    for environ in (
        {},
        {"LISTEN_PID": "1", "LISTEN_FDS": "1"},
        {"LISTEN_PID": "7"},
        {"LISTEN_PID": "7", "LISTEN_FDS": "x"},
    ):
        assert unix_socket.inherited_listeners(environ, 7) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", ["AF_UNIX", "AF_INET"])
def test_of_systemds_sockets_only_unix_sockets_tell_who_connects(tmp_path: Path, family: str) -> None:
    address = "'s'" if family == "AF_UNIX" else "('127.0.0.1', 0)"
    code = f"""
import os, socket
from hookproxy.model.errors import UserError
from hookproxy.transports import unix_socket
listener = socket.socket(socket.{family})
listener.bind({address})
listener.listen()
os.dup2(listener.fileno(), 3)
try:
    [found] = unix_socket.inherited_listeners({{"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}}, os.getpid())
    print(found.get_inheritable(), found.getblocking(), flush=True)
except UserError as error:
    print(error, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("False False" if family == "AF_UNIX" else "error: descriptor 3"), done


# --- what a Mac says of a peer ---


def xucred(uid: int, groups: Sequence[int], *, version: int = 0) -> bytes:
    """A struct xucred as sys/ucred.h of macOS has it."""
    return struct.pack("=IIhxx16I", version, uid, len(groups), *groups, *[0] * (16 - len(groups)))


@pytest.mark.parametrize("groups", [(20,), (20, 12, 61, 80), tuple(range(16))])
def test_the_account_is_the_one_that_the_kernel_names(groups: tuple[int, ...]) -> None:
    assert unix_socket.uid_of_xucred(xucred(501, groups)) == 501


@pytest.mark.parametrize(
    "raw",
    [b"", xucred(0, [0])[:-1], xucred(0, [0], version=1), xucred(0, [])],
    ids=["nothing", "cut", "another version", "no group"],
)
def test_what_does_not_say_who_has_connected_is_an_error(raw: bytes) -> None:
    with pytest.raises(OSError, match="has connected"):
        unix_socket.uid_of_xucred(raw)
