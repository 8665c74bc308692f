"""`check`, `try` and `replay` of a gateway's file, for a user at a server: what `serve` evaluates, with no gateway."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli import check, replay, try_
from hookproxy.cli.offline import is_gateway_file
from hookproxy.config.gateway import load_gateway
from hookproxy.gateway.identities import identities
from hookproxy.model.errors import UserError

GATEWAY: Final = """\
[permissions]
deny = ["delete_*"]

[[permissions.for]]
users = ["@trainees"]
deny = ["git_push"]

[[hooks.PreToolUse]]
matcher = "git_log"
command = "./who.sh"

[servers.git]
command = ["/bin/cat"]
sandbox = "off"

[servers.db]
command = ["/bin/cat"]
sandbox = "off"
allow = ["@dba"]
"""
WHO: Final = '#!/bin/sh\nread -r document\necho "$HOOKPROXY_USER of $HOOKPROXY_GROUPS at $(pwd)" >&2\nexit 2\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gateway.toml").write_text(GATEWAY)
    (tmp_path / "who.sh").write_text(WHO)
    (tmp_path / "who.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


AT_GIT: Final = ("--config", "gateway.toml", "--server", "git", "--user", "anna")


@pytest.mark.parametrize(
    ("tool", "groups", "status"), [("git_push", "trainees", 1), ("git_push", "-", 0), ("delete_it", "-", 1)]
)
def test_a_call_is_tried_by_the_rules_for_its_user(tool: str, groups: str, status: int) -> None:
    assert try_.main([tool, *AT_GIT, "--groups", groups]) == status


def test_hooks_learn_the_user_and_run_in_the_servers_folder(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert try_.main(["git_log", *AT_GIT, "--groups", "a,b"]) == 1
    assert f"anna of a,b at {folder}" in capfd.readouterr().out


def test_who_may_not_use_the_server_is_told_so() -> None:
    with pytest.raises(UserError, match=r"servers\.db\.allow leaves out anna") as caught:
        try_.main(["query", "--config", "gateway.toml", "--server", "db", "--user", "anna", "--groups", "x"])
    assert caught.value.status == 1


def test_the_groups_of_an_account_are_those_of_the_machine() -> None:
    name = pwd.getpwuid(os.getuid()).pw_name
    (identity,) = identities(load_gateway("gateway.toml", {}, os.getcwd()), name, None)
    assert identity.principal.id == f"uid:{os.getuid()}"
    assert identity.principal.groups


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--config", "gateway.toml"], "has several servers"),
        ([*AT_GIT, "--groups", "a", "--hooks", "x.json"], "--hooks is not for a gateway's file"),
        ([*AT_GIT, "--groups", "a", "--name", "x"], "--name is not for a gateway's file"),
        ([*AT_GIT, "--groups", "a", "--fail-closed"], "--fail-closed is not for a gateway's file"),
        (["--config", "who.sh", "--user", "anna"], "--user is for a gateway's file"),
    ],
)
def test_options_that_do_not_fit_are_errors(words: list[str], problem: str) -> None:
    with pytest.raises(UserError) as caught:
        try_.main(["git_push", *words])
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("gateway.toml", "nonsense", True),
        ("g.toml", "[servers.a]\ncommand = ['x']\n", True),
        ("g.toml", "[gateway]\n", True),
        ("g.toml", "[permissions]\ndeny = ['gateway']\n", False),
        ("g.toml", "servers = \n", False),
        ("g.json", '{"servers": {}}', False),
    ],
)
def test_a_gateways_file_is_known_by_its_name_or_its_tables(folder: Path, name: str, text: str, is_one: bool) -> None:
    (folder / name).write_text(text)
    assert is_gateway_file(str(folder / name)) is is_one


# --- check ---


def checked(capsys: pytest.CaptureFixture[str], *words: str, status: int) -> dict[str, Any]:
    assert check.main(["gateway.toml", *words, "--json"]) == status
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_check_shows_each_server_as_its_user_finds_it(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    listen = f'[gateway]\nlisten = ["unix:{folder}/s"]\n'
    (folder / "gateway.toml").write_text(GATEWAY + listen)
    document = checked(capsys, "--user", "anna", "--groups", "trainees", status=1)  # there are no such groups
    assert (document["starts"], document["errors"]) == (True, [])
    servers = document["servers"]
    assert servers["git"]["settings"]["deny"] == ["delete_*", "git_push"]
    assert (servers["git"]["admitted"], servers["db"]["admitted"]) == (True, False)
    assert check.main(["gateway.toml"]) == 1
    text = capsys.readouterr().out
    assert "git_push (for @trainees)" in text
    assert "@dba" in text


def test_check_finds_all_that_would_stop_serve_and_says_where(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    bad = '[gateway]\nlisten = ["unix:relative", "http://0.0.0.0:80"]\ntrusted_proxies = ["10.0.0.1/8"]\n'
    (folder / "gateway.toml").write_text(bad + GATEWAY)
    document = checked(capsys, status=2)
    assert not document["starts"]
    assert {(error["line"], error["key"]) for error in document["errors"]} == {
        (2, "gateway.listen[0]"),
        (2, "gateway.listen[1]"),
        (3, "gateway.trusted_proxies[0]"),
    }
    assert all(error["hint"] for error in document["errors"])


# --- replay ---


def test_recorded_calls_are_judged_by_the_server_and_the_user_of_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {
        "v": 1,
        "time": "2026-01-01T00:00:00Z",
        "session": "s",
        "decision": "allow",
        "arguments": {},
        "result": "ok",
    }
    lines = [
        call | {"id": 1, "server": "git", "user": "anna", "tool": "git_push"},
        call | {"id": 2, "server": "git", "user": "anna", "tool": "git_status"},
        call | {"id": 3, "server": "db", "user": "anna", "tool": "query"},
        call | {"id": 4, "server": "gone", "user": "anna", "tool": "query"},
    ]
    (folder / "audit.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = ["audit.jsonl", "--config", "gateway.toml", "--user", "anna", "--json"]
    assert replay.main([*words, "--groups", "trainees"]) == 1
    document = json.loads(capsys.readouterr().out)
    reasons = {difference["id"]: difference["after"]["reason"] for difference in document["differences"]}
    assert set(reasons) == {1, 3, 4}
    assert "leaves out anna" in reasons[3]
    assert "has no server gone" in reasons[4]
    assert replay.main([*words, "--groups", "dba", "--server", "git"]) == 0
