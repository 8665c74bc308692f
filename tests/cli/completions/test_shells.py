"""What shells are told of our command lines is what our parsers read."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from importlib import import_module

import pytest

from hookproxy.cli.completion import verbs
from hookproxy.cli.completions.command_line import Takes, verb
from hookproxy.cli.completions.shells import SHELLS
from hookproxy.cli.main import VERBS
from hookproxy.dialects.registry import DIALECTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_says_what_its_command_line_takes(name: str) -> None:
    options: Callable[[], argparse.ArgumentParser] = import_module(VERBS[name]).options
    parser = options()
    assert parser.prog == f"hookproxy {name}"
    assert parser.description


@pytest.mark.parametrize("name", VERBS)
def test_each_value_of_an_option_is_of_a_known_kind(name: str) -> None:
    """A FILE that is called otherwise would not be completed: name it FILE, FOLDER or [DIALECT=]FILE."""
    (whole,) = [each for each in verbs() if each.name == name]
    for one in (whole, *whole.parts):
        for value in [*(option.value for option in one.options), *one.places]:
            assert value.takes is not Takes.OTHER or "file" not in value.label


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_verb_option_and_dialect(shell: str) -> None:
    script = SHELLS[shell](list(verbs()), list(DIALECTS))
    for one in [each for whole in verbs() for each in (whole, *whole.parts)]:
        assert one.name in script
        for option in one.options:
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


def test_a_parser_is_read_whole() -> None:
    one = verb("odd", strange())
    assert one.about == "It's 100%: [done] \\ `id` $(id)"
    assert [option.flags for option in one.options] == [("-h", "--help"), ("-o", "--odd"), ("--of",)]
    assert [option.value.takes for option in one.options] == [Takes.NOTHING, Takes.OTHER, Takes.WORDS]
    assert (one.options[2].value.words, one.options[2].value.several) == (("a", "b"), True)
    assert [(place.takes, place.several) for place in one.places] == [(Takes.FILE, True)]


@pytest.mark.parametrize("shell", SHELLS)
def test_no_text_of_a_help_is_read_as_more_than_text(shell: str) -> None:
    """Where there is such a shell, it can read the script."""
    script = SHELLS[shell]([verb("odd", strange())], ["x"])
    try:
        ended = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip(f"there is no {shell} here: its script is NOT tested")
    assert (ended.returncode, ended.stderr) == (0, "")
