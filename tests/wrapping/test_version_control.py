"""Which files git shares with others. git itself is asked in tests/cli/test_wrap_agents.py."""

from __future__ import annotations

from pathlib import Path

from hookproxy.wrapping.version_control import is_shared


def test_without_git_a_file_in_a_work_tree_counts_as_shared(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    file = tmp_path / "a" / "b" / "mcp.json"
    assert not is_shared(str(file), {"PATH": ""})
    (tmp_path / "a" / ".git").write_text("gitdir: ../elsewhere\n")  # a linked work tree
    assert is_shared(str(file), {"PATH": ""})
    assert not is_shared(str(tmp_path / "mcp.json"), {"PATH": ""})


def test_a_git_that_cannot_tell_does_not_make_it_private(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # no repository
    (tmp_path / "git").write_text("#!/bin/sh\nexit 128\n")
    (tmp_path / "git").chmod(0o755)
    assert is_shared(str(tmp_path / "mcp.json"), {"PATH": str(tmp_path)})


def test_a_git_of_the_working_directory_is_not_run(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "git").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "git").chmod(0o755)
    assert is_shared(str(tmp_path / "mcp.json"), {"PATH": "."})
