"""Hooks of type "agent-hooks": the contexts that they get and what their verdicts do, by AGENT-HOOKS-0.1."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from typing import Any, Final

import jsonschema
import pytest
from msgspec.structs import replace

from hookproxy.dialects.agent_hooks import AGENT_HOOKS
from hookproxy.dialects.agent_hooks_verdicts import evaluated_only, real_arguments, real_output
from hookproxy.dialects.own import own_hook
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import (
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Outcome,
    Permission,
    Session,
    Verdict,
)
from hookproxy.model.principal import Principal
from hookproxy.model.settings import OnFailure

SESSION: Final = Session("s-1", "files", "/work", "/work")
CALL: Final = EventContext(
    Event.PRE_TOOL_USE,
    SESSION,
    tool="read_file",
    tool_name="read_file",
    tool_use_id="call_1",
    arguments=b'{"path":"/srv/a","more":[{"n":12345678901234567890}]}',
    at=1_800_000_000.25,
)
RESULT: Final = replace(
    CALL,
    event=Event.POST_TOOL_USE,
    outcome=Outcome(b'[{"type":"text","text":"ok"}]', has_result=True, duration_ms=7),
)


def spec(event: Event = Event.PRE_TOOL_USE, toml: str = 'command = "guard"') -> HookSpec:
    table = {"type": "agent-hooks", **tomllib.loads(toml)}
    return own_hook(table, event, f"/etc/hookproxy.toml: hooks.{event}[0]", "/etc")


def context_of(event: EventContext) -> dict[str, Any]:
    written = AGENT_HOOKS.write_input(spec(event.event), event).stdin
    context: dict[str, Any] = json.loads(written)
    return context


def verdict(output: object, event: Event = Event.PRE_TOOL_USE, ended: Ended = Ended.EXITED, code: int = 0) -> Verdict:
    stdout = output if isinstance(output, bytes) else json.dumps(output).encode()
    return AGENT_HOOKS.read_output(spec(event), HookResult(ended, code, stdout))


def rewritten(path: str, value: object, event: EventContext = CALL) -> object:
    output = {"decision": "transform", "transform": {"path": path, "value": value}}
    read = verdict(output, event.event)
    if event.event is Event.PRE_TOOL_USE:
        assert read.arguments is not None
        return json.loads(real_arguments(spec(), event, read.arguments))
    assert read.replacement is not None
    return json.loads(real_output(event, read.replacement))


EVENTS: Final = {
    "agent_startup": EventContext(Event.SESSION_START, SESSION, trigger="startup", at=1.0),
    "pre_tool_call": CALL,
    "post_tool_call": RESULT,
    "agent_shutdown": EventContext(Event.SESSION_END, SESSION, trigger="other", at=1.0),
}


@pytest.mark.parametrize("point", EVENTS)
def test_a_context_has_the_form_that_the_standard_demands_for_its_point(point: str) -> None:
    schemas = files("agent_hooks") / "schema" / "agent-context"
    schema = json.loads((schemas / f"{point}.schema.json").read_text())
    of_user = replace(EVENTS[point], session=replace(SESSION, principal=Principal("uid:1000", "alice")))
    for event in (EVENTS[point], of_user):
        context = context_of(event)
        jsonschema.Draft202012Validator(schema).validate(context)
        assert context["interception_point"] == point


def test_numbers_reach_the_hook_as_the_agent_spelled_them() -> None:
    assert b'"n":12345678901234567890' in AGENT_HOOKS.write_input(spec(), CALL).stdin


def test_a_later_event_has_a_greater_sequence_and_the_arguments_that_ran() -> None:
    before, after = context_of(CALL), context_of(RESULT)
    assert before["sequence"] < after["sequence"]
    assert before["timestamp"] < after["timestamp"]
    assert after["tool_call"] == before["tool_call"]


@pytest.mark.parametrize(
    ("outcome", "value", "is_error"),
    [
        (Outcome(b'[{"type":"text","text":"ok"}]', has_result=True), "ok", False),
        (
            Outcome(b'[{"type":"text","text":"{}"}]', has_result=True, structured=b'{"a":1}', repeats_structured=True),
            {"a": 1},
            False,
        ),
        (
            Outcome(b"[]", has_result=True, structured=b'{"a":1}', whole=b'{"content":[],"structuredContent":{"a":1}}'),
            {"content": [], "structuredContent": {"a": 1}},
            False,
        ),
        (Outcome(b'[{"type":"image","data":""}]', has_result=True), [{"type": "image", "data": ""}], False),
        (Outcome(error="no such tool"), "no such tool", True),
        (Outcome(b'[{"type":"text","text":"no"}]', has_result=True, error="no"), "no", True),
    ],
)
def test_a_result_is_shown_in_the_simplest_form_that_has_all_of_it(
    outcome: Outcome, value: object, is_error: bool
) -> None:
    event = Event.POST_TOOL_USE_FAILURE if is_error else Event.POST_TOOL_USE
    context = context_of(replace(CALL, event=event, outcome=outcome))
    assert (context["tool_result"]["value"], context["tool_result"]["is_error"]) == (value, is_error)
    assert context["target"] == value


def test_structured_content_with_a_duplicate_key_is_shown_as_its_text() -> None:
    outcome = Outcome(
        b'[{"type":"text","text":"both"}]', has_result=True, structured=b'{"a":1,"a":2}', repeats_structured=True
    )
    assert context_of(replace(RESULT, outcome=outcome))["target"] == "both"


def test_an_allowing_verdict_is_no_approval_and_its_warnings_are_for_the_person() -> None:
    assert verdict({"decision": "allow", "warnings": [{"reason": "corp:odd", "message": "looks odd"}]}) == Verdict(
        messages=("corp:odd: looks odd",)
    )


def test_a_denial_refuses_and_one_that_can_be_lifted_asks() -> None:
    denied = verdict({"decision": "deny", "reason": "corp:no", "message": "never"})
    assert (denied.permission, denied.reason) == (Permission.DENY, "corp:no: never")
    assert verdict({"decision": "deny", "approval": {}}).permission is Permission.ASK


def test_a_denied_result_is_hidden_even_if_the_denial_could_be_lifted() -> None:
    for output in (
        {"decision": "deny", "reason": "corp:no"},
        {"decision": "deny", "reason": "corp:no", "approval": {}},
    ):
        denied = verdict(output, Event.POST_TOOL_USE)
        assert (denied.hides, denied.permission, denied.feedback) == (True, Permission.DENY, ("corp:no",))


def test_a_denied_session_is_reported() -> None:
    [message] = verdict({"decision": "deny", "reason": "corp:no"}, Event.SESSION_START).messages
    assert "corp:no" in message


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("$target.path", "/b", {"path": "/b", "more": [{"n": 12345678901234567890}]}),
        ('$target["path"]', None, {"path": None, "more": [{"n": 12345678901234567890}]}),
        ("$policy_target.more[0].n", 1, {"path": "/srv/a", "more": [{"n": 1}]}),
        ("$target", {"other": 1}, {"other": 1}),
    ],
)
def test_a_transform_replaces_the_value_at_its_path_alone(path: str, value: object, expected: object) -> None:
    assert rewritten(path, value) == expected


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("[redacted]", [{"type": "text", "text": "[redacted]"}]),
        ({"content": "x"}, [{"type": "text", "text": '{"content": "x"}'}]),
        (None, [{"type": "text", "text": "null"}]),
    ],
)
def test_a_transformed_text_is_one_text_block(value: object, content: object) -> None:
    assert rewritten("$target", value, RESULT) == {"content": content}


def test_a_transform_keeps_structured_content() -> None:
    outcome = Outcome(b"[]", has_result=True, structured=b'{"a":1,"b":2}', repeats_structured=True)
    assert rewritten("$target.a", 3, replace(RESULT, outcome=outcome)) == {
        "content": [{"type": "text", "text": '{"a":3,"b":2}'}],
        "structuredContent": {"a": 3, "b": 2},
    }


@pytest.mark.parametrize(
    "path",
    ["$target.none", "$target.path.x", "$target.more[1]", "$target.more.n", "$target[0]", "$target.", "$target..path",
     "$target.more[-1]", "$target.*", "$targetpath", "$target.päth", "$target.path\n"],
)  # fmt: skip
def test_a_path_that_leads_to_no_value_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="host_error:transform_invalid"):
        rewritten(path, 1)


def test_arguments_that_are_no_object_are_an_error() -> None:
    with pytest.raises(ValueError, match="not an object"):
        rewritten("$target", [1])


BROKEN: Final = {
    "nothing": b"",
    "no json": b"allow",
    "two objects": b'{"decision":"allow"}{"decision":"deny"}',
    "a log line before": b'checking\n{"decision":"allow"}',
    "a duplicate key": b'{"decision":"deny","decision":"allow"}',
    "no object": b'["allow"]',
    "no decision": b"{}",
    "another word": b'{"decision":"approve"}',
    "another case": b'{"Decision":"allow"}',
    "unknown member": b'{"decision":"allow","permissionDecision":"deny"}',
    "a number for a reason": b'{"decision":"allow","reason":1}',
    "a reserved reason": b'{"decision":"deny","reason":"host_error:x"}',
    "a reserved reason of a warning": b'{"decision":"allow","warnings":[{"reason":"host_error:x"}]}',
    "warnings that are texts": b'{"decision":"allow","warnings":["odd"]}',
    "a transform without one": b'{"decision":"transform"}',
    "an allowing transform": b'{"decision":"allow","transform":{"path":"$target","value":{}}}',
    "a transform without a path": b'{"decision":"transform","transform":{"value":1}}',
    "approval of what is allowed": b'{"decision":"allow","approval":{}}',
    "approval that is no object": b'{"decision":"deny","approval":true}',
    "labels that are no texts": b'{"decision":"allow","result_labels":[1]}',
    "evidence that is too long": b'{"decision":"allow","evidence":{"artefact":"%b"}}' % (b"x" * 10_240),
    "another encoding": '{"decision":"allow"}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("event", [Event.PRE_TOOL_USE, Event.POST_TOOL_USE])
def test_what_is_not_one_whole_verdict_is_a_failure(name: str, event: Event) -> None:
    read = verdict(BROKEN[name], event)
    assert "host_error:verdict_invalid" in read.failure
    assert (read.permission, read.arguments, read.replacement) == (None, None, None)
    assert spec(event).fails_closed
    assert spec(event).withholds


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ((Ended.EXITED, 2), "interceptor_failed"),
        ((Ended.EXITED, 1), "interceptor_failed"),
        ((Ended.SIGNALLED, 9), "interceptor_failed"),
        ((Ended.NOT_STARTED, 0), "interceptor_failed"),
        ((Ended.TIMED_OUT, 0), "interceptor_timeout"),
    ],
)
def test_a_run_that_ends_otherwise_is_a_failure_whatever_it_printed(ended: tuple[Ended, int], reason: str) -> None:
    assert f"host_error:{reason}" in verdict({"decision": "allow"}, Event.PRE_TOOL_USE, *ended).failure


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"decision": "deny", "reason": "corp:no"}, "it would have denied: corp:no"),
        ({"decision": "deny", "approval": {}}, "it would have asked"),
        ({"decision": "transform", "transform": {"path": "$target.path", "value": 1}}, "it would have rewritten"),
        ({"decision": "maybe"}, "it gave no valid verdict"),
    ],
)
def test_a_hook_that_is_only_evaluated_changes_nothing_and_says_what_it_would(output: object, said: str) -> None:
    only = evaluated_only(spec())
    [message] = AGENT_HOOKS.read_output(only, HookResult(Ended.EXITED, 0, json.dumps(output).encode())).messages
    assert said in message
    assert AGENT_HOOKS.read_output(only, HookResult(Ended.EXITED, 0, json.dumps(output).encode())) == Verdict(
        messages=(message,)
    )
    assert not only.fails_closed
    assert not only.withholds
    assert only.on_failure is OnFailure.ALLOW


@pytest.mark.parametrize("root", ["$.path", "target.path", "$tool_call.args.path", ""])
def test_only_the_target_can_be_rewritten(root: str) -> None:
    output = {"decision": "transform", "transform": {"path": root, "value": 1}}
    assert "host_error:transform_target_forbidden" in verdict(output).failure


@pytest.mark.parametrize("event", [Event.SESSION_START, Event.SESSION_END])
def test_a_session_event_cannot_be_rewritten(event: Event) -> None:
    output = {"decision": "transform", "transform": {"path": "$target", "value": 1}}
    assert "host_error:transform_target_forbidden" in verdict(output, event).failure


@pytest.mark.parametrize(
    ("event", "toml", "problem"),
    [
        (Event.PERMISSION_REQUEST, 'command = "x"', "has no such event"),
        (Event.PRE_TOOL_USE, 'command = "x"\nasync = true', "remove async"),
        (Event.PRE_TOOL_USE, 'url = "https://x.example"', 'type = "http"'),
        (Event.PRE_TOOL_USE, "", "needs exactly one of command and argv"),
    ],
)
def test_a_table_that_cannot_work_is_refused(event: Event, toml: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec(event, toml)
    assert problem in str(caught.value) or problem in caught.value.hint


def test_the_time_to_decide_is_what_the_standard_recommends() -> None:
    assert spec().timeout == 5.0
    assert spec(toml='command = "x"\ntimeout = 9').timeout == 9.0
