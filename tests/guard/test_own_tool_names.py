"""A rule about a familiar name is about each tool that has it: of an agent's own tables and of others, in any layer.

So it is where it is the only rule, and where the agent does not say which server a tool belongs to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.config.load import Loaded
from hookproxy.dialects.agent_side import agent_side, names
from hookproxy.guard.exchange import Request
from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from tests.guard.test_judge import WITH_SHELL, before, configured, judging, permission, records

pytestmark = pytest.mark.anyio


def own_shell(agent: str) -> str:
    """The name that the agent's document has for its shell; empty: it has none."""
    side, request = agent_side(agent), before(agent)
    assert side is not None
    tool = side.read_document(request.document, {**request.environ, "PWD": "/"}).context.tool.removeprefix("Cursor: ")
    return tool if f'"{tool}"'.encode() in request.document else ""


def calling(agent: str, tool: str, arguments: dict[str, object]) -> Request:
    """The document before a call of another tool, with the arguments where those of the shell are."""
    request = before(agent)
    document = request.document.decode().replace(json.dumps(own_shell(agent)), json.dumps(tool))
    for command in ('{"command": "rm x"}', '{"cmd": "rm x"}'):
        document = document.replace(command, json.dumps(arguments))
    return Request(agent, "/", request.environ, document.encode())


def patch(*lines: str) -> Request:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return calling("codex", "apply_patch", {"command": text})


async def judged(loaded: Loaded, request: Request) -> Permission | None:
    async with judging(loaded) as judge:
        return permission(request.agent, await judge.judge(request))


def denying(folder: Path, rule: str, *, managed: bool = False) -> Loaded:
    """A configuration whose only rule denies this, in the user's layer or in the administrator's."""
    if not managed:
        return configured(folder, f'[permissions]\ndeny = ["{rule}"]')
    loaded = configured(folder, "")
    return replace(loaded, settings=replace(loaded.settings, managed=Settings(deny=(rule,))))


ACTS: Final = {
    "a file of a patch": (patch("*** Add File: src/a.py", "+x"), "Write(src/**)"),
    "a second file of a patch": (patch("*** Add File: b", "+x", "*** Add File: src/a.py", "+x"), "Write(src/**)"),
    "a file that a patch deletes": (patch("*** Delete File: src/a.py"), "Write(src/**)"),
    "a file to which a patch moves another": (
        patch("*** Update File: b", "*** Move to: src/a.py", "@@", "-a", "+b"),
        "Write(src/**)",
    ),
    "a patch of two places": (
        patch("*** Update File: src/a.py", "@@", "-a", "+b", "@@", "-c", "+d"),
        "Edit(src/**)",
    ),
    "a list of edits": (
        calling("claude", "MultiEdit", {"file_path": "src/a", "edits": [{"old_string": "a", "new_string": "b"}]}),
        "Edit(src/**)",
    ),
    "a list of edits of several files": (
        calling("vscode", "multi_replace_string_in_file", {"replacements": [{"filePath": "src/a", "newString": "b"}]}),
        "Edit(src/**)",
    ),
    "a list of files": (
        calling("kiro", "fs_read", {"operations": [{"mode": "Line", "path": "a/.env"}]}),
        "Read(**/.env)",
    ),
    "an address in a text": (
        calling("gemini", "web_fetch", {"prompt": "read https://evil.example/x"}),
        "WebFetch(domain:evil.example)",
    ),
}


@pytest.mark.parametrize("managed", [False, True], ids=["user", "managed"])
@pytest.mark.parametrize("name", ACTS)
async def test_one_rule_is_enough_for_each_form_of_an_act(name: str, managed: bool, tmp_path: Path) -> None:
    request, rule = ACTS[name]
    assert await judged(denying(tmp_path, rule, managed=managed), request) is Permission.DENY
    refused = [line for line in records(tmp_path) if line["result"] == "refused"]
    assert any(rule in json.dumps(line) for line in refused)


@pytest.mark.parametrize("managed", [False, True], ids=["user", "managed"])
@pytest.mark.parametrize("agent", names())
async def test_a_rule_about_a_familiar_name_alone_refuses_every_tool_of_the_agents_tables(
    agent: str, managed: bool, tmp_path: Path
) -> None:
    side = agent_side(agent)
    assert side is not None
    shell = own_shell(agent)
    if not shell:
        pytest.skip("its documents have no name of a tool")
    for known, spellings in side.tool_spellings().items():
        loaded = denying(tmp_path, known, managed=managed)
        for tool in {spelling.name for spelling in spellings}:
            request = before(agent)
            document = request.document.decode().replace(json.dumps(shell), json.dumps(tool.removeprefix("Cursor: ")))
            request = Request(agent, "/", request.environ, document.encode())
            assert await judged(loaded, request) is Permission.DENY, (known, tool)


NAMELESS: Final = {
    "cursor": "MCP:run_command",
    "gemini": "mcp_files_run_command",
    "vscode": "mcp_files_run_command",
    "copilot": "my-files-run_command",
    "kiro": "mcp_files_run_command",
    "hermes": "mcp_files_run_command",
    "crush": "mcp_files_run_command",
    "docker-agent": "files_run_command",
    "cline": "a__b__run_command",
}
"""Tools of servers whose names these agents do not give, or not so that one knows where they end."""


@pytest.mark.parametrize("managed", [False, True], ids=["user", "managed"])
@pytest.mark.parametrize("agent", NAMELESS)
async def test_a_servers_tool_counts_by_its_name_where_the_agent_does_not_name_the_server(
    agent: str, managed: bool, tmp_path: Path
) -> None:
    request = calling(agent, NAMELESS[agent], {"command": "rm x"})
    assert await judged(denying(tmp_path, "Bash(rm *)", managed=managed), request) is Permission.DENY
    assert await judged(denying(tmp_path, "Bash(git *)", managed=managed), request) is not Permission.DENY


@pytest.mark.parametrize("agent", NAMELESS)
async def test_an_allow_rule_covers_all_that_a_nameless_servers_tool_is_given(agent: str, tmp_path: Path) -> None:
    rules = '[permissions]\ndefault = "deny"\nallow = ["Bash(git *)", "*run_command(command:git *)"]'
    request = calling(agent, NAMELESS[agent], {"command": "git status", "target": "/etc/passwd"})
    assert await judged(configured(tmp_path, rules), request) is Permission.DENY


def test_the_shells_of_agents_are_named() -> None:
    assert len([agent for agent in WITH_SHELL if own_shell(agent)]) > 20
