"""The record of what hookproxy wrote on this machine."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.slow
def test_processes_that_record_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from hookproxy.wrapping.written import update\n"
        "for name in sys.argv[2:]: update(sys.argv[1], lambda record: record.with_wrapped(name))"
    )
    paths = [[f"/{process}/{number}" for number in range(5)] for process in range(4)]
    started = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *names]) for names in paths]
    assert [process.wait() for process in started] == [0] * 4
    assert sorted(read(str(tmp_path)).wrapped) == sorted(name for names in paths for name in names)
