"""Roles, groups and blocks of a gateway between real accounts, which only the gateway's own /etc has."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import pytest

from hookproxy.cli.administration import open_console
from hookproxy.console.follow import Follower
from tests.end.agent import HOOKPROXY, PATIENCE, Agent, Scene, call, refused, text_of
from tests.support.gateway_process import GatewayProcess
from tests.support.managed_folder import (
    ROOT_ONLY,
    as_user,
    copy_of_etc,
    in_private_etc,
    python_for_user,
    root_only_folder,
)

pytestmark = [pytest.mark.slow, ROOT_ONLY]

GATEWAY, ANNA, LENA, OLGA, AUDIT = 61_001, 61_011, 61_012, 61_013, 61_014
PEOPLE: Final = {"gw": GATEWAY, "anna": ANNA, "lena": LENA, "olga": OLGA, "audrey": AUDIT}
GROUPS: Final = {"interns": (61_021, "anna"), "leads": (61_022, "lena,anna"), "staff-rt": (61_023, "anna,lena,olga")}
TOOLS = Path(__file__).with_name("tool_server.py")


class Box:
    """A gateway whose accounts can be changed."""

    def __init__(self, folder: Path, etc: Path) -> None:
        self.folder = folder
        self.etc = etc
        self.begins = 0
        self.set_groups()
        with (etc / "passwd").open("a") as file:
            file.writelines(f"{name}:x:{uid}:{uid}::/nonexistent:/bin/sh\n" for name, uid in PEOPLE.items())
        self.gateway = GatewayProcess(
            folder,
            config_of(folder),
            in_private_etc(etc, user=GATEWAY),
            {"XDG_STATE_HOME": str(folder / "state")},
            folder / "run" / "mcp.sock",
        )

    def set_groups(self, **members: str) -> None:
        """Give these groups these members."""
        lines = [line for line in (self.etc / "group").read_text().splitlines() if line.partition(":")[0] not in GROUPS]
        lines += [f"{name}:x:{gid}:{members.get(name, old)}" for name, (gid, old) in GROUPS.items()]
        fresh = self.etc / "group.new"
        fresh.write_text("\n".join(lines) + "\n")
        fresh.chmod(0o644)
        fresh.replace(self.etc / "group")

    def run(self, user: int, *words: str) -> subprocess.CompletedProcess[str]:
        """A verb of hookproxy as this user, about this gateway."""
        socket = ["--gateway" if words[0] == "audit" else "--socket", str(self.gateway.socket)]
        return subprocess.run(
            [*as_user(user), HOOKPROXY, *words, *socket], cwd="/", capture_output=True, text=True, timeout=60
        )

    def audit(self) -> list[dict[str, object]]:
        """What this test has added."""
        return self.gateway.audit("state/audit.jsonl")[self.begins :]


def config_of(folder: Path) -> str:
    command = json.dumps([python_for_user(GATEWAY), "-S", "-E", str(folder / "tool_server.py")])
    return f"""
socket_mode = "0666"
[roles]
approver = ["@leads"]
auditor = ["audrey"]
operator = ["olga"]
[audit]
file = "state/audit.jsonl"
calls = "all"
[permissions]
ask = ["write"]
[[permissions.for]]
users = ["@interns"]
deny = ["forbidden"]
[servers.tools]
command = {command}
on_ask_fallback = "console"
[servers.staff]
command = {command}
allow = ["@staff-rt"]
"""


@pytest.fixture(scope="module")
def shared_box(nobody: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    assert nobody  # other accounts can start this Python
    private_etc = copy_of_etc(tmp_path_factory.mktemp("etc"))
    folder = root_only_folder()
    for name, mode in (("state", 0o700), ("run", 0o755)):
        (folder / name).mkdir(mode=mode)
        os.chown(folder / name, GATEWAY, GATEWAY)
    shutil.copy(TOOLS, folder / "tool_server.py")
    try:
        box = Box(folder, private_etc)
        try:
            yield box
            assert box.gateway.end() == 0, box.gateway.log
        finally:
            box.gateway.kill()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def box(shared_box: Box) -> Box:
    """The gateway, with the groups of the beginning, and nobody's sessions."""
    shared_box.set_groups()
    shared_box.begins = len(shared_box.gateway.audit("state/audit.jsonl"))
    for user in ("anna", "lena", "olga"):
        shared_box.run(0, "sessions", "end", "--user", user)
    return shared_box


def connect(scene: Scene, box: Box, user: int, name: str = "tools") -> Agent:
    return scene.start([*as_user(user), HOOKPROXY, "connect", name, "--socket", str(box.gateway.socket)], {})


async def asks_until(agent: Agent, tool: str, *, is_refused: bool) -> None:
    """Call a tool until its call is refused, or is not."""
    with anyio.fail_after(10):  # what the page promises
        number = 100
        while True:
            number += 1
            response = await agent.ask(call(number, tool))
            if bool(response.get("result", {}).get("isError") or "error" in response) == is_refused:
                return
            await anyio.sleep(0.1)


async def test_groups_are_those_of_the_account_whatever_the_process_has(box: Box, scene: Scene) -> None:
    agent = connect(scene, box, ANNA)  # setpriv has taken all groups from the process
    await agent.initialize()
    assert "forbidden" in refused(await agent.ask(call(1, "forbidden")))


async def test_other_groups_reach_open_sessions_without_a_reload(box: Box, scene: Scene) -> None:
    agent, staff = connect(scene, box, ANNA), connect(scene, box, OLGA, "staff")
    await agent.initialize()
    await staff.initialize()
    reports: list[str] = []
    lena = console(box, LENA, reports)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lena.follow)
        with anyio.fail_after(PATIENCE):
            while not lena.state.runs:  # noqa: ASYNC110  # what happens in other processes shows so only
                await anyio.sleep(0.02)
        box.set_groups(interns="", leads="anna", **{"staff-rt": "anna"})
        await asks_until(agent, "forbidden", is_refused=False)
        assert await staff.ended() == 1
        with anyio.fail_after(PATIENCE):
            while lena.state.runs:  # noqa: ASYNC110  # as above
                await anyio.sleep(0.02)
            while not any("has no role" in text for text in reports):  # noqa: ASYNC110  # it connects again
                await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()
    box.set_groups(interns="anna")
    await asks_until(agent, "forbidden", is_refused=True)


async def test_an_operator_lists_and_ends_sessions_and_others_do_not(box: Box, scene: Scene) -> None:
    agent, other = connect(scene, box, ANNA), connect(scene, box, LENA)
    await agent.initialize()
    await other.initialize()
    assert text_of(await agent.ask(call(1, "echo", a=1)))
    listed = sorted(json.loads(box.run(OLGA, "sessions", "--json").stdout), key=lambda one: str(one["user"]))
    assert [(one["user"], one["server"], one["calls"], one["over"]) for one in listed] == [
        ("anna", "tools", 1, "unix"),
        ("lena", "tools", 0, "unix"),
    ]
    for stranger in (ANNA, LENA):
        done = box.run(stranger, "sessions", "end", listed[0]["id"][:8])
        assert done.returncode == 2
        assert "may not do this" in done.stderr or "has no role" in done.stderr
    assert box.run(AUDIT, "sessions").returncode == 0
    assert box.run(AUDIT, "sessions", "end", "--user", "anna").returncode == 2
    done = box.run(OLGA, "sessions", "end", listed[0]["id"][:8])
    assert done.returncode == 0, done.stderr
    assert await agent.ended() == 1
    assert "an operator of the gateway has ended the session" in agent.errors.read_text()
    assert text_of(await other.ask(call(1, "echo", a=1)))
    [note] = [one for one in box.audit() if "note" in one]
    assert note["note"] == f"olga (uid:{OLGA}) has ended this session"
    assert (note["user"], note["by"]) == ("anna", f"uid:{OLGA}")


async def test_a_blocked_user_has_nothing_left_and_gets_nothing_also_after_a_restart(box: Box, scene: Scene) -> None:
    agents = [connect(scene, box, ANNA), connect(scene, box, ANNA, "staff")]
    for agent in agents:
        await agent.initialize()
    await agents[0].send(call(1, "write"))  # it waits for approval
    assert box.run(OLGA, "users", "block", "olga").returncode == 2
    done = box.run(OLGA, "users", "block", "anna")
    assert done.stdout == "anna is blocked\n", done
    for agent in agents:
        assert await agent.ended() == 1
    refused_again = connect(scene, box, ANNA)
    assert await refused_again.ended() == 2
    assert "has blocked the user" in refused_again.errors.read_text()
    assert "anna  blocked" in box.run(OLGA, "users").stdout
    assert box.gateway.end() == 0
    box.gateway = GatewayProcess(
        box.folder,
        config_of(box.folder),
        in_private_etc(box.etc, user=GATEWAY),
        {"XDG_STATE_HOME": str(box.folder / "state")},
        box.gateway.socket,
    )
    assert await connect(scene, box, ANNA).ended() == 2
    assert box.run(OLGA, "users", "allow", "anna").stdout == "anna is allowed again\n"
    agent = connect(scene, box, ANNA)
    await agent.initialize()
    noted = [(one["note"], one["by"]) for one in box.audit() if "note" in one and "anna" in str(one["note"])]
    by = f"olga (uid:{OLGA})"
    assert noted == [(f"{by} has blocked anna", f"uid:{OLGA}"), (f"{by} has allowed anna again", f"uid:{OLGA}")]


async def test_a_blocked_operator_cannot_allow_himself_and_root_can(box: Box) -> None:
    assert box.run(0, "users", "block", "olga").returncode == 0
    done = box.run(OLGA, "users", "allow", "olga")
    assert done.returncode == 2
    assert "olga has no role" in done.stderr
    assert box.run(0, "users", "allow", "olga").returncode == 0
    assert box.run(OLGA, "users").returncode == 0


async def test_whoever_has_asked_does_not_approve_and_an_approver_does(box: Box, scene: Scene) -> None:
    agent = connect(scene, box, ANNA)
    await agent.initialize()
    reports: list[str] = []
    consoles = {user: console(box, user, reports) for user in (ANNA, LENA, OLGA)}
    async with anyio.create_task_group() as tasks:
        for one in (ANNA, LENA):
            tasks.start_soon(consoles[one].follow)
        await agent.send(call(1, "write", path="a"))
        with anyio.fail_after(PATIENCE):
            while not all(consoles[one].state.approvals for one in (ANNA, LENA)):  # noqa: ASYNC110  # other processes
                await anyio.sleep(0.02)
        [waiting] = consoles[ANNA].state.approvals.values()
        own = await consoles[ANNA].answer(waiting.run, waiting.approval.id, "allow", "", "a test")
        assert not own.accepted
        assert "asked for this call yourself" in own.why
        given = await consoles[LENA].answer(waiting.run, waiting.approval.id, "allow", "", "a test")
        assert given.accepted, given.why
        assert text_of(await agent.answer(1))
        assert not consoles[LENA].state.ended  # an approver sees what waits, and no other call
        tasks.cancel_scope.cancel()
    [record] = [one for one in box.audit() if one.get("tool") == "write"]
    assert str(record["answered"]).startswith(f"allow by lena (uid:{LENA}), process ")


def console(box: Box, user: int, reports: list[str]) -> Follower:
    """A console of this user, which this process opens as that user."""
    return Follower("", reports.append, partial(opened_as, box, user))


def opened_as(box: Box, user: int) -> socket.socket:
    os.seteuid(user)
    try:
        return open_console(str(box.gateway.socket))
    finally:
        os.seteuid(0)


def test_auditors_read_the_audit_and_nobody_else_does(box: Box) -> None:
    box.run(0, "users", "block", "somebody")
    done = box.run(AUDIT, "audit", "--json")
    assert "has blocked somebody" in done.stdout, done
    for user in (ANNA, LENA, OLGA):
        done = box.run(user, "audit", "--json")
        assert done.returncode == 2
        assert not done.stdout


async def test_a_refusal_does_not_claim_that_the_user_was_asked(box: Box, scene: Scene) -> None:
    agent = connect(scene, box, ANNA)
    await agent.initialize()
    reports: list[str] = []
    lena = console(box, LENA, reports)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lena.follow)
        await agent.send(call(1, "write", path="a"))
        with anyio.fail_after(PATIENCE):
            while not lena.state.approvals:  # noqa: ASYNC110  # what happens in other processes shows so only
                await anyio.sleep(0.02)
        [waiting] = lena.state.approvals.values()
        await lena.answer(waiting.run, waiting.approval.id, "deny", "", "a test")
        text = refused(await agent.answer(1))
        tasks.cancel_scope.cancel()
    assert "@leads" in text
    assert "user was asked" not in text
