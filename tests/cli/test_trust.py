"""`hookproxy trust` as a person sees it: what is new, what has changed, and what is recorded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.cli.main import main

pytestmark = pytest.mark.slow

INSIDE = "not covered: what these files themselves load and run, even from their own folders\n"
TABLE = '[[hooks.PreToolUse]]\ncommand = "./guard.sh"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard.sh").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "guard.sh").chmod(0o755)
    (tmp_path / "own.toml").write_text(TABLE)
    return tmp_path


def trust(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["trust", *arguments]) == status
    ended = capsys.readouterr()
    return ended.out if status != 2 else ended.err


def test_a_new_file_is_shown_with_its_scripts_and_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = trust(capsys, "own.toml")
    assert f"new        {folder}/own.toml\n    44 bytes, sha256\n    " in output
    assert f"new        {folder}/guard.sh\n    17 bytes, sha256\n    " in output
    assert output.endswith("2 files trusted\n")
    again = trust(capsys, "own.toml")
    system = "not covered: /bin/sh, which belongs to the system\n"
    assert again == f"unchanged  {folder}/own.toml\nunchanged  {folder}/guard.sh\n{system}{INSIDE}2 files trusted\n"


def test_what_has_changed_is_shown_line_by_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(capsys, "own.toml")
    (folder / "guard.sh").write_text("#!/bin/sh\nexit 0\n")
    output = trust(capsys, "own.toml")
    assert f"changed    {folder}/guard.sh\n" in output
    assert "    -exit 2\n    +exit 0\n" in output


def test_a_dry_run_records_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trust(capsys, "--dry-run", "own.toml", status=1).endswith(
        "2 of 2 files are new or changed, and would be trusted\n"
    )
    assert main(["trust", "--list"]) == 0
    assert capsys.readouterr() == ("", "hookproxy: nothing is trusted yet\n")
    trust(capsys, "own.toml")
    assert trust(capsys, "--dry-run", "own.toml").endswith("0 of 2 files are new or changed, and would be trusted\n")


def test_the_list_shows_which_files_have_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(capsys, "own.toml")
    assert trust(capsys, "--list") == f"trusted    {folder}/guard.sh\ntrusted    {folder}/own.toml\n"
    (folder / "guard.sh").write_text("")
    (folder / "own.toml").unlink()
    assert trust(capsys, "--list", status=1) == f"changed    {folder}/guard.sh\nmissing    {folder}/own.toml\n"
    (folder / "guard.sh").unlink()
    os.mkfifo(folder / "guard.sh")
    assert "unusable" in trust(capsys, "--list", status=1)


def test_a_forgotten_file_is_no_longer_trusted_nor_what_only_it_starts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.toml").write_text(TABLE)
    trust(capsys, "own.toml", "other.toml")
    trust(capsys, "other.toml")
    assert trust(capsys, "--forget", "own.toml") == f"forgotten  {folder}/own.toml\n"
    output = trust(capsys, "--forget", "other.toml")
    assert output == f"forgotten  {folder}/guard.sh\nforgotten  {folder}/other.toml\n"
    assert "own.toml: is not trusted" in trust(capsys, "--forget", "own.toml", status=2)


def test_the_output_names_what_is_not_covered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.toml").write_text('[[hooks.PreToolUse]]\nargv = ["/bin/sh", "-c", "./guard.sh", "x"]\n')
    output = trust(capsys, "own.toml")
    assert "not covered: /bin/sh, which belongs to the system\n" in output
    assert f"{folder}/guard.sh" in output


def test_nothing_in_a_file_reaches_the_terminal_raw(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(capsys, "own.toml")
    (folder / "guard.sh").write_text("#!/bin/sh\n\x1b[2K\x1b[1A\u202eexit 2\rexit 0\n")
    output = trust(capsys, "own.toml")
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert r"\x1b[2K\x1b[1A\u202eexit 2" in output


def test_a_file_that_is_not_utf_8_is_compared_by_its_hash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(capsys, "own.toml")
    (folder / "guard.sh").write_bytes(b"\xff\xfe")
    assert "cannot be compared as text: 2 bytes, sha256 " in trust(capsys, "own.toml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no file is named"),
        (["gone.toml"], "there is no such file"),
        (["gone.json"], "there is no such file"),
        (["--list", "--forget", "x"], "not allowed with"),
        (["onw.toml"], "did you mean 'own.toml'?"),
        (["claude=nothing.json"], "name a hookproxy.toml or a hook file that exists"),
    ],
)
def test_a_wrong_command_line_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in trust(capsys, *arguments, status=2)
