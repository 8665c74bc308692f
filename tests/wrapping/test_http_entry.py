"""An entry of an agent that speaks HTTP to the gateway itself, and unwrapped it has the same bytes again."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.gateway_entry import Gateway
from hookproxy.wrapping.http_entry import reaches_gateway
from hookproxy.wrapping.known_agents import AGENTS_BY_NAME, HttpForm
from hookproxy.wrapping.wrap_entry import RunOptions
from tests.wrapping.roundtrip import launcher
from tests.wrapping.test_gateway_entry import CODEX, CURSOR, GOOSE, VALUES, VSCODE

GATEWAY: Final = "https://mcp.example.com:8443"
OPENCODE: Final = """\
{"mcp": {"near": {"type": "local", "command": ["npx", "server"], "environment": {"A": "b"}, "enabled": true}}}
"""


def form(agent: str) -> HttpForm:
    found = AGENTS_BY_NAME[agent].http
    assert found is not None
    return found


def over_http(name: str, text: str, agent: str = "cursor", *servers: str) -> edit_plan.Plan:
    """The plan, of which wrapping again changes nothing, and unwrapping restores the text."""
    plan = edit_plan.wrap_over_http(edit_plan.read(name, text), servers, form(agent), GATEWAY)
    again = edit_plan.wrap_over_http(edit_plan.read(name, plan.text), servers, form(agent), GATEWAY)
    assert not again.edits
    assert edit_plan.unwrap(edit_plan.read(name, plan.text), (), plan.replaced).text == text
    return plan


@pytest.mark.parametrize(
    ("agent", "name", "text", "server", "expected"),
    [
        (
            "cursor",
            "mcp.json",
            CURSOR,
            "git",
            {"url": f"{GATEWAY}/mcp/git", "headers": "Bearer ${env:HOOKPROXY_TOKEN}"},
        ),
        (
            "claude-code",
            ".mcp.json",
            CURSOR,
            "far",
            {"type": "http", "url": f"{GATEWAY}/mcp/far", "headers": "Bearer ${HOOKPROXY_TOKEN}"},
        ),
        (
            "vscode",
            "mcp.json",
            VSCODE,
            "near",
            {"type": "http", "url": f"{GATEWAY}/mcp/near", "headers": "Bearer ${env:HOOKPROXY_TOKEN}"},
        ),
        (
            "gemini",
            "s.json",
            CURSOR,
            "plain",
            {"httpUrl": f"{GATEWAY}/mcp/plain", "headers": "Bearer ${HOOKPROXY_TOKEN}"},
        ),
        (
            "windsurf",
            "s.json",
            CURSOR,
            "both",
            {"serverUrl": f"{GATEWAY}/mcp/both", "headers": "Bearer ${env:HOOKPROXY_TOKEN}"},
        ),
        (
            "opencode",
            "opencode.json",
            OPENCODE,
            "near",
            {
                "type": "remote",
                "url": f"{GATEWAY}/mcp/near",
                "headers": "Bearer {env:HOOKPROXY_TOKEN}",
                "enabled": True,
            },
        ),
        ("codex", "c.toml", CODEX, "near", {"url": f"{GATEWAY}/mcp/near", "bearer_token_env_var": "HOOKPROXY_TOKEN"}),
        ("codex", "c.toml", CODEX, "far", {"url": f"{GATEWAY}/mcp/far", "bearer_token_env_var": "HOOKPROXY_TOKEN"}),
        (
            "goose",
            "c.yaml",
            GOOSE,
            "near",
            {
                "type": "streamable_http",
                "uri": f"{GATEWAY}/mcp/near",
                "headers": "Bearer $HOOKPROXY_TOKEN",
                "env_keys": ["HOOKPROXY_TOKEN"],
                "enabled": True,
            },
        ),
    ],
)
def test_each_agent_gets_the_entry_that_its_documents_describe(
    agent: str, name: str, text: str, server: str, expected: dict[str, object]
) -> None:
    plan = over_http(name, text, agent, server)
    (entry,) = (one for one in edit_plan.read(name, plan.text).entries if one.name == server)
    if "headers" in expected:
        expected = {**expected, "headers": {"Authorization": expected["headers"]}}
    assert entry.values == expected
    assert reaches_gateway(entry) == f"{GATEWAY}/mcp/{server}"
    assert "of git" not in plan.text or server != "git"


@pytest.mark.parametrize(
    ("name", "text", "agent"), [("a.json", CURSOR, "cursor"), ("c.toml", CODEX, "codex"), ("g.yaml", GOOSE, "goose")]
)
def test_all_entries_of_a_file_at_once(name: str, text: str, agent: str) -> None:
    plan = over_http(name, text, agent)
    assert all(map(reaches_gateway, edit_plan.read(name, plan.text).entries))
    assert plan.replaced.keys() == {entry.key_path for entry in plan.changed}


def test_what_somebody_changed_since_stays_and_what_would_be_lost_is_an_error() -> None:
    text = '{"mcpServers": {"git": {"command": "npx", "env": {"A": "b"}, "timeout": 3}, "other": {"command": "x"}}}'
    plan = over_http("a.json", text, "cursor", "git")
    later = plan.text.replace('"timeout": 3', '"timeout": 9')
    restored = edit_plan.unwrap(edit_plan.read("a.json", later), (), plan.replaced).text
    assert restored == text.replace('"timeout": 3', '"timeout": 9')
    later = plan.text.replace("/mcp/git", "/mcp/other-place/mcp/git")
    with pytest.raises(ConfigError, match="was changed since it was wrapped: its url"):
        edit_plan.unwrap(edit_plan.read("a.json", later), (), plan.replaced)
    assert not edit_plan.unwrap(edit_plan.read("a.json", text), (), plan.replaced).edits, "it is restored already"


def test_an_entry_that_is_not_in_the_record_is_left_with_a_reason() -> None:
    plan = over_http("a.json", CURSOR, "cursor", "git")
    left = edit_plan.unwrap(edit_plan.read("a.json", plan.text), ())
    assert not left.edits
    assert "not in the record" in left.reasons["mcpServers.git"]


def test_nothing_judges_a_call_twice() -> None:
    plan = over_http("a.json", CURSOR, "cursor", "git")
    configuration = edit_plan.read("a.json", plan.text)
    with pytest.raises(ConfigError, match="reaches the gateway, which judges its calls"):
        edit_plan.wrap(configuration, ("git",), launcher, RunOptions())
    with pytest.raises(ConfigError, match="wrapped in another way already"):
        edit_plan.wrap_for_gateway(configuration, ("git",), launcher, Gateway())
    with pytest.raises(ConfigError, match="wrapped in another way already"):
        edit_plan.wrap_over_http(configuration, ("git",), form("cursor"), "https://another.example")
    assert "reaches the gateway" in edit_plan.why_not(configuration)["mcpServers.git"]
    started = edit_plan.wrap_for_gateway(edit_plan.read("a.json", CURSOR), ("git",), launcher, Gateway(url=GATEWAY))
    with pytest.raises(ConfigError, match="wrapped in another way already"):
        edit_plan.wrap_over_http(edit_plan.read("a.json", started.text), ("git",), form("cursor"), GATEWAY)


@pytest.mark.parametrize("name", ["two words", "a/b", "é"])
def test_a_name_that_no_gateway_has_is_left_with_a_reason(name: str) -> None:
    plan = over_http("a.json", json.dumps({"mcpServers": {name: {"command": "x"}, "git": {"command": "y"}}}))
    assert [entry.name for entry in plan.changed] == ["git"]
    assert "rename it" in next(iter(plan.reasons.values()))


@pytest.mark.parametrize(
    "values",
    [
        {"url": f"{GATEWAY}/mcp/git"},
        {"url": f"{GATEWAY}/mcp/other", "headers": {"Authorization": "Bearer ${HOOKPROXY_TOKEN}"}},
        {"command": "x", "url": f"{GATEWAY}/mcp/git", "headers": {"Authorization": "Bearer ${HOOKPROXY_TOKEN}"}},
    ],
)
def test_another_address_is_not_taken_for_the_gateways(values: dict[str, object]) -> None:
    (entry,) = edit_plan.read("a.json", json.dumps({"mcpServers": {"git": values}})).entries
    assert reaches_gateway(entry) == ""


@given(
    VALUES, st.permutations(range(5)), st.sampled_from([None, 2]), st.sampled_from(["cursor", "claude-code", "gemini"])
)
def test_any_entry_comes_back(entry: dict[str, Any], order: list[int], indent: int | None, agent: str) -> None:
    keys = [key for _, key in sorted(zip(order, entry, strict=False))]
    text = json.dumps({"mcpServers": {"git": {key: entry[key] for key in keys}}}, indent=indent, ensure_ascii=False)
    after = json.loads(over_http("a.json", text, agent).text)["mcpServers"]["git"]
    assert {key: after.get(key) for key in ("timeout", "disabled", "command", "env")} == {
        "timeout": entry.get("timeout"),
        "disabled": entry.get("disabled"),
        "command": None,
        "env": None,
    }
