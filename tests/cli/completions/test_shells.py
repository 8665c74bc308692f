"""The completion scripts agree with the parsers of the command lines."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from importlib import import_module

import pytest

from hookproxy.cli.completion import SHELLS, verbs
from hookproxy.cli.completions.command_line import ValueType, describe_verb
from hookproxy.cli.main import VERBS
from hookproxy.cli.options import Parser
from hookproxy.dialects.registry import DIALECTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_a_parser_with_a_description(name: str) -> None:
    build_parser: Callable[[], Parser] = import_module(VERBS[name]).build_parser
    parser = build_parser()
    assert parser.prog == f"hookproxy {name}"
    assert parser.description


@pytest.mark.parametrize("name", VERBS)
def test_each_file_argument_has_a_known_type(name: str) -> None:
    """A file with another metavar would not be completed: name it FILE, FOLDER or [DIALECT=]FILE."""
    (whole,) = [entry for entry in verbs() if entry.name == name]
    for verb in (whole, *whole.subverbs):
        for argument in (*verb.options, *verb.positionals):
            assert argument.type is not ValueType.OTHER or "file" not in argument.label


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_verb_option_and_dialect(shell: str) -> None:
    script = SHELLS[shell](list(verbs()), list(DIALECTS))
    for verb in [entry for whole in verbs() for entry in (whole, *whole.subverbs)]:
        assert verb.name in script
        for option in verb.options:
            for flag in option.flags:
                assert flag in script or f"-l {flag[2:]}" in script or f"-s {flag[1:]}" in script
    assert all(name in script for name in DIALECTS)


def strange() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="It's 100%: [done] \\ `id` $(id).")
    parser.add_argument("-o", "--odd", metavar="WHAT", help="it's 5 %% of: [x] \\ `id` $(id) $HOME.")
    parser.add_argument("--of", choices=("a", "b"), action="append", help="a choice")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    parser.add_argument("file", nargs="*", metavar="FILE", help="files")
    return parser


def test_a_parser_is_described_completely() -> None:
    verb = describe_verb("odd", strange())
    assert verb.description == "It's 100%: [done] \\ `id` $(id)"
    assert [option.flags for option in verb.options] == [("-h", "--help"), ("-o", "--odd"), ("--of",)]
    assert [option.type for option in verb.options] == [ValueType.NOTHING, ValueType.OTHER, ValueType.CHOICES]
    assert (verb.options[2].choices, verb.options[2].repeats) == (("a", "b"), True)
    assert [(positional.type, positional.repeats) for positional in verb.positionals] == [(ValueType.FILE, True)]


@pytest.mark.parametrize("shell", SHELLS)
def test_help_texts_are_quoted_for_the_shell(shell: str) -> None:
    """If the shell is installed, it can parse the script."""
    script = SHELLS[shell]([describe_verb("odd", strange())], ["x"])
    try:
        ended = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip(f"there is no {shell} here: its script is NOT tested")
    assert (ended.returncode, ended.stderr) == (0, "")
