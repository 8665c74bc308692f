"""What a session has read outlasts the guard that has kept it."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from hookproxy.flow.session_labels import KeptLabels
from hookproxy.guard import label_files
from hookproxy.guard.label_files import LabelFile
from hookproxy.model.flow import Reading
from hookproxy.policy.shared_state import StoreUnavailable

SECRET = Reading(("secret",), "read", "files", "/a/.env", 1.0)


def labels_in(folder: Path, session: str = "s") -> KeptLabels:
    labels = KeptLabels()
    LabelFile(str(folder / "labels"), session, labels)
    return labels


def names_of(labels: KeptLabels) -> set[str]:
    return {label for reading in labels.known(()).readings for label in reading.labels}


def only_file(folder: Path) -> Path:
    (file,) = (folder / "labels").iterdir()
    return file


def test_what_was_read_before_the_guard_was_killed_is_known_and_any_text_may_carry_it(tmp_path: Path) -> None:
    labels_in(tmp_path).add(SECRET, (1, 2), whole=False)
    known = labels_in(tmp_path).known((77,))
    assert [reading.labels for reading in known.readings] == [("secret",)]
    assert len(known.carried) == 1
    assert names_of(labels_in(tmp_path, "other")) == set()


def test_labels_that_were_taken_away_stay_away(tmp_path: Path) -> None:
    labels = labels_in(tmp_path)
    labels.add(SECRET, (), whole=True)
    labels.remove(["secret"])
    assert names_of(labels_in(tmp_path)) == set()


def test_nobody_else_can_read_the_files(tmp_path: Path) -> None:
    labels_in(tmp_path).add(SECRET, (1,), whole=False)
    file = only_file(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]


def test_a_session_that_gets_another_id_has_read_what_was_read_under_both(tmp_path: Path) -> None:
    labels_in(tmp_path, "native").add(SECRET, (), whole=True)
    labels = labels_in(tmp_path, "run")
    labels.add(Reading(("customer",), "query"), (), whole=True)
    LabelFile(str(tmp_path / "labels"), "native", labels)
    assert names_of(labels) == names_of(labels_in(tmp_path, "native")) == {"secret", "customer"}


@pytest.mark.parametrize("wrong", [b"{", b'{"add":7}', b"\xff"])
def test_of_a_file_that_cannot_be_read_nothing_is_known(tmp_path: Path, wrong: bytes) -> None:
    labels_in(tmp_path).add(SECRET, (), whole=True)
    only_file(tmp_path).write_bytes(wrong)
    labels = labels_in(tmp_path)
    with pytest.raises(StoreUnavailable):
        labels.known(())
    with pytest.raises(StoreUnavailable):
        labels.add(SECRET, (), whole=True)


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    labels_in(tmp_path).add(SECRET, (), whole=True)
    file = only_file(tmp_path)
    file.unlink()
    os.symlink(tmp_path / "elsewhere", file)
    labels = labels_in(tmp_path)
    with pytest.raises(StoreUnavailable):
        labels.add(SECRET, (), whole=True)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(StoreUnavailable):
        labels.known(())


def test_a_long_file_is_written_anew_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_files, "_LONGEST", 1000)
    labels = labels_in(tmp_path)
    for number in range(400):
        labels.add(Reading((f"l{number % 3}",), "read"), (), whole=True)
    assert only_file(tmp_path).stat().st_size < 100_000
    assert names_of(labels_in(tmp_path)) == {"l0", "l1", "l2"}


def test_a_guard_that_is_killed_while_it_writes_a_file_anew_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = labels_in(tmp_path)
    labels.add(SECRET, (), whole=True)
    monkeypatch.setattr(label_files, "_LONGEST", 10)
    monkeypatch.setattr(os, "replace", lambda *_: sys.exit("killed"))
    with pytest.raises(SystemExit):
        labels.add(Reading(("customer",), "query"), (), whole=True)
    assert names_of(labels_in(tmp_path)) == {"secret"}


def test_of_very_many_files_the_oldest_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_files, "_MOST_FILES", 2)
    for number in range(5):
        labels_in(tmp_path, str(number)).add(SECRET, (), whole=True)
    assert len(list((tmp_path / "labels").iterdir())) == 3
    assert names_of(labels_in(tmp_path, "4")) == {"secret"}
