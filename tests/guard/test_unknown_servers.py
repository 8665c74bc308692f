"""Rules that name a server hold for tools of which the agent does not say for certain whose they are: to refuse only.

An agent's own tool is no server's: rules about those of servers are not about it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.load import Loaded
from hookproxy.guard.exchange import Request
from hookproxy.model.hooks import Permission
from hookproxy.policy import matchers
from tests.guard.test_judge import AGENTS, configured, judging, permission

pytestmark = pytest.mark.anyio

NAMED: Final = {
    "cursor": "MCP:delete_repo",
    "crush": "mcp_git_hub_delete_repo",
    "vscode": "mcp_git_hub_delete_repo",
    "hermes": "mcp_git_hub_delete_repo",
    "kiro": "mcp_git_hub_delete_repo",
    "gemini": "mcp_git_hub_delete_repo",
    "docker-agent": "git_hub_delete_repo",
    "openhands": "git_hub_delete_repo",
    "vibe": "git_hub_delete_repo",
    "copilot": "git-hub-delete_repo",
    "claude": "mcp__git_hub__delete_repo",
}
"""How agents call the tool `delete_repo` of the server `git_hub`, or of `git-hub`."""
COMPOSED: Final = sorted(NAMED.keys() - {"cursor", "claude"})
MAY_LEAVE_OUT: Final = {"docker-agent", "openhands"}
"""Agents that do not put the server's name before the tool's in each case."""


async def judged(loaded: Loaded, agent: str, tool: str) -> Permission | None:
    row = AGENTS[agent]
    document = json.dumps(row.before)
    for name in ("toolName", "tool_name"):
        if name in row.before:
            document = document.replace(f'"{name}": {json.dumps(row.before[name])}', f'"{name}": "{tool}"')
    assert tool in document
    request = Request(agent, "/", {"PATH": "/usr/bin:/bin", **row.before_variables}, document.encode())
    async with judging(loaded) as judge:
        output = await judge.judge(request)
    return permission(agent, output) if output.stdout or output.status else None


@pytest.mark.parametrize(
    "rule", ["mcp__git_hub__delete_repo", "mcp__git_*__delete_*", "mcp__git_hub", "mcp__git*delete*"]
)
@pytest.mark.parametrize("agent", NAMED)
async def test_a_deny_rule_that_names_the_server_refuses_the_call(agent: str, rule: str, tmp_path: Path) -> None:
    if agent == "copilot":
        rule = rule.replace("git_", "git-")
    loaded = configured(tmp_path, f'[permissions]\ndeny = ["{rule}"]')
    assert await judged(loaded, agent, NAMED[agent]) is Permission.DENY


@pytest.mark.parametrize(
    "rule", ["mcp__git_hub__read", "mcp__github__delete_repo", "mcp__other", "mcp__git__delete_repo"]
)
@pytest.mark.parametrize("agent", COMPOSED)
async def test_a_rule_about_another_server_or_tool_does_not(agent: str, rule: str, tmp_path: Path) -> None:
    loaded = configured(tmp_path, f'[permissions]\ndeny = ["{rule}"]')
    expected = rule == "mcp__other" and agent in MAY_LEAVE_OUT  # then any server's tool may have this name
    assert (await judged(loaded, agent, NAMED[agent]) is Permission.DENY) is expected


@pytest.mark.parametrize("agent", sorted(NAMED.keys() - {"claude"}))
async def test_a_rule_about_the_tool_alone_refuses_it_however_the_agent_composes_its_name(
    agent: str, tmp_path: Path
) -> None:
    loaded = configured(tmp_path, '[permissions]\ndeny = ["delete_repo"]')
    assert await judged(loaded, agent, NAMED[agent]) is Permission.DENY


@pytest.mark.parametrize("agent", sorted(NAMED.keys() - {"claude", "openhands", "vibe"}))
async def test_an_allow_rule_that_names_a_server_allows_nothing_of_unknown_ones(agent: str, tmp_path: Path) -> None:
    loaded = configured(tmp_path, '[permissions]\ndefault = "deny"\nallow = ["mcp__git_hub__*", "mcp__git-hub__*"]')
    assert await judged(loaded, agent, NAMED[agent]) is Permission.DENY


@pytest.mark.parametrize("agent", NAMED)
async def test_a_hook_for_a_server_runs_where_the_server_may_be_that_one(agent: str, tmp_path: Path) -> None:
    matcher = "mcp__git-hub__.*" if agent == "copilot" else "mcp__git_hub__delete.*"
    loaded = configured(tmp_path, f'[[hooks.PreToolUse]]\nmatcher = "{matcher}"\ncommand = "exit 2"')
    assert await judged(loaded, agent, NAMED[agent]) is Permission.DENY


@pytest.mark.parametrize("agent", ["claude", "cursor", "crush", "codex"])
async def test_rules_about_tools_of_servers_are_not_about_an_agents_own(agent: str, tmp_path: Path) -> None:
    document = Request(agent, "/", {**AGENTS[agent].before_variables}, json.dumps(AGENTS[agent].before).encode())
    denying = configured(tmp_path, '[permissions]\ndeny = ["mcp__*", "mcp__x__Bash"]')
    async with judging(denying) as judge:
        assert permission(agent, await judge.judge(document)) is not Permission.DENY
    allowing = configured(tmp_path, '[permissions]\ndefault = "deny"\nallow = ["mcp__*", "mcp__*(*)"]')
    async with judging(allowing) as judge:
        assert permission(agent, await judge.judge(document)) is Permission.DENY


async def test_of_a_server_that_is_not_named_an_allow_rule_must_cover_every_text(tmp_path: Path) -> None:
    policy = '[permissions]\ndefault = "deny"\nallow = ["Bash(git *)"]\n[tools.run]\nas = "Bash"\n'
    row = {**AGENTS["cursor"].before, "tool_name": "MCP:run"}
    answers = []
    for more in ({}, {"other": "rm x"}):
        document = {**row, "tool_input": {"command": "git status", **more}}
        async with judging(configured(tmp_path, policy)) as judge:
            answers.append(await judge.judge(Request("cursor", "/", {}, json.dumps(document).encode())))
    assert [permission("cursor", answer) is Permission.DENY for answer in answers] == [False, True]


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        ("mcp__a__b", "mcp____b", True),
        ("mcp__a__b", "mcp____c", False),
        ("mcp__a__*", "mcp____c", True),
        ("mcp__a*c", "mcp____xc", True),
        ("mcp__a*c", "mcp____cx", False),
        ("mcp__a___b", "mcp____b", True),
        ("mcp__a___b", "mcp_____b", True),
        ("mcp__A__B", "mcp___a_b", True),
        ("mcp__a__b", "mcp___a_b_c", False),
        ("mcp__a__b", "mcp___a-b", True),
        ("mcp__a__b", "mcp___b_a", True),
        ("b", "mcp___a_b", True),
        ("b", "mcp___ab", False),
    ],
)
def test_a_rule_may_be_about_a_tool_whose_server_is_not_known(rule: str, name: str, expected: bool) -> None:
    assert matchers.rule(rule).may_name_tool(name) is expected
