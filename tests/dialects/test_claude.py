"""Claude Code's settings files, and what its hooks are told (the table of cases/claude.toml)."""

import json
import tomllib
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.base import HookFile, HookList
from hookproxy.dialects.claude import CLAUDE, ELSEWHERE
from hookproxy.errors import ConfigError
from hookproxy.model import (
    Event,
    HookSpec,
    Occasion,
    Order,
    Outcome,
    Session,
    ToolNames,
)

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


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec(
        "claude", "s.json", event, "guard.sh", shell="guard.sh", timeout=30, background=background
    )


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
    assert peak < 3 * len(
        content
    )  # the growing buffer and the finished document; objects would take 12 times as much


# --- settings files ---


def load(settings: object, path: str = "/repo/.claude/settings.json") -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CLAUDE.read_hooks(HookFile(path, text, "/repo"))


def one(entry: dict[str, Any], event: str = "PreToolUse", **group: Any) -> HookSpec:
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
    assert one({"command": "./guards/a.sh", "args": []}).argv == ("/repo/./guards/a.sh",)


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


# --- what cannot work behind MCP ---


def notes(settings: object) -> tuple[str, ...]:
    return load(settings).notes


def note_on(entry: dict[str, Any], event: str = "PreToolUse", **group: Any) -> tuple[int, str]:
    found = load({"hooks": {event: [{**group, "hooks": [entry]}]}})
    (note,) = found.notes
    return len(found.hooks), note


def test_disabled_hooks_do_not_run_and_people_are_told() -> None:
    settings = {
        "disableAllHooks": True,
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]},
    }
    assert load(settings) == HookList(
        (), ("/repo/.claude/settings.json: disableAllHooks is true, so none of its hooks runs",)
    )


def test_a_file_without_hooks_is_told_of() -> None:
    assert notes({"model": "x"}) == ("/repo/.claude/settings.json: there are no hooks in it",)


def test_every_event_of_claude_code_is_either_run_or_told_of() -> None:
    documented = set(
        "ConfigChange CwdChanged DirectoryAdded Elicitation ElicitationResult FileChanged InstructionsLoaded "
        "MessageDisplay Notification PermissionDenied PermissionRequest PostCompact PostModelSwitch PostToolBatch "
        "PostToolUse PostToolUseFailure PreCompact PreModelSwitch PreToolUse SessionEnd SessionStart Setup Stop "
        "StopFailure SubagentStart SubagentStop TaskCompleted TaskCreated TeammateIdle UserPromptExpansion "
        "UserPromptSubmit WorktreeCreate WorktreeRemove".split()  # AHK, docs-2026-09-30-r1, the folders of events/
    )
    assert set(CLAUDE.events) | set(ELSEWHERE) == documented


@pytest.mark.parametrize("event", ELSEWHERE)
def test_an_event_that_cannot_occur_is_told_of(event: str) -> None:
    hooks, note = note_on({"type": "command", "command": "x"}, event)
    assert (hooks, note) == (
        0,
        f"/repo/.claude/settings.json: hooks.{event} cannot fire behind MCP: {ELSEWHERE[event]}",
    )


@pytest.mark.parametrize(
    ("entry", "runs", "note"),
    [
        ({"type": "prompt", "prompt": "?"}, 0, "type 'prompt' is impossible here: there is no model to ask"),
        ({"type": "agent", "prompt": "?"}, 0, "type 'agent' is impossible here: there is no agent to start"),
        ({"type": "http", "url": "http://x"}, 0, "type 'http' is not supported yet"),
        ({"type": "mcp_tool", "server": "a", "tool": "b"}, 0, "type 'mcp_tool' is not supported yet"),
        ({"shell": "powershell"}, 0, "PowerShell is not supported"),
        ({"once": True}, 1, "`once` counts in skills only"),
        ({"asyncRewake": True}, 1, "`asyncRewake` cannot wake the agent"),
        ({"timeout": 7200}, 1, "a timeout of 7200 seconds is longer than agents wait"),
        ({"timout": 3}, 1, ".timout is not known and ignored: did you mean 'timeout'?"),
        ({"command": "${CLAUDE_PLUGIN_ROOT}/a.sh"}, 1, "CLAUDE_PLUGIN_ROOT has no value here"),
        ({"command": "a", "args": ["${user_config.key}"]}, 1, "user_config.key has no value here"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_field_that_works_otherwise_here_is_told_of(entry: dict[str, Any], runs: int, note: str) -> None:
    hooks, told = note_on({"type": "command", "command": "x", **entry})
    assert hooks == runs
    assert told.startswith("/repo/.claude/settings.json: hooks.PreToolUse[0].hooks[0]")
    assert note in told


def test_fields_nobody_knows_are_left_alone() -> None:
    assert (
        notes({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "note": 1}]}]}}) == ()
    )


def test_a_misspelt_matcher_is_told_of() -> None:
    hooks, note = note_on({"type": "command", "command": "x"}, matchers="Bash")
    assert (hooks, "hooks.PreToolUse[0].matchers is not known" in note) == (1, True)


def test_a_matcher_that_names_a_server_and_no_tool_is_told_of() -> None:
    _, note = note_on({"type": "command", "command": "x"}, matcher="Bash|mcp__memory")
    assert note.endswith("'Bash|mcp__memory' never matches mcp__memory's tools: write mcp__memory__.*")


def test_a_session_start_matcher_that_leaves_out_startup_is_told_of() -> None:
    _, note = note_on({"type": "command", "command": "x"}, "SessionStart", matcher="resume")
    assert "never matches" in note


def test_if_on_a_session_event_never_runs_as_documented() -> None:
    hooks, note = note_on({"type": "command", "command": "x", "if": "Bash"}, "SessionStart")
    assert (hooks, "tool events" in note) == (0, True)


# --- files that cannot be used ---


def with_entry(**entry: object) -> dict[str, object]:
    return {
        "hooks": {
            "PreToolUse": [{"hooks": [{"type": "command", "command": "x"}, {"type": "command", **entry}]}]
        }
    }


ENTRY = "/s.json: hooks.PreToolUse[0].hooks[1]"


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', "/s.json: line 2: not JSON: Expecting property name", ""),
        ('{"hooks": {}, "hooks": {}}', "/s.json: the key 'hooks' stands twice in one object", "lost"),
        ('{"a": {"b": 1, "b": 2}}', "/s.json: the key 'b' stands twice in one object", "lost"),
        ('{"a": NaN}', "/s.json: NaN is not JSON", ""),
        ("[" * 100_000, "/s.json: cannot be read as JSON", ""),
        ('{"a": ' + "9" * 10_000 + "}", "/s.json: cannot be read as JSON", ""),
        ("[]", "/s.json: must hold one JSON object", ""),
        ({"disableAllHooks": "yes"}, "/s.json: disableAllHooks must be true or false, not a string", ""),
        ({"hooks": []}, "/s.json: hooks must be an object, not a list", ""),
        ({"hooks": {"preToolUse": []}}, "/s.json: hooks.preToolUse is no event", "did you mean 'PreToolUse'?"),
        ({"hooks": {"Whenever": []}}, "/s.json: hooks.Whenever is no event", ""),
        ({"hooks": {"PreToolUse": {}}}, "/s.json: hooks.PreToolUse must be a list, not an object", ""),
        ({"hooks": {"Stop": "x"}}, "/s.json: hooks.Stop must be a list, not a string", ""),
        ({"hooks": {"PreToolUse": ["./a.sh"]}}, "/s.json: hooks.PreToolUse[0] must be an object, not a string", ""),
        ({"hooks": {"PreToolUse": [{"command": "x"}]}}, "/s.json: hooks.PreToolUse[0].hooks is missing", "shape"),
        (
            {"hooks": {"PreToolUse": [{"matcher": "mcp__(", "hooks": []}]}},
            "/s.json: hooks.PreToolUse[0].matcher 'mcp__(' cannot be used: missing ), unterminated subpattern",
            "",
        ),
        ({"hooks": {"PreToolUse": [{"matcher": 1, "hooks": []}]}}, "/s.json: hooks.PreToolUse[0].matcher must be a string", ""),
        (with_entry(), f"{ENTRY}.command is missing", ""),
        (with_entry(command=" "), f"{ENTRY}.command is empty", ""),
        (with_entry(command=["x"]), f"{ENTRY}.command must be a string, not a list", ""),
        (with_entry(command="a\0b"), f"{ENTRY}.command holds a NUL", ""),
        (with_entry(command="x", args="y"), f"{ENTRY}.args must be a list, not a string", ""),
        (with_entry(command="x", args=["y", 2]), f"{ENTRY}.args[1] must be a string, not a number", ""),
        (with_entry(command="x", type="comand"), f"{ENTRY}.type must be one of command,", "did you mean 'command'?"),
        (with_entry(command="x", timeout="30"), f"{ENTRY}.timeout must be a number of seconds, not a string", ""),
        (with_entry(command="x", timeout=True), f"{ENTRY}.timeout must be a number of seconds", ""),
        (with_entry(command="x", timeout=0), f"{ENTRY}.timeout must be more than 0 seconds, not 0", ""),
        (with_entry(command="x", timeout=-1), f"{ENTRY}.timeout must be more than 0 seconds, not -1", ""),
        (with_entry(command="x", timeout=30000), f"{ENTRY}.timeout looks like milliseconds: 30000", "write seconds: 30 for 30000"),
        (with_entry(command="x", onFailure="blok"), f"{ENTRY}.onFailure must be one of block, continue", "'block'"),
        (with_entry(command="x", shell="zsh"), f"{ENTRY}.shell must be one of bash, powershell", ""),
        (with_entry(command="x", **{"if": "Bash(a"}), f"{ENTRY}.if 'Bash(a' cannot be used: 'Bash(a' is no permission rule", ""),
        (with_entry(command="x", **{"async": "yes"}), f"{ENTRY}.async must be true or false, not a string", ""),
        (with_entry(command="x", statusMessage=5), f"{ENTRY}.statusMessage must be a string", ""),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_by_key(settings: object, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        load(settings, "/s.json")
    assert problem.value.message.startswith(message)
    assert hint in problem.value.hint


def test_infinity_is_no_timeout() -> None:
    with pytest.raises(ConfigError, match="must be more than 0 seconds"):
        load('{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x","timeout":1e999}]}]}}')


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_other_file_is_read_or_refused_and_never_an_accident(settings: object) -> None:
    try:
        load(settings)
    except ConfigError as problem:
        assert problem.message.startswith("/repo/.claude/settings.json")


# --- the dialect as data ---


def test_the_dialect_is_described() -> None:
    assert (CLAUDE.name, CLAUDE.order, CLAUDE.default_timeout, CLAUDE.tool_names) == (
        "claude",
        Order.PARALLEL,
        600.0,
        ToolNames.MCP,
    )
    assert set(CLAUDE.events.values()) == set(Event)


def test_the_dialects_variables_hold_all_that_it_sets() -> None:
    assert set(CLAUDE.write(spec(CALL.event), CALL).env) <= set(CLAUDE.variables)
