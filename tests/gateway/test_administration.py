"""The administration socket: who has no role gets a sentence and nothing else, whatever is sent."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup

from hookproxy.cli import administration as client
from hookproxy.config.gateway import load_gateway
from hookproxy.gateway import administration
from hookproxy.gateway.admin_messages import LONGEST, VERSION, Act, Reply, Request, encode
from hookproxy.gateway.administration import Administration
from hookproxy.gateway.gateway import Gateway, NotAdmitted
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.servers import Servers
from hookproxy.gateway.unix_connections import Reloaded
from hookproxy.gateway.unix_listeners import change_admin_mode
from hookproxy.model.errors import UserError
from hookproxy.model.principal import Principal
from hookproxy.session.live_feed import Viewer
from hookproxy.transports import unix_socket

TIMEOUT = 30.0  # seconds until a test gives up on what should come at once: other tests run beside it
STRANGER = 4_000_000
ANNA = Principal("uid:1001", "anna")
CONFIG = """
[roles]
operator = ["4000001"]
auditor = ["4000002"]
approver = ["4000003"]
[audit]
file = "audit.jsonl"
[servers.git]
command = ["cat"]
"""


class Box:
    """A gateway without sessions, and its administration socket."""

    def __init__(self, folder: Path) -> None:
        (folder / "gateway.toml").write_text(CONFIG)
        report = GatewayLog(as_json=False)
        config = load_gateway("gateway.toml", {}, str(folder))
        self.folder = folder
        self.path = str(folder / "mcp-admin.sock")
        self.gateway = Gateway(config, Servers(cast("TaskGroup", None), report), report, str(folder / "state"))
        self.reports: list[str] = []
        self.viewers: list[Viewer] = []
        self.reloads = 0
        self.administration = Administration(self.gateway, self.reports.append, self._reload, self._console)

    async def _reload(self) -> Reloaded:
        self.reloads += 1
        return Reloaded(True, ["policy 123 is in force"])

    async def _console(self, connection: socket.socket, viewer: Viewer) -> None:
        self.viewers.append(viewer)
        connection.send(b"the console\n")

    async def ask(self, act: Act, **members: str) -> Reply:
        """Ask as `hookproxy` does. Raises UserError for a refusal."""
        with anyio.fail_after(TIMEOUT):
            if act == "console":
                (await anyio.to_thread.run_sync(client.open_console, self.path)).close()
                return Reply(True)
            return await anyio.to_thread.run_sync(client.ask, Request(VERSION, act, **members), self.path)


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with running(tmp_path) as one:
        yield one


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Box]:
    one = Box(folder)
    listener = unix_socket.listen(one.path, 0o600, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.administration.accept, listener)
        yield one
        tasks.cancel_scope.cancel()
    listener.close()


def as_account(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr("hookproxy.transports.unix_socket.uid_of_peer", lambda _peer: uid)


async def raw(path: str, text: bytes) -> bytes:
    """What comes back for these bytes."""
    async with await anyio.connect_unix(path) as connection:
        await connection.send(text)
        received = b""
        with anyio.fail_after(TIMEOUT):
            try:
                while True:
                    received += await connection.receive()
            except anyio.EndOfStream:
                return received


async def test_who_has_no_role_gets_a_sentence(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    as_account(monkeypatch, STRANGER)
    for act in ("sessions", "users", "block", "audit", "reload", "console"):
        with pytest.raises(UserError, match="4000000 has no role at this gateway"):
            await box.ask(act, user="anna")
    assert (box.reloads, box.viewers, box.gateway.blocked.blocked) == (0, [], [])
    assert any("4000000 (uid 4000000) was refused" in text for text in box.reports)


@pytest.mark.parametrize(
    ("uid", "allowed"),
    [
        (4_000_001, {"sessions", "users", "block", "allow", "reload"}),
        (4_000_002, {"sessions", "users", "audit", "console"}),
        (4_000_003, {"console"}),
        (os.geteuid(), {"sessions", "users", "block", "allow", "reload", "audit", "console"}),
    ],
)
async def test_each_role_may_do_its_own_and_nothing_else(
    box: Box, monkeypatch: pytest.MonkeyPatch, uid: int, allowed: set[str]
) -> None:
    (box.folder / "audit.jsonl").touch()
    as_account(monkeypatch, uid)
    for act in ("sessions", "users", "block", "allow", "reload", "audit", "console"):
        try:
            reply = await box.ask(act, user="somebody")
            done = True
        except UserError:
            done = False
        assert done is (act in allowed), act
        assert not done or reply.ok
    if "console" in allowed:
        [viewer] = box.viewers
        assert viewer.sees_calls is (uid != 4_000_003)


@pytest.mark.parametrize(
    "text",
    [b"\n", b"{}\n", b"[]\n", b'{"v":2,"act":"sessions"}\n', b'{"v":1,"act":"x"}\n', b"\xff\n", b"GET / HTTP/1\n"],
)
async def test_what_is_no_request_gets_a_refusal(box: Box, text: bytes) -> None:
    assert b'"ok":false' in await raw(box.path, text)


async def test_a_line_that_does_not_end_is_refused(box: Box) -> None:
    assert b'"ok":false' in await raw(box.path, b"x" * (LONGEST + 1))


async def test_who_says_nothing_is_disconnected(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "_REQUEST_SECONDS", 0.01)
    async with await anyio.connect_unix(box.path) as connection:
        with anyio.fail_after(TIMEOUT), pytest.raises(anyio.EndOfStream):
            await connection.receive()


async def test_one_account_has_so_many_connections(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "_MOST_OF_ONE", 1)
    async with await anyio.connect_unix(box.path):
        with anyio.fail_after(TIMEOUT):
            while not box.administration._connected:  # noqa: ASYNC110  # it is accepted
                await anyio.sleep(0.01)
            assert await raw(box.path, b"") == b""
    assert b'"ok":true' in await raw(box.path, encode(Request(VERSION, "users")))


async def test_a_block_ends_sessions_refuses_new_ones_and_is_in_the_audit(box: Box) -> None:
    session = box.gateway.admit(ANNA, "git")
    same_account = Principal(ANNA.id, "another-name")
    [blocked, *_] = (await box.ask("block", user="anna")).says
    assert blocked == "anna is blocked"
    assert session.is_ending
    for user in (ANNA, same_account, Principal("token:anna", "anna")):
        with pytest.raises(NotAdmitted, match="has blocked the user"):
            box.gateway.admit(user, "git")
    line = (box.folder / "audit.jsonl").read_text()
    assert "has blocked anna" in line
    assert f'"by":"uid:{os.geteuid()}"' in line
    assert (await box.ask("allow", user="uid:1001")).says == ("anna is allowed again",)
    box.gateway.admit(ANNA, "git")


async def test_nobody_blocks_himself_a_group_or_what_is_not_a_name(box: Box) -> None:
    me = f"uid:{os.geteuid()}"
    for user, why in ((me, "yourself"), ("@staff", "is a group"), ("", "not the name"), ("a\nb", "not the name")):
        with pytest.raises(UserError, match=why):
            await box.ask("block", user=user)
    with pytest.raises(UserError, match="nobody is not blocked"):
        await box.ask("allow", user="nobody")


async def test_a_name_that_nobody_has_is_blocked_and_told(box: Box) -> None:
    says = (await box.ask("block", user="no-such-person")).says
    assert any("nobody called no-such-person is known here" in text for text in says)
    assert box.gateway.blocked.blocks(Principal("https://issuer 7", "no-such-person"))


async def test_a_session_is_named_by_the_beginning_of_its_id(box: Box) -> None:
    one, other = box.gateway.admit(ANNA, "git"), box.gateway.admit(ANNA, "git")
    listed = (await box.ask("sessions")).sessions
    assert [session.id for session in listed] == [one.identity.id, other.identity.id]
    for wrong in ("", "abc", "x" * 32):
        with pytest.raises(UserError, match=r"too short|no session"):
            await box.ask("end", session=wrong)
    assert len((await box.ask("end", session=one.identity.id[:8])).says) == 1
    assert (one.is_ending, other.is_ending) == (True, False)
    with pytest.raises(UserError, match="bob has no open session"):
        await box.ask("end", user="bob")
    assert len((await box.ask("end", user="uid:1001")).says) == 1
    assert other.is_ending


async def test_the_administrator_is_served_while_accounts_cannot_be_looked_up(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_uid: int) -> Principal:
        raise UserError("no directory", "wait")

    monkeypatch.setattr(box.gateway.accounts, "principal", fails)
    assert (await box.ask("sessions")).ok
    as_account(monkeypatch, 4_000_001)
    with pytest.raises(UserError, match="no directory"):
        await box.ask("sessions")


async def test_the_audit_comes_as_descriptors_of_all_its_files(box: Box) -> None:
    for name, text in (("audit.jsonl", "new\n"), ("audit.jsonl.1", "old\n")):
        (box.folder / name).write_text(text)
    request = Request(VERSION, "audit")
    with anyio.fail_after(TIMEOUT):
        reply, files = await anyio.to_thread.run_sync(client.ask_for_files, request, box.path)
    assert [os.path.basename(path) for path in reply.files] == ["audit.jsonl.1", "audit.jsonl"]
    texts = []
    for file in files:
        texts.append(os.read(file, 100))
        with pytest.raises(OSError, match=r"."):
            os.write(file, b"x")
        os.close(file)
    assert texts == [b"old\n", b"new\n"]


async def test_a_link_in_the_place_of_an_audit_file_is_not_followed(box: Box) -> None:
    (box.folder / "secret").write_text("secret")
    (box.folder / "audit.jsonl").symlink_to(box.folder / "secret")
    with pytest.raises(UserError, match="cannot be opened"):
        await box.ask("audit")


def test_a_reload_survives_that_somebody_has_removed_the_socket(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text('[roles]\noperator = ["olga"]\n[servers.s]\ncommand = ["cat"]\n')
    config, path, told = load_gateway("gateway.toml", {}, str(tmp_path)), tmp_path / "admin.sock", list[str]()
    with unix_socket.listen(str(path), 0o600, None) as listener:
        change_admin_mode(listener, config, told.append)
        assert (path.stat().st_mode & 0o777, told) == (0o666, [])
        path.unlink()
        change_admin_mode(listener, config, told.append)
    assert len(told) == 1
    assert str(path) in told[0]
