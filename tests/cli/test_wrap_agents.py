"""`wrap` and `unwrap` with the names of agents, and with --all: a home folder full of all agents' files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hookproxy.wrapping.known_agents import AGENTS, AGENTS_BY_NAME
from tests.cli.test_wrap import HOOKPROXY, configuration, run, servers
from tests.support import agent_homes
from tests.wrapping.connections import connection, entry_of

pytestmark = pytest.mark.slow

BIN: Final = os.path.dirname(sys.executable)


@pytest.fixture
def repository(project: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / ".mcp.json").write_text(configuration("git"))
    return project


def command(file: Path) -> str:
    return str(servers(file)["git"]["command"])


# --- all agents ---


def test_there_is_an_example_of_every_agent() -> None:
    assert set(agent_homes.FILES) == set(AGENTS_BY_NAME)


def test_all_agents_are_wrapped_and_every_byte_comes_back(home: Path, project: Path) -> None:
    files = agent_homes.write_all(home, project)
    trial = run(project, "wrap", "--all", "--dry-run")
    assert trial.returncode == 0, trial.stderr
    assert trial.stderr.count("nothing was written; would be wrapped") == len(files)
    assert agent_homes.content(files) == files
    done = run(project, "wrap", "--all")
    assert done.returncode == 0, done.stderr
    assert done.stdout == trial.stdout
    wrapped = agent_homes.content(files)
    assert all(b"hookproxy" in raw for raw in wrapped.values())
    assert all(f"{file}: wrapped: " in done.stderr for file in files)
    again = run(project, "wrap", "--all")
    assert (again.returncode, again.stdout) == (0, "")
    assert agent_homes.content(files) == wrapped
    assert run(project, "unwrap", "--all", "--dry-run").returncode == 0
    assert agent_homes.content(files) == wrapped
    assert run(project, "unwrap", "--all").returncode == 0
    assert agent_homes.content(files) == files


def test_servers_at_an_address_are_wrapped_for_all_agents_and_every_byte_comes_back(home: Path, project: Path) -> None:
    assert set(agent_homes.REMOTE) == set(AGENTS_BY_NAME)
    files = agent_homes.write_all(home, project, agent_homes.REMOTE)
    done = run(project, "wrap", "--all")
    assert done.returncode == 0, done.stderr
    for file in files:
        entry = entry_of(str(file), file.read_text(), "far")
        url, headers = connection(entry, {"KEY": "value"})
        assert (url, [name for name, _ in headers]) == ("https://example.com/mcp", ["X-Key"])
        assert not any("k0123456789" in word for word in entry.argv)
        assert file.read_text().count("k0123456789") <= 1
    listed = run(project, "wrap").stdout
    assert listed.count(f"  wrapped: {HOOKPROXY} run --name far --url https://example.com/mcp --header X-Key: ") == 12
    wrapped = agent_homes.content(files)
    assert (run(project, "wrap", "--all").stdout, agent_homes.content(files)) == ("", wrapped)
    assert run(project, "unwrap", "--all").returncode == 0
    assert agent_homes.content(files) == files


@pytest.mark.parametrize("agent", agent_homes.FILES)
def test_one_agent_is_wrapped_by_its_name_and_unwrapped_by_it(home: Path, project: Path, agent: str) -> None:
    files = agent_homes.write_all(home, project)
    own, _ = agent_homes.write(agent, home, project)
    done = run(project, "wrap", agent)
    assert done.returncode == 0, done.stderr
    changed = {file for file, raw in agent_homes.content(files).items() if raw != files[file]}
    assert changed == {own}
    assert run(project, "unwrap", agent).returncode == 0
    assert agent_homes.content(files) == files


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_that_is_not_there_is_an_error_that_says_where_it_was_looked_for(project: Path, agent: object) -> None:
    name, title = getattr(agent, "name", ""), getattr(agent, "title", "")
    done = run(project, "wrap", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {title} has no configuration here: none of these files exists: ")


def test_an_agent_without_servers_is_an_error(home: Path, project: Path) -> None:
    (home / ".gemini").mkdir()
    for text in ("", "\ufeff\n", "{}", '{"mcpServers": {}}'):
        (home / ".gemini" / "settings.json").write_text(text)
        done = run(project, "wrap", "gemini")
        assert done.returncode == 2
        assert "Gemini CLI has no servers: there are none in ~/.gemini/settings.json\nhint: " in done.stderr


def test_one_broken_file_does_not_hide_the_others(home: Path, project: Path) -> None:
    agent_homes.write("codex", home, project)
    agent_homes.write("zed", home, project)
    broken = home / ".config" / "zed" / "settings.json"
    for text in ('{"context_servers": {}, "context_servers": {}}', '{"context_servers": {"a": 1}}', "{"):
        broken.write_text(text)
        done = run(project, "wrap", "--all")
        assert done.returncode == 1
        assert f"error: {broken}:1: " in done.stderr
        assert broken.read_text() == text
        assert b"hookproxy" in (home / ".codex" / "config.toml").read_bytes()
        assert run(project, "unwrap", "--all").returncode == 1
        assert b"hookproxy" not in (home / ".codex" / "config.toml").read_bytes()


def test_if_the_only_file_is_broken_its_error_is_the_error(home: Path, project: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_bytes(b"\xff")
    done = run(project, "wrap", "cursor")
    assert done.returncode == 2
    assert done.stderr == f"error: {home}/.cursor/mcp.json:1: is not UTF-8\nhint: save it as UTF-8\n"


def test_a_file_with_two_names_is_wrapped_once(home: Path, project: Path) -> None:
    real, before = agent_homes.write("windsurf", home, project)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(real)
    done = run(project, "wrap", "--all")
    assert done.returncode == 0, done.stderr
    assert f"{home}/.cursor/mcp.json is a link to {real}\n" in done.stderr
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert real.read_bytes().count(b'"run"') == 1
    assert run(project, "unwrap", "windsurf").returncode == 0
    assert real.read_bytes() == before


def test_a_server_is_selected_in_the_files_that_have_it(home: Path, project: Path) -> None:
    files = agent_homes.write_all(home, project)
    done = run(project, "wrap", "--all", "--server=--server")
    assert done.returncode == 0, done.stderr
    assert [file.name for file, raw in agent_homes.content(files).items() if raw != files[file]] == [
        "cline_mcp_settings.json"
    ]
    wrong = run(project, "wrap", "--all", "--server", "gti")
    assert wrong.returncode == 2
    assert "no configuration has a server 'gti'\nhint: did you mean 'git'?" in wrong.stderr


def test_claude_code_runs_its_own_hooks_itself(home: Path, project: Path) -> None:
    agent_homes.write("claude-code", home, project)
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (project / "h.json").write_text(json.dumps(hooks))
    done = run(project, "wrap", "claude-code", "--hooks", "claude=h.json")
    assert f"those of {project}/h.json may run twice\n" in done.stderr


# --- files that are shared through version control ---


def test_a_shared_file_names_hookproxy_without_its_path_if_path_finds_it(repository: Path, home: Path) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[[hooks.PreToolUse]]\ncommand = "true"\n')
    before = (repository / ".mcp.json").read_text()
    done = run(repository, "wrap", ".mcp.json", PATH=f"{BIN}:{os.environ['PATH']}")
    assert servers(repository / ".mcp.json")["git"] == {
        "command": "hookproxy",
        "args": ["run", "--name", "git", "--", "npx", "git"],
    }
    assert "written as hookproxy, without its path: git shares this file with others, and PATH finds it" in done.stderr
    assert "paths of this machine" not in done.stderr
    assert run(repository, "unwrap", ".mcp.json").returncode == 0
    assert (repository / ".mcp.json").read_text() == before


def test_paths_of_options_in_a_shared_file_are_reported(repository: Path) -> None:
    (repository / "hooks.toml").write_text('[[hooks.PreToolUse]]\ncommand = "true"\n')
    done = run(repository, "wrap", ".mcp.json", "--config", "hooks.toml", PATH=f"{BIN}:{os.environ['PATH']}")
    assert "its options name paths of this machine, although git shares this file" in done.stderr


def test_a_shared_file_gets_the_path_if_path_finds_no_hookproxy_or_another_one(
    repository: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in ("/usr/bin:/bin", f"{other}:/usr/bin:/bin"):
        done = run(repository, "wrap", ".mcp.json", PATH=path)
        assert command(repository / ".mcp.json") == HOOKPROXY
        assert "PATH finds no hookproxy" in done.stderr
        run(repository, "unwrap", ".mcp.json")
        (other / "hookproxy").write_text("#!/bin/sh\n")
        (other / "hookproxy").chmod(0o755)


def test_an_entry_that_was_wrapped_with_an_older_path_gets_the_name(repository: Path) -> None:
    old = {"command": "/old/bin/hookproxy", "args": ["run", "--name", "git", "--", "npx", "git"]}
    (repository / ".mcp.json").write_text(json.dumps({"mcpServers": {"git": old}}))
    run(repository, "wrap", ".mcp.json", PATH=f"{BIN}:{os.environ['PATH']}")
    assert servers(repository / ".mcp.json")["git"] == {**old, "command": "hookproxy"}


@pytest.mark.parametrize("where", ["ignored", "outside", "without git"])
def test_files_that_git_does_not_share_get_the_path(repository: Path, home: Path, where: str) -> None:
    file, path = repository / ".mcp.json", f"{BIN}:{os.environ['PATH']}"
    if where == "ignored":
        (repository / ".gitignore").write_text(".mcp.json\n")
    elif where == "outside":
        (home / ".cursor").mkdir()
        file = home / ".cursor" / "mcp.json"
        file.write_text(configuration("git"))
    else:
        path = BIN  # git is not there to ask: the file may be shared
    run(repository, "wrap", str(file), PATH=path)
    assert command(file) == ("hookproxy" if where == "without git" else HOOKPROXY)


def test_a_repository_cannot_make_git_run_its_programs(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "alias.check-ignore", "core.editor"):
        value = f"!{trap}" if key.startswith("alias") else str(trap)
        subprocess.run(["git", "-C", str(repository), "config", key, value], check=True)
    subprocess.run(["git", "-C", str(repository), "-c", "core.fsmonitor=", "add", ".mcp.json"], check=True)
    assert run(repository, "wrap", ".mcp.json", GIT_TRACE=f"{tmp_path}/trace").returncode == 0
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "trace").exists()


def test_a_link_in_a_repository_to_a_private_file_is_not_shared(repository: Path, home: Path) -> None:
    (home / "mine.json").write_text(configuration("git"))
    (repository / ".cursor").mkdir()
    (repository / ".cursor" / "mcp.json").symlink_to(home / "mine.json")
    run(repository, "wrap", "cursor", PATH=f"{BIN}:{os.environ['PATH']}")
    assert command(home / "mine.json") == HOOKPROXY
