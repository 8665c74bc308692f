"""Names in gateway.toml that nobody has are told, with what is likely meant."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from hookproxy.authorization.token_file import create_token
from hookproxy.checks.people import unknown_people
from hookproxy.config.gateway import load_gateway

SERVER = '[servers.git]\ncommand = ["cat"]\n'
UNIX, HTTP = "", '[gateway]\nlisten = ["http://127.0.0.1:1"]\ntokens = "tokens"\n'
ME, MY_GROUP = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


def told(folder: Path, text: str) -> list[str]:
    (folder / "gateway.toml").write_text(text)
    return list(unknown_people(load_gateway("gateway.toml", {}, str(folder))))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    create_token(str(tmp_path / "tokens"), "alice", ["developers"], None, "", 0.0)
    return tmp_path


def test_accounts_groups_and_numbers_are_known(tmp_path: Path) -> None:
    assert told(tmp_path, f'{SERVER}allow = ["{ME}", "@{MY_GROUP}", "61002", "@61002"]\n') == []


def test_users_and_groups_of_tokens_are_known(tokens: Path) -> None:
    assert told(tokens, f'{HTTP}{SERVER}allow = ["alice", "@developers"]\n') == []


def test_a_name_that_nobody_has_is_told_with_its_place_once(tmp_path: Path) -> None:
    rules = '[[permissions.for]]\nusers = ["@no-such-group", "no-such-user"]\ndeny = ["x"]\n'
    found = told(tmp_path, f'{rules}[roles]\nauditor = ["nobody-of-this-name"]\n{SERVER}allow = ["@no-such-group"]\n')
    assert found == [
        "roles.auditor[0]: there is no account nobody-of-this-name, so the role is nobody's"
        " (correct the name, or: useradd nobody-of-this-name)",
        "permissions.for[0].users[0]: there is no group no-such-group, so it holds for nobody"
        " (correct the name, or: groupadd no-such-group)",
        "permissions.for[0].users[1]: there is no account no-such-user, so it holds for nobody"
        " (correct the name, or: useradd no-such-user)",
    ]


def test_the_rules_of_one_server_are_told_with_its_name(tmp_path: Path) -> None:
    rules = '[[servers.git.permissions.for]]\nusers = ["@no-such-group"]\ndeny = ["x"]\n'
    [text] = told(tmp_path, SERVER + rules)
    assert text.startswith("servers.git.permissions.for[0].users[0]: there is no group")


@pytest.mark.parametrize(
    ("who", "hint"),
    [
        ("@alice", "a user has this name: write 'alice' without @"),
        ("developers", "a group has this name: write '@developers'"),
        ("@Developers", "did you mean 'developers'?"),
        ("alcie", "did you mean 'alice'?"),
    ],
)
def test_a_name_that_is_likely_another_is_told_with_that(tokens: Path, who: str, hint: str) -> None:
    [text] = told(tokens, f'{HTTP}{SERVER}allow = ["{who}"]\n')
    assert text.endswith(f"so it holds for nobody ({hint})")


def test_of_an_issuers_names_only_those_are_told_that_look_misspelled(tokens: Path) -> None:
    oidc = f'{HTTP}public_url = "https://a.example"\n[gateway.oidc]\nissuer = "https://i.example"\n{SERVER}'
    [text] = told(tokens, f'{oidc}allow = ["@people-of-the-issuer", "@developer"]\n')
    assert "developer," in text


def test_capitals_of_an_account_are_told(tmp_path: Path) -> None:
    if ME.upper() == ME:
        pytest.skip("this account has no small letters")
    [text] = told(tmp_path, f'{SERVER}allow = ["{ME.upper()}"]\n')
    assert f"did you mean {ME!r}?" in text


def test_a_role_of_nobody_and_a_role_that_is_not_there_are_errors(tmp_path: Path) -> None:
    for text in ("approver = []", 'approver = ["*"]', 'aprover = ["anna"]'):
        with pytest.raises(Exception, match="roles"):
            told(tmp_path, f"[roles]\n{text}\n{SERVER}")
