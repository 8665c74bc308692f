"""The words of a command line's first command, and where they cease to be certain."""

from __future__ import annotations

import pytest

from hookproxy.checks.commands import first_command

KNOWN = {"HOME": "/home/a", "DIR": "/p/some where", "PLAIN": "/p"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("./x.sh --y  z", ["./x.sh", "--y", "z"]),
        ("  ./x.sh\n", ["./x.sh"]),
        ('"$DIR"/x.sh', ["/p/some where/x.sh"]),
        ("\"${DIR}/x.sh\" '$DIR'", ["/p/some where/x.sh", "$DIR"]),
        ("$PLAIN/x.sh", ["/p/x.sh"]),
        ("~/x.sh", ["/home/a/x.sh"]),
        ("a\\ b \\\n c", ["a b", "c"]),
        ('"" a', ["", "a"]),
        ("A=1 ./x.sh", ["A=1", "./x.sh"]),
        ("./x.sh | ./y.sh", ["./x.sh"]),
        ("./x.sh && ./y.sh", ["./x.sh"]),
        ("./x.sh; ./y.sh", ["./x.sh"]),
        ("./x.sh\n./y.sh", ["./x.sh"]),
        ("./x.sh 2>/dev/null z", ["./x.sh"]),
        ("./x.sh # why", ["./x.sh"]),
    ],
)
def test_words_without_a_secret_are_told(line: str, words: list[str]) -> None:
    assert first_command(line, KNOWN) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$DIR/x.sh a", [None, "a"]),  # without quotes it is two words
        ("$OTHER/x.sh a", [None, "a"]),
        ('"$OTHER/x.sh" a', [None, "a"]),
        ("./*.sh a", [None, "a"]),
        ("./{a,b}.sh", [None]),
        ("[ -f x ] || y", [None, "-f", "x", None]),
        ("! ./x.sh", [None, "./x.sh"]),
        ("./x.sh $(date) b", ["./x.sh", None]),
        ("./x.sh `date` b", ["./x.sh", None]),
        ('./x.sh "$(date)" b', ["./x.sh", None]),
        ("${DIR:-.}/x.sh", [None]),
        ("./x.sh 'open", ["./x.sh", None]),
        ("./x#y", [None]),
        ("~other/x.sh", [None]),
    ],
)
def test_what_only_a_shell_knows_is_left_to_it(line: str, words: list[str | None]) -> None:
    assert first_command(line, KNOWN) == words


@pytest.mark.parametrize(
    "line", ["", "  ", "(cd x; ./y.sh)", "f() { ./x.sh; }", "f () { ./x.sh; }", "# only this", ">x"]
)
def test_where_no_command_begins_there_is_no_word(line: str) -> None:
    assert first_command(line, KNOWN) == []


def test_without_a_home_its_sign_is_not_certain() -> None:
    assert first_command("~/x.sh", {}) == [None]
