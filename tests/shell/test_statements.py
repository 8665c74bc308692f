"""How a line of shell is divided into commands and words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hookproxy.shell import statements
from hookproxy.shell.words import GLOB, HOLE, SPLIT


def words(line: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in statements.read(line).commands if command.words]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a b", [["a", "b"]]),
        ("a 'b c' \"d e\" f\\ g $'h\\ti' $\"j\"", [["a", "b c", "d e", "f g", "h\ti", "j"]]),
        ("a'b'\"c\"\\d", [["abcd"]]),
        ("a\\\nb c", [["ab", "c"]]),
        ("a; b && c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a\nb\r\nc", [["a"], ["b"], ["c"]]),
        ("a # b'\nc", [["a"], ["c"]]),
        ("a b#c", [["a", "b#c"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in 1 2; do a; done; for ((i=0; i<3; i++)); do b; done", [["a"], ["b"]]),
        ("case x in a|b) c;; *) d;; esac", [["c"], ["d"]]),
        ("f() { a; }; function g { b; }; (c); { d; }", [["a"], ["b"], ["c"], ["d"]]),
        ("! a", [["a"]]),
        ("[ a = b ] && c", [["[", "a", "=", "b", "]"], ["c"]]),
        ("A=b c; D='e f' g", [["c"], ["g"]]),
        ("a >b 2>&1 <c d {e}>f g", [["a", "d", "g"]]),
        ("a &>b", [["a"]]),
        ("a >&- b", [["a", "b"]]),
        ("a {b,c}d {e,{f,g}}", [["a", "bd", "cd", "e", "f", "g"]]),
        ("a {b} {c, d}", [["a", "{b}", "{c,", "d}"]]),
        ("a $B \"$C\" \"$@\" *.d e?", [["a", SPLIT, HOLE, SPLIT, f"{GLOB}.d", f"e{GLOB}"]]),
        ("a ${b:-c} $((1+2)) x$(d)y", [["d"], ["a", SPLIT, SPLIT, f"x{SPLIT}y"]]),
        ("a \"$(b \"c\" | d)\" `e`", [["b", "c"], ["d"], ["e"], ["a", HOLE, SPLIT]]),
        ("a $b{c,d} {$e,f}", [["a", SPLIT, SPLIT, "f"]]),
        ("a <(b) >(c)", [["b"], ["c"], ["a", SPLIT, SPLIT]]),
        ("a <<E\nit's\nE\nb", [["a"], ["b"]]),
        ("a <<'E' && b\n$(c)\nE", [["a"], ["b"]]),
        ("a <<-E\n\tx\n\tE\nb", [["a"], ["b"]]),
        ("a <<A - <<B\n1\nA\n2\nB\nc", [["a", "-"], ["c"]]),
        ("a <<E\nb \\\nE\nE\nc", [["a"], ["c"]]),
        ("a <<< 'b c' d", [["a", "d"]]),
        ("a\u00a0b", [["a\u00a0b"]]),
    ],
)  # fmt: skip
def test_a_line_is_read_as_bash_reads_it(line: str, commands: list[list[str]]) -> None:
    script = statements.read(line)
    assert script.unreadable == ""
    assert words(line) == commands


@pytest.mark.parametrize(
    "line",
    [
        "a 'b", 'a "b', "a $(b", "a `b", "a (b)", "a; ; b", "if a; b", "a )", "a |", "a <<E; b \\\nc\nd\nE",
        "for a in b; c",
        "case a in b c; esac",
        "a <<E\nb", "a\0b", "a\ue002b", "${a@P}", "{a b;}", "if{ a; }; then b; fi", "then a",
        "time { a; }",
        "[[ a =~ <(b) ]]", "[[ -v 'a[$(b)]' ]]", "a\\", "((a) )", "\x0ba", "a \x0c",
    ],
)  # fmt: skip
def test_what_may_be_read_otherwise_is_unreadable(line: str) -> None:
    assert statements.read(line).unreadable


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("[[ a && b ]]", ["b"]), ("((b))", ["b"]), ("a &>d b c", ["b", "c"]),
        ("[[ a || b ]] && c", ["b"]),
    ],
)  # fmt: skip
def test_what_only_dash_runs_is_read_too(line: str, command: list[str]) -> None:
    assert command in words(line)
    assert statements.read(line).unreadable == ""


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        ("a", "inherited", ""), ("echo b c | a", "pipe", "b c"), ("b | a", "pipe", ""), ("a <b", "file", "b"),
        ("a <<< 'b c'", "text", "b c"), ("a <<E\nb\nE", "text", "b\n"), ("cat <<E | a\nb\nE", "pipe", "b\n"),
        ("{ a; } <b", "file", "b"), ("printf 'b\\n' | a", "pipe", "b\n"),
    ],
)  # fmt: skip
def test_what_a_command_reads_is_known(line: str, kind: str, text: str) -> None:
    command = next(command for command in statements.read(line).commands if command.words[0].text == "a")
    assert (command.input.kind, command.input.text) == (kind, text)


def test_files_and_assignments_are_noted() -> None:
    [command] = statements.read("A=b C='d e' f >g 2>>h 3<i").commands
    assert [(name, value.text) for name, value in command.assignments] == [("A", "b"), ("C", "d e")]
    assert command.written == ("g", "h")
    assert [(file.word.text, file.is_read, file.is_written) for file in command.opened] == [
        ("g", False, True),
        ("h", False, True),
        ("i", True, False),
    ]


@pytest.mark.slow
def test_the_grammar_is_not_imported_for_plain_lines() -> None:
    line = "npm run build && git commit -m 'x y' | wc -l"
    code = f"import sys; from hookproxy.shell.commands import commands_of; commands_of({line!r})"
    code += "; print('tree_sitter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
