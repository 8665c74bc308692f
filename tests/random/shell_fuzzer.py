"""A fuzzer of the reader of command lines, beside bash itself.

Random lines are made of tricky pieces. The real bash runs each in an empty folder,
    where all programs are stubs that say
that they ran. Law: what ran is among the commands that `shell` reads from the line, or the line is unreadable.

scripts/fuzz shell [--seconds N] [--seed S] runs it for as long as you like; a finding prints the line.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from hookproxy.shell.commands import commands_of
from hookproxy.shell.words import Word
from tests.support import real_bash

STUBS: Final = ("rm", "x", "b", "ls")
PROGRAMS: Final = real_bash.Programs(
    STUBS, ("env", "xargs", "timeout", "nice", "bash", "sh", "cat", "nohup", "setsid", "find", "touch")
)
AT_ONCE: Final = 100  # lines of one process of bash
SECONDS: Final = 5  # for these: they take less than one, unless a line waits for ever

_WORDS: Final = (
    "rm", "x", "b", "ls", "-c", "-a", "a", "a=1", "A=rm", "'rm'", '"rm"', "r\\m", "r''m", "$A", "${A}", '"$A"', "$'rm'",
    "$'\\x72m'", '$"rm"', "{rm,x}", "{x,rm} b", "r{m,x}", "'a b'", '"a b"', "a\\ b", "r?", "*", "~", "~+", "a#b",
    "$#", "$@", '"$@"', "$*", "$?", "$(rm)", "`rm`", '"$(rm x)"', '"`rm x`"', "$((1))", "$((A+1))", "$((A[0]))",
    "${A:-rm}", "${A:=x}", "${A:+b}", "${#A}", "${!A}", "${A/r/x}", "${A%%m}", "${a[0]}", "${A:-$(rm x)}",
    "<(rm)", ">(rm x)", "-", "--", "''", '""', "a[0]=rm", "a=$(rm x)", "A='a[$(rm)]'", "$'a\\'b'", "\\;", "\\|", "';'",
    "'&'", '"\\""', '"\\$A"', '"a\\\nb"', "é", "$x", "${a[@]}", "'a\nb'", '"a\nb"', "a\\\nb", "it\\'s", "\"it's\"",
)  # fmt: skip
_ODD_WORDS: Final = (
    "$$", "$[1]", "${A-'rm x'}", "${A@P}", '"${A:-"$(rm x)"}"', "${A:-`rm`}", "=rm", "\\", "\\\n", "!", "{", "}", "[[",
    "]]", "[", "]", "in", "a\\", "a=(rm x)", "a+=(x)", "a[$(rm x)]=1", "$'\\cA'", "\u00a0", "\u2028", "\r", "#", "# '",
    "%1", "^rm", "a;b", "1", "2", "+", "@(rm|x)", "?(rm)", "!(x)", "rm$", '"$"', "$", "$'", "a&b", "\x0b", "\x0c",
    "a\rb",
    "$((1<<2))", "$((a[$(rm)]))", "${a[$(rm)]}", "${A:$(rm)}", "${A:1:2}", "${A^^}", "${A//\\'/x}", "${A:-'}'}",
    "${A#\\}}",
    "$'\\u0072m'", "$'r\\155'", "{a..c}", "{rm,}", "{,rm}", "a{,b}", "{a,b", "a}", "'", '"', "`", "$(", "${", "$((",
    ")",
    "'a'\\''b'", "$(echo rm)", "`echo \\`rm\\``", "`echo \\$A`", "$(cat <<E\nrm\nE\n)", "$(<a)", "$( (rm) )",
    "$((rm) )",
    "$(rm # )\n)", "$(case a in a) rm;; esac)", "$(# it's\nrm)", "<(rm # '\n)", "\"$(echo ')' ; rm)\"",
    "\"`echo '\\\"'`\"",
    "\\\r", "\"\\\r\"", "\\\t", "~rm", "time", "coproc", "function", "done", "fi", "esac", "select", "rm()", "()",
    "((1))",
)  # fmt: skip
_SEPARATORS: Final = (
    ";",
    " & ",
    " && ",
    " || ",
    " | ",
    " |& ",
    "\n",
    "\n\n",
    "; ",
    ";\n",
    " # a\n",
    " # '\n",
    "&\n",
    "|",
    "&&",
)
_ODD_SEPARATORS: Final = (
    ";;", "\r\n", ";&", ";;&", "\r", "\n#\\\n", "\n \\\n", "; \\\n", "\\\r\n", "|\n# '\n", "&&\n\n", "||#\n", "\\\n",
    "# a\n",
    " # \\\n",
)  # fmt: skip
_REDIRECTIONS: Final = (
    ">a", "> a", ">>a", "2>&1", ">&2", "<a", "<&-", "&>a", "&>>a", ">|a", "<>a", "{fd}>a", "3<a", "1>a", "<<<rm",
    "<<< 'x'",
    "<<<$A", "<<<\"rm x\"", ">'a b'", ">a\\ b", "2>a", "1", ">$A", ">&a", "0<a", "<<<a\\ b", ">&", "9>&-", "<(rm)",
    "01>a",
)  # fmt: skip
_STARTERS: Final = (
    "env", "env -u a", "env A=b", "env -S", "xargs", "xargs -n 1", "xargs -I{}", "timeout 5", "nice", "nice -n 5",
    "command",
    "builtin", "eval", "exec", "exec -a y", "time", "time -p", "nohup", "bash -c", "sh -c", "bash -ec", "bash", "sh",
    "bash -s",
    "sh -s x", "coproc", "coproc b", "!", "! !", "trap", "find . -exec", "cat |", "echo rm |", "echo 'rm x' |",
    "printf 'rm x\\n' |",
    "echo x | xargs", "setsid", "command -v", "then", "do", "{", "(", "command env", "builtin eval",
    "hash -p @BIN@/rm b;",
    "source /dev/stdin", ". /dev/stdin", "mapfile -t a", "read A", "read -r A", "printf -v A", "set --",
    "set -- rm x;", "shift;",
    "local", "declare", "export", "readonly", "declare -a", "alias", "unset", "let", "test", "[[", "((", "source a",
    "bash a",
    "shopt -s extglob;", "shopt -s expand_aliases;", "alias b=rm\n", "enable", "eval eval", "env -- ", "env env",
    "bash -o posix -c", "bash +o posix -c", "bash -c -e", "bash --norc -c", "bash -O extglob -c", "A=rm;", "a=(rm x);",
)  # fmt: skip


_FORMS: Final = (
    "{ %S; }", "(%S)", "if %S; then %S; fi", "if %S\nthen %S\nelse %S; fi", "for a in %V; do %S; done",
    "for a do %S; done", "for ((a=0; a<1; a++)); do %S; done", "while %S; do %S; break; done",
    "until %S; do %S; break; done", "case %W in %W) %S;; *) %S;; esac", "case %W in (%W|%W) %S ;& *) %S\nesac",
    "f() { %S; }; f %W", "function f { %S; }\nf", "%W() { %S; }; %W", "f() ( %S ); f", "%S%P%S",
    "[[ %W == %W ]] && %S", "[[ %W =~ %W ]] || %S", "[[ -n %W && ! %W ]]; %S", "(( %W )); %S", "! %S", "time %S",
    "coproc { %S; }", "echo $(%S)", 'echo "$(%S)"', "echo `%S`", "echo ${A:-$(%S)}", "$(%S)", "cat <(%S)",
    "eval '%S'", 'eval "%S"', "eval %S", "bash -c '%S'", 'sh -c "%S"', "trap '%S' EXIT", "echo '%S' | sh",
    "echo '%S' >s; . ./s", "alias l='%S'; l", "select a in rm; do %S; break; done", "%S | while read a; do %S; done",
    "A='%S'; $A", "A='%S'; eval $A", "A='%S'; eval \"$A\"", "A='%S'; sh -c \"$A\"", "set -- %V; \"$@\"",
    "set -- %V; $1",
    "set -- %V; eval \"$*\"", "a=(%V); \"${a[@]}\"", "a=(%V); ${a[0]}", "a=(%V); $a", "%S # %W\n%S", "%S %R",
    "{ %S; } %R", "%C <<%D\n%B\n%E\n%S", "<<%D %C\n%B\n%E\n%S", "{ %C <<%D\n%B\n%E\n}\n%S",
    "A=$(%C <<%D\n%B\n%E\n)\n%S",
    "%C <<%D; %S\n%B\n%E\n%S", "%C <<%D <<%D\n%B\n%E\n%B\n%E\n%S", "%C <<%D | sh\n%B\n%E\n%S", "%C <<%D && %S\n%B\n%E",
)  # fmt: skip
"""Statements; `_Lines._piece` says what the letters stand for."""
_DELIMITERS: Final = ("E", "'E'", '"E"', "\\E", "-E", "-'E'", " E", "$E")
_ENDS: Final = ("E", "E", "E", "E", "\tE", "E ", "$E")
_BODIES: Final = ("it's\nrm x", "$(rm x)", "`rm`", "a\\\nE", "rm x", "rm x\\", '"$(rm x)"', "\\$(rm x)", "${A:-$(rm)}")
_READERS: Final = ("cat", "sh", "bash", "cat | sh", "xargs", "b", "while read a; do $a; done", "bash -s", ": &&", ": ;")
_ASSIGNED: Final = ("A=b", "A=rm", "a[0]=1", "A='b c'", "A=b\\ c", "A=$(rm)", "A+=b", "A=", "a=(x)", "A=$'x y'")


class Tried(NamedTuple):
    """What became of some lines."""

    proven: int
    """How many were read, and ran something."""
    findings: list[str]
    """Where the law is broken."""


class _Lines:
    """Makes random lines."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def line(self) -> str:
        """Return a few statements."""
        text = self._statement(0)
        for _ in range(self._dice.choice((0, 0, 1, 2))):
            text += self._separator() + self._statement(0)
        return self._damaged(text) if self._dice.random() < 0.1 else text

    def _damaged(self, text: str) -> str:
        at = self._dice.randrange(len(text) + 1)
        match self._dice.randrange(3):
            case 0:
                return text[:at] + self._dice.choice("'\"\\`$(){};|&<>\n #=[]!~") + text[at:]
            case 1:
                return text[:at] + text[at + 1 :]
            case _:
                return text[:at] + text[at:].replace(" ", "", 1)

    def _statement(self, depth: int) -> str:
        if depth > 3 or self._dice.random() < 0.5:
            return self._simple()
        return re.sub("%([A-Z])", lambda part: self._piece(part[1], depth + 1), self._dice.choice(_FORMS))

    def _piece(self, letter: str, depth: int) -> str:
        match letter:
            case "S":
                return self._statement(depth)
            case "B":
                return self._dice.choice((*_BODIES, self._statement(depth)))
            case "V":
                return self._words()
            case "W":
                return self._word()
            case "P":
                return self._separator()
            case _:
                return self._dice.choice(_CHOICES[letter])

    def _separator(self) -> str:
        return self._dice.choice(_SEPARATORS if self._dice.random() < 0.97 else _ODD_SEPARATORS)

    def _simple(self) -> str:
        dice = self._dice
        parts = [dice.choice(_ASSIGNED)] if dice.random() < 0.3 else []
        parts += dice.choices(_STARTERS, k=dice.choice((0, 0, 0, 1, 1, 2)))
        parts.append(self._words())
        if dice.random() < 0.3:
            parts.insert(dice.randrange(len(parts) + 1), dice.choice(_REDIRECTIONS))
        return dice.choice((" ", " ", " ", " ", "  ", "\t", " \\\n")).join(parts)

    def _words(self) -> str:
        return " ".join(self._word() for _ in range(self._dice.choice((1, 1, 1, 2, 2))))

    def _word(self) -> str:
        chance = self._dice.random()
        if chance < 0.06:
            return self._dice.choice(_WORDS) + self._dice.choice(_WORDS)
        if chance < 0.1:
            return self._dice.choice(_ODD_WORDS)
        return self._dice.choice(_WORDS if chance < 0.35 else STUBS)


_CHOICES: Final = {"C": _READERS, "D": _DELIMITERS, "E": _ENDS, "R": _REDIRECTIONS}


def all_lines(seed: int) -> Iterator[str]:
    """Yield lines without end, the same for the same seed."""
    lines = _Lines(random.Random(seed))  # they have to be the same again
    while True:
        line = lines.line()
        if "\0" not in line:
            yield line


def check(lines: Sequence[str], folder: Path) -> Tried:
    """Run the lines by bash, and compare."""
    run = real_bash.programs_run(lines, folder, PROGRAMS, SECONDS)
    proven = 0
    findings: list[str] = []
    for line, programs in zip(lines, run, strict=True):
        read = commands_of(line.replace(real_bash.BIN, "/bin"))
        if read.unreadable:
            continue
        proven += bool(programs)
        findings.extend(
            f"{ran} ran, and was not read from {line!r}:\n{line}\n{_shown(read.commands)}"
            for ran in programs
            if not _is_read(ran, read.commands)
        )
    return Tried(proven, findings)


def _is_read(ran: Sequence[str], commands: Sequence[Sequence[Word]]) -> bool:
    # the end of a line may be a carriage return, too
    bare = [word.removesuffix("\r") for word in ran if word != "\r"]
    return any(real_bash.is_among(argv, commands) for argv in (ran, bare))


def _shown(commands: Sequence[Sequence[Word]]) -> str:
    return "\n".join("  " + " ".join(repr(word.text) for word in words) for words in commands)


def main() -> int:
    """Run until the time is over, and say how many lines were tried. A finding ends it with status 1."""
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz shell", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long it runs; default: 60")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="the same seed tries the same lines")
    arguments = parser.parse_args()
    end, tried, proven = time.monotonic() + arguments.seconds, 0, 0
    findings: list[str] = []
    sys.stdout.write(f"seed {arguments.seed}\n")
    lines = all_lines(arguments.seed)
    while not findings and time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            result = check(list(islice(lines, AT_ONCE)), Path(folder))
        tried, proven, findings = tried + AT_ONCE, proven + result.proven, result.findings
    sys.stderr.write("\n".join(findings))
    sys.stdout.write(f"{tried} lines; {proven} of them were read, and ran something\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
