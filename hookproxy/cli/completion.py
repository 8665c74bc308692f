"""`hookproxy completion`: prints a script with which a shell completes hookproxy's verbs and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

from ..dialects.registry import DIALECTS
from .common import show
from .completions import bash, fish, zsh
from .completions.command_line import Argument, ValueType, Verb, describe_verb
from .main import VERBS
from .options import Parser

SHELLS: Final[Mapping[str, Callable[[Sequence[Verb], Sequence[str]], str]]] = {
    "bash": bash.script,
    "zsh": zsh.script,
    "fish": fish.script,
}
"""For each shell, the function that makes its script from the verbs and the names of the dialects."""


def main(arguments: Sequence[str]) -> int:
    """Print the script. Returns the exit status."""
    if arguments[:1] == ["--values"]:  # what the scripts ask for while a person types; nobody else needs it
        from .completions.known_values import known_values

        kind, beginning = arguments[1], arguments[3] if len(arguments) > 3 else ""
        show("".join(f"{value}\n" for value in known_values(kind, beginning)))
        return 0
    options = build_parser().parse_args(list(arguments))
    show(SHELLS[options.shell](list(verbs()), list(DIALECTS)))
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser("completion", "Print a script with which a shell completes hookproxy's command lines.")
    parser.add_argument("shell", metavar="|".join(SHELLS), choices=SHELLS, help="the shell that reads the script")
    return parser


def verbs() -> Iterator[Verb]:
    """Each verb as shells need it, from the parser of its own module."""
    for name, path in VERBS.items():
        module = import_module(path)
        build_verb_parser: Callable[[], Parser] = module.build_parser
        subverb_parsers: Callable[[], dict[str, Parser]] = getattr(module, "subverb_parsers", dict)
        yield describe_verb(name, build_verb_parser(), subverb_parsers())
    named = Argument((), ValueType.CHOICES, tuple(VERBS), "verb", "the verb")
    yield Verb("help", "Show the options of a verb", (), (named,), takes_command=False)
