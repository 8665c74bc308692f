"""tool_response under a name of Claude Code's, and replaced output on the way back: rows of cases/claude.toml."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.claude.input import write_input
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from tests.dialects.tables import table

CASES = table("claude")
TOOLS = ("Bash", "Write", "Edit", "MultiEdit", "Read", "WebFetch", "Grep", "Glob", "LS")
SPEC = HookSpec("claude", "s.json", Event.POST_TOOL_USE, "guard.sh", shell="guard.sh")


def context_of(tool: str, arguments: str = "{}", content: str = "[]", structured: str = "") -> EventContext:
    return EventContext(
        Event.POST_TOOL_USE,
        Session(id="s1", server="s", cwd="/", project_dir="/"),
        tool="run_it",
        tool_name=tool,
        arguments=arguments.encode(),
        alias=Alias("run_it", tool),
        outcome=Outcome(content=content.encode(), structured=structured.encode(), has_result=True, duration_ms=4),
    )


def content_of(case: dict[str, Any]) -> str:
    if "content" in case:
        return str(case["content"])
    return json.dumps([{"type": "text", "text": case["text"]}] if "text" in case else [])


def tool_response(context: EventContext) -> Any:  # noqa: ANN401
    return json.loads(write_input(SPEC, context).stdin)["tool_response"]


@pytest.mark.parametrize("case", CASES["response"], ids=lambda case: f"{case['tool']}: {case['behaviour']}")
def test_a_hook_gets_the_response_in_the_table(case: dict[str, Any]) -> None:
    context = context_of(case["tool"], case["arguments"], content_of(case), case.get("structured", ""))
    assert tool_response(context) == json.loads(case["response"], strict=False)


@pytest.mark.parametrize("case", CASES["replaced"], ids=lambda case: f"{case['tool']}: {case['behaviour']}")
def test_replaced_output_becomes_what_the_table_says(case: dict[str, Any]) -> None:
    context = context_of(case["tool"], content=content_of(case), structured=case.get("structured", ""))
    actual = CLAUDE.real_output(context, case["replacement"].encode())
    assert json.loads(actual) == json.loads(case["output"], strict=False)


@pytest.mark.parametrize("alias", [None, Alias("run_it", "Shell"), Alias("run_it", "", {"command": "cmd"})])
def test_under_a_name_of_the_servers_nothing_changes(alias: Alias | None) -> None:
    content, replacement = '[{"type":"text","text":"x"}]', b'{"stdout":"x"}'
    context = replace(context_of("mcp__s__run_it", content=content), alias=alias)
    assert tool_response(context) == json.loads(content)
    assert CLAUDE.real_output(context, replacement) == replacement


def test_a_tool_of_the_server_that_has_the_familiar_name_itself_keeps_its_own_output() -> None:
    content = '[{"type":"text","text":"x"}]'
    context = replace(context_of("Bash", content=content), tool="Bash", alias=None)
    assert tool_response(context) == json.loads(content)


@given(tool=st.sampled_from(TOOLS), raw=st.binary(max_size=60), structured=st.binary(max_size=60))
def test_any_result_has_a_response(tool: str, raw: bytes, structured: bytes) -> None:
    text = json.dumps(raw.decode(errors="replace"))
    content = f'[{{"type":"text","text":{text}}}]'
    outcome = Outcome(content=content.encode(), structured=structured, has_result=True)
    context = replace(context_of(tool), outcome=outcome)
    assert tool_response(context) is not None


@given(tool=st.sampled_from(TOOLS), raw=st.text(max_size=60))
def test_the_texts_of_a_result_are_never_kept_from_a_hook(tool: str, raw: str) -> None:
    context = context_of(tool, content=json.dumps([{"type": "text", "text": raw}], ensure_ascii=False))
    response = json.dumps(tool_response(context), ensure_ascii=False)
    assert all(json.dumps(word, ensure_ascii=False)[1:-1] in response for word in raw.split())


@given(tool=st.sampled_from(TOOLS), raw=st.text(max_size=60))
def test_a_response_that_a_hook_gives_back_unchanged_is_the_same_text(tool: str, raw: str) -> None:
    if tool == "LS" or not raw.strip() or raw.lstrip().startswith("{"):
        return
    context = context_of(tool, content=json.dumps([{"type": "text", "text": raw}], ensure_ascii=False))
    given_back = json.dumps(tool_response(context), ensure_ascii=False).encode(errors="replace")
    text = json.loads(CLAUDE.real_output(context, given_back))
    assert text.split() == raw.encode(errors="replace").decode().split()
