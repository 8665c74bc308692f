"""`--agent NAME --server NAME`: `try`, `check`, `replay` and the console use what an agent's entry runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support import preloaded_program

pytestmark = pytest.mark.slow


def entry(*options: str, **more: object) -> dict[str, object]:
    return {"command": "hookproxy", "args": ["run", *options, "--", "server", "--flag"], **more}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose agent runs a server with a policy that denies, and one without hookproxy."""
    (tmp_path / ".cursor").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "deny.toml").write_text('[permissions]\ndeny = ["write_file"]\n')
    servers: dict[str, dict[str, object]] = {
        "files": entry("--name", "docs", "--config", str(tmp_path / "deny.toml")),
        "bare": {"command": "server", "args": []},
        "gate": {"command": "hookproxy", "args": ["connect", "https://gate.example/mcp/git"]},
    }
    write(tmp_path, servers)
    return tmp_path


def write(home: Path, servers: dict[str, dict[str, object]]) -> None:
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def ran(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "XDG"))}
    return preloaded_program.run(arguments, home / "work", kept | {"HOME": str(home)})


def test_try_decides_as_the_entry_of_the_agent_does(home: Path) -> None:
    ended = ran(home, "try", "write_file", "--agent", "cursor", "--server", "files")
    assert ended.returncode == 1
    assert "write_file of docs: " in ended.stdout
    assert "as cursor runs it: mcpServers.files of " in ended.stderr


def test_check_shows_the_rules_of_the_entry(home: Path) -> None:
    ended = ran(home, "check", "--agent", "cursor", "--server", "files")
    assert "deny" in ended.stdout
    assert "write_file" in ended.stdout


def test_replay_judges_by_the_entry_and_finds_the_audit_from_here(home: Path) -> None:
    line = {"v": 1, "tool": "write_file", "server": "docs", "arguments": {}, "decision": "allow", "id": 1}
    (home / "work" / "audit.jsonl").write_text(json.dumps(line) + "\n")
    ended = ran(home, "replay", "audit.jsonl", "--agent", "cursor", "--server", "files")
    assert ended.returncode == 1
    assert "1 would be decided differently" in ended.stdout


def test_without_a_policy_try_names_the_entry_that_has_one(home: Path) -> None:
    ended = ran(home, "try", "write_file")
    assert ended.returncode == 4
    assert "--agent cursor --server files" in ended.stderr


def test_the_variables_and_the_folder_of_the_entry_count(home: Path) -> None:
    folder = home / "config" / "hookproxy"
    folder.mkdir(parents=True)
    (folder / "hookproxy.toml").write_text('[permissions]\ndeny = ["read_file"]\n')
    env = {"XDG_CONFIG_HOME": "${HOME}/config", "OTHER": "${input:key}"}
    write(home, {"files": entry(env=env), "near": entry("--config", "deny.toml", cwd=str(home))})
    ended = ran(home, "try", "read_file", "--agent", "cursor", "--server", "files")
    assert ended.returncode == 1
    assert "OTHER of mcpServers.files is taken as it is written" in ended.stderr
    assert ran(home, "try", "write_file", "--agent", "cursor", "--server", "near").returncode == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--agent", "cursor", "--server", "bare"), "runs without hookproxy: nothing judges its calls"),
        (("--agent", "cursor", "--server", "gate"), "reaches a gateway, which decides about its calls"),
        (("--agent", "cursor", "--server", "fils"), "cursor has no server fils"),
        (("--agent", "cursr", "--server", "files"), "cursr"),
        (("--agent", "cursor"), "cursor runs several servers with hookproxy"),
        (("--agent", "cursor", "--server", "files", "--config", "x"), "--config and --agent exclude each other"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_an_error_with_a_hint(
    home: Path, options: tuple[str, ...], error: str
) -> None:
    ended = ran(home, "try", "write_file", *options)
    assert ended.returncode == 2
    assert error in ended.stderr
    assert "hint: " in ended.stderr


def test_two_files_with_one_server_are_named_also_if_no_server_is(home: Path) -> None:
    write(home, {"files": entry("--config", str(home / "deny.toml"))})
    (home / "work" / ".cursor").mkdir()
    write(home / "work", {"files": entry()})
    ended = ran(home, "try", "write_file", "--agent", "cursor")
    assert ended.returncode == 2
    assert "cursor has a server files in " in ended.stderr
    assert "name the file: --agent FILE" in ended.stderr


@pytest.mark.parametrize("key", [{"disabled": True}, {"enabled": False}], ids=str)
def test_a_disabled_entry_is_told(home: Path, key: dict[str, object]) -> None:
    write(home, {"files": entry("--config", str(home / "deny.toml"), **key)})
    ended = ran(home, "try", "write_file", "--agent", "cursor", "--server", "files")
    assert ended.returncode == 1
    assert "mcpServers.files is disabled: cursor does not start it now" in ended.stderr


def test_test_runs_cases_on_what_the_entry_runs(home: Path) -> None:
    case = '[[case]]\ncall = { tool = "write_file" }\nexpect = { decision = "deny" }\n'
    (home / "tests.toml").write_text(case)
    ended = ran(home, "test", "--agent", "cursor", "--server", "files")
    assert (ended.returncode, ended.stdout.startswith("1 case passed")) == (0, True), ended.stderr
    (home / "work" / "own.toml").write_text(case.replace("deny", "allow"))
    ended = ran(home, "test", "own.toml", "--agent", "cursor", "--server", "files")
    assert "was deny, by the permission rule write_file" in ended.stdout


def test_test_takes_a_server_only_of_an_agent(home: Path) -> None:
    ended = ran(home, "test", "--server", "files")
    assert (ended.returncode, "each case names its own server" in ended.stderr) == (2, True)
