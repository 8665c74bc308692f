"""The input of code-assist's hooks: the table of cases/code_assist.toml, and general rules."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.code_assist import DIALECT as CODE_ASSIST
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("code_assist")
SESSION = Session(id="sess_xyz789", server="shell", cwd="/home/user/project", project_dir="/home/user/project")
CALL = EventContext(
    event=Event.PRE_TOOL_USE, session=SESSION, tool="BashTool", tool_name="BashTool", tool_use_id="tu_abc123"
)
SPEC = HookSpec("code-assist", "s.json", Event.PRE_TOOL_USE, "guard", shell="guard.sh", timeout=3)


def written(context: EventContext) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CODE_ASSIST.write_input(SPEC, context).stdin)
    return document


def outcome(case: dict[str, Any]) -> Outcome | None:
    if not case["event"].startswith("PostToolUse"):
        return None
    return Outcome(case.get("content", "[]").encode(), has_result="content" in case, error=case.get("error", ""))


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: case["behaviour"])
def test_a_hook_gets_the_input_of_the_table(case: dict[str, Any]) -> None:
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


def test_every_available_event_has_a_row() -> None:
    assert {case["event"] for case in CASES["input"]} == set(CODE_ASSIST.events)


@pytest.mark.parametrize("event", CODE_ASSIST.events.values())
def test_all_nine_members_are_always_present_in_the_documents_order(event: Event) -> None:
    assert list(written(replace(CALL, event=event))) == [
        "hook_event", "tool_name", "tool_input", "tool_use_id", "tool_output", "user_prompt", "session_id",
        "agent_id", "cwd",
    ]  # fmt: skip


def test_names_that_are_not_utf8_can_be_written() -> None:
    session = replace(SESSION, cwd="/r\udcffepo/é")
    failed = Outcome(error="\ud800 é")
    document = written(replace(CALL, event=Event.POST_TOOL_USE, session=session, tool_name="t\udcff", outcome=failed))
    assert (document["cwd"], document["tool_name"], document["tool_output"]) == ("/r?epo/é", "t?", "? é")


def test_output_that_is_not_text_is_written_as_json() -> None:
    content = b'[{"type":"text","text":"seen:"},{"type":"image","data":"aGk=","mimeType":"image/png"}]'
    result = Outcome(content=content, has_result=True, structured=b'{"n":1}')
    output = written(replace(CALL, event=Event.POST_TOOL_USE, outcome=result))["tool_output"]
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
