"""Errors in a command line say what is wrong, and what to write instead."""

from __future__ import annotations

import pytest

from hookproxy.cli.options import Parser
from hookproxy.model.errors import UserError


def parser(hint: str = "") -> Parser:
    made = Parser("x", "A verb.", hint=hint)
    made.add_argument("--number", metavar="N", type=int)
    made.add_argument("--list", action="append", default=[])
    made.add_argument("kind", nargs="?", choices=("small", "large"))
    return made


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--numbr=1"], "there is no option --numbr", "did you mean '--number'?"),
        (["--zzz=1"], "there is no option --zzz", "write it so"),
        (["--num=1"], "there is no option --num", "did you mean '--number'?"),  # no abbreviations
        (
            ["--number", "one"],
            "argument --number: 'one' is not a whole number",
            "usage: hookproxy x [--number N] [--list LIST]... [small|large]",
        ),
        (
            ["--number"],
            "argument --number: expected one argument",
            "usage: hookproxy x [--number N] [--list LIST]... [small|large]",
        ),
        (["--list", ""], "argument --list: is empty", "usage: hookproxy x [--number N] [--list LIST]... [small|large]"),
        (["smal"], "argument kind: there is no 'smal'", "did you mean 'small'?"),
        (["--kind", "medium"], "there is no option --kind", "write it so"),
        (["zzz"], "argument kind: there is no 'zzz'", "one of small, large"),
    ],
)
def test_an_error_says_what_to_write_instead(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        parser("write it so").parse_args(words)
    assert (raised.value.message, raised.value.hint) == (message, hint)


def test_without_a_hint_the_usage_is_the_hint() -> None:
    with pytest.raises(UserError) as raised:
        parser().parse_args(["--zzz"])
    assert raised.value.hint == "usage: hookproxy x [--number N] [--list LIST]... [small|large]"


def test_lists_of_two_command_lines_are_not_the_same() -> None:
    made = parser()
    assert made.parse_args(["--list", "a", "--list=b"]).list == ["a", "b"]
    assert made.parse_args([]).list == []


def test_the_usage_has_the_form_of_each_option_and_word() -> None:
    made = Parser("x", "A verb.", rest="[-- COMMAND]")
    made.add_argument("file", metavar="FILE", nargs="*")
    made.add_argument("--as", required=True, metavar="NAME")
    made.add_argument("--at", nargs="?", metavar="PLACE")
    either = made.add_mutually_exclusive_group()
    either.add_argument("--one", action="store_true")
    either.add_argument("--other", metavar="X")
    made.add_argument_group("told apart").add_argument("--rare")
    assert made.usage == "hookproxy x [FILE]... --as NAME [--at [PLACE]] [--one | --other X] [-- COMMAND]"
