"""The Docker Agent dialects as data."""

from hookproxy.dialects.docker_agent import CURRENT as DOCKER_AGENT_CURRENT
from hookproxy.dialects.docker_agent import DIALECT as DOCKER_AGENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, Order
from hookproxy.model.settings import ToolNames


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


def test_docker_agent_current_differs_where_docker_agent_has_changed() -> None:
    assert DIALECTS["docker-agent@current"] is DOCKER_AGENT_CURRENT
    assert DOCKER_AGENT_CURRENT.order is Order.PIPELINE
    for same in ("default_timeout", "tool_names", "options", "suffixes", "agents", "variables"):
        assert getattr(DOCKER_AGENT_CURRENT, same) == getattr(DOCKER_AGENT, same)


def test_every_event_of_the_newer_page_is_either_available_or_reported() -> None:
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
