"""`hookproxy uninstall`: everything that hookproxy wrote is undone, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hookproxy.model.errors import uninstall_command
from tests.cli.test_setup import CLAUDE_HOOKS, FAIL_CLOSED, WRAP_ONE, at_terminal, everything_below, own_config
from tests.cli.test_wrap import HOOKPROXY, configuration, run, servers
from tests.support import agent_homes, terminal

pytestmark = pytest.mark.slow

RESTORE_ONE = "Restore 1 file"


@pytest.fixture
def hooks(home: Path) -> Path:
    """The person's own hooks."""
    (home / ".claude").mkdir()
    file = home / ".claude" / "settings.json"
    file.write_text(CLAUDE_HOOKS)
    return file


@pytest.fixture
def cursor(home: Path) -> Path:
    """The configuration of an agent with one server."""
    (home / ".cursor").mkdir()
    file = home / ".cursor" / "mcp.json"
    file.write_text(configuration("git"))
    return file


def tree(*folders: Path) -> dict[str, object]:
    """Every path below these folders: a file's bytes and mode, a link's target, or a folder's mode."""
    found: dict[str, object] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        mode = path.lstat().st_mode
        found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else mode
    return found


def uninstall_at_terminal(folder: Path, *answers: tuple[str, bytes]) -> subprocess.CompletedProcess[str]:
    return terminal.converse([HOOKPROXY, "uninstall"], folder, dict(os.environ), 200, answers)


def test_after_setup_of_all_agents_every_byte_is_as_it_was(project: Path, home: Path, hooks: Path) -> None:
    agent_homes.write_all(home, project)
    before = tree(home, project)
    assert run(project, "setup", "--yes").returncode == 0
    assert tree(home, project) != before
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert tree(home, project) == before


def test_with_servers_at_addresses_too(project: Path, home: Path, hooks: Path) -> None:
    agent_homes.write_all(home, project, agent_homes.REMOTE)
    before = tree(home, project)
    assert run(project, "setup", "--yes").returncode == 0
    assert run(project, "uninstall", "--yes").returncode == 0
    assert tree(home, project) == before


def test_the_first_guard_that_setup_wrote_is_removed_with_its_folders(project: Path, home: Path, cursor: Path) -> None:
    before = tree(home, project)
    answers = [("secret files. [y/N] ", b"y\n"), ("hookproxy.toml? [y/N] ", b"y\n")]
    assert at_terminal(project, *answers, columns=200).returncode == 0
    assert own_config().exists()
    assert run(project, "uninstall", "--yes").returncode == 0
    assert tree(home, project) == before


def test_what_was_wrapped_by_its_path_and_what_was_converted_is_found_from_any_folder(
    project: Path, home: Path, hooks: Path
) -> None:
    elsewhere = project / "servers.json"
    elsewhere.write_text(configuration("git"))
    before = tree(home, project)
    assert run(project, "wrap", "servers.json").returncode == 0
    assert run(project, "convert", str(hooks), "--to", "copilot", "--write").returncode == 0
    assert run(project, "convert", str(hooks), "--to", "cursor", "--user", "--write").returncode == 1
    assert (home / ".cursor/hooks.json").exists()
    done = run(home, "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert tree(home, project) == before


def test_it_shows_everything_and_asks_and_only_yes_changes_anything(project: Path, home: Path, cursor: Path) -> None:
    assert run(project, "wrap", "cursor").returncode == 0
    wrapped = tree(home, project)
    for answer in (b"n\n", b"\n", b"\x04", b"\x03"):
        done = uninstall_at_terminal(project, (RESTORE_ONE, answer))
        assert done.returncode == (130 if answer == b"\x03" else 0)
        assert "nothing was changed" in done.stdout
        assert tree(home, project) == wrapped
    trial = run(project, "uninstall", "--dry-run")
    assert (trial.returncode, tree(home, project)) == (0, wrapped)
    assert '-      "command": "' in trial.stdout
    refused = run(project, "uninstall")
    assert (refused.returncode, tree(home, project)) == (2, wrapped)
    assert refused.stderr.startswith("error: there is no terminal to ask on; nothing was changed\nhint: ")
    done = uninstall_at_terminal(project, (RESTORE_ONE, b"y\n"))
    assert done.returncode == 0
    assert cursor.read_text() == configuration("git")


def test_later_changes_of_others_survive(project: Path, home: Path, cursor: Path, hooks: Path) -> None:
    assert run(project, "setup", "--yes").returncode == 0
    changed = json.loads(cursor.read_text())
    changed["mcpServers"]["new"] = {"command": "npx", "args": ["new"]}
    cursor.write_text(json.dumps(changed))
    own_config().write_text(own_config().read_text() + "\n[permissions]\ndeny = ['x']\n")
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert servers(cursor).keys() == {"git", "new"}
    assert servers(cursor)["git"] == {"command": "npx", "args": ["git"]}
    assert own_config().read_text().endswith("\n[permissions]\ndeny = ['x']\n")
    assert "[[use]]" not in own_config().read_text()


def test_what_cannot_be_told_from_the_work_of_others_stays_and_the_exit_status_says_so(
    project: Path, home: Path, cursor: Path, hooks: Path
) -> None:
    assert run(project, "setup", "--yes").returncode == 0
    assert run(project, "convert", str(hooks), "--to", "copilot", "--write").returncode == 0
    converted = project / ".github/hooks/hookproxy.json"
    converted.write_text(converted.read_text() + " ")
    own_config().write_text(own_config().read_text().replace('"deny"', '"allow"'))
    kept = tree(own_config().parent, converted.parent)
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 1
    assert f"error: {converted}: has changed since hookproxy wrote it, and stays\nhint: " in done.stderr
    assert f"error: {own_config()}: what setup wrote into it has changed since\nhint: " in done.stderr
    assert tree(own_config().parent, converted.parent) == kept
    assert cursor.read_text() == configuration("git")
    again = run(project, "uninstall", "--yes")
    assert (again.returncode, again.stdout) == (2, "")


def test_a_file_that_cannot_be_written_does_not_stop_the_others(project: Path, home: Path, cursor: Path) -> None:
    other = project / "servers.json"
    other.write_text(configuration("git"))
    assert run(project, "wrap", "servers.json").returncode == 0
    assert run(project, "wrap", "cursor").returncode == 0
    os.link(cursor, home / "second-name")  # such a file is never replaced, not even by root
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 1
    assert "has another name (a hard link)" in done.stderr
    assert other.read_text() == configuration("git")
    os.unlink(home / "second-name")
    assert run(project, "uninstall", "--yes").returncode == 0
    assert cursor.read_text() == configuration("git")


def test_a_configuration_behind_a_link_is_restored_and_the_link_stays(
    project: Path, home: Path, hooks: Path, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text(configuration("git"))
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(real)
    before = tree(home, project, real.parent)
    assert run(project, "setup", "--yes").returncode == 0
    assert run(project, "uninstall", "--yes").returncode == 0
    assert tree(home, project, real.parent) == before


def test_files_that_are_gone_are_forgotten(project: Path, home: Path, cursor: Path, hooks: Path) -> None:
    assert run(project, "setup", "--yes").returncode == 0
    assert run(project, "convert", str(hooks), "--to", "copilot", "--write").returncode == 0
    for path in (cursor, own_config(), home / ".cursor/hooks.json", project / ".github/hooks/hookproxy.json"):
        path.unlink()
    done = run(project, "uninstall", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (home / ".local/state/hookproxy/written.json").exists()


def test_with_nothing_to_undo_it_still_says_what_to_remove(project: Path, home: Path) -> None:
    state = home / ".local" / "state" / "hookproxy"
    state.mkdir(parents=True)
    (state / "audit.jsonl").write_text("")
    done = run(project, "uninstall")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nothing is wrapped, set up or converted\n")
    assert f"  # what it remembers: the audit log, trusted files, logins\n  rm -r {state}\n" in done.stdout
    assert done.stdout.endswith(f"  {uninstall_command()}\n")


def test_a_record_that_cannot_be_read_stops_it(project: Path, home: Path, cursor: Path) -> None:
    assert run(project, "wrap", "cursor").returncode == 0
    (home / ".local/state/hookproxy/written.json").write_text("{")
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 2
    assert "written.json: is not a record of hookproxy: " in done.stderr
    assert servers(cursor)["git"]["command"] == HOOKPROXY


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"uv-receipt.toml": ""}, "uv tool uninstall hookproxy"),
        ({"pipx_metadata.json": ""}, "pipx uninstall hookproxy"),
        ({"pyvenv.cfg": "home = /usr\nuv = 0.9\n"}, "uv pip uninstall --python DIR/bin/python hookproxy"),
        ({"pyvenv.cfg": "home = /usr\n"}, "DIR/bin/python -m pip uninstall hookproxy"),
        ({}, "DIR/bin/python -m pip uninstall hookproxy"),
    ],
)
def test_the_package_is_removed_by_what_installed_it(files: dict[str, str], command: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert uninstall_command(str(tmp_path)) == command.replace("DIR", str(tmp_path))


def test_all_of_it_at_a_terminal_with_enter_where_enter_says_yes(
    project: Path, home: Path, cursor: Path, hooks: Path
) -> None:
    before = everything_below(home, project)
    assert at_terminal(project, FAIL_CLOSED, (WRAP_ONE, b"y\n"), columns=200).returncode == 0
    done = uninstall_at_terminal(project, ("that hookproxy wrote? [y/N] ", b"y\n"))
    assert done.returncode == 0
    assert everything_below(home, project) == before


def test_converted_hooks_that_a_person_merged_by_hand_are_named(
    project: Path, home: Path, cursor: Path, hooks: Path
) -> None:
    assert run(project, "wrap", "cursor").returncode == 0
    converted = run(project, "convert", str(hooks), "--to", "gemini", "--fail-closed").stdout
    merged = home / ".gemini" / "settings.json"
    merged.parent.mkdir()
    merged.write_text(json.dumps(json.loads(converted) | {"theme": "dark"}))
    done = run(project, "uninstall", "--yes")
    assert done.returncode == 1
    assert f"error: {merged} stays: it has hooks that start hookproxy hook" in done.stderr
    assert cursor.read_text() == configuration("git")
    assert run(project, "uninstall", "--yes").returncode == 2  # nothing else is left to undo
    merged.unlink()
    assert run(project, "uninstall", "--yes").returncode == 0
