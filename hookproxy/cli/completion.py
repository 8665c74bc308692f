"""`hookproxy completion`: a script with which a shell completes hookproxy's verbs and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ..dialects.registry import DIALECTS
from .common import parser, show
from .completions.command_line import Verb, verb
from .completions.shells import SHELLS
from .main import VERBS

if TYPE_CHECKING:
    from argparse import ArgumentParser

USAGE: Final = "hookproxy completion bash|zsh|fish"


def main(arguments: Sequence[str]) -> int:
    """Print the script; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    show(SHELLS[chosen.shell](list(verbs()), list(DIALECTS)))
    return 0


def options() -> ArgumentParser:
    """What its command line takes."""
    taken = parser("completion", USAGE, "Print a script with which a shell completes hookproxy's command lines.")
    taken.add_argument("shell", choices=SHELLS, help="the shell that is to read it")
    return taken


def verbs() -> Iterator[Verb]:
    """Each verb as shells must know it, by the parser of its own module."""
    for name, path in VERBS.items():
        module = import_module(path)
        options: Callable[[], ArgumentParser] = module.options
        parts: Callable[[], dict[str, ArgumentParser]] = getattr(module, "parts", dict)
        yield verb(name, options(), parts())
