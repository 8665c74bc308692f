"""`hookproxy secrets scan`: what would be masked, where, by which rule, and never the value."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from hookproxy.cli.secrets import main
from hookproxy.model.errors import UserError
from tests.support import program

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_text_is_shown_by_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text(f"one\ntoken: {TOKEN}\n")
    assert main(["scan", "notes"]) == 1
    out, err = capsys.readouterr()
    assert out == "notes:2:8: github-pat\n"
    assert err == "hookproxy: 1 secret would be masked: github-pat 1\n"


def test_an_audit_is_shown_by_member(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {"time": "2026-01-01T00:00:00Z", "v": 1, "tool": "x", "arguments": {"body": ["a", f"see {TOKEN}"]}}
    (tmp_path / "audit.jsonl").write_text(f"{json.dumps(record | {'arguments': {}})}\n{json.dumps(record)}\n")
    assert main(["scan", "--json", "audit.jsonl"]) == 1
    place = {"file": "audit.jsonl", "line": 2, "column": 88, "rule": "github-pat", "member": "arguments.body[1]"}
    assert json.loads(capsys.readouterr().out) == place


def test_a_file_without_a_secret_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text("nothing\n")
    assert main(["scan", "notes"]) == 0
    assert capsys.readouterr().err == "hookproxy: nothing that looks like a secret\n"


def test_what_the_configuration_says_is_found_too_and_no_value_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACME", "correct-horse-9")
    (tmp_path / "hookproxy.toml").write_text(
        '[secrets]\nskip = ["github-*"]\nvalues.acme = "env:ACME"\ndetectors.ticket = "T-[0-9]{6}"\n'
    )
    (tmp_path / "notes").write_text(f"correct%2Dhorse-9 {TOKEN} T-123456\n")
    assert main(["scan", "--config", "hookproxy.toml", "notes"]) == 1
    out, err = capsys.readouterr()
    assert out == "notes:1:1: acme\nnotes:1:60: ticket\n"
    assert "horse" not in out + err


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").write_text(TOKEN)
    assert main(["scan", "missing", "notes"]) == 2
    out, err = capsys.readouterr()
    assert out == "notes:1:1: github-pat\n"
    assert "missing: cannot be read: No such file" in err


@pytest.mark.parametrize("words", [[], ["scam"], ["scan"]])
def test_what_is_missing_is_said_with_the_usage(words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        main(words)
    assert "scan" in raised.value.hint


@pytest.mark.slow
def test_standard_input_is_searched_as_it_comes(tmp_path: Path) -> None:
    argv = [program.HOOKPROXY, "secrets", "scan", "-"]
    ended = subprocess.run(argv, input=f"a\nb {TOKEN}", capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "-:2:3: github-pat\n")
