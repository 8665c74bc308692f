"""The input of Docker Agent's hooks: the table of cases/docker_agent.toml, and general rules."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.docker_agent import CURRENT as DOCKER_AGENT_CURRENT
from hookproxy.dialects.docker_agent import DIALECT as DOCKER_AGENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("docker_agent")
BOTH = pytest.mark.parametrize("dialect", [DOCKER_AGENT, DOCKER_AGENT_CURRENT], ids=lambda dialect: dialect.name)
SESSION = Session(id="abc123", server="tools", cwd="/path/to/project", project_dir="/path/to/project")
CALL = EventContext(Event.PRE_TOOL_USE, SESSION, tool="shell", tool_name="shell", tool_use_id="call_xyz")
AFTER = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


def spec(dialect: Dialect, event: Event, event_name: str = "") -> HookSpec:
    traits = frozenset({"agent=helper"} if dialect is DOCKER_AGENT_CURRENT else ())
    return HookSpec(dialect.name, "a.yaml", event, "x", shell="x", event_name=event_name, traits=traits)


def outcome(case: dict[str, Any]) -> Outcome | None:
    if Event(case["event"]) not in AFTER:
        return None
    return Outcome(
        content=case.get("content", "[]").encode(), has_result="content" in case, error=case.get("error", "")
    )


@pytest.mark.parametrize("case", CASES["input"], ids=lambda case: f"{case['dialect']}: {case['behaviour']}")
def test_a_hook_gets_the_input_of_the_table(case: dict[str, Any]) -> None:
    dialect, event = DIALECTS[case["dialect"]], Event(case["event"])
    context = replace(
        CALL,
        event=event,
        arguments=case.get("arguments", "{}").encode(),
        outcome=outcome(case),
        trigger=case.get("trigger", ""),
        message=case.get("message", ""),
    )
    document = dialect.write_input(spec(dialect, event, case["event_name"]), context)
    assert document.stdin.decode() == case["document"] + "\n"
    assert document.env == {}


@BOTH
@pytest.mark.parametrize("event", list(Event))
def test_any_text_can_be_written_on_one_line(dialect: Dialect, event: Event) -> None:
    session = replace(SESSION, cwd="/r\udcffepo\n", id="s\udcff")
    document = dialect.write_input(spec(dialect, event), replace(CALL, event=event, session=session)).stdin
    assert document.endswith(b"}\n")
    assert document.count(b"\n") == 1
    assert json.loads(document)["cwd"] == "/r?epo\n"


def test_a_hook_without_an_agent_trait_belongs_to_root() -> None:
    bare = HookSpec("docker-agent@current", "a.yaml", CALL.event, "x", shell="x", event_name="pre_tool_use")
    assert json.loads(DOCKER_AGENT_CURRENT.write_input(bare, CALL).stdin)["agent_name"] == "root"


def test_the_tool_response_has_all_content_that_the_model_can_read() -> None:
    result = Outcome(
        content=b'[{"type":"text","text":"a"},{"type":"image","data":"QQ==","mimeType":"image/png"}]',
        structured=b'{"n":1.10}',
        has_result=True,
    )
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=result)
    document = json.loads(DOCKER_AGENT.write_input(spec(DOCKER_AGENT, context.event), context).stdin)
    assert document["tool_response"] == 'a\n{"type":"image","data":"QQ==","mimeType":"image/png"}\n{"n":1.10}'


def test_the_document_of_a_large_result_is_not_copied_often() -> None:
    content = b'[{"type":"text","text":"' + b"x" * 10_000_000 + b'"}]'
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=Outcome(content=content, has_result=True))
    tracemalloc.start()
    try:
        DOCKER_AGENT.write_input(spec(DOCKER_AGENT, context.event), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(content)
