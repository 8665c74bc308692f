"""Copilot CLI's hook files that cannot work behind MCP, which get notes, or cannot be used, which are errors."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.copilot import CURRENT as COPILOT_CURRENT
from hookproxy.dialects.copilot import DIALECT as COPILOT
from hookproxy.dialects.dialect import Dialect, HookFile, HookList
from hookproxy.model.errors import ConfigError

BOTH = pytest.mark.parametrize("dialect", [COPILOT, COPILOT_CURRENT], ids=lambda dialect: dialect.name)


def load(document: object, dialect: Dialect = COPILOT) -> HookList:
    text = document if isinstance(document, str) else json.dumps(document)
    return dialect.read_hook_file(HookFile("/h.json", text, "/repo"))


def entries(*given: object, event: str = "preToolUse") -> dict[str, object]:
    return {"version": 1, "hooks": {event: list(given)}}


# --- what cannot work behind MCP ---


@BOTH
def test_disabled_hooks_do_not_run_and_get_a_remark(dialect: Dialect) -> None:
    document = {**entries({"type": "command", "bash": "x"}), "disableAllHooks": True}
    assert load(document, dialect) == HookList(
        (), remarks=("/h.json: disableAllHooks is true, so none of its hooks run",)
    )
    assert len(load({**document, "disableAllHooks": False}, dialect).hooks) == 1


def test_a_file_without_hooks_gets_a_remark() -> None:
    assert load({"version": 1}) == HookList((), remarks=("/h.json: contains no hooks",))


@pytest.mark.parametrize(
    ("dialect", "event"),
    [(dialect, event) for dialect in (COPILOT, COPILOT_CURRENT) for event in dialect.unavailable],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_an_event_that_cannot_occur_gets_a_remark(dialect: Dialect, event: str) -> None:
    remark = f"/h.json: hooks.{event} cannot fire behind MCP: {dialect.unavailable[event]}"
    assert load(entries({"type": "command", "bash": "x"}, event=event), dialect) == HookList((), remarks=(remark,))
    assert load(entries(event=event), dialect) == HookList(())


@BOTH
@pytest.mark.parametrize("event", ["sessionStart", "SessionStart"])
def test_prompt_hooks_do_not_run(dialect: Dialect, event: str) -> None:
    found = load(entries({"type": "prompt", "prompt": "/plan"}, event=event), dialect)
    assert found.hooks == ()
    (note,) = found.notes
    assert note.startswith(f"/h.json: hooks.{event}[0] does not run: type 'prompt' is not supported")


def test_the_note_on_another_prompt_hook_names_session_start() -> None:
    (note,) = load(entries({"type": "prompt", "prompt": "/plan"})).notes
    assert note.endswith("it is only for sessionStart")


@pytest.mark.parametrize(
    ("dialect", "entry", "runs", "note"),
    [
        (COPILOT, {"powershell": "g.ps1"}, 0, "hooks.preToolUse[0] does not run: it is for PowerShell only"),
        (COPILOT_CURRENT, {"powershell": "g.ps1"}, 0, "it is for PowerShell only"),
        (COPILOT, {"bash": "x", "timeoutSec": 7200}, 1, "a timeout of 7200 seconds is longer than agents wait"),
        (
            COPILOT,
            {"bash": "x", "timeoutSecs": 3},
            1,
            "timeoutSecs is unknown and ignored: did you mean 'timeoutSec'?",
        ),
        (COPILOT, {"bash": "x", "timeout": 3}, 1, "timeout is ignored: only the dialect copilot@current has it"),
        (COPILOT, {"bash": "x", "command": "y"}, 1, "command is ignored: only the dialect copilot@current has it"),
        (COPILOT, {"bash": "x", "env": {"A": "$B ${C} $B"}}, 1, "env: $B is not set, so its value is empty"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_a_key_that_works_differently_here_gets_a_note(
    dialect: Dialect, entry: dict[str, object], runs: int, note: str
) -> None:
    found = load(entries({"type": "command", **entry}), dialect)
    assert len(found.hooks) == runs
    assert note in found.notes[0]
    assert found.notes[0].startswith("/h.json: hooks.preToolUse[0]")


def test_each_variable_without_a_value_gets_one_note() -> None:
    found = load(entries({"type": "command", "bash": "x", "env": {"A": "$C ${B} $B"}}))
    assert [note.partition("$")[2][0] for note in found.notes] == ["B", "C"]
    assert found.hooks[0].env[1] == ("A", "  ")


@BOTH
@pytest.mark.parametrize("event", ["sessionStart", "sessionEnd", "errorOccurred"])
def test_a_matcher_of_an_event_without_matchers_is_ignored_with_a_note(dialect: Dialect, event: str) -> None:
    found = load(entries({"type": "command", "bash": "x", "matcher": "resume"}, event=event), dialect)
    assert found.hooks[0].matches("startup")
    assert found.notes == (f"/h.json: hooks.{event}[0]: the matcher is ignored: {event} has none",)


def test_a_notification_matcher_for_other_types_gets_a_note() -> None:
    found = load(entries({"type": "command", "bash": "x", "matcher": "agent_.*"}, event="notification"))
    assert "'agent_.*' never matches: behind MCP, the only types are permission_prompt and" in found.notes[0]


def test_misspelt_keys_of_the_file_get_a_note() -> None:
    found = load({"version": 1, "hooks": {}, "disableAllHook": True, "$schema": "…"})
    assert found.notes == ("/h.json: disableAllHook is unknown and ignored: did you mean 'disableAllHooks'?",)


def test_unknown_keys_get_no_note() -> None:
    assert load(entries({"type": "command", "bash": "x", "comment": 1})).notes == ()


# --- files that cannot be used ---


def refusal(document: object, dialect: Dialect = COPILOT) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(document, dialect)
    return problem.value.message, problem.value.hint


@BOTH
@pytest.mark.parametrize(
    ("document", "message", "hint"),
    [
        ('{\n  "version": 1, "hooks": {,}\n}', ":2: not JSON: Expecting property name", ""),
        ('{"version": 1, "version": 1}', ": the key 'version' appears twice in one object", "lost"),
        ('{"version": 1, "hooks": {"preToolUse": [{"bash": "a", "bash": "b"}]}}', ": the key 'bash' appears twice", ""),
        ('{"version": NaN}', ": NaN is not JSON", ""),
        ("[" * 1_000_000, ": cannot be read as JSON", ""),
        ("[]", ": must contain one JSON object", ""),
        ({"hooks": {}}, ": version is missing", 'write "version": 1'),
        ({"version": 2, "hooks": {}}, ": version must be 1, not 2", "version 1"),
        ({"version": True, "hooks": {}}, ": version must be 1, not True", ""),
        ({"version": "1", "hooks": {}}, ": version must be 1, not '1'", ""),
        ({"version": None}, ": version must be 1, not None", ""),
        ({"version": 1, "disableAllHooks": "yes"}, ": disableAllHooks must be true or false, not a string", ""),
        ({"version": 1, "hooks": []}, ": hooks must be an object, not a list", ""),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line_or_key(
    dialect: Dialect, document: object, message: str, hint: str
) -> None:
    actual_message, actual_hint = refusal(document, dialect)
    assert actual_message.startswith(f"/h.json{message}")
    assert hint in actual_hint


# --- what Copilot leaves out, and goes on ---


def left_out(events: dict[str, object], dialect: Dialect = COPILOT) -> str:
    """The note on what is left out of a file that has a good hook beside it."""
    good = {"sessionStart": [{"type": "command", "bash": "x"}]}
    found = load({"version": 1, "hooks": {**events, **good}}, dialect)
    assert "sessionStart" in [hook.event_name for hook in found.hooks]
    (note,) = found.notes
    return note.removeprefix("/h.json: ")


@BOTH
@pytest.mark.parametrize(
    ("events", "note"),
    [
        ({"PreTooluse": []}, "hooks.PreTooluse is not an event, so its hooks never run: did you mean 'PreToolUse'?"),
        ({"preTollUse": []}, "hooks.preTollUse is not an event, so its hooks never run: did you mean 'PreToolUse'?"),
        ({"whenever": [{}]}, "hooks.whenever is not an event, so its hooks never run: the events are preToolUse,"),
        ({"preToolUse": {}}, "hooks.preToolUse is left out: must be a list, not an object"),
        ({"preToolUse": ["x"]}, "hooks.preToolUse[0] is left out: must be an object, not a string"),
    ],
)
def test_an_unknown_event_and_a_malformed_item_are_left_out(
    dialect: Dialect, events: dict[str, object], note: str
) -> None:
    assert left_out(events, dialect).startswith(note)


@BOTH
@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({"bash": ...}, " needs bash or powershell", 'write "bash"'),
        ({"type": "comand"}, ".type must be one of command, prompt", "did you mean 'command'?"),
        ({"type": "prompt"}, ".prompt is missing", ""),
        ({"type": "prompt", "prompt": 1}, ".prompt must be a string, not a number", ""),
        ({"type": None}, ".type must be a string, not null", ""),
        ({"bash": " \n"}, ".bash is empty", ""),
        ({"bash": ["x"]}, ".bash must be a string, not a list", ""),
        ({"bash": "a\0b"}, ".bash contains a NUL", ""),
        ({"powershell": ""}, ".powershell is empty", ""),
        ({"powershell": 1}, ".powershell must be a string, not a number", ""),
        ({"cwd": 1}, ".cwd must be a string, not a number", ""),
        ({"cwd": "a\0"}, ".cwd contains a NUL", ""),
        ({"env": ["A=1"]}, ".env must be an object, not a list", ""),
        ({"env": {"A": 1}}, ".env.A must be a string, not a number", ""),
        ({"env": {"A=B": "1"}}, ".env.'A=B' cannot be the name of a variable", ""),
        ({"env": {"": "1"}}, ".env.'' cannot be the name of a variable", ""),
        ({"env": {"A\0": "1"}}, ".env.'A\\x00' cannot be the name of a variable", ""),
        ({"env": {"A": "\0"}}, ".env.A contains a NUL", ""),
        ({"timeoutSec": "30"}, ".timeoutSec must be a number of seconds, not a string", ""),
        ({"timeoutSec": True}, ".timeoutSec must be a number of seconds, not true or false", ""),
        ({"timeoutSec": None}, ".timeoutSec must be a number of seconds, not null", ""),
        ({"timeoutSec": 0}, ".timeoutSec must be more than 0 seconds, not 0", ""),
        ({"timeoutSec": -1}, ".timeoutSec must be more than 0 seconds, not -1", ""),
        ({"matcher": 1}, ".matcher must be a string, not a number", ""),
        ({"matcher": "bash("}, ".matcher 'bash(' cannot be used: missing ), unterminated", ""),
        ({"matcher": "a)|(b"}, ".matcher 'a)|(b' cannot be used: unbalanced parenthesis", ""),
        ({"matcher": "*"}, ".matcher '*' cannot be used: it is not a regular expression: to match all", ""),
    ],
)
def test_a_hook_that_cannot_be_used_is_left_out(
    dialect: Dialect, entry: dict[str, object], message: str, hint: str
) -> None:
    whole = {"type": "command", "bash": "x", **entry}
    bad = {key: value for key, value in whole.items() if value is not ...}
    note = left_out({"preToolUse": [{"type": "command", "bash": "x"}, bad]}, dialect)
    assert note.startswith(f"hooks.preToolUse[1] is left out: {message.lstrip('. ')}")
    assert hint in note


@pytest.mark.parametrize(
    ("dialect", "entry", "message", "hint"),
    [
        (COPILOT, {"bash": "x"}, ".type is missing", 'write "type": "command"'),
        (COPILOT, {"type": "http", "url": "https://x"}, ".type must be one of command, prompt, not 'http'", ""),
        (COPILOT, {"type": "command", "command": "x"}, " needs bash or powershell", '"copilot@current"'),
        (COPILOT, {"type": "command", "exec": "x"}, " needs bash or powershell", '"copilot@current"'),
        (COPILOT_CURRENT, {"exec": "x", "bash": "y"}, ".exec cannot be combined with bash", "either exec and args or"),
        (COPILOT_CURRENT, {"exec": "x", "command": "y"}, ".exec cannot be combined with command", ""),
        (COPILOT_CURRENT, {"exec": " "}, ".exec is empty", ""),
        (COPILOT_CURRENT, {"exec": "x", "args": "y"}, ".args must be a list, not a string", ""),
        (COPILOT_CURRENT, {"exec": "x", "args": ["y", 2]}, ".args[1] must be a string, not a number", ""),
        (COPILOT_CURRENT, {"bash": "x", "args": ["y"]}, ".args needs exec, which is missing", ""),
        (COPILOT_CURRENT, {"command": ""}, ".command is empty", ""),
        (COPILOT_CURRENT, {"type": "http"}, ".url is missing", ""),
        (COPILOT_CURRENT, {"type": "http", "url": "http://x"}, ".url must begin with https://", "grant"),
        (COPILOT_CURRENT, {"type": "http", "url": "http://localhost/"}, ".url must begin with https://", "grant"),
    ],
)
def test_what_only_one_edition_leaves_out(dialect: Dialect, entry: object, message: str, hint: str) -> None:
    note = left_out({"preToolUse": [entry]}, dialect)
    assert note.startswith(f"hooks.preToolUse[0] is left out: {message.lstrip('. ')}")
    assert hint in note


@BOTH
def test_a_timeout_in_milliseconds_is_used_as_written_with_a_note(dialect: Dialect) -> None:
    found = load(entries({"type": "command", "bash": "x", "timeoutSec": 30000}), dialect)
    assert [hook.timeout for hook in found.hooks] == [30000.0]
    assert found.notes[0].endswith("read as seconds, as written: if they are meant as milliseconds, write 30")


def test_infinity_is_not_a_timeout() -> None:
    found = load('{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"x","timeoutSec":1e999}]}}')
    assert found.hooks == ()
    assert "must be more than 0 seconds" in found.notes[0]


KEYS = st.sampled_from(["version", "hooks", "preToolUse", "Notification", "type", "bash", "matcher", "env", "exec"])
LEAVES = st.none() | st.booleans() | st.floats() | st.sampled_from([1, "command", "prompt", "x", ""])


@BOTH
@given(
    st.text()
    | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.text(), inner), max_leaves=20)
)
def test_any_other_file_is_read_or_a_config_error(dialect: Dialect, document: object) -> None:
    with suppress(ConfigError):
        assert all(hook.argv for hook in load(document, dialect).hooks)
    if isinstance(document, dict):
        with suppress(ConfigError):
            assert all(hook.argv for hook in load({**document, "version": 1}, dialect).hooks)
