"""`--project` and `project` of `[[use]]`: the folder in which hooks run is the one that their documents name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli import test_run, test_try_
from tests.support.hook_files import config

pytestmark = pytest.mark.slow

ENTRY: Final = {"type": "command", "command": "pwd >where; cat >document"}
GROUPED: Final = {"hooks": {"PreToolUse": [{"hooks": [ENTRY]}]}}
FILES: Final[dict[str, tuple[Any, str]]] = {
    "claude": (GROUPED, "cwd"),
    "claw": ({"hooks": {"PreToolUse": [ENTRY["command"]]}}, ""),
    "codex": (GROUPED, "cwd"),
    "copilot": ({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": ENTRY["command"]}]}}, "cwd"),
    "crush": ({"hooks": {"PreToolUse": [{"command": ENTRY["command"]}]}}, "cwd"),
    "cursor": ({"version": 1, "hooks": {"preToolUse": [{"command": ENTRY["command"]}]}}, "cwd"),
    "droid": (GROUPED, "cwd"),
    "gemini": ({"hooks": {"BeforeTool": [{"hooks": [ENTRY]}]}}, "cwd"),
    "iflow": (GROUPED, "cwd"),
    "kiro": ({"name": "a", "tools": [], "hooks": {"preToolUse": [{"command": ENTRY["command"]}]}}, "cwd"),
    "qwen": (GROUPED, "cwd"),
    "vscode": ({"hooks": {"PreToolUse": [ENTRY]}}, "cwd"),
}
"""A hook file of each system, and the member of the document that names the working directory; empty: there is none."""


def seen(project: Path, member: str) -> set[str]:
    """The folders that the hook saw: the one in which it ran, and the one that its document names."""
    where = (project / "where").read_text().strip()
    document = json.loads((project / "document").read_text())
    return {where, document[member] if member else where}


@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize("named_by", ["option", "configuration"])
def test_hooks_run_in_the_project_that_is_named_and_read_it_as_their_working_directory(
    tmp_path: Path, dialect: str, named_by: str
) -> None:
    content, member = FILES[dialect]
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "hooks.json").write_text(json.dumps(content))
    by_option = ["--project", str(project), f"--hooks={dialect}=hooks.json"]
    use = f'[[use]]\nfile = "hooks.json"\ndialect = "{dialect}"\nproject = "project"\n'
    arguments = by_option if named_by == "option" else [config(tmp_path, use)]
    ended = test_try_.attempt(tmp_path, "echo", "{}", *arguments)
    assert ended.returncode == 0, ended.stderr
    assert seen(project, member) == {str(project)}


def test_a_run_does_the_same_and_leaves_the_server_where_it_is(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "hooks.json").write_text(json.dumps(FILES["gemini"][0]))
    server = ("sh", "-c", f"pwd >server; while read -r line; do echo '{test_run.ANSWER}'; done")
    ended = test_run.run(
        tmp_path, "--project", "project", "--hooks=gemini=hooks.json", "--", *server, agent=test_run.CALL
    )
    assert ended.stdout == test_run.ANSWER + "\n"
    assert seen(project, "cwd") == {str(project)}
    document = json.loads((project / "document").read_text())
    assert document["mcp_context"]["cwd"] == (tmp_path / "server").read_text().strip() == str(tmp_path)


def test_the_path_that_a_tool_gets_starts_from_the_server(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    entry = {"command": ENTRY["command"]}
    (tmp_path / "hooks.json").write_text(json.dumps({"version": 1, "hooks": {"beforeReadFile": [entry]}}))
    ended = test_try_.attempt(
        tmp_path, "read_file", '{"path":"a"}', "--project", str(project), "--hooks=cursor=hooks.json"
    )
    assert ended.returncode == 0, ended.stderr
    document = json.loads((project / "document").read_text())
    assert (document["file_path"], document["workspace_roots"]) == (f"{tmp_path}/a", [str(project)])
