"""code-assist's settings files, and what its hooks are told (the table of cases/code_assist.toml)."""

import json
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hookproxy.dialects.code_assist.hook_file import CODE_ASSIST
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext, HookSpec, Order, Outcome, Session
from hookproxy.model.settings import ToolNames
from tests.dialects.tables import table

CASES = table("code_assist")

SESSION = Session(id="sess_xyz789", server="shell", cwd="/home/user/project", project_dir="/home/user/project")
CALL = EventContext(
    event=Event.PRE_TOOL_USE, session=SESSION, tool="BashTool", tool_name="BashTool", tool_use_id="tu_abc123"
)
SPEC = HookSpec("code-assist", "s.json", Event.PRE_TOOL_USE, "guard", shell="guard.sh", timeout=3)

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
    or part.name in {"server", "tool", "input"}
}
"""What only hooks have that are no plain commands."""


def told(context: EventContext) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CODE_ASSIST.write_input(SPEC, context).stdin)
    return document


# --- the document ---


def outcome(case: dict[str, Any]) -> Outcome | None:
    if not case["event"].startswith("PostToolUse"):
        return None
    return Outcome(case.get("content", "[]").encode(), has_result="content" in case, error=case.get("error", ""))


@pytest.mark.parametrize("case", CASES["occasion"], ids=lambda case: case["says"])
def test_a_hook_is_told_what_the_table_says(case: dict[str, Any]) -> None:
    context = replace(
        CALL,
        event=Event(case["event"]),
        arguments=case.get("arguments", "{}").encode(),
        outcome=outcome(case),
        trigger=case.get("trigger", ""),
        message=case.get("message", ""),
    )
    document = CODE_ASSIST.write_input(SPEC, context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == {}


def test_every_event_that_can_occur_has_its_row() -> None:
    assert {case["event"] for case in CASES["occasion"]} == set(CODE_ASSIST.events)


@pytest.mark.parametrize("event", CODE_ASSIST.events.values())
def test_all_nine_members_are_always_there_and_in_the_documents_order(event: Event) -> None:
    assert list(told(replace(CALL, event=event))) == [
        "hook_event", "tool_name", "tool_input", "tool_use_id", "tool_output", "user_prompt", "session_id",
        "agent_id", "cwd",
    ]  # fmt: skip


def test_what_the_operating_system_or_the_server_names_in_no_utf8_can_be_told() -> None:
    session = replace(SESSION, cwd="/r\udcffepo/é")
    failed = Outcome(error="\ud800 é")
    document = told(replace(CALL, event=Event.POST_TOOL_USE, session=session, tool_name="t\udcff", outcome=failed))
    assert (document["cwd"], document["tool_name"], document["tool_output"]) == ("/r?epo/é", "t?", "? é")


def test_output_that_is_no_text_is_told_as_json() -> None:
    content = b'[{"type":"text","text":"seen:"},{"type":"image","data":"aGk=","mimeType":"image/png"}]'
    result = Outcome(content=content, has_result=True, structured=b'{"n":1}')
    output = told(replace(CALL, event=Event.POST_TOOL_USE, outcome=result))["tool_output"]
    assert output == 'seen:\n{"type":"image","data":"aGk=","mimeType":"image/png"}\n{"n":1}'


def test_the_document_of_a_large_result_is_copied_a_few_times_at_most() -> None:
    content = b'[{"type":"text","text":"' + b"0123456789" * 1_000_000 + b'"}]'
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        CODE_ASSIST.write_input(SPEC, context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(content)


# --- settings files ---


def load(settings: object, path: str = "/repo/.claude/settings.json", options: Mapping[str, object] = {}) -> HookList:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return CODE_ASSIST.read_hook_file(HookFile(path, text, "/repo", options))


def one(entry: dict[str, object], event: str = "PreToolUse", **options: object) -> HookSpec:
    (hook,) = load({"hooks": {event: [entry]}}, options=options).hooks
    return hook


def notes_on(entry: dict[str, object]) -> list[str]:
    place = "/repo/.claude/settings.json: hooks.PreToolUse[0]: "
    notes = load({"hooks": {"PreToolUse": [{"command": "x", **entry}]}}).notes
    assert all(note.startswith(place) for note in notes)
    return [note.removeprefix(place) for note in notes]


def test_the_pages_own_example_is_read_with_everything_it_says() -> None:
    found = load(PAGE)
    assert [(hook.event, hook.shell, hook.timeout, hook.label) for hook in found.hooks] == [
        (Event.PRE_TOOL_USE, "python scripts/validate_tool.py", 5.0, "tool-validator"),
        (Event.POST_TOOL_USE, "python scripts/log_tool_use.py", 3.0, "tool-logger"),
    ]
    assert found.notes == (
        "/repo/.claude/settings.json: hooks.UserPromptSubmit cannot fire behind MCP: prompts never pass through MCP",
    )


def test_a_hook_is_read_into_these_values() -> None:
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
        "type": "command",
        "event_name": "",
        "traits": frozenset({"hooks.PreToolUse[0]"}),
        "every_call": False,
        "max_retries": 1,
    }


def test_a_hook_without_a_timeout_or_a_name_has_defaults() -> None:
    hook = one({"command": "python hooks/block_dangerous.py"})
    assert (hook.timeout, hook.label) == (30.0, "block_dangerous.py")
    assert one({"command": "./a.sh", "name": " "}).label == "a.sh"


def test_how_often_a_call_is_repeated_stands_in_the_configuration() -> None:
    assert one({"command": "x"}, "PostToolUseFailure", max_retries=3).max_retries == 3
    assert one({"command": "x"}, max_retries=0).max_retries == 0


@pytest.mark.parametrize("event", CODE_ASSIST.events)
def test_each_event_that_can_occur_is_read(event: str) -> None:
    assert one({"command": "x"}, event).event is Event(event)


def test_hooks_stand_in_the_order_of_the_file() -> None:
    entries = [{"command": "a"}, {"command": "b"}, {"command": "c"}]
    assert [hook.shell for hook in load({"hooks": {"PreToolUse": entries}}).hooks] == ["a", "b", "c"]


def test_each_entry_of_a_list_is_a_hook_of_its_own_even_with_the_same_command() -> None:
    first, second = load({"hooks": {"PreToolUse": [{"command": "a"}, {"command": "a"}]}}).hooks
    assert first.identity != second.identity


def test_other_settings_are_not_ours_to_judge() -> None:
    found = load({"permissions": {"deny": ["x"]}, "env": 7, "hooks": {"PreToolUse": []}})
    assert found == HookList(())


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_part_of_the_file() -> None:
    assert len(load("\ufeff" + PAGE.replace("\n", "\r\n")).hooks) == 2


# --- what is told at start-up ---


def test_a_file_without_hooks_is_told_of() -> None:
    assert load({"env": {}}).notes == ("/repo/.claude/settings.json: there are no hooks in it",)


def test_every_event_of_the_document_is_either_run_or_told_of() -> None:
    documented = {  # the table of hook events
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "Stop",
        "Notification", "SubagentStart", "PermissionDenied", "PermissionRequest", "Elicitation",
        "ElicitationResult", "FileChanged", "CwdChanged", "PreCompact", "PostCompact",
    }  # fmt: skip
    assert set(CODE_ASSIST.events) | set(CODE_ASSIST.unavailable) == documented
    assert CODE_ASSIST.events.keys().isdisjoint(CODE_ASSIST.unavailable)


@pytest.mark.parametrize("event", CODE_ASSIST.unavailable)
def test_an_event_that_cannot_occur_is_told_of_if_it_has_hooks(event: str) -> None:
    reason = CODE_ASSIST.unavailable[event]
    note = f"/repo/.claude/settings.json: hooks.{event} cannot fire behind MCP: {reason}"
    assert load({"hooks": {event: [{"command": "x"}]}}) == HookList((), (note,))
    assert load({"hooks": {event: []}}) == HookList(())


@pytest.mark.parametrize("timeout", [1, 30, 99])
def test_a_timeout_that_looks_like_seconds_is_told_of_and_taken_as_it_stands(timeout: int) -> None:
    assert one({"command": "x", "timeout": timeout}).timeout == timeout / 1000
    assert notes_on({"timeout": timeout}) == [
        f"`timeout` counts milliseconds: {timeout} end the hook at once; {timeout} seconds are {timeout * 1000}"
    ]


def test_a_timeout_in_milliseconds_is_not_told_of() -> None:
    assert notes_on({"timeout": 100}) == notes_on({"timeout": 2000.5}) == notes_on({"timeout": 3_600_000}) == []


def test_a_timeout_that_no_agent_waits_for_is_told_of() -> None:
    assert notes_on({"timeout": 7_200_000}) == ["a timeout of 7200 seconds is longer than agents wait for a call"]


def test_keys_that_nobody_knows_are_told_of() -> None:
    assert notes_on({"timout": 3000, "colour": "red"}) == [
        "timout is not known and ignored: did you mean 'timeout'?",
        "colour is not known and ignored",
    ]


def test_a_matcher_which_this_system_does_not_have_is_told_of() -> None:
    assert notes_on({"matcher": "BashTool"}) == [
        "matcher is not known and ignored: the hook runs for all tools, and finds the tool's name in tool_name"
    ]


# --- files that cannot be used ---


def refusal(settings: object) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(settings, "/s.json")
    return problem.value.message, problem.value.hint


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{\n  "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"hooks": {}', ":1: not JSON: ", ""),
        ('{"hooks": {}, "hooks": {}}', ": the key 'hooks' stands twice in one object", "lost"),
        ('{"a": NaN}', ": NaN is not JSON", ""),
        ('{"a":' * 10_000, ": cannot be read as JSON", ""),
        ("[]", ": must hold one JSON object", ""),
        ("", ":1: not JSON: ", ""),
        ({"hooks": []}, ": hooks must be an object, not a list", ""),
        ({"hooks": None}, ": hooks must be an object, not null", ""),
        ({"hooks": {"pre_tool_use": []}}, ": hooks.pre_tool_use is no event", "did you mean 'PreToolUse'?"),
        ({"hooks": {"SessionEnd": []}}, ": hooks.SessionEnd is no event", ""),
        ({"hooks": {"xyz": []}}, ": hooks.xyz is no event", ""),
        ({"hooks": {"PreToolUse": {}}}, ": hooks.PreToolUse must be a list, not an object", ""),
        ({"hooks": {"Stop": "x"}}, ": hooks.Stop must be a list, not a string", ""),
        ({"hooks": {"Stop": ["x"]}}, ": hooks.Stop[0] must be an object, not a string", ""),
        ({"hooks": {"PreToolUse": ["x"]}}, ": hooks.PreToolUse[0] must be an object, not a string", ""),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line_or_key(settings: object, message: str, hint: str) -> None:
    said, hinted = refusal(settings)
    assert said.startswith(f"/s.json{message}")
    assert hint in hinted


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({}, "command is missing", 'an entry is {"command": "…", "timeout": 5000, "name": "…"}'),
        ({"matcher": "", "hooks": []}, "command is missing", "an entry is"),
        ({"command": " "}, "command is empty", "leave the entry out"),
        ({"command": ["x"]}, "command must be a string, not a list", ""),
        ({"command": None}, "command must be a string, not null", ""),
        ({"command": "a\0b"}, "command holds a NUL", ""),
        ({"command": "x", "name": 5}, "name must be a string, not a number", ""),
        ({"command": "x", "name": "a\0"}, "name holds a NUL", ""),
        ({"command": "x", "timeout": "5000"}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": True}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": None}, "timeout must be a number of milliseconds", 'write "timeout": 5000'),
        ({"command": "x", "timeout": 0}, "timeout must be more than 0 milliseconds", ""),
        ({"command": "x", "timeout": -5000}, "timeout must be more than 0 milliseconds", ""),
        ({"command": "x", "timeout": 10**400}, "timeout must be more than 0 milliseconds, and an end must come", ""),
    ],
)
def test_a_hook_that_cannot_be_used_is_refused_by_key(entry: dict[str, object], message: str, hint: str) -> None:
    said, hinted = refusal({"hooks": {"PreToolUse": [{"command": "x"}, entry]}})
    assert said.startswith(f"/s.json: hooks.PreToolUse[1].{message}")
    assert hint in hinted


def test_infinity_is_no_timeout() -> None:
    with pytest.raises(ConfigError, match="an end must come"):
        load('{"hooks":{"PreToolUse":[{"command":"x","timeout":1e999}]}}')


KEYS = st.sampled_from(["hooks", "PreToolUse", "Stop", "command", "timeout", "name", "matcher"]) | st.text()
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["command", "x", ""])


@given(st.text() | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_any_other_file_is_read_or_refused_and_never_an_accident(settings: object) -> None:
    with suppress(ConfigError):
        assert all(hook.shell and hook.timeout > 0 for hook in load(settings).hooks)


# --- whose file it is ---

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
def test_flat_objects_under_its_events_are_its_own_and_nobody_elses(hooks: object) -> None:
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
def test_a_file_of_another_shape_is_not_taken_for_its_own(members: dict[str, object]) -> None:
    assert not CODE_ASSIST.recognises(members)


@given(
    st.dictionaries(
        KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
    )
)
def test_fitting_is_total(members: dict[str, object]) -> None:
    assert CODE_ASSIST.recognises(members) in (True, False)


# --- the dialect as data ---


def test_the_dialect_is_described() -> None:
    assert (CODE_ASSIST.name, CODE_ASSIST.order, CODE_ASSIST.default_timeout, CODE_ASSIST.tool_names) == (
        "code-assist",
        Order.SERIAL,
        30.0,
        ToolNames.BARE,
    )
    assert (CODE_ASSIST.options, CODE_ASSIST.folders, CODE_ASSIST.suffixes) == (
        ("max_retries",),
        (".claude",),
        (".json",),
    )
    assert DIALECTS["code-assist"] is CODE_ASSIST


def test_it_sets_no_variables() -> None:
    assert CODE_ASSIST.variables == ()
