"""What Docker Agent's hooks are told (the table of cases/docker_agent.toml), and the two dialects as values."""

import json
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.docker_agent.input import DOCKER_AGENT, DOCKER_AGENT_CURRENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, EventContext, HookSpec, Order, Outcome, Session
from hookproxy.model.settings import ToolNames
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


@pytest.mark.parametrize("case", CASES["occasion"], ids=lambda case: f"{case['dialect']}: {case['says']}")
def test_a_hook_is_told_what_the_table_says(case: dict[str, Any]) -> None:
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
def test_anything_can_be_told_on_one_line(dialect: Dialect, event: Event) -> None:
    session = replace(SESSION, cwd="/r\udcffepo\n", id="s\udcff")
    told = dialect.write_input(spec(dialect, event), replace(CALL, event=event, session=session)).stdin
    assert told.endswith(b"}\n")
    assert told.count(b"\n") == 1
    assert json.loads(told)["cwd"] == "/r?epo\n"


def test_a_hook_without_a_mark_is_the_root_agents() -> None:
    bare = HookSpec("docker-agent@current", "a.yaml", CALL.event, "x", shell="x", event_name="pre_tool_use")
    assert json.loads(DOCKER_AGENT_CURRENT.write_input(bare, CALL).stdin)["agent_name"] == "root"


def test_a_result_is_told_with_all_that_the_model_could_read_of_it() -> None:
    result = Outcome(
        content=b'[{"type":"text","text":"a"},{"type":"image","data":"QQ==","mimeType":"image/png"}]',
        structured=b'{"n":1.10}',
        has_result=True,
    )
    context = replace(CALL, event=Event.POST_TOOL_USE, outcome=result)
    told = json.loads(DOCKER_AGENT.write_input(spec(DOCKER_AGENT, context.event), context).stdin)
    assert told["tool_response"] == 'a\n{"type":"image","data":"QQ==","mimeType":"image/png"}\n{"n":1.10}'


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


# --- the dialects as values ---


def test_the_documented_dialect() -> None:
    assert DIALECTS["docker-agent"] is DOCKER_AGENT
    assert dict(DOCKER_AGENT.events) == {
        "pre_tool_use": Event.PRE_TOOL_USE,
        "post_tool_use": Event.POST_TOOL_USE,
        "session_start": Event.SESSION_START,
        "session_end": Event.SESSION_END,
        "on_user_input": Event.USER_INPUT,
    }
    assert DOCKER_AGENT.unavailable == {}
    assert (DOCKER_AGENT.order, DOCKER_AGENT.default_timeout, DOCKER_AGENT.tool_names) == (
        Order.TOGETHER,
        60.0,
        ToolNames.BARE,
    )
    assert (DOCKER_AGENT.options, DOCKER_AGENT.suffixes) == (("agent",), (".yaml", ".yml", ".json"))
    assert DOCKER_AGENT.agents == ("docker agent",)


def test_the_variant_differs_where_docker_agent_has_changed() -> None:
    assert DIALECTS["docker-agent@current"] is DOCKER_AGENT_CURRENT
    assert DOCKER_AGENT_CURRENT.order is Order.PIPELINE
    for same in ("default_timeout", "tool_names", "options", "suffixes", "agents", "variables"):
        assert getattr(DOCKER_AGENT_CURRENT, same) == getattr(DOCKER_AGENT, same)


def test_every_event_of_the_newer_page_is_either_run_or_told_of() -> None:
    documented = {  # pkg/hooks/events/contracts.go, October 2026
        "pre_tool_use", "post_tool_use", "permission_request", "session_start", "user_prompt_submit",
        "user_steering_messages_submit", "user_followup_submit", "turn_start", "turn_end", "before_llm_call",
        "after_llm_call", "session_end", "pre_compact", "subagent_stop", "on_user_input", "stop", "notification",
        "on_error", "on_max_iterations", "on_agent_switch", "on_session_resume", "on_tool_approval_decision",
        "before_compaction", "after_compaction", "tool_response_transform", "tool_input_transform", "tool_guard",
        "worktree_create",
    }  # fmt: skip
    assert set(DOCKER_AGENT_CURRENT.events) | set(DOCKER_AGENT_CURRENT.unavailable) == documented
    assert set(DOCKER_AGENT_CURRENT.events).isdisjoint(DOCKER_AGENT_CURRENT.unavailable)
    assert all(DOCKER_AGENT_CURRENT.unavailable.values())


def test_the_fields_are_those_of_the_pages() -> None:
    members = {
        "continue", "stop_reason", "suppress_output", "system_message", "decision", "reason",
        *(f"hook_specific_output.{name}" for name in (
            "hook_event_name", "permission_decision", "permission_decision_reason", "updated_input",
        )),
    }  # fmt: skip
    assert set(DOCKER_AGENT.output_fields) == members
    newer = {"additional_context", "updated_tool_response", "metadata", "summary"}
    assert set(DOCKER_AGENT_CURRENT.output_fields) == members | {f"hook_specific_output.{name}" for name in newer}


# --- which files are Docker Agent's ---

GROUPS = [{"matcher": "shell", "hooks": [{"type": "command", "command": "x"}]}]


@pytest.mark.parametrize(
    "members",
    [
        {"agents": {"root": {"model": "x", "hooks": {"pre_tool_use": GROUPS}}}},
        {"version": "2", "agents": {"a": {}, "b": {"hooks": {"stop": []}}}, "models": {}},
        {"hooks": {"pre_tool_use": GROUPS}},
        {"hooks": {"on_user_input": [], "stop": []}},
    ],
)
def test_a_file_of_docker_agents_shape_is_recognised(members: dict[str, object]) -> None:
    assert [dialect.name for dialect in DIALECTS.values() if dialect.recognises(members)] == ["docker-agent"]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"agents": {"root": {"model": "x"}}},
        {"agents": ["root"]},
        {"agents": {"root": None, "b": {"hooks": []}}},
        {"hooks": {"PreToolUse": GROUPS}},
        {"hooks": {}},
        {"hooks": [1]},
        {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}},
    ],
)
def test_other_files_are_not(members: dict[str, object]) -> None:
    assert not DOCKER_AGENT.recognises(members)
    assert not DOCKER_AGENT_CURRENT.recognises(members)
