"""Lime's settings files, and what its hooks are told (the table of cases/lime.toml)."""

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hookproxy.dialects.claude import CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.lime.hook_file import LIME
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.identity_variables import foreign_variables
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext, HookSpec, Order, Outcome, Session
from hookproxy.model.settings import ToolNames
from tests.dialects.tables import sample, table

CASES = table("lime")

SESSION = Session(id="s1", server="shell", cwd="/repo", project_dir="/repo")
CALL = EventContext(Event.PRE_TOOL_USE, SESSION, tool="bash", tool_name="bash", request_id="7")
AFTER = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
WITHOUT_A_CALL = (Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)

SAMPLE = sample("lime.json")

OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
    or part.name in {"server", "tool", "input"}
}
"""What only hooks have that are no plain commands."""


def spec(event: Event) -> HookSpec:
    return HookSpec("lime", "s.json", event, "guard.sh", shell="guard.sh")


def told(context: EventContext) -> tuple[dict[str, Any], dict[str, str]]:
    document = LIME.write_input(spec(context.event), context)
    return json.loads(document.stdin), dict(document.env)


# --- the document and the variables ---


@pytest.mark.parametrize("case", CASES["occasion"], ids=lambda case: case["says"])
def test_a_hook_is_told_what_the_table_says(case: dict[str, Any]) -> None:
    event = Event(case["event"])
    content = case.get("content", "")
    outcome = Outcome(content=content.encode() or b"[]", has_result=bool(content), error=case.get("error", ""))
    context = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        outcome=outcome if event in AFTER else None,
        trigger=case.get("trigger", ""),
        message=case.get("message", ""),
        request_id="" if event in WITHOUT_A_CALL else "7",
    )
    document = LIME.write_input(spec(event), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == case["env"]


@pytest.mark.parametrize("event", LIME.events.values())
def test_the_keys_of_the_audit_example_are_there(event: Event) -> None:
    document, env = told(replace(CALL, event=event, outcome=Outcome(error="x")))
    assert document["event"] == document["hook_event_name"] == env["HOOK_EVENT"] == event
    assert ("tool_name" in document) is ("HOOK_TOOL_NAME" in env)
    assert document.get("is_error", False) is (event is Event.POST_TOOL_USE_FAILURE)


def test_variables_and_document_say_the_same() -> None:
    context = replace(
        CALL, event=Event.POST_TOOL_USE, arguments=b'{"a":1e400}', outcome=Outcome(b'["\xc3\xa4"]', has_result=True)
    )
    document = LIME.write_input(spec(context.event), context)
    assert f'"tool_input":{document.env["HOOK_TOOL_INPUT"]},'.encode() in document.stdin
    assert f'"tool_output":{document.env["HOOK_TOOL_OUTPUT"]},'.encode() in document.stdin


def test_text_that_is_no_utf8_can_be_told() -> None:
    session = replace(SESSION, cwd="/r\udcffepo", id="\udcff")
    outcome = Outcome(error="half a pair: \ud83d")
    context = replace(
        CALL, event=Event.POST_TOOL_USE_FAILURE, session=session, tool_name="b\ud83d", request_id="\ud83d"
    )
    document, env = told(replace(context, outcome=outcome))
    assert [document[key] for key in ("session_id", "request_id", "cwd", "tool_name")] == ["?", "?", "/r?epo", "b?"]
    assert document["tool_output"] == "half a pair: ?"
    assert env["HOOK_TOOL_OUTPUT"] == '"half a pair: ?"'
    notification = replace(CALL, event=Event.NOTIFICATION, message="\ud83d", trigger="\udcff")
    assert told(notification)[0]["message"] == "?"


def test_a_hook_after_a_call_of_which_nothing_is_known_can_be_told() -> None:
    document, env = told(replace(CALL, event=Event.POST_TOOL_USE))
    assert (document["tool_output"], env["HOOK_TOOL_OUTPUT"]) == ([], "[]")


def test_the_document_of_a_large_result_is_written_without_building_its_objects() -> None:
    content = b"[" + b",".join([b'{"type":"text","text":"0123456789"}'] * 280_000) + b"]"
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        LIME.write_input(spec(context.event), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(content)  # the variable, the growing buffer and the finished document


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
    assert found.notes == (
        "/repo/.lime/settings.json: hooks.PostCompact cannot fire behind MCP: "
        "an agent compacts its conversation by itself, and an MCP server is not told",
    )


def test_a_hook_is_read_with_everything_that_is_known_of_it() -> None:
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
        "event_name": "",
        "traits": frozenset(),
        "every_call": False,
        "max_retries": 0,
    }


def test_several_commands_stand_in_the_order_of_the_file() -> None:
    found = load({"hooks": {"PreToolUse": ["a", "b", "c"]}})
    assert [hook.shell for hook in found.hooks] == ["a", "b", "c"]
    assert found.hooks[2].source.endswith("hooks.PreToolUse[2]")


@pytest.mark.parametrize("event", LIME.events)
@pytest.mark.parametrize("await_post", [None, False, True])
def test_hooks_after_a_call_are_awaited_only_where_that_is_asked_for(event: str, await_post: bool | None) -> None:
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
    assert len(found.notes) == 1


def test_other_settings_are_not_ours_to_judge() -> None:
    assert load({"model": 7, "permissions": {"deny": ["bash"]}, "hooks": {}}) == HookList(())


def test_a_file_without_hooks_is_told_of() -> None:
    assert load({"model": "x"}).notes == ("/repo/.lime/settings.json: there are no hooks in it",)


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    assert load("\ufeff{}").hooks == ()


@pytest.mark.parametrize("event", LIME.unavailable)
def test_an_event_that_cannot_occur_is_told_of_where_it_has_hooks(event: str) -> None:
    note = f"/repo/.lime/settings.json: hooks.{event} cannot fire behind MCP: {LIME.unavailable[event]}"
    assert load({"hooks": {event: ["x", "y"]}}) == HookList((), (note,))
    assert load({"hooks": {event: []}}) == HookList(())


# --- files that cannot be used ---


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {"Stop": [], "Stop": []}}', ": the key 'Stop' stands twice in one object", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ("[" * 100_000, ": cannot be read as JSON", ""),
        ("[]", ": must hold one JSON object", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
        ({"hooks": None}, ": hooks must be an object, not null", ""),
        ({"hooks": {"preToolUse": ["x"]}}, ": hooks.preToolUse is no event", "did you mean 'PreToolUse'?"),
        ({"hooks": {"PostToolFailure": []}}, ": hooks.PostToolFailure is no event", "'PostToolUseFailure'"),
        ({"hooks": {"SubagentStop": ["x"]}}, ": hooks.SubagentStop is no event", ""),
        ({"hooks": {"PreToolUse": "./x.sh"}}, ": hooks.PreToolUse must be a list, not a string", ""),
        ({"hooks": {"PreToolUse": None}}, ": hooks.PreToolUse must be a list, not null", ""),
        ({"hooks": {"PreCompact": "x"}}, ": hooks.PreCompact must be a list, not a string", ""),
        ({"hooks": {"PreToolUse": ["x", 1]}}, ": hooks.PreToolUse[1] must be a string, not a number", ""),
        ({"hooks": {"PreToolUse": ["x", ["y"]]}}, ": hooks.PreToolUse[1] must be a string, not a list", ""),
        (
            {"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": []}]}},
            ": hooks.PreToolUse must be a list of commands, not of objects",
            'write "PreToolUse": ["./hook.sh"]; a hook that is for some tools looks at HOOK_TOOL_NAME',
        ),
        ({"hooks": {"PreToolUse": ["x", " \n"]}}, ": hooks.PreToolUse[1] is empty", "name a command"),
        ({"hooks": {"PostCompact": [""]}}, ": hooks.PostCompact[0] is empty", ""),
        ({"hooks": {"PreToolUse": ["a\0b"]}}, ": hooks.PreToolUse[0] holds a NUL character", ""),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line_or_key(settings: object, message: str, hint: str) -> None:
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
        ('[[hooks.PreToolUse]]\ncommand = "x"\n', "/s.toml: hooks.PreToolUse must be a list of commands"),
    ],
)
def test_a_toml_file_that_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        load(text, "/s.toml")
    assert problem.value.message.startswith(message)


KEYS = st.sampled_from(["hooks", "PreToolUse", "PreCompact"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from(["x", ""])


@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_other_file_is_read_or_refused_and_never_an_accident(settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell for hook in load(settings).hooks)
    with suppress(ConfigError):
        load(settings if isinstance(settings, str) else "", "/s.toml")
    if isinstance(settings, dict):
        LIME.recognises(settings)


# --- the shape of its files ---


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
def test_a_file_of_its_shape_is_known(members: dict[str, object], fits: bool) -> None:
    assert LIME.recognises(members) is fits
    assert not (fits and CLAUDE.recognises(members))


# --- the dialect as data ---


def test_the_dialect_is_described() -> None:
    assert DIALECTS["lime"] is LIME
    assert (LIME.order, LIME.default_timeout, LIME.tool_names, LIME.options) == (
        Order.SERIAL,
        60.0,
        ToolNames.BARE,
        ("await_post",),
    )
    assert all(name == event for name, event in LIME.events.items())


def test_every_event_of_the_page_is_either_run_or_told_of() -> None:
    assert set(LIME.events) | set(LIME.unavailable) == set(json.loads(SAMPLE)["hooks"])
    assert not set(LIME.events) & set(LIME.unavailable)


def test_its_variables_are_its_own_and_others_do_not_inherit_them() -> None:
    _, env = told(replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome()))
    assert set(env) == set(LIME.variables)
    assert set(LIME.variables) <= foreign_variables(LIME.variables), "inherited, they tell of another occasion"
    assert set(LIME.variables) <= foreign_variables(CLAUDE.variables)
    assert "CLAUDE_PROJECT_DIR" in foreign_variables(LIME.variables)
