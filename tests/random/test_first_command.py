"""Words that are found without a shell are those that a shell makes of the same line."""

from __future__ import annotations

import subprocess
from itertools import takewhile
from typing import Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hookproxy.checks.commands import first_command

KNOWN: Final = {"HOME": "/home/some body", "PLAIN": "/x/y", "ODD": "a\\b*", "EMPTY": ""}
PIECES: Final = (
    *("a", "b.sh", "--x=1", " ", "  ", "\t", "é", "=", "%", "^", "3"),
    *("'single $HOME'", "''", '""', '"$HOME/x"', '"a\\"b\\$c\\d"', '"${PLAIN}-"', '"a\\\nb"', '"$ODD"', "'", '"'),
    *("$HOME", "$PLAIN", "${PLAIN}/z", "$EMPTY", "$ODD", "$UNKNOWN", "$1", "$#", "${PLAIN:-x}", "~/z", "~", "~b"),
    *("\\ ", "\\a", "\\\n", "\\", "*", "?", "[ab]", "{a,b}", "!", "#", " #", "$(echo a)", "`echo b`"),
    *(";", "|", "&&", "&", "\n", "2>&1", ">f", "<f"),
)
SHOW: Final = """show() { printf '%s\\0' "$@" >&3; exit 0; }; show """


@example(["a", " #", "b"])
@example(["a", "#", "b"])
@example(["a", " ", "2>&1", " ", "b"])
@example([" ", "\\\n", " ", "a"])
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_certain_words_belong_to_the_shell(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    line = "".join(pieces)
    certain = list(takewhile(lambda word: word is not None, first_command(f"show {line}", KNOWN)))[1:]
    ended = subprocess.run(
        ["sh", "-c", f"exec 3>&1 >/dev/null; {SHOW}{line}"],
        cwd=tmp_path_factory.getbasetemp(),
        env=KNOWN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    shown = ended.stdout.decode().split("\0")[:-1]
    assume(shown)  # else it is no line that a shell runs
    assert shown[: len(certain)] == certain
