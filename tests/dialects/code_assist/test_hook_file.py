"""code-assist's settings files: their hooks, notes and errors."""

import json
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from hookproxy.dialects.code_assist import DIALECT as CODE_ASSIST
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec

PAGE = """{
  "hooks": {
    "PreToolUse": [
      {
        "command": "python scripts/validate_tool.py",
        "timeout": 5000,
        "name": "tool-validator"
      }
    ],
    "PostToolUse": [
      {
        "command": "python scripts/log_tool_use.py",
        "timeout": 3000,
        "name": "tool-logger"
      }
    ],
    "UserPromptSubmit": [
      {
        "command": "python scripts/check_prompt.py",
        "timeout": 2000,
        "name": "prompt-guard"
      }
    ]
  }
}"""
"""The example of the page's section on configuration."""


OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
    or part.name in {"server", "tool", "input", "process"}
    or part.name in {"expression", "policy", "policy_file", "policy_schema", "deny_reason", "only_narrows"}
    or part.name in {"model", "sees_values"}
}
"""The members of hooks of other types, with their defaults."""


# --- settings files ---


def load(settings: object, path: str = "/repo/.claude/settings.json", options: Mapping[str, object] = {}) -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CODE_ASSIST.read_hook_file(HookFile(path, text, "/repo", options))


def one(entry: dict[str, object], event: str = "PreToolUse", **options: object) -> HookSpec:
    (hook,) = load({"hooks": {event: [entry]}}, options=options).hooks
    return hook


def notes_on(entry: dict[str, object]) -> list[str]:
    place = "/repo/.claude/settings.json: hooks.PreToolUse[0]"
    notes = load({"hooks": {"PreToolUse": [{"command": "x", **entry}]}}).notes
    assert all(note.startswith(place) for note in notes)
    return [note.removeprefix(place).lstrip(".: ") for note in notes]


def test_the_example_of_the_page_is_read() -> None:
    found = load(PAGE)
    assert [(hook.event, hook.shell, hook.timeout, hook.label) for hook in found.hooks] == [
        (Event.PRE_TOOL_USE, "python scripts/validate_tool.py", 5.0, "tool-validator"),
        (Event.POST_TOOL_USE, "python scripts/log_tool_use.py", 3.0, "tool-logger"),
    ]
    assert found.notes == ()
    assert found.remarks == (
        "/repo/.claude/settings.json: hooks.UserPromptSubmit cannot fire behind MCP: prompts never pass through MCP",
    )


def test_a_hook_has_the_values_of_its_entry_and_defaults() -> None:
    hook = one({"command": "python guard.py --strict", "timeout": 2500, "name": "danger-guard"})
    assert hook.matches("anything")
    assert {name.name: getattr(hook, name.name) for name in fields(hook) if name.name != "matches"} == {
        **OF_OTHER_TYPES,
        "dialect": "code-assist",
        "source": "/repo/.claude/settings.json: hooks.PreToolUse[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "danger-guard",
        "matcher": "",
        "argv": (),
        "shell": "python guard.py --strict",
        "cwd": "/repo",
        "env": (),
        "timeout": 2.5,
        "background": False,
        "fails_closed": False,
        "withholds": False,
        "on_failure": None,
        "only_if": "",
        "accepts": None,
        "stage": 0,
        "sequential": False,
        "type": "command",
        "event_name": "PreToolUse",
        "traits": frozenset({"hooks.PreToolUse[0]"}),
        "every_call": False,
        "detaches": None,
        "max_retries": 1,
    }


def test_a_hook_without_a_timeout_or_a_name_has_defaults() -> None:
    hook = one({"command": "python hooks/block_dangerous.py"})
    assert (hook.timeout, hook.label) == (30.0, "block_dangerous.py")
    assert one({"command": "./a.sh", "name": " "}).label == "a.sh"


def test_the_configuration_sets_how_often_a_call_is_repeated() -> None:
    assert one({"command": "x"}, "PostToolUseFailure", max_retries=3).max_retries == 3
    assert one({"command": "x"}, max_retries=0).max_retries == 0


@pytest.mark.parametrize("event", CODE_ASSIST.events)
def test_each_available_event_is_read(event: str) -> None:
    assert one({"command": "x"}, event).event is Event(event)


def test_hooks_are_in_the_order_of_the_file() -> None:
    entries = [{"command": "a"}, {"command": "b"}, {"command": "c"}]
    assert [hook.shell for hook in load({"hooks": {"PreToolUse": entries}}).hooks] == ["a", "b", "c"]


def test_each_entry_of_a_list_is_a_hook_of_its_own_even_with_the_same_command() -> None:
    first, second = load({"hooks": {"PreToolUse": [{"command": "a"}, {"command": "a"}]}}).hooks
    assert first.identity != second.identity


def test_other_settings_are_ignored() -> None:
    found = load({"permissions": {"deny": ["x"]}, "env": 7, "hooks": {"PreToolUse": []}})
    assert found == HookList(())


def test_a_byte_order_mark_and_line_ends_of_windows_are_ignored() -> None:
    assert len(load("\ufeff" + PAGE.replace("\n", "\r\n")).hooks) == 2


# --- notes ---


def test_a_file_without_hooks_is_reported() -> None:
    assert load({"env": {}}).remarks == ("/repo/.claude/settings.json: contains no hooks",)


@pytest.mark.parametrize("event", CODE_ASSIST.unavailable)
def test_an_unavailable_event_is_reported_if_it_has_hooks(event: str) -> None:
    reason = CODE_ASSIST.unavailable[event]
    remark = f"/repo/.claude/settings.json: hooks.{event} cannot fire behind MCP: {reason}"
    assert load({"hooks": {event: [{"command": "x"}]}}) == HookList((), remarks=(remark,))
    assert load({"hooks": {event: []}}) == HookList(())


@pytest.mark.parametrize(
    ("event", "hint"), [("pre_tool_use", "did you mean 'PreToolUse'?"), ("xyz", "the events are PreToolUse,")]
)
def test_an_unknown_event_is_left_out(event: str, hint: str) -> None:
    found = load({"hooks": {event: [], "PreToolUse": [{"command": "x"}]}})
    assert len(found.hooks) == 1
    (note,) = found.notes
    assert f": hooks.{event} is not an event, so its hooks never run: {hint}" in note


@pytest.mark.parametrize("timeout", [1, 30, 99])
def test_a_timeout_that_looks_like_seconds_is_reported_and_taken_as_milliseconds(timeout: int) -> None:
    assert one({"command": "x", "timeout": timeout}).timeout == timeout / 1000
    assert notes_on({"timeout": timeout}) == [
        f"`timeout` is in milliseconds: {timeout} ms end the hook at once; {timeout} seconds are {timeout * 1000}"
    ]


def test_a_timeout_in_milliseconds_is_not_reported() -> None:
    assert notes_on({"timeout": 100}) == notes_on({"timeout": 2000.5}) == notes_on({"timeout": 3_600_000}) == []


def test_a_timeout_longer_than_agents_wait_is_reported() -> None:
    assert notes_on({"timeout": 7_200_000}) == ["a timeout of 7200 seconds is longer than agents wait for a call"]


def test_unknown_keys_are_reported() -> None:
    assert notes_on({"timout": 3000, "colour": "red"}) == [
        "timout is unknown and ignored: did you mean 'timeout'?",
        "colour is unknown and ignored",
    ]


def test_a_matcher_is_reported_because_code_assist_has_none() -> None:
    assert notes_on({"matcher": "BashTool"}) == [
        "matcher is unknown and ignored: the hook runs for all tools, and can read the tool's name from tool_name"
    ]


# --- invalid files ---


def refusal(settings: object) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(settings, "/s.json")
    return problem.value.message, problem.value.hint


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {}', ":1: not JSON: ", ""),
        ('{"hooks": {}, "hooks": {}}', ": the key 'hooks' appears twice in one object", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ('{"a":' * 1_000_000, ": cannot be read as JSON", ""),
        ("[]", ": must contain one JSON object", ""),
        ("", ":1: not JSON: ", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
        ({"hooks": None}, ": hooks must be an object, not null", ""),
        ({"hooks": {"PreToolUse": {}}}, ": hooks.PreToolUse must be a list, not an object", ""),
        ({"hooks": {"PreToolUse": ["x"]}}, ": hooks.PreToolUse[0] must be an object, not a string", ""),
    ],
)
def test_an_invalid_file_is_refused_with_line_or_key(settings: object, message: str, hint: str) -> None:
    error, error_hint = refusal(settings)
    assert error.startswith(f"/s.json{message}")
    assert hint in error_hint


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({}, "command is missing", 'write "command": "./guard.sh"'),
        ({"matcher": "", "hooks": []}, "command is missing", "write "),
        ({"command": " "}, "command is empty", "remove the entry"),
        ({"command": ["x"]}, "command must be a string, not a list", ""),
        ({"command": None}, "command must be a string, not null", ""),
        ({"command": "a\0b"}, "command contains a NUL", ""),
        ({"command": "x", "name": 5}, "name must be a string, not a number", ""),
        ({"command": "x", "name": "a\0"}, "name contains a NUL", ""),
        ({"command": "x", "timeout": "5000"}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": True}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": None}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": 0}, "timeout must be more than 0 milliseconds", ""),
        ({"command": "x", "timeout": -5000}, "timeout must be more than 0 milliseconds", ""),
        ({"command": "x", "timeout": 10**400}, "timeout must be more than 0 milliseconds and finite", ""),
    ],
)
def test_an_invalid_hook_is_refused_with_its_key(entry: dict[str, object], message: str, hint: str) -> None:
    error, error_hint = refusal({"hooks": {"PreToolUse": [{"command": "x"}, entry]}})
    assert error.startswith(f"/s.json: hooks.PreToolUse[1].{message}")
    assert hint in error_hint


def test_infinity_is_refused_as_a_timeout() -> None:
    with pytest.raises(ConfigError, match="finite"):
        load('{"hooks":{"PreToolUse":[{"command":"x","timeout":1e999}]}}')


KEYS = st.sampled_from(["hooks", "PreToolUse", "Stop", "command", "timeout", "name", "matcher"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["command", "x", ""])


@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_file_is_read_or_refused_with_a_config_error(settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell and hook.timeout > 0 for hook in load(settings).hooks)


# --- recognition ---


FLAT = {"command": "x", "timeout": 5000, "name": "n"}


@pytest.mark.parametrize(
    "hooks",
    [
        {"PreToolUse": [FLAT]},
        {"PreToolUse": [{"command": "x"}], "PostToolUse": []},
        {"UserPromptSubmit": [FLAT]},
        {"PermissionRequest": [FLAT], "Elicitation": [FLAT]},
    ],
)
def test_only_code_assist_recognises_flat_objects_under_its_events(hooks: object) -> None:
    members = {"hooks": hooks, "permissions": {}}
    assert [name for name, dialect in DIALECTS.items() if dialect.recognises(members)] == ["code-assist"]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"hooks": {}},
        {"hooks": {"PreToolUse": []}},
        {"hooks": [FLAT]},
        {"hooks": None},
        {"hooks": {"PreToolUse": FLAT}},
        {"hooks": {"PreToolUse": ["x"]}},
        {"hooks": {"PreToolUse": [FLAT, "x"]}},
        {"hooks": {"PreToolUse": [FLAT], "PostToolUse": "x"}},
        {"hooks": {"preToolUse": [FLAT]}},
        {"hooks": {"SessionEnd": [FLAT]}},
        {"hooks": {"PreToolUse": [{"type": "command", "command": "x"}]}},
        {"hooks": {"PreToolUse": [{"bash": "x"}]}},
        {"hooks": {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "x"}]}]}},
        {"version": 1, "hooks": {"PreToolUse": [FLAT]}},
    ],
    ids=json.dumps,
)
def test_a_file_of_another_shape_is_not_recognised(members: dict[str, object]) -> None:
    assert not CODE_ASSIST.recognises(members)


@given(
    st.dictionaries(
        KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
    )
)
@pytest.mark.slow
def test_any_members_can_be_tested_for_recognition(members: dict[str, object]) -> None:
    assert CODE_ASSIST.recognises(members) in (True, False)
