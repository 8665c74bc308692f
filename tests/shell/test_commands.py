"""All commands of a line, with what it says about files, variables and names."""

from __future__ import annotations

import pytest

from hookproxy.shell.commands import commands_of


def commands(line: str) -> list[str]:
    return [" ".join(word.source for word in words) for words in commands_of(line).commands]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("A=rm; $A x", "rm x"), ("A='rm x'; $A", "rm x"), ("export A=rm; ${A} x", "rm x"), ("${A:-rm} x", "rm x"),
        ("alias a=rm\na x", "rm x"), ("alias a='rm -r'\na x", "rm -r x"), ("hash -p /bin/rm a; a x", "/bin/rm x"),
        ("echo 'rm x' >s; sh s", "rm x"), ("cat >s <<E\nrm x\nE\n. ./s", "rm x"), ("tee s <<< 'rm x'; bash s", "rm x"),
        ("sh -c \"sh -c 'sh -c \\\"rm x\\\"'\"", "rm x"), ("sudo env nice timeout 5 xargs rm", "rm …"),
        ("time ! rm x", "rm x"), ("time ! A=b rm x", "rm x"),
        ("A='$(rm x)'; echo", "rm x"),
    ],
)  # fmt: skip
def test_what_a_line_says_about_names_and_files_is_followed(line: str, command: str) -> None:
    assert command in commands(line)


@pytest.mark.parametrize(
    "line",
    [
        "$X y", '"$EDITOR" f', "r$@m x", "r? x", "/bin/r* x", "$(echo rm) x", "eval \"$(ssh-agent -s)\"",
        "curl -o s x; sh s",
        "cp /bin/rm a; ./a x", "ln -s /bin/rm a; ./a x", "read A <<< rm; $A x", "set -- rm x; \"$@\"",
        "a=(rm x); ${a[0]}", "~ x",
        "printf -v 'a[$(rm)]' b", "X=~; $X", "sh " + "-c 'sh " * 14,
    ],
)  # fmt: skip
def test_what_is_only_known_when_it_runs_is_unreadable(line: str) -> None:
    assert commands_of(line).unreadable


def test_aliases_that_stand_for_each_other_end() -> None:
    assert not commands_of("alias ls='ls -l'\nls x").unreadable
    assert not commands_of("alias a=b\nalias b=a\na x").unreadable


def test_variables_that_a_line_sets_are_known() -> None:
    sets = commands_of('A=1; export B=2; read "C"; echo $D ${E} "$F"; printf -v G"H" x').sets
    assert {"A", "B", "C", "GH"} <= sets
    assert not {"D", "E", "F"} & sets
