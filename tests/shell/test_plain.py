"""Lines that are read without the grammar are read as with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.shell.plain import read_plain
from hookproxy.shell.statements import read_with_grammar
from hookproxy.shell.words import HEREDOC, HOLE, Command, Word

PIECES: Final = st.sampled_from([
    "a", "bc", "-j", "h=i", "./x", "'d e'", '"f g"', "''", '""', '"$k"', "$k", "${k}", '"${k} $k"', '"$@"',
    "$?", "$1",
    "$(a)", '"$(a b)"', '"x $(a | b) y"', "$(a; b)", "$(cat <<'E'\nit's $x\nE\n)", "*", "*.c", "a?", "\\;",
    "\\(", "a\\ b",
    '"\\"$k\\n"', "~", "~/x", "x~", "#", "a#b", "# c", "if", "then", "elif", "else", "fi", "for", "in", "do",
    "done", "while",
    "until", "time", "{", "}", "!", "(", ")", "case", "[", "]", "[[", "==", "!=", "=", "A=b", "A=", "A=$k",
    "A+='b c'", "A=$(a)",
    "2>&1", "2>/dev/null", ">/dev/null", "> f", ">>f", ">$k", "<f", "< f", ">|f", ">&2", "<<<x",
    "<<'E'\nb $x\nE\n",
    "<<E\nb\nE\n", "<<-E\n\tb\n\tE\n", "<<'E' && b\nc\nE\n", "<<'E' |\nc\nE\n", "<<A <<B\nA\nB\n", "|", "||",
    "&&", ";", "&", "\n",
    "\n\n", "|&", ";;", "&>f", "{a,b}", "$((1))", "`a`", "é", "\\", "'", '"', "$", ",", "..", "^", "%1",
    "a..b", "@(a)",
    "{}", "a{}b", "${k:-b c}", '"${k%%,*}"', "${#k[@]}", "${k@P}", "${!k}", "$((k + 1))", '"$((1 << 2))"',
    "<<<'a b'", "<<< $k",
    "<<E\n$k `a`\n$(b)\nE\n", "<<E\n\\$k\\\nE\nE\n", "`a b`", '"`a`"', "<(a)", ">(a | b)", "< <(a)", "> >(a)",
    "[[ a ]]", "[[ ! -n $k ]]",
    "f() { a; }", "[[ $k == *b ]]", "a;;", "esac", "{b,c}", "a{1..3}", "x{*.c,d}{e,f}",
    "<<E\n\"$k\" $(a \"b\")\nE\n", "<<E\n\\$k \\\n$k\nE\n",
    '"a\\\nb"', "/#b", "'a[$(b)]'", "[[ -v 'a[$(b)]' ]]", "[[ a == b ]] && c",
])  # fmt: skip
BETWEEN: Final = st.sampled_from([" ", " ", " ", " ", " ", "", "\n", "; ", "  ", "\t", " ;", "\\\n"])
STATEMENTS: Final = st.sampled_from([
    "if %; then %; fi", "if %; then %; elif %\nthen %; else %; fi", "for x in %; do %; done",
    "while %; do %; done", "(%)",
    "{ %; }", "! %", "% | %", "% && % || %", "until %\ndo\n%\ndone", "echo $(%)", 'echo "$(%)" %',
    "[ % ] && %", "% > f; %", "A=% %",
    "%", "% & %", "%\n%", "for x in % %\ndo % | %; done | %", "% | (%; %)", "% | { %; } | %", "% # %\n%",
    "if (%); then % & fi",
    "echo % | sh", "% | while %; do %; done", "time %",
    "{ %; } > f", "(%) <f", "for x in a; do %; done <<< %", "{ %; } <<'E' 2>&1\nb\nE\n",
    "if %; then %; fi <f | %", "f() { %; }; %",
    "case % in a) %;; b|c*) %\n;;\n*) % ;; esac", "case $k in\n(a) %; esac; %", "function f { %; }\n%",
    "[[ % ]] && %", "echo `%`",
    "a <(%) > >(%)", "cat <<E | %\n$(%)\nE\n", "while %; do %; done < <(%)", "{ (%) <f; %; } <g",
])  # fmt: skip
LINES: Final = st.lists(st.tuples(PIECES, BETWEEN), min_size=1, max_size=5).map(
    lambda pieces: "".join(part for piece in pieces for part in piece)
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    line = draw(STATEMENTS)
    for _ in range(draw(st.integers(0, 2))):
        line = line.replace("%", draw(STATEMENTS), 1)
    while "%" in line.replace("%1", ""):
        line = re.sub("%(?!1)", lambda _: draw(st.one_of(PIECES, LINES)), line, count=1)
    return line


@given(st.one_of(LINES, statements()))
def test_plain_lines_are_read_alike_with_and_without_the_grammar(line: str) -> None:
    plain = read_plain(line)
    script = read_with_grammar(line)
    if plain is not None and not script.unreadable:  # the grammar takes some lines for errors that are none
        assert shown(script.commands) == shown(plain)


def shown(commands: Sequence[Command]) -> object:
    """What matters: the grammar's way loses blanks between two expansions, and marks here-documents otherwise.

    It also has another order where here-documents have expansions, and more commands that write a file behind a `!`.
    """
    written = {file for command in commands for file in command.written}
    shown_ = [
        (
            [shown_word(word) for word in command.words],
            [(name, shown_word(value)) for name, value in command.assignments],
            (command.input.kind, without_heredocs(command.input.text), command.input.whole),
        )
        for command in commands
    ]
    return sorted(shown_), written


def shown_word(word: Word) -> tuple[str, str, bool]:
    text = re.sub(f"{HOLE}[ \t\n]+(?={HOLE})", HOLE, word.text)
    return text, without_heredocs(word.source), word.bare


def without_heredocs(text: str) -> str:
    return re.sub(rf"<{HEREDOC}\d+ |<<-?['\"\\]?\w+['\"]?", "<<", text)


@pytest.mark.parametrize(
    "line",
    [
        "npm run build && npm test", 'cd "$DIR" && make -j"$(nproc)"',
        "for f in *.py; do wc -l $f | sort; done",
        "if [ -f .env ]; then source ./.env; fi", "(cd a && make) & { b; }", "while ! a; do b; done",
        "A=b C=$d e > f 2>&1",
        "git commit -m \"$(cat <<'EOF'\nIt's done\n\nB\nEOF\n)\" && git push", "cat > f <<E && b\nc d\nE\ne",
        "! a | b # c",
        "# a\nb\n\nc &", "time a b", "find . -name '*.c' -exec a x \\;", "[ a == b ] && c",
    ],
)  # fmt: skip
def test_usual_lines_are_read_without_the_grammar(line: str) -> None:
    assert read_plain(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        "", "((a))", "a;; b", "a | | b", "a &&", "if a; then fi", "for x in; do a; done", "(a", "a)", "{ a }",
        "a; }", "then a",
        "a 'b", 'a "b', "$(a", "a <<E\nb", "a=(b)", "a[0]=b", "[[ -v 'a[$(b)]' ]]", "a[1]() { b; }",
        "a >&b", "a &> b",
        "() a", "time", "time if a", "do a", "echo $((a[1]))", "a {b,$c}", "! ! a", "a | ! b", "coproc a",
        "a <<E; b (\nc\nE",
    ],
)  # fmt: skip
def test_all_else_is_left_to_the_grammar(line: str) -> None:
    assert read_plain(line) is None
