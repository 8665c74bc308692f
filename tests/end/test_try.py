"""A trial and a run of the same call on the same hooks: what hooks get and what the agent reads agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.hook_files import COMMENTS, DENIALS, HOOK_FILES, config, hooks_file
from tests.support.program import HOOKPROXY

SERVER: Final = str(Path(__file__).parents[1] / "docs" / "tiny_server.py")
ARGUMENTS: Final = {"path": "a", "n": 1.0, "text": "é\u2028"}
CALL: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "measure", "arguments": ARGUMENTS}}
RESULT: Final = {"content": [{"type": "text", "text": json.dumps(ARGUMENTS)}]}
OF_A_MOMENT: Final = ("timestamp", "duration_ms", "transcript_path")
"""The members in which two documents about the same call may differ."""


def hookproxy(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
    return subprocess.run(
        [HOOKPROXY, *arguments],
        cwd=folder,
        env=known | {"CLAUDE_CODE_SESSION_ID": "the session"},
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def ran(folder: Path, *options: str) -> dict[str, Any]:
    """The `result` that an agent gets of a real run."""
    ended = hookproxy(
        folder, "run", "--name=server", *options, "--", sys.executable, SERVER, given=json.dumps(CALL) + "\n"
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    result: dict[str, Any] = answer["result"]
    return result


def tried(folder: Path, *options: str) -> dict[str, Any]:
    ended = hookproxy(
        folder, "try", "measure", json.dumps(ARGUMENTS), "--result", json.dumps(RESULT), *options, "--json"
    )
    read: dict[str, Any] = json.loads(ended.stdout)
    return read


def without_times(document: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(document).items() if name not in OF_A_MOMENT}


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
@pytest.mark.parametrize("dialect", HOOK_FILES)
def test_a_hook_gets_the_same_document_and_variables(tmp_path: Path, dialect: str, event: str) -> None:
    text = "; echo '{}'" if dialect == "code-assist" else ""
    hooks = hooks_file(tmp_path, dialect, f"cat > stdin.$PPID; env -0 > env.$PPID{text}", event)
    ran(tmp_path, hooks)
    (of_the_run,) = tmp_path.glob("stdin.*")
    env = dict(pair.split("=", 1) for pair in (tmp_path / f"env{of_the_run.suffix}").read_text().split("\0") if pair)
    document = of_the_run.read_text()
    (shown,) = (hook for hook in tried(tmp_path, hooks)["hooks"] if hook["absent"] is None)
    assert without_times(shown["stdin"]) == without_times(document)
    if event == "PreToolUse":  # after it, variables may hold the document, and so how long the call took
        assert {name: env[name] for name in shown["variables"]} == shown["variables"]


@pytest.mark.parametrize("dialect", DENIALS)
def test_a_refusal_is_the_one_that_the_agent_gets(tmp_path: Path, dialect: str) -> None:
    hooks = hooks_file(tmp_path, dialect, DENIALS[dialect])
    shown = tried(tmp_path, hooks)
    assert (shown["status"], shown["decision"]) == (1, "deny")
    assert shown["result"]["after"]["content"] == ran(tmp_path, hooks)["content"]


@pytest.mark.parametrize("dialect", COMMENTS)
def test_a_comment_is_the_one_that_the_agent_gets(tmp_path: Path, dialect: str) -> None:
    hooks = hooks_file(tmp_path, dialect, COMMENTS[dialect], "PostToolUse")
    shown = tried(tmp_path, hooks)
    assert shown["status"] == 0
    if dialect != "lime":  # whose post hooks nobody waits for
        assert shown["result"]["after"] == ran(tmp_path, hooks)


def test_rules_and_rewrites_decide_the_same(tmp_path: Path) -> None:
    rewrite = """echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"path":"b"}}}'"""
    text = f"[[hooks.PreToolUse]]\ncommand = '''{rewrite}'''\n"
    shown = tried(tmp_path, config(tmp_path, text))
    assert shown["arguments"]["after"] == {"path": "b"}
    assert json.loads(ran(tmp_path, "--config=hookproxy.toml")["content"][0]["text"]) == {"path": "b"}
    denying = config(tmp_path, f'{text}[permissions]\ndeny = ["measure(b)"]\n')
    shown = tried(tmp_path, denying)
    assert (shown["decision"], shown["by"]) == ("deny", "the permission rule measure(b)")
    assert shown["result"]["after"]["content"] == ran(tmp_path, denying)["content"]
