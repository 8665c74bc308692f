"""A fuzzer of the reader of command lines, beside bash itself.

Random lines are made of tricky pieces. The real bash runs each in an empty folder, where all programs are stubs that say
that they ran. Law: what ran is among the commands that `shell` reads from the line, or the line is unreadable.

scripts/fuzz shell [--seconds N] [--seed S] runs it for as long as you like; a finding prints the line.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
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
    "%1", "^rm", "a;b", "1", "2", "+", "@(rm|x)", "?(rm)", "!(x)", "rm$", '"$"', "$", "$'", "a&b", "\x0b", "\x0c", "a\rb",
    "$((1<<2))", "$((a[$(rm)]))", "${a[$(rm)]}", "${A:$(rm)}", "${A:1:2}", "${A^^}", "${A//\\'/x}", "${A:-'}'}", "${A#\\}}",
    "$'\\u0072m'", "$'r\\155'", "{a..c}", "{rm,}", "{,rm}", "a{,b}", "{a,b", "a}", "'", '"', "`", "$(", "${", "$((", ")",
    "'a'\\''b'", "$(echo rm)", "`echo \\`rm\\``", "`echo \\$A`", "$(cat <<E\nrm\nE\n)", "$(<a)", "$( (rm) )", "$((rm) )",
    "$(rm # )\n)", "$(case a in a) rm;; esac)", "$(# it's\nrm)", "<(rm # '\n)", "\"$(echo ')' ; rm)\"", "\"`echo '\\\"'`\"",
    "\\\r", "\"\\\r\"", "\\\t", "~rm", "time", "coproc", "function", "done", "fi", "esac", "select", "rm()", "()", "((1))",
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
    ";;", "\r\n", ";&", ";;&", "\r", "\n#\\\n", "\n \\\n", "; \\\n", "\\\r\n", "|\n# '\n", "&&\n\n", "||#\n", "\\\n", "# a\n",
    " # \\\n",
)  # fmt: skip
_REDIRECTIONS: Final = (
    ">a", "> a", ">>a", "2>&1", ">&2", "<a", "<&-", "&>a", "&>>a", ">|a", "<>a", "{fd}>a", "3<a", "1>a", "<<<rm", "<<< 'x'",
    "<<<$A", "<<<\"rm x\"", ">'a b'", ">a\\ b", "2>a", "1", ">$A", ">&a", "0<a", "<<<a\\ b", ">&", "9>&-", "<(rm)", "01>a",
)  # fmt: skip
_STARTERS: Final = (
    "env", "env -u a", "env A=b", "env -S", "xargs", "xargs -n 1", "xargs -I{}", "timeout 5", "nice", "nice -n 5", "command",
    "builtin", "eval", "exec", "exec -a y", "time", "time -p", "nohup", "bash -c", "sh -c", "bash -ec", "bash", "sh", "bash -s",
    "sh -s x", "coproc", "coproc b", "!", "! !", "trap", "find . -exec", "cat |", "echo rm |", "echo 'rm x' |", "printf 'rm x\\n' |",
    "echo x | xargs", "setsid", "command -v", "then", "do", "{", "(", "command env", "builtin eval", "hash -p @BIN@/rm b;",
    "source /dev/stdin", ". /dev/stdin", "mapfile -t a", "read A", "read -r A", "printf -v A", "set --", "set -- rm x;", "shift;",
    "local", "declare", "export", "readonly", "declare -a", "alias", "unset", "let", "test", "[[", "((", "source a", "bash a",
    "shopt -s extglob;", "shopt -s expand_aliases;", "alias b=rm\n", "enable", "eval eval", "env -- ", "env env",
    "bash -o posix -c", "bash +o posix -c", "bash -c -e", "bash --norc -c", "bash -O extglob -c", "A=rm;", "a=(rm x);",
)  # fmt: skip


_OF_VARIABLE: Final = ("$A", "eval $A", 'eval "$A"', 'sh -c "$A"', 'b "$A"')
_OF_PARAMETERS: Final = ('"$@"', "$1", "$*", 'eval "$*"', '"$1" x')
_OF_ARRAY: Final = ('"${a[@]}"', "${a[0]}", "$a", "${a[*]}")


class Tried(NamedTuple):
    """What became of some lines."""

    proven: int
    """How many were read, and ran something."""
    findings: list[str]
    """Where the law is broken."""


class Lines:
    """Makes random lines."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def line(self) -> str:
        """Return a line that ends with a line feed, or without one."""
        text = self._statement(0)
        for _ in range(self._dice.choice((0, 0, 1, 2))):
            text += self._separator() + self._statement(0)
        return self._damaged(text) if self._dice.random() < 0.1 else text

    def _separator(self) -> str:
        return self._dice.choice(_SEPARATORS if self._dice.random() < 0.97 else _ODD_SEPARATORS)

    def _damaged(self, text: str) -> str:
        at = self._dice.randrange(len(text) + 1)
        kinds: tuple[Callable[[], str], ...] = (
            lambda: text[:at] + self._dice.choice("'\"\\`$(){};|&<>\n #=[]!~") + text[at:],
            lambda: text[:at] + text[at + 1 :],
            lambda: text[:at] + text[at:].replace(" ", "", 1),
        )
        return self._dice.choice(kinds)()

    def _statement(self, depth: int) -> str:
        if depth > 3 or self._dice.random() < 0.5:
            return self._simple(depth)
        inner = lambda: self._statement(depth + 1)  # noqa: E731 - short
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"{{ {inner()}; }}",
            lambda: f"({inner()})",
            lambda: f"if {inner()}; then {inner()}; fi",
            lambda: f"if {inner()}\nthen {inner()}\nelse {inner()}; fi",
            lambda: f"for a in {self._words(depth)}; do {inner()}; done",
            lambda: f"for a do {inner()}; done",
            lambda: f"for ((a=0; a<1; a++)); do {inner()}; done",
            lambda: f"while {inner()}; do {inner()}; break; done",
            lambda: f"until {inner()}; do {inner()}; break; done",
            lambda: f"case {self._word()} in {self._word()}) {inner()};; *) {inner()};; esac",
            lambda: f"case {self._word()} in ({self._word()}|{self._word()}) {inner()} ;& *) {inner()}\nesac",
            lambda: f"f() {{ {inner()}; }}; f {self._word()}",
            lambda: f"function f {{ {inner()}; }}\nf",
            lambda: f"{self._word()}() {{ {inner()}; }}; {self._word()}",
            lambda: f"f() ( {inner()} ); f",
            lambda: f"{inner()}{self._separator()}{inner()}",
            lambda: f"[[ {self._word()} == {self._word()} ]] && {inner()}",
            lambda: f"[[ {self._word()} =~ {self._word()} ]] || {inner()}",
            lambda: f"[[ -n {self._word()} && ! {self._word()} ]]; {inner()}",
            lambda: f"(( {self._word()} )); {inner()}",
            lambda: f"! {inner()}",
            lambda: f"time {inner()}",
            lambda: f"coproc {{ {inner()}; }}",
            lambda: f"echo $({inner()})",
            lambda: f'echo "$({inner()})"',
            lambda: f"echo `{inner()}`",
            lambda: f"echo ${{A:-$({inner()})}}",
            lambda: f"$({inner()})",
            lambda: f"cat <({inner()})",
            lambda: f"eval '{inner()}'",
            lambda: f'eval "{inner()}"',
            lambda: f"eval {inner()}",
            lambda: f"bash -c '{inner()}'",
            lambda: f'sh -c "{inner()}"',
            lambda: f"trap '{inner()}' EXIT",
            lambda: f"echo '{inner()}' | sh",
            lambda: f"echo '{inner()}' >s; . ./s",
            lambda: f"alias l='{inner()}'; l",
            lambda: self._heredoc(depth),
            lambda: f"select a in rm; do {inner()}; break; done",
            lambda: f"{inner()} | while read a; do {inner()}; done",
            lambda: f"A='{inner()}'; " + self._dice.choice(_OF_VARIABLE),
            lambda: f"set -- {self._words(depth)}; " + self._dice.choice(_OF_PARAMETERS),
            lambda: f"a=({self._words(depth)}); " + self._dice.choice(_OF_ARRAY),
            lambda: f"{inner()} # {self._word()}\n{inner()}",
            lambda: f"{inner()} {self._redirection()}",
            lambda: f"{{ {inner()}; }} {self._redirection()}",
        )
        return self._dice.choice(forms)()

    def _heredoc(self, depth: int) -> str:
        word = self._dice.choice(("E", "'E'", '"E"', "\\E", "E F", "$E"))
        dash = self._dice.choice(("", "-"))
        end = self._dice.choice(("E", "\tE", "E", "E ", "E", "$E"))
        command = self._dice.choice(
            ("cat", "sh", "bash", "cat | sh", "xargs", "b", "while read a; do $a; done", ": &&", "bash -s", ": ;")
        )
        body = self._dice.choice(
            (self._statement(depth + 1), self._simple(depth), "it's\nrm x", "$(rm x)", "`rm`", "a\\\nE", "rm x")
        )
        operator = f"<<{dash}{self._dice.choice(('', '', ' '))}{word}"
        form = self._dice.choice(
            (f"{command} {operator}", f"{operator} {command}", f"{{ {command} {operator}", f"x=$({command} {operator}")
        )
        more = self._dice.choice(("", "", f"; {self._simple(depth)}", f" {operator}", " | sh", " && rm x"))
        closing = {"{": "\n}", "x": "\n)"}.get(form[:1] if form[:2] in ("{ ", "x=") else "", "")
        return f"{form}{more}\n{body}\n{end}{closing}\n{self._simple(depth)}"

    def _simple(self, depth: int) -> str:
        parts: list[str] = []
        if self._dice.random() < 0.3:
            parts.append(
                self._dice.choice(
                    ("A=b", "A=rm", "a[0]=1", "A='b c'", "A=b\\ c", "A=$(rm)", "A+=b", "A=", "a=(x)", "A=$'x y'")
                )
            )
        for _ in range(self._dice.choice((0, 0, 0, 1, 1, 2))):
            parts.append(self._dice.choice(_STARTERS))
        parts.append(self._words(depth))
        if self._dice.random() < 0.3:
            parts.insert(self._dice.randrange(len(parts) + 1), self._redirection())
        glue = self._dice.choice((" ", " ", " ", " ", "  ", "\t", " \\\n"))
        return glue.join(parts)

    def _words(self, depth: int) -> str:
        return " ".join(self._word() for _ in range(self._dice.choice((1, 1, 1, 2, 2))))

    def _word(self) -> str:
        chance = self._dice.random()
        if chance < 0.06:
            return self._dice.choice(_WORDS) + self._dice.choice(_WORDS)
        if chance < 0.1:
            return self._dice.choice(_ODD_WORDS)
        return self._dice.choice(_WORDS if chance < 0.35 else STUBS)

    def _redirection(self) -> str:
        return self._dice.choice(_REDIRECTIONS)


def all_lines(seed: int) -> Iterator[str]:
    """Yield lines without end, the same for the same seed."""
    lines = Lines(random.Random(seed))  # they have to be the same again
    while True:
        line = lines.line()
        if "\0" not in line:
            yield line


def check(lines: Sequence[str], folder: Path) -> Tried:
    """Run the lines by bash, and compare."""
    run = real_bash.programs_run(lines, folder, PROGRAMS, SECONDS)
    proven, findings = 0, []
    for line, programs in zip(lines, run, strict=True):
        read = commands_of(line.replace(real_bash.BIN, "/bin"))
        if read.unreadable:
            continue
        proven += bool(programs)
        for ran in programs:
            bare = [word.removesuffix("\r") for word in ran]  # the end of a line may be a carriage return, too
            if not any(real_bash.is_among(argv, read.commands) for argv in (ran, bare)):
                findings.append(f"{ran} ran, and was not read from {line!r}:\n{line}\n{_shown(read.commands)}")
    return Tried(proven, findings)


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
