"""What `hookproxy completion --values` offers: names from the audit and agents' files, none that a shell obeys."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hookproxy.cli.completion import main
from hookproxy.cli.completions import known_values
from hookproxy.cli.completions.command_line import _KNOWN


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The audit file of a configuration that completion finds without being told."""
    monkeypatch.chdir(tmp_path)
    file = Path(os.environ["HOME"]) / ".local/state/hookproxy/audit.jsonl"
    file.parent.mkdir(parents=True)
    return file


def record(**members: object) -> str:
    return json.dumps({"v": 1, "time": "2026-11-01T10:00:00Z", "session": "s1", "server": "git"} | members) + "\n"


def offered(kind: str, beginning: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["--values", kind, "--", beginning]) == 0
    ended = capsys.readouterr()
    assert ended.err == ""
    return ended.out.splitlines()


def test_names_come_from_the_newest_calls_and_begin_as_typed(audit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [record(call=f"aa{number}", tool=f"git_{number}", agent="zed") for number in range(3)]
    audit.write_text("".join(calls) + "no record\n" + '{"v":1')
    assert offered("calls", "", capsys) == ["aa2", "aa1", "aa0"]
    assert offered("tools", "git_1", capsys) == ["git_1"]
    assert offered("sessions", "", capsys) == ["s1"]
    assert offered("servers", "", capsys) == ["git"]
    assert offered("agents", "z", capsys) == ["zed"]
    assert offered("nonsense", "", capsys) == []


@pytest.mark.parametrize("name", ["$(touch x)", "a;b", "a b", "`x`", "a\nb", "-rf", "~", "*", "a'b", "", "é"])
def test_a_name_that_a_shell_might_obey_is_not_offered(
    name: str, audit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit.write_text(record(call="a1", tool=name, server=name) + record(call="a2", tool="good"))
    assert offered("tools", "", capsys) == ["good"]
    assert offered("servers", "", capsys) == ["git"]


def test_only_the_end_of_a_long_audit_is_read(
    audit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last = record(call="new", tool="t")
    monkeypatch.setattr(known_values, "_TAIL", len(last) + 5)
    audit.write_text(record(call="old", tool="t") + last)
    assert offered("calls", "", capsys) == ["new"]


def test_without_an_audit_or_with_a_broken_configuration_nothing_is_offered(
    audit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered("tools", "", capsys) == []
    config = Path(os.environ["HOME"]) / ".config/hookproxy/hookproxy.toml"
    config.parent.mkdir(parents=True)
    config.write_text("broken =")
    assert offered("tools", "", capsys) == []


def test_each_kind_that_a_script_asks_for_has_a_source() -> None:
    assert set(_KNOWN.values()) == set(known_values.KINDS)
