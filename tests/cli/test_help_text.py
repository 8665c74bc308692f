"""The help of each verb: readable at 80 columns, with examples that work."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from importlib import import_module

import pytest

from hookproxy.cli.common import split_command
from hookproxy.cli.help_text import EXAMPLES
from hookproxy.cli.main import USAGE, VERBS
from hookproxy.dialects.registry import DIALECTS


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for verb, path in VERBS.items():
        module = import_module(path)
        yield verb, module.build_parser()
        for part, parser in getattr(module, "subverb_parsers", dict)().items():
            yield f"{verb} {part}", parser


ALL = dict(parsers())


def words(text: str) -> set[str]:
    return set(text.split())


def sources(parser: argparse.ArgumentParser) -> set[str]:
    """All words that a parser's help is made of."""
    found = words(parser.usage or "") | words(parser.description or "") | words(parser.epilog or "")
    for action in parser._actions:
        found |= words((action.help or "").replace("%%", "%"))
    return found


@pytest.mark.parametrize("verb", ALL)
def test_at_80_columns_no_line_is_longer_and_no_word_is_broken(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = ALL[verb].format_help()
    assert [line for line in text.splitlines() if len(line) > 80] == []
    described = text.partition("\n\n")[2].partition("\n\n")[0]
    assert words(described) <= sources(ALL[verb])
    for action in ALL[verb]._actions:
        assert words((action.help or "").replace("%%", "%")) <= words(text), action


def test_the_list_of_verbs_fits_in_80_columns_and_names_all() -> None:
    assert [line for line in USAGE.splitlines() if len(line) > 80] == []
    assert re.findall(r"^  (\w+)  ", USAGE, re.M) == list(VERBS)


def test_each_verb_has_two_examples() -> None:
    assert EXAMPLES.keys() == ALL.keys()
    assert {len(examples) for examples in EXAMPLES.values()} == {2}


@pytest.mark.parametrize(("verb", "example"), [(verb, one) for verb, examples in EXAMPLES.items() for one in examples])
def test_each_example_is_a_command_line_that_the_verb_accepts(verb: str, example: str) -> None:
    command = re.split(r" [>|] ", re.sub(r"^source <\((.*)\)$", r"\1", example))[0]
    program, *arguments = shlex.split(command)
    assert program == "hookproxy"
    assert " ".join(arguments).startswith(verb)
    verb = next(one for one in (" ".join(arguments[:2]), verb) if one in ALL)
    options, _ = split_command(arguments[len(verb.split()) :])
    ALL[verb].parse_args(options)  # raises UserError


@pytest.mark.parametrize("verb", [verb for verb, parser in ALL.items() if "DIALECT" in (parser.usage or "")])
def test_the_dialects_are_listed_where_one_can_be_named(verb: str) -> None:
    listed = ALL[verb].format_help().partition("\ndialects:\n")[2].partition("\n\n")[0]
    assert [name.strip(",") for name in listed.split()] == list(DIALECTS)
