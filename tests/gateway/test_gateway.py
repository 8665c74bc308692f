"""Who may open a session at a gateway, how many, and what rate limits count."""

from __future__ import annotations

import os
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec.structs import replace

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.gateway.gateway import Gateway, NotAdmitted
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.serve import _reload
from hookproxy.gateway.servers import Servers
from hookproxy.gateway.service_manager import ServiceManager
from hookproxy.gateway.unix_connections import Reloaded
from hookproxy.model.errors import UserError
from hookproxy.model.limits import Limit, Per
from hookproxy.model.principal import Principal
from hookproxy.protocol.request_state import CallRound
from hookproxy.transports.channel import Channel

ALICE = Principal("uid:1000", "alice", ("users", "developers"))
BOB = Principal("uid:1001", "bob", ("users",))
CONFIG = """
[gateway]
max_sessions_per_user = 2
[servers.open]
command = ["cat"]
max_sessions = 3
[servers.closed]
command = ["cat"]
allow = ["bob", "@developers"]
[servers.nobodys]
command = ["cat"]
allow = []
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    return gateway_of(tmp_path, CONFIG)


def gateway_of(folder: Path, text: str) -> Gateway:
    (folder / "gateway.toml").write_text(text)
    config = load_gateway("gateway.toml", {}, str(folder))
    report = GatewayLog(as_json=False)
    return Gateway(config, Servers(cast("TaskGroup", None), report), report)  # admission starts none


def refusal(gateway: Gateway, principal: Principal, server: str) -> NotAdmitted:
    with pytest.raises(NotAdmitted) as caught:
        gateway.admit(principal, server)
    return caught.value


def test_a_list_names_users_and_groups(gateway: Gateway) -> None:
    for user in (ALICE, BOB):
        assert gateway.admit(user, "closed").identity.principal is user
        assert refusal(gateway, user, "nobodys").reason is HTTPStatus.NOT_FOUND
    for stranger in (Principal("uid:1", "developers"), Principal("uid:2", "@developers"), Principal("uid:3", "users")):
        assert refusal(gateway, stranger, "closed").reason is HTTPStatus.NOT_FOUND


def test_a_server_that_may_not_be_used_is_as_one_that_is_not_there(gateway: Gateway) -> None:
    stranger = Principal("uid:9", "eve")
    texts = {str(refusal(gateway, stranger, name)).replace(name, "NAME") for name in ("closed", "nobodys", "absent")}
    assert len(texts) == 1


def test_a_name_of_no_server_is_shown_without_control_characters(gateway: Gateway) -> None:
    text = str(refusal(gateway, ALICE, "x\n\x1b[2K\u2028" + "y" * 9999))
    assert all(line.isprintable() for line in text.split("\n"))
    assert len(text) < 300


def test_a_user_has_so_many_sessions_and_others_have_theirs(gateway: Gateway) -> None:
    first = gateway.admit(ALICE, "open")
    gateway.admit(ALICE, "closed")
    assert refusal(gateway, ALICE, "open").reason is HTTPStatus.TOO_MANY_REQUESTS
    gateway.admit(BOB, "open")
    gateway.forget(first)
    gateway.admit(ALICE, "open")


def test_sessions_are_counted_by_the_id_of_the_user_and_not_by_the_name(gateway: Gateway) -> None:
    for _ in range(2):
        gateway.admit(ALICE, "open")
    renamed = Principal(ALICE.id, "alice-2", ALICE.groups)
    assert refusal(gateway, renamed, "closed").reason is HTTPStatus.TOO_MANY_REQUESTS
    gateway.admit(Principal("token:alice", ALICE.name, ALICE.groups), "closed")


def test_a_server_has_so_many_sessions(gateway: Gateway) -> None:
    for number in range(3):
        gateway.admit(Principal(f"uid:{number}", str(number)), "open")
    assert refusal(gateway, ALICE, "open").reason is HTTPStatus.SERVICE_UNAVAILABLE
    gateway.admit(ALICE, "closed")


def test_other_groups_of_a_user_hold_for_open_sessions(gateway: Gateway) -> None:
    closed, opened = gateway.admit(ALICE, "closed"), gateway.admit(ALICE, "open")
    of_bob = gateway.admit(BOB, "closed")
    without = Principal(ALICE.id, ALICE.name, ())
    gateway.change_user(without)
    assert closed.is_ending
    assert opened.identity.principal == without
    assert not opened.is_ending
    assert not of_bob.is_ending


def test_a_session_ends_when_its_account_is_somebody_elses(gateway: Gateway) -> None:
    session = gateway.admit(ALICE, "open")
    gateway.change_user(Principal(ALICE.id, "mallory", ALICE.groups))
    assert session.is_ending


def test_rules_that_deny_hold_for_who_is_in_doubt_and_rules_that_allow_do_not(tmp_path: Path) -> None:
    rules = """
[[permissions.for]]
users = ["@interns"]
deny = ["push"]
ask = ["merge"]
allow = ["read"]
"""
    server = gateway_of(tmp_path, CONFIG + rules).config.servers["open"]
    settings = server.settings_for(Principal("uid:7", "eve", in_doubt=True))
    assert (settings.deny, settings.ask, settings.allow) == (("push",), ("merge",), ())
    assert not server.settings_for(Principal("uid:7", "eve")).deny


def test_session_ids_are_long_and_never_the_same(gateway: Gateway) -> None:
    ids = {gateway.admit(user, "closed").identity.id for user in (ALICE, BOB, ALICE, BOB)}
    assert len(ids) == 4
    assert {len(one) for one in ids} == {32}


def test_a_gateway_that_ends_opens_no_session(gateway: Gateway) -> None:
    gateway.draining = True
    assert refusal(gateway, ALICE, "open").reason is HTTPStatus.SERVICE_UNAVAILABLE
    assert refusal(gateway, ALICE, "absent").reason is HTTPStatus.NOT_FOUND


def test_a_limit_counts_a_user_at_a_server_in_all_sessions(gateway: Gateway) -> None:
    limit = Limit("*", 3, Per.MINUTE, "limits[0]")
    window = gateway.between.window("open", ALICE.id, limit)
    assert gateway.between.window("open", ALICE.id, limit) is window
    others = [("closed", ALICE.id), ("open", BOB.id)]
    assert all(gateway.between.window(*other, limit) is not window for other in others)


def test_a_limit_for_each_session_counts_each_session(gateway: Gateway) -> None:
    limit = Limit("*", 3, Per.SESSION, "limits[0]")
    assert gateway.between.window("open", ALICE.id, limit) is not gateway.between.window("open", ALICE.id, limit)


async def test_keys_that_a_reload_brings_are_in_force_for_open_sessions(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_bytes(os.urandom(32))
        (tmp_path / name).chmod(0o600)
    first, both = (f"[gateway]\nseal_keys = [{keys}]\n{CONFIG[10:]}" for keys in ('"old"', '"new", "old"'))
    gateway = gateway_of(tmp_path, first)
    states = gateway.between.request_states(gateway.admit(ALICE, "open"))
    assert states is not None
    waiting = CallRound("write", b"{}")
    text = states.to_request_state(waiting)
    gateway.change_policy(gateway_of(tmp_path, both).config)
    assert await states.take(text, "write", b"{}") is not None
    assert await states.take(states.to_request_state(waiting), "write", b"{}") is not None
    prefixes = {states.to_request_state(waiting)[:20], text[:20]}
    assert len(prefixes) == 2
    gateway.change_policy(gateway_of(tmp_path, CONFIG).config)
    assert states.to_request_state(waiting)[:20] in prefixes, "without keys, an open session keeps those that it had"


async def test_a_policy_that_takes_a_server_away_holds_for_a_session_that_has_not_started(tmp_path: Path) -> None:
    gateway = gateway_of(tmp_path, CONFIG)
    session = gateway.admit(ALICE, "open")
    gateway.change_policy(gateway_of(tmp_path, '[servers.other]\ncommand = ["cat"]\n').config)
    no_agent = cast("Channel", None)
    with pytest.raises(UserError, match="the new policy has another server in its place, or none"):
        await gateway.run_session(session, no_agent, lambda _session, _settings: pytest.fail("a server is started"))
    assert not gateway.sessions


def test_while_no_signed_policy_is_in_force_nobody_opens_a_session(gateway: Gateway) -> None:
    gateway.admit(ALICE, "open")
    gateway.config = replace(gateway.config, closed="no policy was fetched yet")
    for user, server in ((ALICE, "open"), (BOB, "nobodys"), (BOB, "nowhere")):
        refused = refusal(gateway, user, server)
        assert refused.message == "nothing may pass: no policy was fetched yet"
        assert refused.reason is HTTPStatus.SERVICE_UNAVAILABLE


@pytest.mark.anyio
async def test_a_reload_that_fails_after_the_file_was_read_ends_no_gateway_and_says_what_holds(tmp_path: Path) -> None:
    gateway, reports = gateway_of(tmp_path, CONFIG), list[str]()
    before = gateway.config.version
    changed = gateway_of(tmp_path, CONFIG.replace("max_sessions = 3", "max_sessions = 4")).config

    def fail() -> None:
        raise RuntimeError("a defect")

    async def reloaded(load: Callable[[str], GatewayConfig]) -> Reloaded:
        return await _reload(gateway, load, reports.append, ServiceManager("", reports.append), None)

    gateway.on_policy_change = fail
    failed = await reloaded(lambda _candidate: changed)
    assert not failed.done
    assert f"policy {changed.version[:12]} is in force, but not all of it" in failed.says[0]
    assert "a defect" in failed.says[0]
    unread = await reloaded(lambda _candidate: cast("GatewayConfig", None))
    assert f"the policy stays {changed.version[:12]}" in unread.says[0]
    gateway.on_policy_change = lambda: None
    async with anyio.create_task_group() as tasks:
        gateway.servers._tasks = tasks
        assert (await reloaded(lambda _candidate: changed)).done
    assert before != gateway.config.version
    assert gateway.metrics.reloads == {"error": 2, "ok": 1}
