"""Roles, and who may answer an approval: never whoever has asked, by whatever account or token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from anyio.abc import TaskGroup
from msgspec import Raw

from hookproxy.config.gateway import load_gateway
from hookproxy.config.gateway_models import Roles
from hookproxy.gateway.approvers import GatewayApprovers
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.roles import Rights, rights_of
from hookproxy.gateway.servers import Servers
from hookproxy.live.messages import WaitingApproval
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal

ANNA = Principal("uid:1001", "anna", ("leads",))
LENA = Principal("uid:1002", "lena", ("leads",))
OLGA = Principal("uid:1003", "olga")
GATEWAYS = Principal(f"uid:{os.geteuid()}", "gateway")
SERVER = '[servers.git]\ncommand = ["cat"]\n'


def gateway_of(folder: Path, text: str) -> Gateway:
    (folder / "gateway.toml").write_text(text + SERVER)
    report = GatewayLog(as_json=False)
    config = load_gateway("gateway.toml", {}, str(folder))
    return Gateway(config, Servers(cast("TaskGroup", None), report), report)


def of(asker: Principal) -> WaitingApproval:
    call = ("1", "", "", "git", "push", Raw(b"{}"), "", "", 0.0, 0.0)
    return WaitingApproval(*call, user=asker.name, user_id=asker.id)


def test_a_role_is_for_those_that_it_names() -> None:
    roles = Roles(approver=["@leads"], auditor=["audrey"], operator=["olga"])
    for user, rights in (
        (ANNA, Rights(approves=True)),
        (OLGA, Rights(operates=True)),
        (Principal("uid:9", "audrey"), Rights(audits=True)),
        (Principal("uid:9", "leads"), Rights()),
        (Principal("uid:9", "@leads"), Rights()),
        (GATEWAYS, Rights(operates=True, audits=True)),
    ):
        assert rights_of(user, roles, is_blocked=False) == rights, user


def test_without_approvers_the_administrator_answers() -> None:
    assert rights_of(GATEWAYS, Roles(), is_blocked=False).approves
    assert not rights_of(ANNA, Roles(), is_blocked=False)


def test_who_is_blocked_or_in_doubt_has_no_role_but_the_administrator_operates() -> None:
    roles = Roles(approver=["@leads", "anna"], operator=["anna"])
    assert not rights_of(ANNA, roles, is_blocked=True)
    assert rights_of(GATEWAYS, roles, is_blocked=True).operates
    assert not rights_of(Principal("uid:1", "1", ("leads",), in_doubt=True), roles, is_blocked=False)


@pytest.mark.parametrize("asker", [ANNA, Principal("token:anna", "anna"), Principal(ANNA.id, "renamed")])
def test_nobody_allows_a_call_of_his_own_by_whatever_token(tmp_path: Path, asker: Principal) -> None:
    approvers = GatewayApprovers(gateway_of(tmp_path, '[roles]\napprover = ["@leads"]\n'))
    for action in ("allow", "allow_session"):
        assert "asked for this call yourself" in approvers.why_not(ANNA, of(asker), action)
        assert not approvers.why_not(LENA, of(asker), action)
    assert not approvers.why_not(ANNA, of(asker), "deny")


def test_who_is_no_approver_answers_nothing(tmp_path: Path) -> None:
    approvers = GatewayApprovers(gateway_of(tmp_path, '[roles]\napprover = ["@leads"]\n'))
    for person in (OLGA, GATEWAYS):
        for action in ("allow", "deny"):
            assert "Only these may answer here: @leads" in approvers.why_not(person, of(ANNA), action)


def test_without_approvers_the_administrator_may_allow_his_own_calls_as_before(tmp_path: Path) -> None:
    approvers = GatewayApprovers(gateway_of(tmp_path, ""))
    assert not approvers.why_not(GATEWAYS, of(GATEWAYS), "allow")


@pytest.mark.parametrize("setting", ['on_ask = "allow"', 'on_ask_fallback = "allow"'])
def test_a_setting_that_would_approve_without_an_approver_is_an_error(tmp_path: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match=r"only roles\.approver may"):
        gateway_of(tmp_path, f'{setting}\n[roles]\napprover = ["@leads"]\n')
    gateway_of(tmp_path, f"{setting}\n")
