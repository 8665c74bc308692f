"""What is decided at a glance, because it is quick, is what a full reading finds."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hookproxy.shell import embedded, python_code
from hookproxy.shell.program_table import Grammar, Name, table
from hookproxy.shell.programs import Foreign, _Invocation
from hookproxy.shell.words import GLOB, HOLE, SPLIT, Command, Word, literal


def grammars() -> list[Grammar]:
    found: list[Grammar] = []
    todo: list[Name] = list(table().names.values())
    while todo:
        name = todo.pop()
        found += name.grammars
        todo += name.subcommands.values()
    return found


GRAMMARS: Final = grammars()
OPTIONS: Final = sorted({option for grammar in GRAMMARS for option in grammar.options()})
WORDS: Final = st.one_of(
    st.sampled_from(OPTIONS),
    st.sampled_from([option + "=a" for option in OPTIONS]),
    st.sampled_from([option[:-1] for option in OPTIONS if len(option) > 3]),
    st.sampled_from([option + "a" for option in OPTIONS]),
    st.sampled_from(["a", "-x", "-abc", "--", "-", "A=b", "ext::a", "+a", "x.c", ":::", "", "--a", "-e", "-c", "-TTa"]),
).map(literal)
UNCERTAIN: Final = st.sampled_from([HOLE, SPLIT, f"-{HOLE}", f"a{SPLIT}", f"{GLOB}.c", f"--a={HOLE}"]).map(
    lambda text: Word(text, "$x")
)


@given(st.sampled_from(GRAMMARS), st.lists(st.one_of(WORDS, WORDS, UNCERTAIN), max_size=5))
def test_a_program_that_starts_nothing_at_a_glance_starts_nothing(grammar: Grammar, words: list[Word]) -> None:
    words = [literal("a"), *words]
    assume(grammar.starts_nothing(words, 1, ""))
    assert list(_Invocation(grammar, words, 1, Command(tuple(words))).started()) == []


PIECES: Final = st.sampled_from(
    [
        "print",
        "(",
        ")",
        "import ",
        "os",
        "sys",
        ".",
        "json",
        "'",
        '"',
        "a",
        "1",
        "\n",
        "; ",
        "system",
        "run",
        "call",
        "open",
        "[",
        "]",
        "for x in ",
        ": ",
        "lambda: ",
        "getattr",
        "__name__",
        "foo",
        ".py",
        "py",
        "f'",
        "{",
        "}",
        "exec",
        "eval",
        "#",
        "\\",
        "=",
        ", ",
        "subprocess",
        "spawn",
        "fork",
        "def f(",
        "from ",
        " import ",
        "*",
        "%",
        "!ls",
        "with ",
        "environ",
        "é",
        "\uff45val",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_python_that_starts_nothing_at_a_glance_starts_nothing(text: str) -> None:
    assume(python_code.starts_nothing(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_code, "starts_nothing", lambda _text: False)
        assert list(embedded.commands_in(Foreign("python", text, True))) == []
