"""What a real server asks a real client, through the proxy as a process: rules, hooks and roots in both eras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.end.agent import Scene
from tests.end.test_real_servers import EVERYTHING, Person, connected, through

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("preloaded_servers")]

REPLACES = (
    "echo '"
    '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":{"action":"accept","content":'
    '{"name":"Eve"}}}}'
    "'"
)


def config(scene: Scene, text: str) -> str:
    path = Path(scene.folder) / "hookproxy.toml"
    path.write_text(text)
    return f"--config={path}"


async def said(client: Client, tool: str, **arguments: Any) -> str:  # noqa: ANN401
    result = await client.call_tool(tool, arguments)
    return str(getattr(result.content[0], "text", ""))


async def test_what_a_rule_refuses_is_never_asked(scene: Scene) -> None:
    person = Person()
    command = through([config(scene, '[permissions]\ndeny = ["*/*"]\n')], EVERYTHING)
    async with connected(scene, command, "legacy", person) as client:
        with pytest.raises(MCPError, match="User rejected sampling request"):
            await said(client, "samples", prompt="x")
        assert (await said(client, "elicits")).startswith("decline")
        assert '"roots":[]' in await said(client, "roots")
    async with connected(scene, command, "auto", person) as client:
        assert '"action":"decline"' in await said(client, "asks")
    assert person.requests == []


@pytest.mark.parametrize(("era", "tool"), [("legacy", "elicits"), ("auto", "asks")])
async def test_a_hook_replaces_the_persons_answer(scene: Scene, era: str, tool: str) -> None:
    hooks = f'[[hooks.PostToolUse]]\nmatcher = "elicitation/create"\ncommand = """{REPLACES}"""\n'
    async with connected(scene, through([config(scene, hooks)], EVERYTHING), era) as client:
        assert "Eve" in await said(client, tool)


async def test_a_server_gets_only_the_roots_that_are_allowed(scene: Scene) -> None:
    for keys, expected in (
        ('allow = ["/tmp"]', "file:///tmp/root"),
        ('allow = ["/tmp/other"]', '"roots":[]'),
        ('give = ["/srv"]', "file:///srv"),
    ):
        person = Person()
        async with connected(
            scene, through([config(scene, f"[roots]\n{keys}\n")], EVERYTHING), "legacy", person
        ) as client:
            assert expected in await said(client, "roots")
        assert person.requests == ([] if "give" in keys else ["roots"])
