"""Claude Code's settings files."""

import json

from msgspec.structs import fields

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.claude.output import detach_time
from hookproxy.dialects.dialect import HookFile, HookList, Plugin
from hookproxy.model.hooks import Event, HookSpec, Order
from hookproxy.model.settings import ToolNames

OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
    or part.name in {"server", "tool", "input", "process"}
    or part.name
    in {"expression", "policy", "policy_file", "policy_schema", "deny_reason", "only_narrows", "model", "sees_values"}
}
"""Fields that only hooks of other types have."""


# --- settings files ---


def load(settings: object, path: str = "/repo/.claude/settings.json") -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CLAUDE.read_hook_file(HookFile(path, text, "/repo"))


def one(entry: dict[str, object], event: str = "PreToolUse", **group: object) -> HookSpec:
    (hook,) = load({"hooks": {event: [{**group, "hooks": [{"type": "command", **entry}]}]}}).hooks
    return hook


def test_all_keys_of_an_entry_are_read() -> None:
    hook = one(
        {
            "command": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh --strict',
            "timeout": 30,
            "statusMessage": "checking",
            "if": "Bash(git *)",
            "onFailure": "block",
            "async": True,
        },
        matcher="Bash|mcp__github__.*",
    )
    assert hook.matches("mcp__github__search")
    assert not hook.matches("Bas")
    assert {name.name: getattr(hook, name.name) for name in fields(hook) if name.name != "matches"} == {
        **OF_OTHER_TYPES,
        "dialect": "claude",
        "source": "/repo/.claude/settings.json: hooks.PreToolUse[0].hooks[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "guard.sh",
        "matcher": "Bash|mcp__github__.*",
        "argv": (),
        "shell": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh --strict',
        "cwd": "/repo",
        "env": (("CLAUDE_PROJECT_DIR", "/repo"),),
        "timeout": 30.0,
        "background": True,
        "detaches": None,
        "fails_closed": True,
        "withholds": False,
        "on_failure": None,
        "only_if": "Bash(git *)",
        "accepts": None,
        "stage": 0,
        "sequential": False,
        "type": "command",
        "event_name": "PreToolUse",
        "traits": frozenset(),
        "every_call": False,
        "max_retries": 0,
    }


def test_a_hook_has_the_documented_defaults() -> None:
    hook = one({"command": "true"})
    assert (hook.timeout, hook.background, hook.fails_closed, hook.only_if) == (600.0, False, False, "")
    assert hook.detaches is detach_time
    assert hook.matches("anything")


def test_a_session_end_hook_has_a_short_timeout() -> None:
    assert one({"command": "true"}, "SessionEnd").timeout == 1.5
    assert one({"command": "true", "timeout": 5}, "SessionEnd").timeout == 5
    assert one({"command": "true", "timeout": 600}, "SessionEnd").timeout == 60


def test_args_make_the_exec_form_with_placeholders_as_plain_text() -> None:
    hook = one({"command": "python3", "args": ["${CLAUDE_PROJECT_DIR}/h.py", "$HOME", "a b"]})
    assert hook.argv == ("python3", "/repo/h.py", "$HOME", "a b")
    assert (hook.shell, hook.label) == ("", "h.py")


def test_empty_args_are_the_exec_form_too() -> None:
    hook = one({"command": "${CLAUDE_PROJECT_DIR}/my guard.sh", "args": []})
    assert (hook.argv, hook.shell, hook.label) == (("/repo/my guard.sh",), "", "my guard.sh")


def test_a_relative_program_of_the_exec_form_is_in_the_project() -> None:
    assert one({"command": "./guards/a.sh", "args": []}).argv == ("/repo/guards/a.sh",)


def test_a_plugins_hooks_find_their_plugin() -> None:
    settings = {
        "description": "formatting",
        "hooks": {"PostToolUse": [{"hooks": [
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/format.sh", "args": []},
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/format.sh"},
        ]}]},
    }  # fmt: skip
    plugin = Plugin("/plugins/fmt", "/data/fmt")
    found = CLAUDE.read_hook_file(
        HookFile("/plugins/fmt/hooks/hooks.json", json.dumps(settings), "/repo", plugin=plugin)
    )
    direct, through_shell = found.hooks
    assert direct.argv == ("/plugins/fmt/format.sh",)
    assert dict(through_shell.env) == {
        "CLAUDE_PROJECT_DIR": "/repo", "CLAUDE_PLUGIN_ROOT": "/plugins/fmt", "CLAUDE_PLUGIN_DATA": "/data/fmt",
    }  # fmt: skip
    assert {direct.cwd, through_shell.cwd} == {"/repo"}
    assert found.notes == ()


def test_the_session_start_matcher_is_tested_on_the_source() -> None:
    assert one({"command": "true"}, "SessionStart", matcher="startup|resume").matches("startup")


def test_hooks_have_the_order_of_the_file() -> None:
    entry = {"type": "command"}
    groups = [
        {"hooks": [{**entry, "command": "a"}, {**entry, "command": "b"}]},
        {"hooks": [{**entry, "command": "c"}]},
    ]
    assert [hook.shell for hook in load({"hooks": {"PreToolUse": groups}}).hooks] == ["a", "b", "c"]


def test_the_same_entry_in_two_files_is_the_same_hook() -> None:
    settings = {"hooks": {"PreToolUse": [{"matcher": "a.*", "hooks": [{"type": "command", "command": "x"}]}]}}
    (first,), (second,) = load(settings).hooks, load(settings, "/repo/.claude/settings.local.json").hooks
    assert first.identity == second.identity


def test_other_settings_are_ignored() -> None:
    found = load({"model": 7, "env": {"A": "b"}, "hooks": {}, "$schema": "…"})
    assert found == HookList(())


def test_a_byte_order_mark_is_ignored() -> None:
    assert load("\ufeff{}").hooks == ()


# --- the dialect as data ---


def test_the_dialect_is_described() -> None:
    assert (CLAUDE.name, CLAUDE.order, CLAUDE.default_timeout, CLAUDE.tool_names) == (
        "claude",
        Order.PARALLEL,
        600.0,
        ToolNames.MCP,
    )
    assert set(CLAUDE.events) == {
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "PermissionRequest",
        "Elicitation", "ElicitationResult", "Notification",
    }  # fmt: skip
    assert CLAUDE.answers_elicitations
    assert all(name == event for name, event in CLAUDE.events.items())


def test_a_tool_of_a_server_is_a_hook() -> None:
    entry: dict[str, object] = {
        "type": "mcp_tool",
        "server": "policy",
        "tool": "check",
        "input": {"a": ["${tool_input.x}", 1.0]},
    }
    hook = one(entry)
    assert (hook.type, hook.server, hook.tool, hook.label) == ("mcp_tool", "policy", "check", "check")
    assert json.loads(hook.input) == {"a": ["${tool_input.x}", 1.0]}
    assert (hook.timeout, hook.env, hook.target) == (600.0, (), "policy/check")
