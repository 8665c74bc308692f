"""README.md is correct and short: its quick start is played with a real agent, and each list agrees with the code.

`<!-- block: KIND [NAME] -->` is invisible to readers. A block without one, or of a kind that no test knows, fails.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp import Client, StdioServerParameters

from hookproxy.dialects.registry import DIALECTS
from hookproxy.wrapping.known_agents import AGENTS
from tests.docs.pages import ROOT, blocks, perform

TEXT: Final = (ROOT / "README.md").read_text("utf-8")
LONGEST: Final = 150  # lines: what people read to the end
KINDS: Final = {"install", "run", "fails", "calls", "file", "entry"}
SERVER: Final = Path(__file__).with_name("shell_server.py")
DIALECT_COUNT: Final = len([name for name in DIALECTS if "@" not in name])


@pytest.fixture
def zed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Zed's settings, with one server: `npx` is a stand-in that starts ours instead of one that would be fetched."""
    programs = home / "bin"
    programs.mkdir()
    npx = programs / "npx"
    npx.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER}\n")
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.path.dirname(sys.executable), os.environ["PATH"]]))
    settings = home / ".config" / "zed" / "settings.json"
    settings.parent.mkdir(parents=True)
    server = {"command": "npx", "args": ["-y", "@wonderwhy-er/desktop-commander"]}
    settings.write_text(json.dumps({"context_servers": {"shell": server}}, indent=2))
    return settings


async def call(settings: str, server: str, tool: str, arguments: dict[str, object]) -> tuple[bool, str]:
    """The result for an agent that starts the server as its settings say."""
    entry = json.loads(settings)["context_servers"][server]
    env = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME")}
    async with Client(StdioServerParameters.model_validate(entry | {"env": env})) as agent:
        result = await agent.call_tool(tool, arguments)
    return result.is_error, "\n".join(block.text for block in result.content if block.type == "text")


def test_it_is_short_enough_to_be_read() -> None:
    assert len(TEXT.splitlines()) <= LONGEST


def test_each_block_says_how_it_is_tested() -> None:
    assert len(blocks(TEXT)) * 2 == len(re.findall("^```", TEXT, re.M))
    assert {block.kind for block in blocks(TEXT)} == KINDS


@pytest.mark.slow
def test_the_quick_start_is_what_happens(zed: Path, tmp_path: Path) -> None:
    before = zed.read_text("utf-8")
    got: list[tuple[bool, str]] = []
    for block in blocks(TEXT):
        if block.kind == "calls":
            for line in block.text.splitlines():
                server, tool, arguments = line.split(maxsplit=2)
                got.append(anyio.run(call, zed.read_text("utf-8"), server, tool, json.loads(arguments)))
        elif block.kind in ("run", "fails"):
            perform(block, tmp_path)
    (refused, why), (failed, done) = got
    assert (refused, failed, done) == (True, False, "done\n")
    assert why.startswith("Blocked by the PreToolUse hook guard: This command is not allowed here: git push --force.")
    subprocess.run(["hookproxy", "unwrap", "zed"], check=True, capture_output=True)
    assert zed.read_text("utf-8") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "status"),
    [
        ('execute_command {"command": "ls -r"}', 0),
        ('execute_command {"command": "rm -rf x"}', 1),
        ('execute_command {"command": "sudo rm --force -r x"}', 1),
        ('execute_command {"command": "git -C x push"}', 1),
    ],
)
def test_the_first_hook_judges_commands(tmp_path: Path, call: str, status: int) -> None:
    assert _try(tmp_path, call, os.environ["PATH"]) == status


@pytest.mark.slow
def test_the_first_hook_refuses_everything_without_python_or_jq(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    assert _try(tmp_path, 'execute_command {"command": "ls"}', str(programs)) == 2


def _try(folder: Path, call: str, path: str) -> int:
    for block in blocks(TEXT):
        if block.kind == "file":
            perform(block, folder)
    tool, arguments = call.split(maxsplit=1)
    command = [sys.executable, "-m", "hookproxy", "try", tool, arguments, "--config", "my/hookproxy.toml"]
    return subprocess.run(command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True).returncode


def test_the_first_hook_has_eight_lines() -> None:
    (script,) = (block for block in blocks(TEXT) if block.name == "my/guard.py")
    assert len(script.text.splitlines()) <= 8


def test_it_names_every_agent_that_wrap_knows() -> None:
    named = TEXT[TEXT.index("It **works with**") : TEXT.index("It is **not needed")]
    assert [agent.title for agent in AGENTS if agent.title not in named] == []


def test_it_counts_the_dialects() -> None:
    assert f"Claude Code, Copilot, Codex, Cursor and {DIALECT_COUNT - 4} other agents" in TEXT
    assert f"Hook files of [{DIALECT_COUNT} systems]" in TEXT


def test_its_cost_per_call_is_the_measured_one() -> None:
    row = re.search(r"^\| a small call, p50, µs \|(.*)$", (ROOT / "docs" / "speed.md").read_text("utf-8"), re.MULTILINE)
    assert row
    _, _, ours, fastmcp = (float(cell.split()[0]) / 1000 for cell in row[1].strip("| ").split("|"))
    assert f"**It costs {ours:.2f} ms per call**" in TEXT
    assert f"fastmcp costs {fastmcp:.0f} ms" in TEXT


def test_the_extra_that_it_installs_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    lines = [line for block in blocks(TEXT) if block.kind == "install" for line in block.text.splitlines()]
    names = {name for line in lines for name in re.findall(r"'\.\[(\w+)\]'", line)}
    assert names == {"demo"}
    assert {*names, *re.findall(r"`(\w+)` for `hookproxy", TEXT)} <= set(extras)
    assert [shlex.split(line)[1] for line in lines] == ["python3", "uv", "pipx"]


def test_the_one_line_for_hooks_that_exist_is_a_command_line_of_run() -> None:
    (entry,) = (block for block in blocks(TEXT) if block.kind == "entry")
    example = (ROOT / "docs" / "existing-hooks.md").read_text("utf-8")
    assert shlex.join(shlex.split(entry.text)) in example.replace('$ echo "$call" | ', "")
