"""claw-code's settings files, and what its hooks are told (the table of cases/claw.toml)."""

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hookproxy.dialects.claw.hook_file import CLAW, CLAW_CURRENT
from hookproxy.dialects.dialect import Dialect, HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.identity_variables import foreign_variables
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext, HookSpec, Order, Outcome, Session
from hookproxy.model.settings import ToolNames
from tests.dialects.tables import table

CASES = table("claw")
BOTH = pytest.mark.parametrize("dialect", [CLAW, CLAW_CURRENT], ids=lambda dialect: dialect.name)

SESSION = Session(id="s1", server="shell", cwd="/repo", project_dir="/repo")
CALL = EventContext(event=Event.PRE_TOOL_USE, session=SESSION, tool="bash", tool_name="bash")


def spec(event: Event, event_name: str) -> HookSpec:
    return HookSpec("claw", "s.json", event, "guard.sh", shell="./guard.sh", event_name=event_name)


@pytest.mark.parametrize("case", CASES["occasion"], ids=lambda case: f"{case['dialect']}: {case['says']}")
def test_a_hook_is_told_what_the_table_says(case: dict[str, Any]) -> None:
    event = Event(case["event"])
    content = case.get("content")
    outcome = Outcome(
        content=(content or "[]").replace("\n", "\\n").encode(),
        has_result=content is not None,
        error=case.get("error", ""),
    )
    context = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        outcome=None if event is Event.PRE_TOOL_USE else outcome,
    )
    document = DIALECTS[case["dialect"]].write_input(spec(event, case["event_name"]), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == case["env"]


# --- the document ---


def test_the_input_is_the_same_in_all_three_ways() -> None:
    context = replace(CALL, arguments='{"command":"echo \\"ü\\" \\u0000"}'.encode())
    document = CLAW.write_input(spec(CALL.event, "PreToolUse"), context)
    told = json.loads(document.stdin)
    assert json.loads(told["tool_input_json"]) == told["tool_input"] == json.loads(document.env["HOOK_TOOL_INPUT"])


def test_output_that_is_no_utf8_can_be_told() -> None:
    context = replace(
        CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=b'[{"type":"text","text":"\xff"}]', has_result=True)
    )
    assert json.loads(CLAW.write_input(spec(context.event, "PostToolUse"), context).stdin)["tool_output"]


def test_the_document_of_a_large_result_is_whole_and_needs_few_copies() -> None:
    text = "0123456789" * 300_000
    content = b'[{"type":"text","text":"%b"}]' % text.encode()
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        document = CLAW.write_input(spec(context.event, "PostToolUse"), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert json.loads(document.stdin)["tool_output"] == text == document.env["HOOK_TOOL_OUTPUT"]
    assert peak < 8 * len(content)


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


def test_a_post_hook_sees_successes_and_failures() -> None:
    success, failure = hooks(PostToolUse=["./lint.sh"])
    assert (success.event, failure.event) == (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
    assert success.event_name == failure.event_name == "PostToolUse"
    assert success.source == failure.source


def test_in_the_variant_failures_have_their_own_event() -> None:
    found = hooks(CLAW_CURRENT, PostToolUse=["./lint.sh"], PostToolUseFailure=["./explain.sh"])
    assert [(hook.event, hook.event_name, hook.label) for hook in found] == [
        (Event.POST_TOOL_USE, "PostToolUse", "lint.sh"),
        (Event.POST_TOOL_USE_FAILURE, "PostToolUseFailure", "explain.sh"),
    ]


@BOTH
def test_hooks_stand_in_the_order_of_the_file(dialect: Dialect) -> None:
    assert [hook.shell for hook in hooks(dialect, PreToolUse=["c", "a", "b"])] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("./hooks/guard.sh", "guard.sh"),
        ('"$HOME"/guard.sh', "guard.sh"),
        ("jq -e .x", "jq"),
        ("if echo \"$HOOK_TOOL_INPUT\" | grep -q 'rm -rf'; then exit 2; fi", "hooks.PreToolUse[0]"),
        ("test -f x && exit 2", "hooks.PreToolUse[0]"),
        ("[ -f x ] && exit 2", "hooks.PreToolUse[0]"),
        ("{ ./a; }", "hooks.PreToolUse[0]"),
        ("# nothing", "hooks.PreToolUse[0]"),
    ],
)
def test_a_script_in_one_line_is_known_by_its_place(command: str, label: str) -> None:
    (hook,) = hooks(PreToolUse=[command])
    assert hook.label == label


def test_groups_and_commands_stand_side_by_side_in_the_variant() -> None:
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
def test_a_matcher_lists_names_without_regard_to_case(matcher: str, tool: str, matches: bool) -> None:
    assert grouped(matcher).matches(tool) is matches


@BOTH
def test_other_settings_are_not_ours_to_judge(dialect: Dialect) -> None:
    assert load({"model": 7, "permissions": {"deny": ["x"]}, "hooks": {}, "$schema": "…"}, dialect) == HookList(())


@BOTH
def test_a_byte_order_mark_is_no_part_of_the_file(dialect: Dialect) -> None:
    assert len(load('\ufeff{"hooks":{"PreToolUse":["./a.sh"]}}', dialect).hooks) == 1


# --- what is told ---


def notes(settings: object) -> tuple[str, ...]:
    return load(settings, CLAW_CURRENT, "/s.json").notes


@BOTH
def test_a_file_without_hooks_is_told_of(dialect: Dialect) -> None:
    assert load({"model": "x"}, dialect, "/s.json") == HookList((), ("/s.json: there are no hooks in it",))


def test_keys_that_claw_code_does_not_read_are_told_of() -> None:
    entry = {"type": "command", "command": "./a.sh", "timeout": 3}
    assert notes({"hooks": {"PreToolUse": [{"matchers": "bash", "hooks": [entry]}]}}) == (
        "/s.json: hooks.PreToolUse[0].matchers is ignored, for claw-code has no such key: did you mean 'matcher'?",
        "/s.json: hooks.PreToolUse[0].hooks[0].timeout is ignored, for claw-code has no such key",
    )


@pytest.mark.parametrize(
    ("matcher", "remark"),
    [
        (" , ", "never matches: it names no tool"),
        ("bash.*", "is no regular expression to claw-code: write names, with * for anything"),
        ("^bash$", "is no regular expression to claw-code: write names, with * for anything"),
        ("mcp__fs__*", 'is tried on the bare names of tools, unless [[use]] has tool_names = "mcp"'),
    ],
)
def test_a_matcher_that_may_never_match_is_told_of(matcher: str, remark: str) -> None:
    (note,) = notes({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}})
    assert note == f"/s.json: hooks.PreToolUse[0].matcher {matcher!r} {remark}"


@pytest.mark.parametrize("matcher", ["bash", "Edit|Write", "mcp__*", "*", "", "read_file, notes.search"])
def test_of_other_matchers_nothing_is_told(matcher: str) -> None:
    assert notes({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}}) == ()


# --- files that cannot be used ---


def refusal(settings: object, dialect: Dialect = CLAW) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(settings, dialect, "/s.json")
    return problem.value.message, problem.value.hint


@BOTH
@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {}, "hooks": {}}', ": the key 'hooks' stands twice in one object", "lost"),
        ('{"hooks":{"PreToolUse":["a"],"PreToolUse":["b"]}}', ": the key 'PreToolUse' stands twice", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ("[" * 100_000, ": cannot be read as JSON", ""),
        ("[]", ": must hold one JSON object", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
        ({"hooks": {"pre_tool_use": []}}, ": hooks.pre_tool_use is no event", "did you mean 'PreToolUse'?"),
        ({"hooks": {"preToolUse": []}}, ": hooks.preToolUse is no event", "did you mean 'PreToolUse'?"),
        ({"hooks": {"SessionStart": []}}, ": hooks.SessionStart is no event", "the events are PreToolUse, PostToolUse"),
        ({"hooks": {"PreToolUse": "./a"}}, ": hooks.PreToolUse must be a list of commands", '["./guard.sh"]'),
        ({"hooks": {"PreToolUse": None}}, ": hooks.PreToolUse must be a list of commands", ""),
        ({"hooks": {"PreToolUse": ["a", 7]}}, ": hooks.PreToolUse[1] must be a string, not a number", ""),
        ({"hooks": {"PreToolUse": [["a"]]}}, ": hooks.PreToolUse[0] must be a string, not a list", ""),
        ({"hooks": {"PreToolUse": ["a", " "]}}, ": hooks.PreToolUse[1] is empty", ""),
        ({"hooks": {"PreToolUse": ["a\0b"]}}, ": hooks.PreToolUse[0] holds a NUL", ""),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line_or_key(
    dialect: Dialect, settings: object, message: str, hint: str
) -> None:
    told, hinted = refusal(settings, dialect)
    assert told.startswith(f"/s.json{message}")
    assert hint in hinted


def test_the_variants_file_is_refused_with_the_name_of_the_variant() -> None:
    told, hint = refusal({"hooks": {"PostToolUseFailure": ["./a.sh"]}})
    assert told == "/s.json: hooks.PostToolUseFailure is no event"
    assert hint == "claw@current has it; in claw, PostToolUse hooks see failed calls as well"
    told, hint = refusal({"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": []}]}})
    assert told == "/s.json: hooks.PreToolUse[0] must be a command string, not an object"
    assert "claw@current reads matcher groups" in hint


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"command": "x"}, ".hooks is missing"),
        ({"hooks": "x"}, ".hooks must be a list, not a string"),
        ({"hooks": ["x"]}, ".hooks[0] must be an object, not a string"),
        ({"matcher": 1, "hooks": [{"command": "x"}]}, ".matcher must be a string, not a number"),
        ({"hooks": [{"type": "command"}]}, ".hooks[0].command is missing"),
        ({"hooks": [{"command": " "}]}, ".hooks[0].command is empty"),
        ({"hooks": [{"command": ["x"]}]}, ".hooks[0].command must be a string, not a list"),
        ({"hooks": [{"type": "prompt", "prompt": "?"}]}, ".hooks[0].type must be one of command, not 'prompt'"),
    ],
)
def test_a_group_that_cannot_be_used_is_refused_by_key(group: object, message: str) -> None:
    told, _ = refusal({"hooks": {"PreToolUse": [group]}}, CLAW_CURRENT)
    assert told.startswith(f"/s.json: hooks.PreToolUse[0]{message}")


KEYS = st.sampled_from(["hooks", "PreToolUse", "PostToolUseFailure", "matcher", "type", "command"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from(["command", "x", ""])


@BOTH
@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_other_file_is_read_or_refused_and_never_an_accident(dialect: Dialect, settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell for hook in load(settings, dialect).hooks)
    if isinstance(settings, dict):
        assert dialect.recognises(settings) in (True, False)


@given(st.text(), st.text())
def test_any_matcher_can_be_tried_on_any_name(matcher: str, name: str) -> None:
    grouped(matcher.replace("\0", "")).matches(name)


# --- the shape ---


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
def test_a_file_of_command_strings_fits(members: dict[str, object], fits: bool) -> None:
    assert CLAW.recognises(members) is fits
    assert not CLAW_CURRENT.recognises(members)


def test_the_dialect_is_described() -> None:
    assert (CLAW.name, CLAW.order, CLAW.default_timeout, CLAW.tool_names) == (
        "claw",
        Order.UNTIL_DENIED,
        60.0,
        ToolNames.BARE,
    )
    assert CLAW.events == {"PreToolUse": Event.PRE_TOOL_USE, "PostToolUse": Event.POST_TOOL_USE}
    assert CLAW_CURRENT.events == {**CLAW.events, "PostToolUseFailure": Event.POST_TOOL_USE_FAILURE}
    assert CLAW.described_by != CLAW_CURRENT.described_by
    assert CLAW.folders == (".claw", ".claude")


@BOTH
def test_the_dialects_variables_are_those_that_it_sets(dialect: Dialect) -> None:
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome())
    assert set(dialect.write_input(spec(context.event, "PostToolUse"), context).env) == set(dialect.variables)
    assert "CLAUDE_PROJECT_DIR" in foreign_variables(dialect.variables)
