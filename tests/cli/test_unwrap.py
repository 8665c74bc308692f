"""`hookproxy unwrap`: every byte is restored, and later changes by others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.cli.unwrap import build_parser, main
from hookproxy.model.errors import UserError
from tests.cli.test_wrap import CODEX, configuration, run

pytestmark = pytest.mark.slow


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CODEX)
    path.chmod(0o600)
    return path


def test_every_byte_is_restored(file: Path) -> None:
    assert run(file.parent, "wrap", str(file)).returncode == 0
    assert file.read_text() != CODEX
    done = run(file.parent, "unwrap", str(file))
    assert done.returncode == 0
    assert '+command = "npx" # why\n' in done.stdout
    assert "unwrapped: mcp_servers.git" in done.stderr
    assert file.read_text() == CODEX
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_wrapped_stays_unchanged(file: Path) -> None:
    done = run(file.parent, "unwrap", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{file}: nothing to do\n"


def test_a_dry_run_writes_nothing_and_one_server_is_one_server(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(configuration("git", "time"))
    run(tmp_path, "wrap", "x.json")
    wrapped = file.read_text()
    assert (
        "would be unwrapped: mcpServers.time"
        in run(tmp_path, "unwrap", "x.json", "--server", "time", "--dry-run").stderr
    )
    assert file.read_text() == wrapped
    assert run(tmp_path, "unwrap", "x.json", "--server", "time").returncode == 0
    run(tmp_path, "unwrap", "x.json", "--server", "git")
    assert file.read_text() == configuration("git", "time")


def test_errors_say_what_and_where(file: Path) -> None:
    done = run(file.parent, "unwrap", str(file), "--server", "gti")
    assert done.returncode == 2
    assert done.stderr == f"error: {file}: there is no server 'gti' in it\nhint: did you mean 'git'?\n"
    with pytest.raises(UserError, match="no agent and no file is named") as caught:
        main(["--dry-run"])
    assert build_parser().usage in caught.value.hint


def test_alone_it_lists_what_is_wrapped_and_the_commands_that_undo_it(tmp_path: Path, home: Path) -> None:
    done = run(tmp_path, "unwrap")
    assert (done.returncode, done.stdout) == (0, "nothing is wrapped\n")
    (home / ".cursor").mkdir()
    cursor = home / ".cursor" / "mcp.json"
    cursor.write_text(configuration("git"))
    assert run(tmp_path, "unwrap").stdout.endswith("  mcpServers.git  not wrapped\n\nnothing is wrapped\n")
    assert run(tmp_path, "wrap", "cursor").returncode == 0
    wrapped = cursor.read_text()
    done = run(tmp_path, "unwrap")
    assert (done.returncode, done.stderr) == (0, "")
    assert "mcpServers.git  wrapped: " in done.stdout
    assert done.stdout.endswith(f"\nhookproxy unwrap {cursor}\n")
    assert cursor.read_text() == wrapped
