"""Hook files of other systems as MCP interceptors, and servers of interceptors in other systems' agents."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from hookproxy.cli.convert import main
from hookproxy.cli.interceptors import main as interceptors
from hookproxy.convert.dry_call import listing_failure
from hookproxy.convert.hook_file import Converted
from hookproxy.dialects.agent_side import side_of
from hookproxy.dialects.dialect import WrittenEntry
from hookproxy.model.errors import ConfigError, UserError

SERVER = """
import json, sys

phases = [{"events": ["tools/call"], "phase": phase} for phase in ("request", "response")]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "interceptors/list":
        result = {"interceptors": [{"name": "no-rm", "type": "validation", "hooks": phases}]}
    if message["method"] == "interceptor/invoke":
        is_valid = "rm x" not in json.dumps(message["params"]["payload"])
        why = [{"message": "is bad", "severity": "error"}]
        result = {"valid": True} if is_valid else {"valid": False, "severity": "error", "messages": why}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
DENIES = 'grep -q \'"command":"rm \' && { echo no rm >&2; exit 2; } || true'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a hook file of Claude Code, and a server of interceptors in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for folder in (".claude", "guards"):
        (tmp_path / folder).mkdir()
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": DENIES}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}],
    }
    (tmp_path / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    (tmp_path / "guards/server.py").write_text(SERVER)
    (tmp_path / "guards/hookproxy.toml").write_text(
        f'[[interceptors]]\nname = "rm"\nargv = ["{sys.executable}", "server.py"]\nenv = {{ LEVEL = "1" }}\n'
    )
    return tmp_path


def told(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What a conversion that loses something prints: the file, and the losses."""
    capsys.readouterr()
    assert main(words) == 1
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_hook_file_becomes_a_server_of_interceptors(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, losses = told([".claude/settings.json", "--to", "interceptors", "--portable", "--fail-closed"], capsys)
    (server,) = tomllib.loads(text)["interceptors"]
    serve = ["hookproxy", "interceptors", "serve", "--hooks", "claude=.claude/settings.json", "--fail-closed"]
    assert server == {"name": "hookproxy", "argv": serve}
    assert "hooks.SessionStart[0].hooks[0] is left out: interceptors have no event for SessionStart" in losses
    assert "where a hook asks a person, the call is refused" in losses


def test_a_matcher_of_a_server_is_a_loss_because_hosts_do_not_name_servers(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = {"matcher": "mcp__files__.*", "hooks": [{"type": "command", "command": "true"}]}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    _, losses = told([".claude/settings.json", "--to", "interceptors"], capsys)
    assert "its matcher names a server, and hosts do not say which one a message is of" in losses


def test_a_hookproxy_toml_is_served_as_a_whole(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "own.toml"
    hook = '[[hooks.PreToolUse]]\ncommand = "true"\n'
    path.write_text(f'{hook}{hook}type = "agent-hooks"\n')
    text, losses = told([str(path), "--from", "agent-hooks", "--to", "interceptors"], capsys)
    assert tomllib.loads(text)["interceptors"][0]["argv"][-2:] == ["--config", str(path)]
    assert "hooks that are not of agent-hooks, or only watched, take part, too" in losses


def test_interceptors_in_an_agent_run_their_server_by_command_line_or_address(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (project / "guards/hookproxy.toml").open("a") as file:
        file.write('[[interceptors]]\nname = "web"\nurl = "https://example.com/mcp"\n')
        file.write('[[interceptors]]\nname = "key"\nurl = "https://example.com/"\nheaders = { X = "y" }\n')
    text, losses = told(["guards/hookproxy.toml", "--from", "interceptors", "--to", "claude"], capsys)
    words = shlex.split(json.loads(text)["hooks"]["PreToolUse"][0]["hooks"][0]["command"])
    lines = [words[place + 1] for place, word in enumerate(words) if word == "--run"]
    assert lines[0].startswith(f"cd {project}/guards || exit 2; export LEVEL=1; ")
    assert lines[1:] == ["https://example.com/mcp"]
    assert "interceptors[2] and 2 more are left out: the headers" in losses
    assert "agents have no hooks for other messages" in losses
    assert "on_failure" not in losses


def test_interceptors_are_not_converted_into_interceptors(project: Path) -> None:
    with pytest.raises(UserError, match="has interceptors already"):
        main(["guards/hookproxy.toml", "--from", "interceptors", "--to", "interceptors"])


@pytest.mark.slow
def test_what_is_written_is_a_server_that_denies(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told([".claude/settings.json", "--to", "interceptors", "--write"], capsys)
    (server,) = tomllib.loads((project / "hookproxy.toml").read_text())["interceptors"]
    call = json.dumps({"name": "Bash", "arguments": {"command": "rm x"}})
    words = ["hookproxy/policy", call, "--event", "tools/call", "--phase", "request", "--", *server["argv"]]
    assert interceptors(["invoke", *words]) == 1
    assert "no rm" in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_that_cannot_list_is_a_failure(tmp_path: Path) -> None:
    def failure(*start: str) -> str:
        server = (*start, "interceptors", "serve", "--config", "/missing.toml")
        (line,) = listing_failure(Converted({}, (), 1, (), start[0], {}, server), str(tmp_path), os.environ)
        return line

    assert "/missing.toml" in failure(sys.executable, "-P", "-m", "hookproxy")
    assert "/missing/hookproxy" in failure("/missing/hookproxy")


def test_a_matcher_is_refused_because_interceptors_say_themselves_what_they_judge() -> None:
    side = side_of("interceptors")
    assert side is not None
    assert side.read_command is not None
    with pytest.raises(ConfigError, match="has no matcher"):
        side.read_command(WrittenEntry("request", "server", matcher="Bash"), "/")


def test_no_agent_of_interceptors_runs_hooks() -> None:
    side = side_of("interceptors")
    assert side is not None
    with pytest.raises(ValueError, match="start no hooks"):
        side.read_document(b"{}", {})


def output_of(command: str, document: object) -> str:
    given = json.dumps(document)
    ended = subprocess.run(command, shell=True, input=given, capture_output=True, text=True, check=False)
    return ended.stdout


@pytest.mark.slow
def test_interceptors_deny_in_an_agent_and_fail_closed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".claude/settings.json").unlink()
    told(["guards/hookproxy.toml", "--from", "interceptors", "--to", "claude", "--write"], capsys)
    hooks = json.loads((project / ".claude/settings.json").read_text())["hooks"]
    command = hooks["PreToolUse"][0]["hooks"][0]["command"]
    about = {"hook_event_name": "PreToolUse", "session_id": "s", "permission_mode": "default", "tool_name": "Bash"}
    assert "is bad" in output_of(command, about | {"tool_input": {"command": "rm x"}})
    assert output_of(command, about | {"tool_input": {"command": "ls"}}) == ""
    (project / "guards/server.py").unlink()
    assert '"deny"' in output_of(command, about | {"tool_input": {"command": "ls"}})


@pytest.mark.slow
def test_interceptors_are_interceptors_of_the_other_standard(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(["guards/hookproxy.toml", "--from", "interceptors", "--to", "agent-hooks", "--write"], capsys)
    (table,) = tomllib.loads((project / "hookproxy.toml").read_text())["hooks"]["PreToolUse"]
    context = {"interception_point": "pre_tool_call", "session": {"id": "s"}, "agent": {"id": "a", "framework": "f"}}
    call = {"tool_call": {"id": "1", "name": "Bash", "args": {}}, "target": {"command": "rm x"}}
    verdict = json.loads(output_of(table["command"], context | call))
    assert (verdict["decision"], "is bad" in verdict["message"]) == ("deny", True)
