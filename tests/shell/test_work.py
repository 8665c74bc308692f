"""What an agent can make the reader of command lines do is bounded, however long and nested its line is."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final

import pytest

from hookproxy.policy.globs import WorkBudget
from hookproxy.policy.shell_commands import command_matcher
from hookproxy.shell.commands import commands_of
from hookproxy.shell.statements import LONGEST

RM: Final = command_matcher("rm *")
MOST_CALLS: Final = 400_000
"""Calls of functions, those of Python itself included: some 40 ms. The worst line takes half of them."""


def filled(piece: str, length: int = LONGEST) -> str:
    return piece * (length // len(piece))


LINES: Final = {
    # commands and separators
    "words": filled("a "),
    "commands": filled("a;"),
    "lines": filled("a\n"),
    "pipes": filled("a|"),
    "ands": filled("a&&"),
    "comments": filled("a # b\n"),
    "ends of lines": filled("\n", 65_000) + "a",
    "continued": "a " + filled("\\\n", 65_000) + "b",
    "carriage returns": filled("a\r\n"),
    # nesting
    "open $(": filled("$("),
    "open (": filled("("),
    "open {": filled("{ "),
    "open ((": filled("(("),
    "open <(": filled("<("),
    "nested (": "(" * 20_000 + "a" + ")" * 20_000,
    "nested $(": "echo " + "$(" * 15 + "a " * 25_000 + ")" * 15,
    "deep $(": "echo " + "$(" * 3000 + "a" + ")" * 3000,
    "wide $(": "echo " + ("$(a " * 17 + ")" * 17 + " ") * 700,
    "groups": "{ " * 18 + "a; " * 3000 + "} >f; " * 18,
    "open backquotes": filled("`"),
    "backquotes": "echo " + filled("`a` ", 60_000),
    "open if": filled("if a; then "),
    "if": filled("if a; then b; fi; "),
    "open for": filled("for a in b; do "),
    "for": filled("for a in b; do c; done; "),
    "case": filled("case a in b) c;; esac; "),
    "functions": filled("f() { a; }; "),
    "open [[": filled("[[ "),
    "[[": filled("[[ a ]]; "),
    # quotes and expansions
    "single quotes": filled("'"),
    "double quotes": filled('"'),
    "quoted words": filled("'a b' "),
    "variables": filled('"$a" '),
    "bare variables": filled("$a "),
    "one word": '"' + filled("${a}", 65_000) + '"',
    "open ${": filled("${a:-"),
    "$((": filled("$((1)) "),
    "ANSI C": filled("$'\\x41' "),
    "escapes": filled("\\a "),
    "patterns": "ls " + filled("*", 65_000),
    "letters": filled("é "),
    # braces
    "open braces": "ls " + filled("{a,", 65_000),
    "alternations": "ls " + filled("{a,b}", 65_000),
    "words with braces": "ls " + filled("{a,b} ", 65_000),
    "nested braces": "ls " + "{a," * 10_000 + "b" + "}" * 10_000,
    "ranges": "ls " + filled("{1..9} ", 65_000),
    # here-documents and redirections
    "<< on one line": filled("<<E "),
    "here-documents": filled("a <<E\nb\nE\n"),
    "quoted ones": filled("a <<'E'\nb\nE\n"),
    "without end": filled("a <<'E'\n"),
    "different ones": "".join(f"a <<E{at}\n" for at in range(6000)),
    "expansions in one": "cat <<E\n" + filled("$(a) ", 60_000) + "\nE",
    "with quotes": "cat <<E\n" + filled('"$(a)" ', 60_000) + "\nE",
    "nested ones": filled("cat <<E\n$("),
    "redirections": "a " + filled(">f ", 65_000),
    "here-strings": filled("a <<<b;"),
    # variables, aliases and files
    "assignments": filled("A=b "),
    "doubled": "A=b;" + filled("A=$A;", 65_000),
    "copied": "A=" + "b" * 30_000 + "; echo " + "$A " * 8000,
    "aliases": filled("alias a=b;"),
    "alias chain": "".join(f"alias a{at}='a{at + 1} x';" for at in range(2000)) + "a0",
    "files": "".join(f"echo f{at + 1} > f{at};" for at in range(2500)) + "sh f0",
    # programs
    "env": filled("env "),
    "env -S": "env -S '" + filled("-S a ", 65_000) + "'",
    "bwrap": "bwrap " + filled("a ", 65_000),
    "find": "find " + filled("-exec a ", 65_000),
    "sh -c": filled("sh -c "),
    "sudo -s": filled("sudo -s "),
    "settings": "git " + filled("-c alias.a=b ", 65_000) + "a",
    "docker": filled("docker run --rm a sh -c b; "),
    "joined options": "bash -" + "oc" * 30_000 + " rm",
    "joined values": "bash -" + "C" * 60_000 + " rm",
    "options": "foo " + filled("--a=rm ", 65_000),
    "unknown": "foo '" + filled("(rm(rm(rm ", 65_000) + "'",
    # other languages
    "awk": "awk '" + filled(",/[", 65_000) + "'",
    "sed": "sed '\\x" + "\\" * 60_000 + "'",
    "perl": "perl -e '" + filled("q(", 65_000) + "'",
    "python": "python -c '" + 'system("a",' * 5000 + "'",
    "make": "make -f - <<'E'\n" + filled("a:", 60_000) + "\nE",
    "pythons": "; ".join(f"python3 -c 'import os; os.system(\"a{at}\")'" for at in range(1200)),
}


def calls_of(line: str) -> int:
    """How many functions are called while the line is judged."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    commands_of.cache_clear()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        commands_of(line)
        RM(line, WorkBudget())
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_the_work_for_a_line_is_bounded(line: str) -> None:
    commands_of("ls ${x^^}; python -c 'import os; os.system(1)'; awk 1; node -e 1")  # loads the grammars
    assert calls_of(line[:LONGEST]) < MOST_CALLS


def test_twice_the_line_takes_at_most_twice_the_work() -> None:
    for piece in ("a b; ", "echo '$(a)' \"$b\" ", "for x in a b; do c $x | d; done\n", "git push a; "):
        assert calls_of(piece * 60) < 2.2 * calls_of(piece * 30)
