"""Claude Code's settings files, and what its hooks are told (the table of cases/claude.toml)."""

import json
import tomllib
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hookproxy.dialects.base import HookFile, HookList
from hookproxy.dialects.claude import CLAUDE
from hookproxy.model import Event, HookSpec, Occasion, Order, Outcome, Session
from hookproxy.settings import ToolNames

CASES = tomllib.loads((Path(__file__).parent / "cases" / "claude.toml").read_text(encoding="utf-8"))

SESSION = Session(id="s1", server="github", cwd="/repo", project_dir="/repo")
CALL = Occasion(
    event=Event.PRE_TOOL_USE,
    session=SESSION,
    tool="search",
    tool_name="mcp__github__search",
    tool_use_id="toolu_01",
)
OUTCOMES = {
    Event.POST_TOOL_USE: Outcome(content=b'[{"type":"text","text":"ECHO"}]', duration_ms=4),
    Event.POST_TOOL_USE_FAILURE: Outcome(error="FAIL-1 refused", duration_ms=4),
}

OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
}
"""What only hooks have that are no plain commands."""


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("claude", "s.json", event, "guard.sh", shell="guard.sh", timeout=30, background=background)


@pytest.mark.parametrize("case", CASES["occasion"], ids=lambda case: case["says"])
def test_a_hook_is_told_what_the_table_says(case: dict[str, Any]) -> None:
    event = Event(case["event"])
    occasion = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        annotations=case.get("annotations", "").encode(),
        outcome=OUTCOMES.get(event),
        occasioned_by=case.get("occasioned_by", ""),
    )
    document = CLAUDE.write(spec(event), occasion)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == {
        "CLAUDE_PROJECT_DIR": "/repo",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ID": "s1",
    }


# --- the document ---


def test_a_folder_that_is_no_utf8_can_be_told() -> None:
    session = replace(SESSION, cwd="/r\udcffepo", server="s\udcff")
    told = json.loads(CLAUDE.write(spec(CALL.event), replace(CALL, session=session)).stdin)
    assert (told["cwd"], told["mcp_server"]) == ("/r?epo", {"name": "s?"})


def test_the_tools_output_goes_in_byte_for_byte() -> None:
    content = b'[ {"type":"text", "text":"\xc3\xa4 \\n 1e400"},{"n":1.000} ]'
    occasion = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content))
    assert b'"tool_response":' + content + b"," in CLAUDE.write(spec(occasion.event), occasion).stdin


def test_the_document_of_a_large_result_is_written_without_building_its_objects() -> None:
    content = b"[" + b",".join([b'{"type":"text","text":"0123456789"}'] * 280_000) + b"]"
    occasion = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content))
    tracemalloc.start()
    try:
        CLAUDE.write(spec(occasion.event), occasion)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(content)  # the growing buffer and the finished document; objects would take 12 times as much


# --- settings files ---


def load(settings: object, path: str = "/repo/.claude/settings.json") -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CLAUDE.read_hooks(HookFile(path, text, "/repo"))


def one(entry: dict[str, object], event: str = "PreToolUse", **group: object) -> HookSpec:
    (hook,) = load({"hooks": {event: [{**group, "hooks": [{"type": "command", **entry}]}]}}).hooks
    return hook


def test_a_hook_is_read_with_everything_its_entry_says() -> None:
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
        "fails_closed": True,
        "withholds": False,
        "on_trouble": None,
        "only_if": "Bash(git *)",
        "type": "command",
        "event_name": "",
        "traits": frozenset(),
        "unasked": False,
        "max_retries": 0,
    }


def test_a_hook_has_the_documented_defaults() -> None:
    hook = one({"command": "true"})
    assert (hook.timeout, hook.background, hook.fails_closed, hook.only_if) == (600.0, False, False, "")
    assert hook.matches("anything")


def test_a_session_end_hook_has_little_time() -> None:
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
    found = load(settings, "/plugins/fmt/hooks/hooks.json")
    direct, through_shell = found.hooks
    assert direct.argv == ("/plugins/fmt/format.sh",)
    assert dict(through_shell.env)["CLAUDE_PLUGIN_ROOT"] == "/plugins/fmt"
    assert found.notes == ()


def test_the_session_start_matcher_is_tried_on_the_source() -> None:
    assert one({"command": "true"}, "SessionStart", matcher="startup|resume").matches("startup")


def test_hooks_stand_in_the_order_of_the_file() -> None:
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


def test_other_settings_are_not_ours_to_judge() -> None:
    found = load({"model": 7, "permissions": {"deny": ["x"]}, "hooks": {}, "$schema": "…"})
    assert found == HookList(())


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    assert load("\ufeff{}").hooks == ()


# --- the dialect as data ---


def test_the_dialect_is_described() -> None:
    assert (CLAUDE.name, CLAUDE.order, CLAUDE.default_timeout, CLAUDE.tool_names) == (
        "claude",
        Order.PARALLEL,
        600.0,
        ToolNames.MCP,
    )
    assert set(CLAUDE.events) == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd"}
    assert all(name == event for name, event in CLAUDE.events.items())


def test_the_dialects_variables_hold_all_that_it_sets() -> None:
    assert set(CLAUDE.write(spec(CALL.event), CALL).env) <= set(CLAUDE.variables)
