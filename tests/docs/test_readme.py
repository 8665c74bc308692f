"""README.md is correct: each block is run, or used by a test; a comment before it says how.

`<!-- block: KIND [NAME] -->` is invisible to readers. A block without one, or of a kind that no test knows, fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import msgspec
import pytest
from mcp import Client, StdioServerParameters

from hookproxy.cli.main import VERBS
from hookproxy.cli.run import USAGE
from hookproxy.dialects.claude import hook_file, output
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "README.md").read_text("utf-8")
CLAUDES: Final = (ROOT / "docs" / "dialects" / "claude.md").read_text("utf-8")
CONCEPTS: Final = (ROOT / "docs" / "concepts.md").read_text("utf-8")
LONGEST: Final = 200  # lines beside tables: what people read to the end
KINDS: Final = {"picture", "install", "entry", "file", "run"}
"""The kinds of blocks; each has its test here."""

_FENCED: Final = re.compile(
    r"(?:<!-- block: (?P<kind>\w+) ?(?P<name>\S*) -->\n)?```\w*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    kind: str
    """Empty if there is no comment before the block."""
    name: str
    """The name of a `file`."""
    text: str


_DAY: Final = re.compile(r"^## The first day.*?(?=^## )", re.DOTALL | re.MULTILINE)  # test_newcomer lives through it
OTHER: Final = _DAY.sub("", TEXT)
BLOCKS: Final = [Block(match["kind"] or "", match["name"] or "", match["text"]) for match in _FENCED.finditer(OTHER)]


def blocks(kind: str) -> list[Block]:
    assert kind in KINDS
    return [block for block in BLOCKS if block.kind == kind]


def only_block(kind: str) -> Block:
    (block,) = blocks(kind)
    return block


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def in_code(text: str) -> set[str]:
    """The text between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository on main with something to commit, and all files of the README."""
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


def test_it_is_short_enough_to_be_read() -> None:
    assert len(re.sub("(?m)^\\|.*\n", "", TEXT).splitlines()) <= LONGEST


def test_each_block_says_how_it_is_tested() -> None:
    assert len(BLOCKS) * 2 == len(re.findall("^```", OTHER, re.M))
    assert {block.kind for block in BLOCKS} == KINDS


def test_the_picture_shows_only_events_that_exist() -> None:
    shown = re.findall(r"─ (\w+)", only_block("picture").text)
    assert shown == ["PreToolUse", "PostToolUse", "PostToolUseFailure"]
    assert set(shown) <= {event.value for event in Event}


def test_what_it_installs_is_what_the_scripts_install_and_the_demo_plays(project: Path) -> None:
    install, play = only_block("install").text.splitlines()
    assert install == "$ pip install '.[demo]'"
    assert re.search(r'pip install [^\n]*"\.\$1"', (ROOT / "scripts" / "setup").read_text())
    ended = subprocess.run(play.removeprefix("$ "), shell=True, cwd=project, capture_output=True, timeout=60)
    assert ended.returncode == 0
    # the agent may end before it has listed the tools
    assert ended.stderr in (b"", b"hookproxy: files: 4 hooks on 4 of 4 tools\n")


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
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, shown, "")


def test_every_dialect_is_named() -> None:
    assert set(DIALECTS) <= in_code(section("Whose hooks"))


def test_the_table_of_claudes_fields_is_complete() -> None:
    named = in_code(CLAUDES)
    answered = {*output._MEMBERS, *output._Specific.__struct_encode_fields__}
    assert answered - {"hookEventName", "hookSpecificOutput"} <= named
    assert {*hook_file._HOOK_KEYS, "matcher", "disableAllHooks"} <= named
    for event in hook_file.EVENTS.values():
        assert re.search(rf"\b{event}\b", CLAUDES)


def test_hooks_get_the_documented_input(project: Path) -> None:
    groups = [{"hooks": [{"type": "command", "command": "cat >>recorded.jsonl"}]}]
    (project / "all.json").write_text(json.dumps({"hooks": {"PreToolUse": groups, "PostToolUse": groups}}))
    server = [sys.executable, str(Path(__file__).with_name("tiny_server.py"))]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}}
    command = ["hookproxy", "run", "--hooks", "claude=all.json", "--audit", "audit.jsonl", "--", *server]
    subprocess.run(command, cwd=project, input=json.dumps(call).encode() + b"\n", capture_output=True, check=True)
    documents = [json.loads(line) for line in (project / "recorded.jsonl").read_text("utf-8").splitlines()]
    read = {key for document in documents for key in document} - {"hook_event_name"}
    assert read <= in_code(CLAUDES)
    (line,) = msgspec.json.Decoder(dict[str, object]).decode_lines((project / "audit.jsonl").read_bytes())
    hooks = msgspec.convert(line["hooks"], list[dict[str, object]])
    assert {*line, *hooks[0]} <= in_code(CONCEPTS)


def test_the_usage_is_that_of_the_program() -> None:
    assert f"`{USAGE}`" in section("Command line")
    assert "](docs/reference.md)" in TEXT
    reference = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for verb in VERBS:
        assert f"\n### hookproxy {verb}\n\n`hookproxy {verb}" in reference


def test_the_files_that_it_names_exist() -> None:
    for name in ("scripts/bench", "scripts/run", "scripts/test"):
        assert name in TEXT
        assert os.access(ROOT / name, os.X_OK)
    assert (ROOT / "configs").exists()
