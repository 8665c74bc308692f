"""claw-code's settings files: their hooks, notes and errors."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from hookproxy.dialects.claw import CURRENT as CLAW_CURRENT
from hookproxy.dialects.claw import DIALECT as CLAW
from hookproxy.dialects.dialect import Dialect, HookFile, HookList
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec

BOTH = pytest.mark.parametrize("dialect", [CLAW, CLAW_CURRENT], ids=lambda dialect: dialect.name)


# --- settings files ---


def load(settings: object, dialect: Dialect = CLAW, path: str = "/repo/.claude/settings.json") -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return dialect.read_hook_file(HookFile(path, text, "/repo"))


def hooks(dialect: Dialect = CLAW, **events: object) -> tuple[HookSpec, ...]:
    return load({"hooks": events}, dialect).hooks


def grouped(matcher: str, dialect: Dialect = CLAW_CURRENT) -> HookSpec:
    (hook,) = hooks(dialect, PreToolUse=[{"matcher": matcher, "hooks": [{"type": "command", "command": "./a.sh"}]}])
    return hook


@BOTH
def test_a_command_string_is_a_hook_for_every_tool(dialect: Dialect) -> None:
    (hook,) = hooks(dialect, PreToolUse=["python3 guards/paths.py --strict"])
    assert hook.matches("anything")
    assert {one.name: getattr(hook, one.name) for one in fields(hook) if one.name != "matches"} == {
        **{one.name: one.default for one in fields(hook) if one.name not in ("matches", "env", "traits")},
        "dialect": dialect.name,
        "source": "/repo/.claude/settings.json: hooks.PreToolUse[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "paths.py",
        "shell": "python3 guards/paths.py --strict",
        "cwd": "/repo",
        "env": (),
        "timeout": 60.0,
        "event_name": "PreToolUse",
        "traits": frozenset(),
    }


def test_a_post_hook_runs_for_successes_and_failures() -> None:
    success, failure = hooks(PostToolUse=["./lint.sh"])
    assert (success.event, failure.event) == (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
    assert success.event_name == failure.event_name == "PostToolUse"
    assert success.source == failure.source


def test_claw_current_has_an_event_of_its_own_for_failures() -> None:
    found = hooks(CLAW_CURRENT, PostToolUse=["./lint.sh"], PostToolUseFailure=["./explain.sh"])
    assert [(hook.event, hook.event_name, hook.label) for hook in found] == [
        (Event.POST_TOOL_USE, "PostToolUse", "lint.sh"),
        (Event.POST_TOOL_USE_FAILURE, "PostToolUseFailure", "explain.sh"),
    ]


@BOTH
def test_hooks_are_in_the_order_of_the_file(dialect: Dialect) -> None:
    assert [hook.shell for hook in hooks(dialect, PreToolUse=["c", "a", "b"])] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("./hooks/guard.sh", "guard.sh"),
        ('"$HOME"/guard.sh', "guard.sh"),
        ("jq -e .x", "jq -e .x"),
        ("if echo \"$HOOK_TOOL_INPUT\" | grep -q 'rm -rf'; then exit 2; fi", "grep -q rm -rf"),
        ("test -f x && exit 2", "hooks.PreToolUse[0]"),
        ("[ -f x ] && exit 2", "hooks.PreToolUse[0]"),
        ("{ ./a; }", "a"),
        ("# nothing", "hooks.PreToolUse[0]"),
    ],
)
def test_the_label_of_a_script_that_names_no_program_is_its_place(command: str, label: str) -> None:
    (hook,) = hooks(PreToolUse=[command])
    assert hook.label == label


def test_claw_current_allows_groups_and_commands_side_by_side() -> None:
    group = {"matcher": "bash,mcp__*", "hooks": [{"type": "command", "command": "./p.py"}, {"command": "./q.py"}]}
    found = hooks(CLAW_CURRENT, PreToolUse=["./pre.sh", group, "./last.sh"])
    assert [(hook.source.partition(": ")[2], hook.shell, hook.matcher) for hook in found] == [
        ("hooks.PreToolUse[0]", "./pre.sh", ""),
        ("hooks.PreToolUse[1].hooks[0]", "./p.py", "bash,mcp__*"),
        ("hooks.PreToolUse[1].hooks[1]", "./q.py", "bash,mcp__*"),
        ("hooks.PreToolUse[2]", "./last.sh", ""),
    ]
    assert {hook.dialect for hook in found} == {"claw@current"}


@pytest.mark.parametrize(
    ("matcher", "tool", "matches"),
    [
        ("", "bash", True),
        (" ", "bash", True),
        ("*", "bash", True),
        ("bash", "bash", True),
        ("Bash", "bASH", True),
        ("bash", "bash2", False),
        ("bash", "a bash", False),
        (" edit | bash ,write", "bash", True),
        ("edit,,write", "", False),
        ("read*", "ReadFile", True),
        ("read*", "thread", False),
        ("*file", "read_file", True),
        ("*file", "file_list", False),
        ("*ea*fi*", "read_file", True),
        ("a**b", "ab", True),
        ("a*b", "aXbYb", True),
        ("a*a", "a", False),
        (".*", "bash", False),
        ("read.file", "readXfile", False),
        (",", "bash", False),
        ("mcp__*", "read_file", True),
        ("edit|MCP__*", "read_file", True),
        ("mcp__fs__*", "read_file", False),
        ("mcp__fs__*", "mcp__fs__read_file", True),
    ],
)
def test_a_matcher_lists_names_in_any_case(matcher: str, tool: str, matches: bool) -> None:
    assert grouped(matcher).matches(tool) is matches


@BOTH
def test_other_settings_are_ignored(dialect: Dialect) -> None:
    assert load({"model": 7, "permissions": {"deny": ["x"]}, "hooks": {}, "$schema": "…"}, dialect) == HookList(())


@BOTH
def test_a_byte_order_mark_is_ignored(dialect: Dialect) -> None:
    assert len(load('\ufeff{"hooks":{"PreToolUse":["./a.sh"]}}', dialect).hooks) == 1


# --- notes ---


def notes(settings: object) -> tuple[str, ...]:
    return load(settings, CLAW_CURRENT, "/s.json").notes


@BOTH
def test_a_file_without_hooks_is_reported(dialect: Dialect) -> None:
    assert load({"model": "x"}, dialect, "/s.json") == HookList((), remarks=("/s.json: contains no hooks",))


def test_keys_that_claw_code_does_not_read_are_reported() -> None:
    entry = {"type": "command", "command": "./a.sh", "timeout": 3}
    assert notes({"hooks": {"PreToolUse": [{"matchers": "bash", "hooks": [entry]}]}}) == (
        "/s.json: hooks.PreToolUse[0].matchers is unknown and ignored: did you mean 'matcher'?",
        "/s.json: hooks.PreToolUse[0].hooks[0].timeout is unknown and ignored",
    )


@pytest.mark.parametrize(
    ("matcher", "remark"),
    [
        (" , ", "never matches: it names no tool"),
        ("bash.*", "is not read as a regular expression by claw-code: write tool names, with * for anything"),
        ("^bash$", "is not read as a regular expression by claw-code: write tool names, with * for anything"),
        ("mcp__fs__*", 'is compared with bare tool names, unless [[use]] has tool_names = "mcp"'),
    ],
)
def test_a_matcher_that_may_never_match_is_reported(matcher: str, remark: str) -> None:
    (note,) = notes({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}})
    assert note == f"/s.json: hooks.PreToolUse[0].hooks[0]: the matcher {matcher!r} {remark}"


@pytest.mark.parametrize("matcher", ["bash", "Edit|Write", "mcp__*", "*", "", "read_file, notes.search"])
def test_other_matchers_are_not_reported(matcher: str) -> None:
    assert notes({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}}) == ()


# --- invalid files ---


def refusal(settings: object, dialect: Dialect = CLAW) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(settings, dialect, "/s.json")
    return problem.value.message, problem.value.hint


@BOTH
@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {}, "hooks": {}}', ": the key 'hooks' appears twice in one object", "lost"),
        ('{"hooks":{"PreToolUse":["a"],"PreToolUse":["b"]}}', ": the key 'PreToolUse' appears twice", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ("[" * 1_000_000, ": cannot be read as JSON", ""),
        ("[]", ": must contain one JSON object", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
    ],
)
def test_an_invalid_file_is_refused_with_line_or_key(
    dialect: Dialect, settings: object, message: str, hint: str
) -> None:
    error, error_hint = refusal(settings, dialect)
    assert error.startswith(f"/s.json{message}")
    assert hint in error_hint


# --- what is left out ---


def left_out(settings: dict[str, object], dialect: Dialect = CLAW) -> str:
    """The note on what is left out of a file that has a good hook beside it."""
    found = load({"hooks": {**settings, "PostToolUse": ["./good.sh"]}}, dialect, "/s.json")
    assert "./good.sh" in [hook.shell for hook in found.hooks]
    (note,) = found.notes
    return note.removeprefix("/s.json: ")


@BOTH
@pytest.mark.parametrize(
    ("events", "note", "hint"),
    [
        ({"pre_tool_use": []}, "hooks.pre_tool_use is not an event", "did you mean 'PreToolUse'?"),
        ({"preToolUse": ["a"]}, "hooks.preToolUse is not an event", "did you mean 'PreToolUse'?"),
        ({"SessionStart": ["a"]}, "hooks.SessionStart is not an event", "the events are PreToolUse, PostToolUse"),
        ({"PreToolUse": "./a"}, "hooks.PreToolUse is left out: must be a list, not a string", "write a list"),
        ({"PreToolUse": None}, "hooks.PreToolUse is left out: must be a list, not null", ""),
        ({"PreToolUse": ["a", 7]}, "hooks.PreToolUse[1] is left out: must be a string, not a number", ""),
        ({"PreToolUse": [["a"]]}, "hooks.PreToolUse[0] is left out: must be a string, not a list", ""),
        ({"PreToolUse": ["a", " "]}, "hooks.PreToolUse[1] is left out: is empty", ""),
        ({"PreToolUse": ["a\0b"]}, "hooks.PreToolUse[0] is left out: contains a NUL", ""),
    ],
)
def test_what_claw_code_cannot_read_is_left_out(
    dialect: Dialect, events: dict[str, object], note: str, hint: str
) -> None:
    assert left_out(events, dialect).startswith(note)
    assert hint in left_out(events, dialect)


def test_what_only_claw_current_has_is_left_out_with_the_name_of_that_dialect() -> None:
    note = left_out({"PostToolUseFailure": ["./a.sh"]})
    assert note.startswith("hooks.PostToolUseFailure is not an event, so its hooks never run: ")
    assert note.endswith("only the dialect claw@current has it; in claw, PostToolUse hooks also run for failed calls")
    note = left_out({"PreToolUse": [{"matcher": "bash", "hooks": []}]})
    assert note.startswith("hooks.PreToolUse[0] is left out: must be a command line, not an object")
    assert "claw@current and claude read matcher groups" in note


@BOTH
def test_comments_are_no_events(dialect: Dialect) -> None:
    found = load({"hooks": {"//": "x", "_comment": "y", "PreToolUse": ["a"]}}, dialect)
    assert (len(found.hooks), found.notes) == (1, ())


@pytest.mark.parametrize(
    ("group", "note"),
    [
        ({"command": "x"}, " is left out: hooks is missing"),
        ({"hooks": "x"}, " is left out: hooks must be a list, not a string"),
        ({"hooks": ["x"]}, ".hooks[0] is left out: must be an object, not a string"),
        ({"matcher": 1, "hooks": [{"command": "x"}]}, ".hooks[0] is left out: hooks.PreToolUse[0].matcher must be a"),
        ({"hooks": [{"type": "command"}]}, ".hooks[0] is left out: command is missing"),
        ({"hooks": [{"command": " "}]}, ".hooks[0] is left out: command is empty"),
        ({"hooks": [{"command": ["x"]}]}, ".hooks[0] is left out: command must be a string, not a list"),
        ({"hooks": [{"type": "prompt", "prompt": "?"}]}, ".hooks[0] is left out: type 'prompt' cannot run behind MCP"),
    ],
)
def test_a_malformed_group_or_hook_is_left_out(group: object, note: str) -> None:
    assert left_out({"PreToolUse": [group]}, CLAW_CURRENT).startswith(f"hooks.PreToolUse[0]{note}")


KEYS = st.sampled_from(["hooks", "PreToolUse", "PostToolUseFailure", "matcher", "type", "command"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from(["command", "x", ""])


@BOTH
@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_file_is_read_or_refused_with_a_config_error(dialect: Dialect, settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell for hook in load(settings, dialect).hooks)
    if isinstance(settings, dict):
        assert dialect.recognises(settings) in (True, False)


@given(st.text(), st.text())
def test_any_matcher_can_be_tried_on_any_name(matcher: str, name: str) -> None:
    grouped(matcher.replace("\0", "")).matches(name)


# --- recognition ---


@pytest.mark.parametrize(
    ("members", "fits"),
    [
        ({"hooks": {"PreToolUse": ["./a.sh"]}, "model": 1}, True),
        ({"hooks": {"PreToolUse": [], "PostToolUse": ["./a.sh"], "PostToolUseFailure": ["./b.sh"]}}, True),
        ({"hooks": {"PreToolUse": []}}, False),
        ({"hooks": {}}, False),
        ({}, False),
        ({"hooks": ["./a.sh"]}, False),
        ({"hooks": {"PreToolUse": "./a.sh"}}, False),
        ({"hooks": {"PreToolUse": ["./a.sh"], "SessionStart": ["./b.sh"]}}, False),
        ({"hooks": {"PreToolUse": ["./a.sh", {"hooks": []}]}}, False),
        ({"hooks": {"PreToolUse": [{"command": "./a.sh"}]}}, False),
    ],
)
def test_a_file_of_command_strings_is_recognised(members: dict[str, object], fits: bool) -> None:
    assert CLAW.recognises(members) is fits
    assert not CLAW_CURRENT.recognises(members)
