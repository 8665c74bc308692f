"""What a shell must know of a verb, read from the parser of its command line."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Takes(Enum):
    """What may stand where a value is due."""

    NOTHING = "nothing"  # an option without a value
    FILE = "file"
    FOLDER = "folder"
    HOOKS = "hooks"  # DIALECT=FILE
    WORDS = "words"  # one of a few
    OTHER = "other"  # what only the person knows


_BY_METAVAR: Final = {
    "FILE": Takes.FILE,
    "AUDIT": Takes.FILE,
    "FOLDER": Takes.FOLDER,
    "[DIALECT=]FILE": Takes.HOOKS,
    "DIALECT=FILE": Takes.HOOKS,
}


@dataclass(frozen=True, slots=True)
class Value:
    """What an option takes, or a place on the command line."""

    takes: Takes
    words: tuple[str, ...] = ()
    label: str = ""
    """What it is called in the usage."""
    about: str = ""
    several: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its spellings."""

    flags: tuple[str, ...]
    value: Value
    about: str

    @property
    def alone(self) -> bool:
        """It has no value."""
        return self.value.takes is Takes.NOTHING


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and what may follow it."""

    name: str
    about: str
    options: tuple[Option, ...]
    places: tuple[Value, ...]
    command: bool
    """After two dashes comes a command line of the user's."""
    parts: tuple[Verb, ...] = ()
    """Words that may follow the verb and make it another."""


def verb(name: str, parser: ArgumentParser, parts: Mapping[str, ArgumentParser] = MappingProxyType({})) -> Verb:
    """The verb whose command line this parser reads, and with the words that may follow it, these."""
    actions = [action for action in parser._actions if action.help != SUPPRESS]  # argparse has no public list of them
    return Verb(
        name,
        _sentence(parser.description or ""),
        tuple(_options(actions)),
        tuple(_value(action) for action in actions if not action.option_strings),
        "-- COMMAND" in (parser.usage or ""),
        tuple(verb(part, each) for part, each in parts.items()),
    )


def _options(actions: list[Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings:
            yield Option(tuple(action.option_strings), _value(action), _sentence(action.help or ""))


def _value(action: Action) -> Value:
    label = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    words = tuple(str(choice) for choice in action.choices or ())
    if action.nargs == 0:
        takes = Takes.NOTHING
    elif words:
        takes = Takes.WORDS
    else:
        takes = _BY_METAVAR.get(label, Takes.OTHER)
    repeats = action.nargs in ("*", "+") or type(action).__name__ == "_AppendAction"
    return Value(takes, words, label.lower(), _sentence(action.help or ""), repeats)


def _sentence(text: str) -> str:
    """The first sentence, without its full stop; `%%` is how argparse spells a percent sign."""
    return text.partition(". ")[0].removesuffix(".").replace("%%", "%")
