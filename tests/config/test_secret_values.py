"""Named values are read where they are; one that cannot be had or used stops the start, and no error has a value."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from hookproxy.config.secret_values import read_values
from hookproxy.model.errors import UserError
from hookproxy.model.secret_settings import LONGEST_VALUE, Source

VALUE = "hunter2-hunter2"


def test_values_are_read_from_variables_files_and_commands_without_the_end_of_their_line(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{VALUE}\n")
    sources = {
        "a": Source("env", "A"),
        "b": Source("file", str(tmp_path / "key")),
        "c": Source("command", "/bin/cat 'key'", str(tmp_path)),
    }
    assert read_values(sources, {"A": VALUE}) == dict.fromkeys("abc", VALUE.encode())


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Source("env", "B"), "the environment variable B is not set"),
        (Source("file", "/nowhere/x"), "cannot be read: No such file"),
        (Source("file", "/dev"), "cannot be read: Is a directory"),
        (Source("file", "/dev/null"), "is not a file"),
        (Source("command", "/nowhere/x"), "cannot be started"),
        (Source("command", f"/bin/sh -c 'echo {VALUE} >&2; exit 3'"), "ended with status 3"),
        (Source("command", "/bin/true"), "too short"),
        (Source("env", "SHORT"), "too short"),
        (Source("env", "SAME"), "too short"),
        (Source("env", "LONG"), f"more than {LONGEST_VALUE} bytes"),
    ],
)
def test_a_value_that_cannot_be_had_or_used_stops_the_start_and_is_in_no_error(source: Source, problem: str) -> None:
    environ = {"SHORT": "hunter2", "SAME": "ababababab", "LONG": "hunter2" * 2000}
    with pytest.raises(UserError) as raised:
        read_values({"x": source}, environ)
    assert raised.value.message.startswith("secrets.values.x: ")
    assert problem in raised.value.message
    printed = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in printed.replace(source.what, "")


def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is not a file"):
        read_values({"x": Source("file", str(tmp_path / "pipe"))}, {})


def test_a_value_shows_in_no_repr() -> None:
    values = read_values({"x": Source("env", "A")}, {"A": VALUE})
    assert VALUE not in f"{values} {values!r} {values['x']} {values['x']!r}"
