"""The input of Claude Code's hooks: the table of cases/claude.toml, and how the document is written."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.model.hooks import Elicitation, Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("claude")

SESSION = Session(id="s1", server="github", cwd="/repo", project_dir="/repo")
CALL = EventContext(
    event=Event.PRE_TOOL_USE,
    session=SESSION,
    tool="search",
    tool_name="mcp__github__search",
    tool_use_id="toolu_01",
)
OUTCOMES = {
    Event.POST_TOOL_USE: Outcome(content=b'[{"type":"text","text":"ECHO"}]', duration_ms=4),
    Event.POST_TOOL_USE_FAILURE: Outcome(error="FAIL-1 refused", duration_ms=4),
}


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("claude", "s.json", event, "guard.sh", shell="guard.sh", timeout=30, background=background)


def elicitation(case: dict[str, Any]) -> Elicitation:
    raw: dict[str, Any] = {key: case[key].encode() for key in ("schema", "content") if key in case}
    return Elicitation(**{**case, **raw})


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: case["behaviour"])
def test_a_hook_gets_the_input_in_the_table(case: dict[str, Any]) -> None:
    event = Event(case["event"])
    context = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        annotations=case.get("annotations", "").encode(),
        outcome=OUTCOMES.get(event),
        trigger=case.get("trigger", ""),
        message=case.get("message", ""),
        elicitation=elicitation(case["elicitation"]) if "elicitation" in case else None,
    )
    document = CLAUDE.write_input(spec(event), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == {
        "CLAUDE_PROJECT_DIR": "/repo",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ID": "s1",
    }


# --- the document ---


def test_a_folder_that_is_not_utf8_can_be_written() -> None:
    session = replace(SESSION, cwd="/r\udcffepo", server="s\udcff")
    document = json.loads(CLAUDE.write_input(spec(CALL.event), replace(CALL, session=session)).stdin)
    assert (document["cwd"], document["mcp_server"]) == ("/r?epo", {"name": "s?"})


def test_the_tools_output_goes_in_byte_for_byte() -> None:
    content = b'[ {"type":"text", "text":"\xc3\xa4 \\n 1e400"},{"n":1.000} ]'
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content))
    assert b'"tool_response":' + content + b"," in CLAUDE.write_input(spec(context.event), context).stdin


def test_the_document_of_a_large_result_is_written_without_building_its_objects() -> None:
    content = b"[" + b",".join([b'{"type":"text","text":"0123456789"}'] * 280_000) + b"]"
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content))
    tracemalloc.start()
    try:
        CLAUDE.write_input(spec(context.event), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(content)  # the growing buffer and the finished document; objects would take 12 times as much


def test_the_dialects_variables_include_all_that_it_sets() -> None:
    assert set(CLAUDE.write_input(spec(CALL.event), CALL).env) <= set(CLAUDE.variables)
