"""The help of each verb: readable at 80 columns, with examples that work."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from hookproxy.cli.common import split_command
from hookproxy.cli.help_text import EXAMPLES, short_help, short_list
from hookproxy.cli.layout import MOST_LINES, Page
from hookproxy.cli.main import USAGE, VERBS
from hookproxy.cli.options import Parser
from hookproxy.dialects.registry import DIALECTS
from tests.support import terminal


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


# --- on a terminal ---


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("verb", ALL)
def test_in_short_it_has_twenty_lines_names_each_option_and_says_how_to_see_all(verb: str, columns: int) -> None:
    parser = ALL[verb]
    assert isinstance(parser, Parser)
    text = short_help(parser, parser.short_usage, Page(columns, most=MOST_LINES))
    shown = text.splitlines()
    assert len(shown) <= MOST_LINES
    long = [line for line in shown if len(line) > columns and not line.startswith("  hookproxy ")]
    assert [line for line in long if max(map(len, line.split())) < columns * 2 // 3] == [], "a long word stays whole"
    named = {word.strip(",") for word in text.split()}
    options = {action.option_strings[-1] for action in parser._actions if action.option_strings}
    assert options - named <= {"--help"}
    assert " ".join(text.split()).endswith(f"{parser.prog} --help --verbose says more of each")
    known = {word for source in (parser.format_help(), parser.short_usage) for word in source.split()}
    known |= sources(parser) | {"and", "...", "says", "more", "of", "each", "--verbose"}
    assert {word for word in text.split() if word.strip(".,;:") not in {one.strip(".,;:") for one in known}} == set()


def test_the_short_list_of_verbs_has_twenty_lines_and_names_all() -> None:
    text = short_list(USAGE, Page(80, most=MOST_LINES))
    assert len(text.splitlines()) <= MOST_LINES
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert VERBS.keys() <= {word.strip(",") for word in text.split()}


COMMANDS = [["run", "--help"], ["help", "run"], ["audit", "show", "-h"], ["--help"], []]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS)
def test_a_terminal_gets_it_in_short_and_verbose_and_a_pipe_get_all(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hookproxy", *words]
    piped = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    short = terminal.run(command, tmp_path, dict(os.environ), 80)
    words = words or ["help"]
    whole = terminal.run([*command[:3], *words, "--verbose"], tmp_path, dict(os.environ), 80)
    assert (piped.returncode, short.returncode, whole.returncode) == (0, 0, 0)
    assert len(short.stdout.splitlines()) <= MOST_LINES
    assert "help --verbose" in short.stdout or short.stdout == piped.stdout
    assert whole.stdout.split() == piped.stdout.split()
    assert not piped.stderr
