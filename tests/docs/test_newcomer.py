"""A user's first day, with nothing but docs/first-day.md: three servers wrapped, a call refused, found, and replayed.

The agent is the SDK's; mcp-server-git and mcp-server-time are themselves. `npx` is a stand-in that starts a server of
ours in the place of one that would have to be fetched; it runs the command lines that it is given.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest
from mcp import Client, StdioServerParameters

from tests.docs.pages import ROOT, blocks, perform

TEXT: Final = (ROOT / "docs" / "first-day.md").read_text("utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository; in PATH, the servers."""
    programs = tmp_path / "bin"
    programs.mkdir()
    npx = programs / "npx"
    npx.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name('shell_server.py')}\n")
    npx.chmod(0o755)
    path = os.pathsep.join([str(programs), os.path.dirname(sys.executable), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    folder = tmp_path / "project"
    os.system(f"git init --quiet --initial-branch=main {folder}")
    return folder


async def call(project: Path, server: str, tool: str, arguments: dict[str, object]) -> tuple[bool, str]:
    """The result for an agent that starts the server as its configuration says."""
    entry = json.loads((project / ".mcp.json").read_text("utf-8"))["mcpServers"][server]
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    async with Client(StdioServerParameters.model_validate(entry | {"cwd": project, "env": env})) as agent:
        result = await agent.call_tool(tool, arguments)
    return result.is_error, "\n".join(block.text for block in result.content if block.type == "text")


async def test_a_new_user_gets_through_the_first_day(project: Path) -> None:
    got: list[tuple[bool, str]] = []
    printed = ""
    for block in blocks(TEXT):
        if block.kind == "calls":
            for line in block.text.splitlines():
                server, tool, arguments = line.split(maxsplit=2)
                got.append(await call(project, server, tool, json.loads(arguments)))
        else:
            printed = perform(block, project)
    assert [failed for failed, _ in got] == [False, False, True, False]
    refused, done = got[2:]
    assert refused[1].endswith("This cannot be taken back: git push origin topic. Ask the user to do it.")
    assert done[1] == "done\n"
    assert "git push origin topic" in printed
    assert "echo done" not in printed


async def test_the_guard_refuses_where_jq_is_missing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(TEXT):
        if block.kind == "file":
            perform(block, project)
    perform(next(block for block in blocks(TEXT) if block.kind == "run"), project)
    programs = project.parent / "bin"
    for name in ("bash", "sh", "grep", "hookproxy"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    failed, text = await call(project, "shell", "start_process", {"command": "git push", "timeout_ms": 5000})
    assert failed
    assert "The guard cannot read this call." in text
