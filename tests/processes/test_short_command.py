"""A short command of the system, for its exit status."""

from __future__ import annotations

from pathlib import Path

from hookproxy.processes.short_command import exit_status


def test_it_returns_the_status(tmp_path: Path) -> None:
    assert (
        exit_status(("sh", "-c", 'test "$A" = b && exit 7'), str(tmp_path), {"A": "b", "PATH": "/usr/bin:/bin"}, 30)
        == 7
    )


def test_it_reads_and_prints_nothing(tmp_path: Path) -> None:
    assert exit_status(("sh", "-c", "cat; echo out; echo err >&2"), str(tmp_path), {"PATH": "/usr/bin:/bin"}, 30) == 0


def test_a_command_that_cannot_start_or_takes_too_long_has_no_status(tmp_path: Path) -> None:
    assert exit_status(("/no/such/command",), str(tmp_path), {}, 30) is None
    assert exit_status(("sh", "-c", "exec sleep 60"), str(tmp_path), {"PATH": "/usr/bin:/bin"}, 0.01) is None
    assert exit_status(("true",), str(tmp_path / "missing"), {"PATH": "/usr/bin:/bin"}, 30) is None
