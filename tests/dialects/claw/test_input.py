"""The input of claw-code's hooks: the table of cases/claw.toml, and general rules."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.claw import CURRENT as CLAW_CURRENT
from hookproxy.dialects.claw import DIALECT as CLAW
from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.identity_variables import foreign_variables
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("claw")
BOTH = pytest.mark.parametrize("dialect", [CLAW, CLAW_CURRENT], ids=lambda dialect: dialect.name)
SESSION = Session(id="s1", server="shell", cwd="/repo", project_dir="/repo")
CALL = EventContext(event=Event.PRE_TOOL_USE, session=SESSION, tool="bash", tool_name="bash")


def spec(event: Event, event_name: str) -> HookSpec:
    return HookSpec("claw", "s.json", event, "guard.sh", shell="./guard.sh", event_name=event_name)


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: f"{case['dialect']}: {case['behaviour']}")
def test_a_hook_gets_the_input_of_the_table(case: dict[str, Any]) -> None:
    event = Event(case["event"])
    content = case.get("content")
    outcome = Outcome(
        content=(content or "[]").replace("\n", "\\n").encode(),
        has_result=content is not None,
        error=case.get("error", ""),
    )
    context = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        outcome=None if event is Event.PRE_TOOL_USE else outcome,
    )
    document = DIALECTS[case["dialect"]].write_input(spec(event, case["event_name"]), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == case["env"]


def test_the_input_is_the_same_in_all_three_places() -> None:
    context = replace(CALL, arguments='{"command":"echo \\"ü\\" \\u0000"}'.encode())
    document = CLAW.write_input(spec(CALL.event, "PreToolUse"), context)
    members = json.loads(document.stdin)
    assert (
        json.loads(members["tool_input_json"]) == members["tool_input"] == json.loads(document.env["HOOK_TOOL_INPUT"])
    )


def test_output_that_is_not_utf8_can_be_written() -> None:
    context = replace(
        CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=b'[{"type":"text","text":"\xff"}]', has_result=True)
    )
    assert json.loads(CLAW.write_input(spec(context.event, "PostToolUse"), context).stdin)["tool_output"]


def test_the_document_of_a_large_result_is_complete_and_needs_few_copies() -> None:
    text = "0123456789" * 300_000
    content = b'[{"type":"text","text":"%b"}]' % text.encode()
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        document = CLAW.write_input(spec(context.event, "PostToolUse"), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert json.loads(document.stdin)["tool_output"] == text == document.env["HOOK_TOOL_OUTPUT"]
    assert peak < 8 * len(content)


@BOTH
def test_the_dialects_variables_are_those_that_it_sets(dialect: Dialect) -> None:
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome())
    assert set(dialect.write_input(spec(context.event, "PostToolUse"), context).env) == set(dialect.variables)
    assert "CLAUDE_PROJECT_DIR" in foreign_variables(dialect.variables)
