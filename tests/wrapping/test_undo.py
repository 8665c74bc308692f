"""What is planned to undo everything; tests/cli/test_uninstall.py does it with the real program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.wrapping.known_agents import ConfigFile
from hookproxy.wrapping.undo import needless_backup, plan, undo
from hookproxy.wrapping.use_tables import UseTable, inserted_text
from hookproxy.wrapping.written import Written

OWN = {"command": "npx", "args": ["x"]}
WRAPPED = {"command": "hookproxy", "args": ["run", "--name", "git", "--", "npx", "x"]}


def configuration(path: Path, **servers: object) -> Path:
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_wrapped_entries_of_the_record_and_of_known_agents_are_found_once(tmp_path: Path) -> None:
    first = configuration(tmp_path / "a.json", git=WRAPPED)
    second = configuration(tmp_path / "b.json", git=WRAPPED, other=OWN)
    untouched = configuration(tmp_path / "c.json", git=OWN)
    record = Written(wrapped=(str(first), str(untouched)))
    known = [ConfigFile(str(path), (), in_project=False) for path in (second, first)]
    found = plan(record, known)
    assert sorted(file.snapshot.path for file in found.unwrapped) == [str(first), str(second)]
    assert (found.gone, found.errors) == ((str(untouched),), ())


def test_a_broken_file_is_reported_only_if_it_may_start_hookproxy(tmp_path: Path) -> None:
    for text, reported in (('{"mcpServers": ', False), ('{"command": "hookproxy"', True)):
        path = tmp_path / "a.json"
        path.write_text(text)
        found = plan(Written(), [ConfigFile(str(path), (), in_project=False)])
        assert bool(found.errors) is reported


def test_an_entry_that_was_written_by_hand_is_reported_and_stays(tmp_path: Path) -> None:
    by_hand = {"command": "hookproxy", "args": ["run", "--url", "https://example.com/mcp"]}
    path = configuration(tmp_path / "a.json", far=by_hand, git=WRAPPED)
    found = plan(Written(), [ConfigFile(str(path), (), in_project=False)])
    (error,) = found.errors
    assert "mcpServers.far is not changed: it was written by hand" in error.message
    ((changed,),) = (file.plan.changed for file in found.unwrapped)
    assert changed.name == "git"


def test_files_that_are_wholly_ours_are_removed_and_changed_ones_are_not(tmp_path: Path) -> None:
    ours, changed, gone = (tmp_path / name for name in ("ours", "changed", "gone"))
    ours.write_text("text")
    changed.write_text("text!")
    record = Written().with_created({str(path): "text" for path in (ours, changed, gone)}, [])
    found = plan(record, [])
    assert [(one.snapshot.path, one.text) for one in found.restored] == [(str(ours), None)]
    assert found.gone == (str(gone),)
    (error,) = found.errors
    assert error.message.startswith(f"{changed}: has changed since")
    assert undo(found.restored[0]) == f"{ours}: removed"
    assert not ours.exists()


def test_a_file_that_changes_before_it_is_removed_stays(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.write_text("text")
    found = plan(Written().with_created({str(ours): "text"}, []), [])
    ours.write_text("more")
    with pytest.raises(UserError, match="has changed since it was read"):
        undo(found.restored[0])
    assert ours.read_text() == "more"


def test_a_file_that_setup_made_and_a_person_extended_loses_only_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "hookproxy.toml"
    header = "# schema\n"
    first = inserted_text(str(path), header, [UseTable("/a", "claude")])
    second = inserted_text(str(path), header + first, [UseTable("/b", "lime")])
    record = Written().with_created({str(path): header}, []).with_inserted(str(path), first)
    record = record.with_inserted(str(path), second)
    path.write_text(header + first + second)
    assert [one.text for one in plan(record, []).restored] == [None]
    path.write_text(header + first + second + "\n[audit]\nenabled = true\n")
    (restored,) = plan(record, []).restored
    undo(restored)
    assert path.read_text() == header + "\n[audit]\nenabled = true\n"
    assert [one.name for one in tmp_path.iterdir()] == ["hookproxy.toml"]


def test_a_backup_is_needless_only_if_the_file_has_all_of_it(tmp_path: Path) -> None:
    path = configuration(tmp_path / "a.json", git=OWN)
    backup = tmp_path / "a.json.hookproxy-backup"
    assert needless_backup(str(path)) == ""
    for servers, needless in (
        ({"git": OWN}, True),
        ({"git": WRAPPED}, True),
        ({"git": WRAPPED, "precious": OWN}, False),
    ):
        configuration(backup, **servers)
        assert bool(needless_backup(str(path))) is needless
    backup.write_text("{")
    assert needless_backup(str(path)) == ""
