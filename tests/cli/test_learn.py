"""`hookproxy learn` as people get it: which files it reads, what it prints or writes, and how it ends."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from hookproxy.cli.learn import main
from hookproxy.model.errors import UserError
from tests.support.learning import Line, line, reads


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home folder, which is the working directory as well."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def audit(path: Path, lines: list[Line], end: str = "\n") -> None:
    path.write_text("\n".join(one.decode() if isinstance(one, bytes) else json.dumps(one) for one in lines) + end)


def files(*numbers: int) -> list[Line]:
    return reads(*(f"/srv/app/{at}" for at in numbers))


def test_it_prints_a_policy_and_applies_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit(tmp_path / "a.jsonl", files(1, 2, 3))
    assert main(["a.jsonl"]) == 0
    read = capsys.readouterr()
    expected = {"default": "deny", "unreadable": "deny", "allow": ["read_file(/srv/app/*)"]}
    assert tomllib.loads(read.out) == {"permissions": expected}
    assert read.err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_it_reads_the_audit_of_the_configuration_with_its_rotated_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / ".config" / "hookproxy" / "hookproxy.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[audit]\nfile = "~/audit.jsonl"\n')
    for number, name in enumerate(("audit.jsonl.1", "audit.jsonl.2", "audit.jsonl")):
        audit(tmp_path / name, files(number))
    assert main([]) == 0
    assert "read_file(/srv/app/*)" in capsys.readouterr().out


def test_several_audits_are_one_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit(tmp_path / "a", files(1, 2))
    audit(tmp_path / "b", files(3))
    assert main(["a", "b"]) == 0
    read = capsys.readouterr().out
    assert "read_file(/srv/app/*)" in read
    assert ": a, b." in read.replace("\n#", "")


def test_it_writes_a_new_file_and_never_an_existing_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit(tmp_path / "a", files(1, 2, 3))
    assert main(["a", "--output", "new.toml"]) == 0
    read = capsys.readouterr()
    assert read.out == ""
    assert "wrote new.toml: read it" in read.err
    before = (tmp_path / "new.toml").read_text()
    assert "read_file(/srv/app/*)" in before
    with pytest.raises(UserError, match=r"new\.toml already exists"):
        main(["a", "--output", "new.toml"])
    assert (tmp_path / "new.toml").read_text() == before


def test_lines_that_are_not_records_are_counted_and_end_with_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(tmp_path / "a", [*files(1), b"not a record", {**line("t"), "v": 9}])
    assert main(["a"]) == 1
    read = capsys.readouterr().out
    assert "Not counted, 1 time: lines that are not records." in read
    assert "Not counted, 1 time: records of another version." in read


def test_a_file_that_is_no_audit_is_not_answered_with_how_to_record_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    with pytest.raises(UserError, match="lines that are not records, 1 time") as caught:
        main(["a"])
    assert caught.value.hint == "name an audit file"


def test_a_line_that_is_still_being_written_is_not_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(tmp_path / "a", [*files(1), b'{"v":1,"tool":"x'], end="")
    assert main(["a"]) == 0
    assert "Not counted, 1 time: lines that were cut." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "tools"),
    [
        (["--tool", "a*"], ["a1"]),
        (["--server", "two"], ["b2"]),
        (["--user", "ann"], ["a1"]),
        (["--since", "2026-11-22"], ["b2"]),
    ],
)
def test_calls_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], tools: list[str]
) -> None:
    first = line("a1", server="one", user="ann")
    audit(tmp_path / "a", [first, line("b2", server="two", user="bob", time="2026-11-23T08:00:00+00:00")])
    assert main(["a", *options]) == 0
    assert tomllib.loads(capsys.readouterr().out)["permissions"]["allow"] == tools


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["none"], "none: there is no such file", "first judged call"),
        (["empty"], "nothing can be learned, because no call in it counts", 'calls = "all"'),
        (["failed"], "allowed calls that failed, were cancelled or have no response, 1 time", 'calls = "all"'),
        (["a", "--server", "flies"], "no call in it is one of those that were asked for", "did you mean 'files'?"),
        (["a", "--server", "zzz"], "no call in it is one of those that were asked for", "--server may be files"),
        (["a", "--tool", "zzz"], "no call in it is one of those that were asked for", "leave out --since, --tool"),
        (["a", "--since", "x"], "--since 'x': is not a time", "a date"),
        (["."], "is a folder, not a file", "name an audit file in it"),
        (["a", "--output", "a/x"], "a: cannot be written: Not a directory", "ls -ld"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_hint(tmp_path: Path, arguments: list[str], message: str, hint: str) -> None:
    audit(tmp_path / "a", files(1))
    audit(tmp_path / "failed", [line("t", result="error")])
    (tmp_path / "empty").touch()
    with pytest.raises(UserError) as raised:
        main(arguments)
    assert message in raised.value.message
    assert hint in raised.value.hint
