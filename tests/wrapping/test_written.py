"""The record of what hookproxy wrote on this machine."""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError, UserError
from hookproxy.wrapping.written import FILE, Written, digest, read, update


def test_it_is_kept_private_and_removed_when_nothing_is_left(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    update(state, lambda record: record.with_wrapped("/a").with_created({"/b": "text"}, ["/c"]))
    update(state, lambda record: record.with_inserted("/d", "1").with_inserted("/d", "2").with_wrapped("/a"))
    assert read(state) == Written(("/a",), {"/b": digest("text")}, {"/d": ("1", "2")}, ("/c", state))
    assert (tmp_path / "state" / FILE).stat().st_mode & 0o777 == 0o600
    update(state, lambda record: record.without(["/b", "/d"]))
    assert read(state) == Written(("/a",), folders=(state,))  # the folder /c is gone
    update(state, lambda record: record.without(["/a"]))
    assert list((tmp_path / "state").iterdir()) == []
    assert read(state) == Written()


@pytest.mark.parametrize("text", ["{", '{"wrapped": 5}', "\udcff"])
def test_a_record_that_cannot_be_read_is_an_error_and_is_not_overwritten(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text, errors="surrogateescape")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(ConfigError, match="is not a record of hookproxy"):
        update(str(tmp_path), lambda record: record.with_wrapped("/a"))
    assert (tmp_path / FILE).read_bytes() == before


def test_without_a_home_folder_nothing_is_recorded() -> None:
    with pytest.raises(UserError, match="without a home folder"):
        update("", lambda record: record.with_wrapped("/a"))


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        update(str(tmp_path / "file" / "state"), lambda record: record.with_wrapped("/a"))


def _add(folder: str, path: str) -> None:
    update(folder, lambda record: record.with_wrapped(path))


@pytest.mark.slow
def test_processes_that_record_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    context = get_context("fork")
    processes = [context.Process(target=_add, args=(str(tmp_path), f"/{number}")) for number in range(12)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert set(read(str(tmp_path)).wrapped) == {f"/{number}" for number in range(12)}
