"""`hookproxy explain`: who may do what at a gateway and under a hookproxy.toml, where that stands, what changes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.explain import main
from hookproxy.model.errors import UserError

GATEWAY: Final = """\
[permissions]
deny = ["Bash(rm:*)"]

[[permissions.for]]
users = ["@trainees"]
deny = ["git_push"]

[[limits]]
tool = "git_*"
calls = 5
per = "minute"

[[hooks.PreToolUse]]
matcher = "git_push"
command = "./guard.sh"

[servers.git]
command = ["uvx", "mcp-server-git"]
allow = ["anna", "@developers"]
[servers.git.permissions]
ask = ["git_commit"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gateway.toml").write_text(GATEWAY)
    (tmp_path / "guard.sh").write_text("#!/bin/sh\n")
    (tmp_path / "guard.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main([*words, *([] if "--config" in words else ["--config", "gateway.toml"])]) == status
    return capsys.readouterr().out


def tools(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[dict[str, Any]]:
    document = json.loads(explained(capsys, *words, "--json", status=status))
    assert document["v"] == 1
    found: list[dict[str, Any]] = document["explanations"][0]["tools"]
    return found


def test_who_is_refused_reads_which_rule_for_whom_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "git_push", "--user", "anna", "--groups", "trainees", status=1)
    assert "git_push of git, for anna in trainees (as --groups says): refused\n" in text
    assert "the deny rule git_push for @trainees, gateway.toml:6: permissions.for[0].deny[0]" in text
    assert "remove it from gateway.toml:6: permissions.for[0].deny[0]: then it is allowed" in text
    assert "5 calls of git_* of one user per minute, gateway.toml:8: limits[0]" in text
    assert "./guard.sh (may refuse it), gateway.toml:13: hooks.PreToolUse[0]" in text


def test_another_user_may(capsys: pytest.CaptureFixture[str]) -> None:
    (tool,) = tools(capsys, "git_status", "--user", "anna", "--groups", "-")
    assert (tool["decision"], tool["sure"], tool["by"], tool["rules"]) == ("allow", True, None, [])
    assert 'deny = ["git_status"]' in tool["change"][0]


def test_who_is_left_out_finds_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "git_push", "--user", "bob", "--groups", "trainees", status=1)
    assert "gateway.toml:19: servers.git.allow" in text
    assert 'add "bob"' in text


def test_the_table_has_the_tools_of_the_preset_and_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    by_name = {tool["tool"]: tool for tool in tools(capsys, "--user", "anna", "--groups", "trainees")}
    assert by_name["git_push"]["decision"] == "deny"
    assert by_name["git_commit"]["decision"] == "ask"
    assert by_name["git_status"]["decision"] == "allow"
    assert by_name[None]["decision"] == "allow"
    assert by_name[None]["sure"] is False  # a tool that is a shell, and rm


def test_a_listing_says_which_tools_there_are(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    page = {"result": {"tools": [{"name": "git_push", "inputSchema": {"type": "object", "properties": {"to": {}}}}]}}
    (folder / "tools.json").write_text(json.dumps(page))
    (tool,) = tools(capsys, "--tools", "tools.json")
    assert (tool["tool"], tool["sure"]) == ("git_push", True)  # it has no argument that could be a command
    for text, problem in (("{", "is not JSON"), ("{}", "has no list of tools")):
        (folder / "tools.json").write_text(text)
        with pytest.raises(UserError, match=problem) as caught:
            main(["--config", "gateway.toml", "--tools", "tools.json"])
        assert '{"tools"' in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "decision", "by"),
    [
        ('{"command": "rm -rf /"}', "deny", "gateway.toml:2: permissions.deny[0]"),
        ('{"command": "ls"}', "allow", ""),
    ],
)
def test_with_arguments_it_says_what_becomes_of_this_call(
    capsys: pytest.CaptureFixture[str], arguments: str, decision: str, by: str
) -> None:
    (tool,) = tools(capsys, "run_command", arguments, status=decision == "deny")
    assert (tool["decision"], tool["sure"]) == (decision, True)
    assert by in (tool["by"] or "")


def test_a_hookproxy_toml_is_explained_too(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "h.toml").write_text('on_ask = "deny"\n[permissions]\nask = ["write_*"]\n')
    text = explained(capsys, "write_file", "--config", "h.toml", status=1)
    assert "refused" in text
    assert "the ask rule write_*, h.toml:3: permissions.ask[0]" in text
    assert 'on_ask = "elicit" asks' in text


def test_rules_of_a_server_that_is_not_named_are_pointed_to(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "h.toml").write_text('[permissions]\ndefault = "deny"\nallow = ["mcp__git__git_log"]\n')
    assert main(["--config", "h.toml"]) == 0
    assert "rules name git, and no server is named here: --name git does" in capsys.readouterr().err
    assert main(["git_log", "--config", "h.toml", "--name", "git"]) == 0
    assert "no server is named" not in capsys.readouterr().err
    with pytest.raises(UserError) as caught:
        main(["--config", "h.toml", "--server", "git"])
    assert "here, --name says whose tools are meant" in caught.value.hint


def test_it_says_what_is_only_watched(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "h.toml").write_text('[permissions]\nmode = "monitor"\ndeny = ["write_*"]\n')
    assert main(["write_file", "--config", "h.toml"]) == 0
    shown = capsys.readouterr()
    assert "allowed" in shown.out
    assert "1 rule: only watched" in shown.err


def test_a_user_with_two_lists_of_groups_gets_an_answer_for_each(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    digest = "sha256:" + "0" * 63
    lines = [
        f"0000000{n} anna {g} 2026-01-01T00:00:00Z - {digest}{n}\n" for n, g in enumerate(("trainees", "developers"))
    ]
    (folder / "tokens").write_text("".join(lines))
    (folder / "tokens").chmod(0o600)
    with (folder / "gateway.toml").open("a") as file:
        file.write('[gateway]\nlisten = ["http://127.0.0.1:1"]\ntokens = "tokens"\n')
    text = explained(capsys, "git_push", "--user", "anna", status=1)
    assert "for anna in trainees (by the token 00000000): refused" in text
    assert "for anna in developers (by the token 00000001): allowed" in text


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["x", "--user", "nobody-here"], "the groups of nobody-here are not known", "--groups"),
        (["x", "--server", "gti"], "has no server gti", "git"),
        (["x", "--groups", "a"], "--groups are the groups of a user", "--user"),
        (["x", "--user", "anna", "--groups", "a,,b"], "has an empty name", "--groups"),
        (["x", "{"], "ARGUMENTS: not JSON", "JSON object"),
    ],
)
def test_what_cannot_be_said_is_an_error(words: list[str], problem: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        main([*words, "--config", "gateway.toml"])
    assert problem in caught.value.message
    assert hint in caught.value.hint
