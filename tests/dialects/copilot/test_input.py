"""The input of Copilot CLI's hooks: the events of cases/copilot.toml, in both formats."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.copilot import DIALECT as COPILOT
from hookproxy.dialects.copilot.hook_file import EVENTS
from hookproxy.dialects.copilot.input import OBJECT, write_input
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("copilot")

SESSION = Session(id="s1", server="github", cwd="/repo", project_dir="/repo")
CALL = EventContext(
    event=Event.PRE_TOOL_USE,
    session=SESSION,
    tool="bash",
    tool_name="bash",
    arguments='{"command":"echo \\"ä\\"","ratio":1.10}'.encode(),
    at=1704614600.123,
)
OUTCOMES = {
    Event.POST_TOOL_USE: Outcome(
        content=b'[{"type":"text","text":"one"},{"type":"text","text":"two"}]', has_result=True
    ),
    Event.POST_TOOL_USE_FAILURE: Outcome(error="FAIL-1 refused"),
}


def spec(event_name: str, *traits: str) -> HookSpec:
    return HookSpec(
        "copilot", "h.json", EVENTS[event_name], "guard.sh", event_name=event_name, traits=frozenset(traits)
    )


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: case["behaviour"])
def test_a_hook_gets_the_input_in_the_table(case: dict[str, Any]) -> None:
    event = EVENTS[case["event_name"]]
    context = replace(
        CALL,
        event=event,
        outcome=OUTCOMES.get(event),
        trigger=case.get("trigger", ""),
        message=case.get("message", ""),
        meta=case.get("meta", "").encode(),
        tool_use_id=case.get("tool_use_id", ""),
    )
    document = write_input(spec(case["event_name"], *([OBJECT] if case.get("object") else [])), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == {"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": "s1"}


def test_the_table_has_every_event_in_both_spellings() -> None:
    assert {case["event_name"] for case in CASES["input"]} == set(EVENTS)


def test_the_dialects_variables_include_all_that_it_sets() -> None:
    assert write_input(spec("preToolUse"), CALL).env.keys() <= set(COPILOT.variables)


def test_a_folder_that_is_not_utf8_can_be_written() -> None:
    session = replace(SESSION, cwd="/r\udcffepo", id="s\udcff")
    for name in ("preToolUse", "PreToolUse"):
        document = json.loads(write_input(spec(name), replace(CALL, session=session)).stdin)
        assert document["cwd"] == "/r?epo"


def test_numbers_keep_their_spelling() -> None:
    numbers = '{"a":1e400,"b":0.10,"c":1180591620717411303424,"d":-0}'
    context = replace(CALL, arguments=numbers.encode())
    assert json.loads(write_input(spec("preToolUse"), context).stdin)["toolArgs"] == numbers
    for document in (write_input(spec("preToolUse", OBJECT), context), write_input(spec("PreToolUse"), context)):
        assert numbers.encode() in document.stdin


def test_the_error_of_a_failed_result_is_complete() -> None:
    outcome = Outcome(content=b'[{"type":"text","text":"a"}]', has_result=True, error="a", structured=b'{"code":7}')
    context = replace(CALL, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    assert json.loads(write_input(spec("postToolUseFailure"), context).stdin)["error"] == 'a\n{"code":7}'


def test_the_document_of_a_large_result_is_written_without_building_its_objects() -> None:
    content = b'[{"type":"text","text":"' + b"0123456789" * 1_000_000 + b'"}]'
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        write_input(spec("postToolUse"), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(content)


@pytest.mark.parametrize(
    ("at", "milliseconds", "text"),
    [
        (0.0, 0, "1970-01-01T00:00:00.000Z"),
        (1704614600.0, 1704614600000, "2024-01-07T08:03:20.000Z"),
        (1704614599.9996, 1704614600000, "2024-01-07T08:03:20.000Z"),
        (1704614600.0076, 1704614600008, "2024-01-07T08:03:20.008Z"),
    ],
)
def test_both_formats_have_the_same_time(at: float, milliseconds: int, text: str) -> None:
    context = replace(CALL, at=at)
    assert json.loads(write_input(spec("preToolUse"), context).stdin)["timestamp"] == milliseconds
    assert json.loads(write_input(spec("PreToolUse"), context).stdin)["timestamp"] == text
