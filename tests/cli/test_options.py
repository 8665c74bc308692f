"""Usual command lines are read without argparse, and exactly as argparse reads them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.cli.main import VERBS
from hookproxy.cli.options import Parser
from hookproxy.model.errors import UserError
from tests.support.examples import examples


def parsers() -> Iterator[tuple[str, Parser]]:
    for verb, path in VERBS.items():
        module = import_module(path)
        yield verb, module.build_parser()
        for word, parser in getattr(module, "subverb_parsers", dict)().items():
            yield f"{verb} {word}", parser


ALL = dict(parsers())
VALUES = ("", "a", "b c", "-", "--", "-x", "-1", "2", "0.5", "x=y", "--json", "--hooks", "é")


def command_lines(parser: Parser) -> st.SearchStrategy[list[str]]:
    with_value = sorted(parser.options(with_value=True))
    flags = sorted(parser.options(with_value=False) - {"-h", "--help"})
    values = st.sampled_from(VALUES)
    usual = st.sampled_from(("a", "2", "claude=x.json"))
    one_of = [usual.map(lambda word: [word]), values.map(lambda word: [word])]
    if with_value:
        names = st.sampled_from(with_value)
        one_of += [
            st.tuples(names, usual).map(list),
            st.tuples(names, values).map(list),
            st.tuples(names, values).map(lambda pair: ["=".join(pair)]),
        ]
    if flags:
        one_of.append(st.sampled_from(flags).map(lambda flag: [flag]))
    return st.lists(st.one_of(one_of), max_size=5).map(lambda parts: [word for part in parts for word in part])


@pytest.mark.parametrize("verb", ALL)
@examples(60)
@given(data=st.data())
def test_a_command_line_has_the_values_that_argparse_reads(verb: str, data: st.DataObject) -> None:
    parser = ALL[verb]
    words = data.draw(command_lines(parser))
    values = parser._read(words)
    if values is not None:
        assert values == vars(parser.argparse().parse_args(words))


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("run", ["--config", "a.toml", "--hooks", "claude=x", "--hooks=y", "--name", "n", "--strict", "--url", "u"]),
        ("try", ["write_file", '{"path": "a"}', "--config", "a.toml", "--json"]),
        ("check", ["a.json", "b.json", "--verbose"]),
        ("hook", ["--as", "claude", "--timeout", "5", "--run", "./guard.sh"]),
    ],
)
def test_a_usual_command_line_needs_no_argparse(verb: str, words: list[str]) -> None:
    assert ALL[verb]._read(words) is not None


@pytest.mark.parametrize(
    "words", [["--confg", "a"], ["--config"], ["--config", ""], ["--config", "-x"], ["--strict=1"]]
)
def test_an_error_is_that_of_argparse(words: list[str]) -> None:
    with pytest.raises(UserError) as own:
        ALL["run"].parse_args(words)
    with pytest.raises(UserError) as argparses:
        ALL["run"].argparse().parse_args(words)
    assert str(own.value) == str(argparses.value)


def test_options_that_exclude_each_other_are_left_to_argparse() -> None:
    parser = Parser("x", "x", "x")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--one", action="store_true")
    group.add_argument("--other", action="store_true")
    assert parser.parse_args(["--one"]).one is True
    with pytest.raises(UserError, match="not allowed with"):
        parser.parse_args(["--one", "--other"])
