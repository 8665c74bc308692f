"""The input of Lime's hooks: the table of cases/lime.toml, and general rules."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.lime import DIALECT as LIME
from hookproxy.dialects.shared.identity_variables import foreign_variables
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("lime")
SESSION = Session(id="s1", server="shell", cwd="/repo", project_dir="/repo")
CALL = EventContext(Event.PRE_TOOL_USE, SESSION, tool="bash", tool_name="bash", request_id="7")
AFTER = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
WITHOUT_A_CALL = (Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)


def spec(event: Event) -> HookSpec:
    return HookSpec("lime", "s.json", event, "guard.sh", shell="guard.sh")


def written(context: EventContext) -> tuple[dict[str, Any], dict[str, str]]:
    document = LIME.write_input(spec(context.event), context)
    return json.loads(document.stdin), dict(document.env)


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: case["behaviour"])
def test_a_hook_gets_the_input_of_the_table(case: dict[str, Any]) -> None:
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
    document, env = written(replace(CALL, event=event, outcome=Outcome(error="x")))
    assert document["event"] == document["hook_event_name"] == env["HOOK_EVENT"] == event
    assert ("tool_name" in document) is ("HOOK_TOOL_NAME" in env)
    assert document.get("is_error", False) is (event is Event.POST_TOOL_USE_FAILURE)


def test_variables_and_document_have_the_same_values() -> None:
    context = replace(
        CALL, event=Event.POST_TOOL_USE, arguments=b'{"a":1e400}', outcome=Outcome(b'["\xc3\xa4"]', has_result=True)
    )
    document = LIME.write_input(spec(context.event), context)
    assert f'"tool_input":{document.env["HOOK_TOOL_INPUT"]},'.encode() in document.stdin
    assert f'"tool_output":{document.env["HOOK_TOOL_OUTPUT"]},'.encode() in document.stdin


def test_text_that_is_not_utf8_can_be_written() -> None:
    session = replace(SESSION, cwd="/r\udcffepo", id="\udcff")
    outcome = Outcome(error="half a pair: \ud83d")
    context = replace(
        CALL, event=Event.POST_TOOL_USE_FAILURE, session=session, tool_name="b\ud83d", request_id="\ud83d"
    )
    document, env = written(replace(context, outcome=outcome))
    assert [document[key] for key in ("session_id", "request_id", "cwd", "tool_name")] == ["?", "?", "/r?epo", "b?"]
    assert document["tool_output"] == "half a pair: ?"
    assert env["HOOK_TOOL_OUTPUT"] == '"half a pair: ?"'
    notification = replace(CALL, event=Event.NOTIFICATION, message="\ud83d", trigger="\udcff")
    assert written(notification)[0]["message"] == "?"


def test_a_hook_after_a_call_without_an_outcome_gets_an_empty_output() -> None:
    document, env = written(replace(CALL, event=Event.POST_TOOL_USE))
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


def test_other_dialects_do_not_inherit_its_variables() -> None:
    _, env = written(replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome()))
    assert set(env) == set(LIME.variables)
    assert set(LIME.variables) <= foreign_variables(LIME.variables), "inherited, they belong to another event"
    assert set(LIME.variables) <= foreign_variables(CLAUDE.variables)
    assert "CLAUDE_PROJECT_DIR" in foreign_variables(LIME.variables)
