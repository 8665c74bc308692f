"""Lime's settings files: their hooks, notes and errors."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.lime import DIALECT as LIME
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec
from tests.dialects.tables import sample

AFTER = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
SAMPLE = sample("lime.json")
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


def load(settings: object, path: str = "/repo/.lime/settings.json", **options: object) -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return LIME.read_hook_file(HookFile(path, text, "/repo", options))


def test_the_example_of_the_page_is_read() -> None:
    found = load(SAMPLE)
    assert [(hook.event.value, hook.shell) for hook in found.hooks] == [
        ("PreToolUse", "./scripts/before_tool.sh"),
        ("PostToolUse", "./scripts/log_tool.sh"),
        ("PostToolUseFailure", "./scripts/alert.sh"),
        ("SessionStart", "echo session started"),
        ("SessionEnd", "./scripts/cleanup.sh"),
        ("PermissionDenied", "./scripts/audit.sh"),
    ]
    assert found.notes == ()
    assert found.remarks == (
        "/repo/.lime/settings.json: hooks.PostCompact cannot fire behind MCP: "
        "the agent compacts its conversation itself, and an MCP server does not see it",
    )


def test_a_hook_has_the_values_of_its_entry_and_defaults() -> None:
    (hook,) = load({"hooks": {"PreToolUse": ["python3 guards/paths.py --strict"]}}).hooks
    assert hook.matches("anything")
    assert {name.name: getattr(hook, name.name) for name in fields(hook) if name.name != "matches"} == {
        **OF_OTHER_TYPES,
        "dialect": "lime",
        "source": "/repo/.lime/settings.json: hooks.PreToolUse[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "paths.py",
        "matcher": "",
        "argv": (),
        "shell": "python3 guards/paths.py --strict",
        "cwd": "/repo",
        "env": (),
        "timeout": 60.0,
        "background": False,
        "fails_closed": False,
        "withholds": False,
        "on_failure": None,
        "only_if": "",
        "type": "command",
        "event_name": "PreToolUse",
        "traits": frozenset(),
        "accepts": None,
        "stage": 0,
        "sequential": False,
        "every_call": False,
        "detaches": None,
        "max_retries": 0,
    }


def test_several_commands_are_in_the_order_of_the_file() -> None:
    found = load({"hooks": {"PreToolUse": ["a", "b", "c"]}})
    assert [hook.shell for hook in found.hooks] == ["a", "b", "c"]
    assert found.hooks[2].source.endswith("hooks.PreToolUse[2]")


@pytest.mark.parametrize("event", LIME.events)
@pytest.mark.parametrize("await_post", [None, False, True])
def test_hooks_after_a_call_are_awaited_only_with_await_post(event: str, await_post: bool | None) -> None:
    options: dict[str, Any] = {} if await_post is None else {"await_post": await_post}
    (hook,) = load({"hooks": {event: ["x"]}}, **options).hooks
    assert hook.background is (event in AFTER and await_post is not True)


def test_each_event_has_its_timeout() -> None:
    found = load({"hooks": {event: ["x"] for event in LIME.events}})
    assert {hook.event.value: hook.timeout for hook in found.hooks} == {
        "PreToolUse": 60,
        "PostToolUse": 60,
        "PostToolUseFailure": 60,
        "PermissionRequest": 60,
        "PermissionDenied": 10,
        "SessionStart": 10,
        "SessionEnd": 1.5,
        "Stop": 10,
        "Notification": 10,
    }


def test_a_toml_settings_file_has_the_same_hooks() -> None:
    text = 'model = "x"\n[hooks]\nPreToolUse = ["./a.sh", \'echo "b"\']\nPreCompact = ["./c.sh"]\n'
    found = load(text, "/repo/.lime/settings.local.toml")
    assert [(hook.shell, hook.source) for hook in found.hooks] == [
        ("./a.sh", "/repo/.lime/settings.local.toml: hooks.PreToolUse[0]"),
        ('echo "b"', "/repo/.lime/settings.local.toml: hooks.PreToolUse[1]"),
    ]
    assert len(found.remarks) == 1


def test_other_settings_are_ignored() -> None:
    assert load({"model": 7, "permissions": {"deny": ["bash"]}, "hooks": {}}) == HookList(())


def test_a_file_without_hooks_is_reported() -> None:
    assert load({"model": "x"}).remarks == ("/repo/.lime/settings.json: contains no hooks",)


def test_a_byte_order_mark_is_ignored() -> None:
    assert load("\ufeff{}").hooks == ()


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        ("preToolUse", "did you mean 'PreToolUse'?"),
        ("PostToolFailure", "did you mean 'PostToolUseFailure'?"),
        ("SubagentStop", "the events are PreToolUse,"),
    ],
)
def test_an_unknown_event_is_left_out(event: str, hint: str) -> None:
    found = load({"hooks": {event: ["x"], "PreToolUse": ["y"]}})
    assert [hook.shell for hook in found.hooks] == ["y"]
    (note,) = found.notes
    assert f": hooks.{event} is not an event, so its hooks never run: {hint}" in note


@pytest.mark.parametrize("event", LIME.unavailable)
def test_an_unavailable_event_is_reported_if_it_has_hooks(event: str) -> None:
    remark = f"/repo/.lime/settings.json: hooks.{event} cannot fire behind MCP: {LIME.unavailable[event]}"
    assert load({"hooks": {event: ["x", "y"]}}) == HookList((), remarks=(remark,))
    assert load({"hooks": {event: []}}) == HookList(())


# --- invalid files ---


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {"Stop": [], "Stop": []}}', ": the key 'Stop' appears twice in one object", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ("[" * 1_000_000, ": cannot be read as JSON", ""),
        ("[]", ": must contain one JSON object", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
        ({"hooks": None}, ": hooks must be an object, not null", ""),
        ({"hooks": {"PreToolUse": "./x.sh"}}, ": hooks.PreToolUse must be a list, not a string", ""),
        ({"hooks": {"PreToolUse": None}}, ": hooks.PreToolUse must be a list, not null", ""),
        ({"hooks": {"PreToolUse": ["x", 1]}}, ": hooks.PreToolUse[1] must be a string, not a number", ""),
        ({"hooks": {"PreToolUse": ["x", ["y"]]}}, ": hooks.PreToolUse[1] must be a string, not a list", ""),
        (
            {"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": []}]}},
            ": hooks.PreToolUse[0] must be a command line, not an object",
            'write ["./hook.sh"]; a hook for some tools only can check HOOK_TOOL_NAME',
        ),
        ({"hooks": {"PreToolUse": ["x", " \n"]}}, ": hooks.PreToolUse[1] is empty", "write a command"),
        ({"hooks": {"PreToolUse": ["a\0b"]}}, ": hooks.PreToolUse[0] contains a NUL character", ""),
    ],
)
def test_an_invalid_file_is_refused_with_line_or_key(settings: object, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        load(settings, "/s.json")
    assert problem.value.message.startswith(f"/s.json{message}")
    assert hint in problem.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hooks = {", "/s.toml: not TOML: "),
        ("[hooks]\nStop = []\nStop = []\n", "/s.toml: not TOML: "),
        ("[hooks]\nPreToolUse = [1]\n", "/s.toml: hooks.PreToolUse[0] must be a string, not a number"),
        ('[[hooks.PreToolUse]]\ncommand = "x"\n', "/s.toml: hooks.PreToolUse[0] must be a command line, not an object"),
    ],
)
def test_an_invalid_toml_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        load(text, "/s.toml")
    assert problem.value.message.startswith(message)


KEYS = st.sampled_from(["hooks", "PreToolUse", "PreCompact"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from(["x", ""])


@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_file_is_read_or_refused_with_a_config_error(settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell for hook in load(settings).hooks)
    with suppress(ConfigError):
        load(settings if isinstance(settings, str) else "", "/s.toml")
    if isinstance(settings, dict):
        LIME.recognises(settings)


# --- recognition ---


@pytest.mark.parametrize(
    ("members", "fits"),
    [
        (json.loads(SAMPLE), True),
        ({"hooks": {"PreToolUse": ["./x.sh"]}, "model": "x"}, True),
        ({"hooks": {"PreCompact": ["./x.sh"], "Stop": []}}, True),
        ({"hooks": {"PreToolUse": []}}, False),
        ({"hooks": {}}, False),
        ({"hooks": []}, False),
        ({"hooks": ["x"]}, False),
        ({}, False),
        ({"hooks": {"PreToolUse": [{"matcher": "x", "hooks": []}]}}, False),
        ({"hooks": {"PreToolUse": ["x", {"command": "y"}]}}, False),
        ({"hooks": {"PreToolUse": "x"}}, False),
        ({"hooks": {"preToolUse": ["x"]}}, False),
        ({"hooks": {"pre_tool_use": ["x"]}}, False),
    ],
)
def test_a_file_of_its_shape_is_recognised(members: dict[str, object], fits: bool) -> None:
    assert LIME.recognises(members) is fits
    assert not (fits and CLAUDE.recognises(members))
