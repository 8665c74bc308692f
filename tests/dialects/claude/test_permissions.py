"""The permissions of a settings file: which rules they become, and what is said about the rest."""

from __future__ import annotations

import json

import pytest

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy.rules import RuleDecision, Rules

PATH = "/repo/.claude/settings.json"


def read(permissions: object, apply: bool | None = True) -> HookList:
    text = json.dumps({"permissions": permissions, "hooks": {}}, indent=1)
    options = {} if apply is None else {"permissions": apply}
    return CLAUDE.read_hook_file(HookFile(PATH, text, "/repo", options, {"HOME": "/home/u"}, cwd="/repo"))


def decide(rules: dict[str, list[str]], tool: str, **arguments: object) -> Permission | None:
    names = [tool.rpartition("__")[2], tool] if "__" in tool else [tool]
    found = Rules.of(Settings(agent_rules=read(rules).rules)).judge(names, json.dumps(arguments).encode())
    return None if found is None else found.permission


@pytest.mark.parametrize("apply", [None, False])
def test_without_the_key_they_are_not_applied_and_a_remark_says_so(apply: bool | None) -> None:
    found = read({"deny": ["Bash"]}, apply)
    assert found.rules == ()
    assert found.remarks[-1] == f"{PATH}: its permissions are not applied: set permissions = true in [[use]]"


def test_a_file_without_permissions_gets_no_remark() -> None:
    found = CLAUDE.read_hook_file(HookFile(PATH, '{"hooks":{}}', "/repo"))
    assert not any("permissions" in remark for remark in found.remarks)


def test_the_decision_names_the_file_and_the_line() -> None:
    rules = Rules.of(Settings(agent_rules=read({"deny": ["A", "Bash(rm *)"]}).rules))
    found = rules.judge(["Bash"], b'{"command":"rm -r x"}')
    reason = "its argument 'command' may run such a command"
    assert found == RuleDecision(Permission.DENY, "Bash(rm *)", f"{PATH}:5", reason)
    assert found.by("hookproxy.toml") == f"the permission rule Bash(rm *) of {PATH}:5"


@pytest.mark.parametrize(
    ("tool", "arguments", "decision"),
    [
        ("Read", {"file_path": "/repo/.env"}, Permission.DENY),
        ("Read", {"file_path": ".env"}, Permission.DENY),
        ("Read", {"file_path": "/other/.env"}, None),
        ("Read", {"file_path": "secrets/a/b"}, Permission.DENY),
        ("Read", {"file_path": "~/.aws/credentials"}, Permission.DENY),
        ("Read", {"file_path": "/etc/shadow"}, Permission.DENY),
        ("Read", {"file_path": "/repo/etc/shadow"}, None),
        ("Read", {"paths": ["a", "/etc/shadow"]}, Permission.DENY),
        ("Read", {"file_path": {"a": 1}}, Permission.DENY),
        ("Read", {}, Permission.DENY),
        ("Grep", {"pattern": "x", "path": "secrets"}, Permission.DENY),
        ("Glob", {"pattern": "*", "path": "/repo/src"}, None),
        ("LS", {"path": "secrets"}, Permission.DENY),
        ("Write", {"file_path": ".env", "content": "x"}, Permission.DENY),
        ("Edit", {"file_path": ".env"}, Permission.DENY),
        ("NotebookEdit", {"notebook_path": ".env"}, None),
        ("NotebookEdit", {"notebook_path": "lock.ipynb"}, Permission.ASK),
        ("Edit", {"file_path": "lock.ipynb"}, Permission.ASK),
        ("Edit", {"file_path": "/repo/src/a"}, Permission.ALLOW),
        ("Write", {"file_path": "/repo/src/a", "content": "/etc/shadow"}, Permission.ALLOW),
        ("Write", {"file_path": "/repo/src/a", "to": "/etc"}, None),
        ("Bash", {"command": "git push"}, Permission.ASK),
        ("Bash", {"command": "git status"}, Permission.ALLOW),
        ("Bash", {"command": "cat .env"}, None),
        ("Bash", {"command": "ls && curl x"}, Permission.DENY),
        ("WebFetch", {"url": "https://evil.example/x"}, Permission.DENY),
        ("mcp__db__drop", {}, Permission.DENY),
        ("mcp__github__get", {}, Permission.ALLOW),
    ],
)
def test_rules_are_applied_as_claude_code_applies_them(
    tool: str, arguments: dict[str, object], decision: Permission | None
) -> None:
    rules = {
        "deny": ["Read(./.env)", "Read(./secrets/**)", "Read(~/.aws/**)", "Read(//etc/shadow)", "Bash(curl:*)",
                 "WebFetch(domain:evil.example)", "mcp__db__drop"],
        "ask": ["Bash(git push *)", "Edit(*.ipynb)"],
        "allow": ["Bash(git *)", "Edit(/src/**)", "mcp__github"],
    }  # fmt: skip
    assert decide(rules, tool, **arguments) is decision


@pytest.mark.parametrize(
    ("permissions", "note"),
    [
        ({"deny": ["Bash("]}, "permissions.deny[0] 'Bash(' is not applied: 'Bash(' is not a permission rule"),
        ({"deny": [7]}, "permissions.deny[0] 7 is not applied: it is not a text"),
        ({"deny": {"a": 1}}, "permissions.deny[0] {'a': 1} is not applied: it is not a text"),
        ({"ask": ["Read(!a)"]}, "permissions.ask[0] 'Read(!a)' is not applied: a pattern that begins with !"),
        ({"allow": ["Write(/src/**)"]}, "permissions.allow[0] 'Write(/src/**)' is not applied: Claude Code never"),
        ({"deny": ["Write(/src/**)"]}, "permissions.deny[0] 'Write(/src/**)' is applied to Write alone: Claude Code"),
        ({"defaultMode": "bypassPermissions"}, "permissions.defaultMode 'bypassPermissions' is not applied"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_noted(permissions: dict[str, object], note: str) -> None:
    (actual,) = read(permissions).notes
    assert actual.startswith(f"{PATH}: {note}")


def test_a_denied_write_rule_denies_writing() -> None:
    rules = {"deny": ["Write(/src/**)"]}
    assert decide(rules, "Write", file_path="src/a") is Permission.DENY
    assert decide(rules, "Edit", file_path="src/a") is None


def test_settings_of_the_agent_get_a_remark() -> None:
    found = read({"additionalDirectories": ["/x"], "defaultMode": "default"})
    assert found.notes == ()
    assert found.remarks[-1] == f"{PATH}: permissions.additionalDirectories has no effect behind MCP"
