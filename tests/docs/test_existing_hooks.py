"""docs/existing-hooks.md is correct: its entry starts the server behind the hook; commands print what is shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.docs import pages
from tests.docs.pages import Block

TEXT: Final = (pages.ROOT / "docs" / "existing-hooks.md").read_text("utf-8")


def blocks(kind: str) -> list[Block]:
    return [block for block in pages.blocks(TEXT) if block.kind == kind]


def only_block(kind: str) -> Block:
    (block,) = blocks(kind)
    return block


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository on main with something to commit, and all files of the page."""
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "person@example.com")
    for file in blocks("file"):
        path = tmp_path / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    executable = only_block("run").text.splitlines()[0].removeprefix("$ ")
    assert executable.startswith("chmod ")
    subprocess.run(executable, shell=True, cwd=tmp_path, check=True)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def entry(sign: str) -> StdioServerParameters:
    """The one server of `.mcp.json`, before (-) or after (+)."""
    lines = [line[1:] for line in only_block("entry").text.splitlines() if line.startswith(sign)]
    return StdioServerParameters.model_validate(json.loads("\n".join(lines))["mcpServers"]["git"])


async def committed(project: Path, sign: str) -> tuple[bool, str, list[str]]:
    """What an agent gets for a commit, and what tools it sees, where `.mcp.json` has this entry."""
    env = {name: value for name, value in os.environ.items() if name.startswith("GIT_")} | {"PATH": os.environ["PATH"]}
    async with Client(entry(sign).model_copy(update={"cwd": project, "env": env})) as agent:
        tools = await agent.list_tools()
        result = await agent.call_tool("git_commit", {"repo_path": str(project), "message": "x"})
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return result.is_error, text, [tool.name for tool in tools.tools]


def commits(project: Path) -> int:
    ended = subprocess.run(["git", "log", "--oneline"], cwd=project, capture_output=True, text=True, check=False)
    return len(ended.stdout.splitlines())


async def test_the_entry_after_is_the_entry_before_behind_its_hook(project: Path) -> None:
    failed, text, tools = await committed(project, "+")
    assert (failed, text) == (True, only_block("run").text.splitlines()[-1])
    assert commits(project) == 0
    failed, text, tools_before = await committed(project, "-")
    assert not failed
    assert commits(project) == 1
    assert tools == tools_before
    assert entry("+").args[-3:] == [entry("-").command, *entry("-").args]


async def test_the_hook_lets_commits_on_other_branches_pass(project: Path) -> None:
    await anyio.run_process(["git", "checkout", "--quiet", "-b", "other"], cwd=project)
    failed, _, _ = await committed(project, "+")
    assert not failed
    assert commits(project) == 1


@pytest.mark.parametrize("block", blocks("run"), ids=lambda block: block.text.splitlines()[-1][:30])
def test_commands_print_what_is_shown(project: Path, block: Block) -> None:
    lines = block.text.splitlines(keepends=True)
    script = "".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    shown = "".join(line for line in lines if not line.startswith("$ "))
    ended = subprocess.run(["bash", "-euc", script], cwd=project, capture_output=True, encoding="utf-8", timeout=60)
    assert (ended.returncode, ended.stdout) == (0, shown)
    assert [line for line in ended.stderr.splitlines() if " a call pass if " not in line] == []


async def test_the_hook_refuses_where_jq_is_missing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = project / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "env", "git", "mcp-server-git", "hookproxy"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    failed, text, _ = await committed(project, "+")
    assert failed
    assert "The branch is not known." in text
