"""Settings files that cannot work behind MCP, which get notes, or cannot be used, which are errors."""

import json
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.model.errors import ConfigError


def load(settings: object, path: str = "/repo/.claude/settings.json") -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CLAUDE.read_hook_file(HookFile(path, text, "/repo"))


# --- what cannot work behind MCP ---


def notes(settings: object) -> tuple[str, ...]:
    return load(settings).notes


def note_on(entry: dict[str, object], event: str = "PreToolUse", **group: object) -> tuple[int, str]:
    found = load({"hooks": {event: [{**group, "hooks": [entry]}]}})
    (note,) = found.notes
    return len(found.hooks), note


def test_disabled_hooks_do_not_run_and_get_a_remark() -> None:
    settings = {
        "disableAllHooks": True,
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]},
    }
    assert load(settings) == HookList(
        (), remarks=("/repo/.claude/settings.json: disableAllHooks is true, so none of its hooks run",)
    )


def test_a_file_without_hooks_gets_a_remark() -> None:
    assert load({"model": "x"}) == HookList((), remarks=("/repo/.claude/settings.json: contains no hooks",))


def test_every_event_of_claude_code_is_available_or_has_a_reason() -> None:
    documented = {  # AHK, docs-2026-09-30-r1: the folders of events/
        "ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged",
        "InstructionsLoaded", "MessageDisplay", "Notification", "PermissionDenied", "PermissionRequest",
        "PostCompact", "PostModelSwitch", "PostToolBatch", "PostToolUse", "PostToolUseFailure", "PreCompact",
        "PreModelSwitch", "PreToolUse", "SessionEnd", "SessionStart", "Setup", "Stop", "StopFailure",
        "SubagentStart", "SubagentStop", "TaskCompleted", "TaskCreated", "TeammateIdle",
        "UserPromptExpansion", "UserPromptSubmit", "WorktreeCreate", "WorktreeRemove",
    }  # fmt: skip
    assert set(CLAUDE.events) | set(CLAUDE.unavailable) == documented


@pytest.mark.parametrize("event", CLAUDE.unavailable)
def test_an_event_that_cannot_occur_gets_a_remark(event: str) -> None:
    remark = f"/repo/.claude/settings.json: hooks.{event} cannot fire behind MCP: {CLAUDE.unavailable[event]}"
    entry = {"hooks": [{"type": "command", "command": "x"}]}
    assert load({"hooks": {event: [entry]}}) == HookList((), remarks=(remark,))


@pytest.mark.parametrize(
    ("entry", "runs", "note"),
    [
        ({"type": "prompt", "prompt": "?"}, 0, "type 'prompt' is not supported: hookproxy has no model to ask"),
        ({"type": "agent", "prompt": "?"}, 0, "type 'agent' is not supported: hookproxy has no model to ask"),
        ({"shell": "powershell"}, 0, "PowerShell is not supported"),
        ({"once": True}, 1, "`once` only has an effect in skills"),
        ({"asyncRewake": True}, 1, "`asyncRewake` cannot wake the agent"),
        ({"timeout": 7200}, 1, "a timeout of 7200 seconds is longer than agents wait"),
        ({"timout": 3}, 1, ".timout is unknown and ignored: did you mean 'timeout'?"),
        ({"command": "${CLAUDE_PLUGIN_ROOT}/a.sh"}, 1, "CLAUDE_PLUGIN_ROOT has no value here"),
        ({"command": "a", "args": ["${user_config.key}"]}, 1, "user_config.key has no value here"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_key_that_works_differently_here_gets_a_note(entry: dict[str, object], runs: int, note: str) -> None:
    hooks, actual_note = note_on({"type": "command", "command": "x", **entry})
    assert hooks == runs
    assert actual_note.startswith("/repo/.claude/settings.json: hooks.PreToolUse[0].hooks[0]")
    assert note in actual_note


def test_a_hook_and_its_group_get_all_their_notes() -> None:
    entry = {"type": "command", "command": "x", "once": True, "timout": 3}
    found = load({"hooks": {"PreToolUse": [{"matchr": "x", "matcher": "mcp__memory", "hooks": [entry]}]}})
    assert len(found.notes) == 4


def test_unknown_keys_get_no_note() -> None:
    assert notes({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "note": 1}]}]}}) == ()


def test_a_misspelt_matcher_gets_a_note() -> None:
    hooks, note = note_on({"type": "command", "command": "x"}, matchers="Bash")
    assert (hooks, "hooks.PreToolUse[0].matchers is unknown" in note) == (1, True)


def test_a_matcher_that_names_a_server_and_no_tool_gets_a_note() -> None:
    _, note = note_on({"type": "command", "command": "x"}, matcher="Bash|mcp__memory")
    assert note.endswith("'Bash|mcp__memory' never matches mcp__memory's tools: write mcp__memory__.*")


def test_a_session_start_matcher_without_startup_gets_a_note() -> None:
    _, note = note_on({"type": "command", "command": "x"}, "SessionStart", matcher="resume")
    assert "never matches" in note


def test_a_notification_matcher_without_our_types_gets_a_note() -> None:
    _, note = note_on({"type": "command", "command": "x"}, "Notification", matcher="idle_prompt")
    assert note.endswith(
        "'idle_prompt' never matches: behind MCP, the only types are permission_prompt, elicitation_dialog, "
        "elicitation_url_dialog, elicitation_response, elicitation_complete"
    )


def test_if_on_a_session_event_never_runs_as_documented() -> None:
    hooks, note = note_on({"type": "command", "command": "x", "if": "Bash"}, "SessionStart")
    assert (hooks, "tool events" in note) == (0, True)


# --- files that cannot be used ---


def refusal(settings: object) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(settings, "/s.json")
    return problem.value.message, problem.value.hint


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {}, "hooks": {}}', ": the key 'hooks' appears twice in one object", "lost"),
        ('{"a": {"b": 1, "b": 2}}', ": the key 'b' appears twice in one object", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ("[" * 1_000_000, ": cannot be read as JSON", ""),
        ('{"a": ' + "9" * 10_000 + "}", ": cannot be read as JSON", ""),
        ("[]", ": must contain one JSON object", ""),
        ({"disableAllHooks": "yes"}, ": disableAllHooks must be true or false, not a string", ""),
        ({"hooks": []}, ": hooks must be an object, not a list: Claude Code refuses this file, too", "PreToolUse"),
        ({"hooks": "x"}, ": hooks must be an object, not a string", ""),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line_or_key(settings: object, message: str, hint: str) -> None:
    actual_message, actual_hint = refusal(settings)
    assert actual_message.startswith(f"/s.json{message}")
    assert hint in actual_hint


# --- what Claude Code leaves out, and goes on ---

GOOD: Final[dict[str, object]] = {"type": "command", "command": "x"}


def left_out(events: dict[str, object]) -> str:
    """The note on what is left out of a file that has a good hook beside it."""
    found = load({"hooks": {**events, "SessionStart": [{"hooks": [GOOD]}]}}, "/s.json")
    assert "SessionStart" in [hook.event.value for hook in found.hooks]
    (note,) = found.notes
    return note.removeprefix("/s.json: ")


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        ("preToolUse", "did you mean 'PreToolUse'?"),
        ("PreToolUze", "did you mean 'PreToolUse'?"),
        ("PreCommit", "the events are PreToolUse, PostToolUse,"),
        ("preEditHook", "the events are PreToolUse, PostToolUse,"),
    ],
)
def test_an_unknown_event_is_left_out(event: str, hint: str) -> None:
    for entries in ([{"hooks": [GOOD]}], {"command": "x"}, []):
        note = left_out({event: entries})
        assert note.startswith(f"hooks.{event} is not an event, so its hooks never run: {hint}")


@pytest.mark.parametrize("key", ["//", "// PreToolUse", "_comment", "comment", "description", "$schema", "#1"])
def test_a_comment_is_no_event_and_no_misspelt_key(key: str) -> None:
    entry = {"matcher": "Bash", "hooks": [{**GOOD, key: "x"}], key: "x"}
    found = load({"hooks": {key: "x", "PreToolUse": [entry]}, key: "x"})
    assert (len(found.hooks), found.notes, found.remarks) == (1, (), ())


def test_keys_of_other_programs_get_no_wrong_hint() -> None:
    entry = {**GOOD, "commandWindows": "x", "rewakeMessage": "x", "rewakeSummary": "x", "model": "x", "note": "x"}
    assert load({"hooks": {"PreToolUse": [{"hooks": [entry]}]}}).notes == ()


@pytest.mark.parametrize(
    ("group", "note"),
    [
        ("./a.sh", "hooks.PreToolUse[0] is left out: must be an object, not a string: write an object"),
        ({"type": "command", "command": "x"}, "hooks.PreToolUse[0] is left out: hooks is missing: write {"),
        ({"hooks": ["./a.sh"]}, "hooks.PreToolUse[0].hooks[0] is left out: must be an object, not a string"),
        ({"hooks": "./a.sh"}, "hooks.PreToolUse[0] is left out: hooks must be a list, not a string"),
        ({"matcher": 1, "hooks": []}, "hooks.PreToolUse[0] is left out: matcher must be a string, not a number"),
        ({"matcher": {"tools": ["Write"]}, "hooks": [GOOD]}, "hooks.PreToolUse[0] is left out: matcher must be a stri"),
    ],
)
def test_a_malformed_group_is_left_out(group: object, note: str) -> None:
    assert left_out({"PreToolUse": [group]}).startswith(note)
    assert len(load({"hooks": {"PreToolUse": [group, {"hooks": [GOOD]}]}}).hooks) == 1


def test_an_event_that_is_no_list_is_left_out() -> None:
    note = left_out({"PreToolUse": {"hooks": [GOOD]}})
    assert note == "hooks.PreToolUse is left out: must be a list, not an object: write a list"


def test_a_pattern_that_only_javascript_reads_leaves_its_group_out() -> None:
    note = left_out({"PreToolUse": [{"matcher": "(?<=a+)b", "hooks": [GOOD]}]})
    assert note.startswith("hooks.PreToolUse[0] is left out: matcher '(?<=a+)b' cannot be used: look-behind requires")


@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        ("mcp__(", "Claude Code cannot read it as a regular expression either (missing ), unterminated subpattern): "
                   "write tool names, with | between them"),
        ("*Bash*", "Claude Code cannot read it as a regular expression either (nothing to repeat): write tool names"),
        ("tools:Write AND file_paths:**/*.py", "Claude Code cannot read it as a regular expression either"),
        ("Write(*.py)", "Claude Code cannot read it as a regular expression either (nothing to repeat): it is a "
                        'permission rule: write "matcher": "Write", and "if": "Write(*.py)" in the hook'),
        ("Bash(git push:*)", 'a tool\'s name: it is a permission rule: write "matcher": "Bash", and '
                             '"if": "Bash(git push:*)" in the hook'),
        ("Edit(src/x)", 'a tool\'s name: it is a permission rule: write "matcher": "Edit", and'),
    ],
)  # fmt: skip
def test_a_matcher_that_is_no_regular_expression_matches_nothing_as_in_claude_code(matcher: str, why: str) -> None:
    hooks, note = note_on(GOOD, matcher=matcher)
    place = f"/repo/.claude/settings.json: hooks.PreToolUse[0].matcher {matcher!r} never matches"
    assert hooks == 1
    assert note.startswith((f"{place}: {why}", f"{place} {why}"))
    (hook,) = load({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [GOOD]}]}}).hooks
    assert not any(map(hook.matches, ("Bash", "Write", "Edit", "mcp__git__push")))


@pytest.mark.parametrize("matcher", ["Write(.*)", "mcp__(a|b)__x", "Notebook(Edit)", "^(Bash|Edit)$", "mcp__.*"])
def test_a_regular_expression_with_parentheses_is_no_rule(matcher: str) -> None:
    assert notes({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [GOOD]}]}}) == ()


def test_the_hint_for_all_servers_is_a_matcher_that_matches_them() -> None:
    _, note = note_on(GOOD, matcher="mcp__")
    assert note.endswith("'mcp__' never matches: write mcp__.* for the tools of all servers")


@pytest.mark.parametrize("timeout", [10_000, 30_000, 600_000])
def test_a_timeout_in_milliseconds_is_used_as_written_with_a_note(timeout: int) -> None:
    found = load({"hooks": {"PreToolUse": [{"hooks": [{**GOOD, "timeout": timeout}]}]}})
    assert [hook.timeout for hook in found.hooks] == [timeout]
    (note,) = found.notes
    assert note.endswith(
        f"hooks[0]: a timeout of {timeout} is read as seconds, as written: "
        f"if they are meant as milliseconds, write {timeout // 1000}"
    )


def test_modules_of_a_plugin_get_a_note() -> None:
    note = "/p/hooks/hooks.json: modules cannot run here: they are functions inside Claude Code"
    events = {"PreToolUse": [{"hooks": [GOOD]}]}
    assert load({"modules": ["./register.ts"], "hooks": events}, "/p/hooks/hooks.json").notes == (note,)
    assert load({"modules": ["./register.ts"]}, "/p/hooks/hooks.json").notes == (note,)


def test_events_outside_of_hooks_get_a_note() -> None:
    found = load({"PreToolUse": [{"hooks": [GOOD]}]})
    (note,) = found.notes
    assert note.endswith(': PreToolUse is not read: Claude Code reads events inside of "hooks" only')
    assert found.hooks == ()


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({"command": ...}, "command is missing", ""),
        ({"type": ...}, "type is missing", 'write "type": "command"'),
        ({"type": "comand"}, "type must be one of command,", "did you mean 'command'?"),
        ({"command": " "}, "command is empty", ""),
        ({"command": ["x"]}, "command must be a string, not a list", ""),
        ({"command": "a\0b"}, "command contains a NUL", ""),
        ({"args": "y"}, "args must be a list, not a string", ""),
        ({"args": ["y", 2]}, "args[1] must be a string, not a number", ""),
        ({"timeout": "30"}, "timeout must be a number of seconds, not a string", ""),
        ({"timeout": True}, "timeout must be a number of seconds, not true or false", ""),
        ({"timeout": 0}, "timeout must be more than 0 seconds, not 0", ""),
        ({"timeout": -1}, "timeout must be more than 0 seconds, not -1", ""),
        ({"timeout": 10**400}, "timeout must be more than 0 seconds, not 1000", ""),
        ({"onFailure": "blok"}, "onFailure must be one of block, continue, not 'blok'", "'block'"),
        ({"shell": "zsh"}, "shell must be one of bash, powershell, not 'zsh'", ""),
        ({"if": "Bash(a"}, "if 'Bash(a' cannot be used: 'Bash(a' is not a permission rule", ""),
        ({"async": "yes"}, "async must be true or false, not a string", ""),
        ({"statusMessage": 5}, "statusMessage must be a string, not a number", ""),
        ({"type": "mcp_tool", "tool": "b"}, "server is missing", '"server": "NAME"'),
        ({"type": "mcp_tool", "server": "a", "tool": ""}, "tool is empty", ""),
        ({"type": "mcp_tool", "server": ["a"], "tool": "b"}, "server must be a string, not a list", ""),
        ({"type": "mcp_tool", "server": "a", "tool": "b", "input": "c"}, "input must be an object", ""),
    ],
)
def test_a_malformed_hook_is_left_out(entry: dict[str, object], message: str, hint: str) -> None:
    whole = {**GOOD, **entry}
    bad = {key: value for key, value in whole.items() if value is not ...}
    note = left_out({"PreToolUse": [{"hooks": [GOOD, bad]}]})
    assert note.startswith(f"hooks.PreToolUse[0].hooks[1] is left out: {message}")
    assert hint in note
    assert len(load({"hooks": {"PreToolUse": [{"hooks": [bad, GOOD]}]}}).hooks) == 1


def test_infinity_is_not_a_timeout() -> None:
    found = load('{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x","timeout":1e999}]}]}}')
    assert found.hooks == ()
    assert "must be more than 0 seconds, not inf" in found.notes[0]


KEYS = st.sampled_from(["hooks", "PreToolUse", "matcher", "type", "command", "timeout", "if"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from(["command", "x", ""])


@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_other_file_is_read_or_a_config_error(settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell or hook.argv for hook in load(settings).hooks)


def test_an_http_hook_does_not_run_at_the_start_of_a_session() -> None:
    hooks, note = note_on({"type": "http", "url": "https://example.com"}, "SessionStart")
    assert hooks == 0
    assert note.endswith("Claude Code runs only hooks of type command and mcp_tool at SessionStart")
