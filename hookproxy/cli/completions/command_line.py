"""What a shell needs to know about a verb, read from the parser of its command line.

The scripts are written here and not by shtab, whose script for bash splits words at "=", ":" and "@", so that it can
complete neither `--hooks claude=FILE` nor `copilot@current`, and which cannot complete a word that is a file or a
subverb, as after `audit`.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from ...audit.view.files import DECISIONS
from ...dialects.agent_side import convertible
from ...dialects.registry import DIALECTS, STANDARDS
from ...model.hooks import Event
from ...wrapping.known_agents import AGENTS_BY_NAME


class ValueType(Enum):
    """What a value on the command line is, and so what can complete it."""

    NOTHING = "nothing"  # an option without a value
    FILE = "file"
    FOLDER = "folder"
    HOOKS = "hooks"  # DIALECT=FILE
    CHOICES = "choices"  # one of a few words
    AGENT = "agent"  # one of a few words, or a file
    KNOWN = "known"  # only this machine knows them: `choices` is the kind in `known_values`
    OTHER = "other"  # only the person knows it


_BY_METAVAR: Final = {
    "FILE": ValueType.FILE,
    "AUDIT": ValueType.FILE,
    "AGENT|FILE": ValueType.AGENT,
    "DIR": ValueType.FOLDER,
    "FOLDER": ValueType.FOLDER,
    "PATH": ValueType.FILE,
    "SOCKET|URL": ValueType.FILE,
    "[DIALECT=]FILE": ValueType.HOOKS,
    "DIALECT=FILE": ValueType.HOOKS,
}
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "--as": (*DIALECTS, *STANDARDS),
    "--decision": DECISIONS,
    "--event": tuple(Event),
    "--for": convertible(),
    "--from": (*DIALECTS, *STANDARDS),
    "--since": ("1h", "24h", "7d"),
    "--to": convertible(),
}
"""The words that an option takes, for options that take others as well or say themselves which they do not know."""

_KNOWN: Final = {
    "--agent": "agents",
    "--name": "servers",
    "--server": "servers",
    "--session": "sessions",
    "--tool": "tools",
    "CALL": "calls",
    "TOOL": "tools",
}
"""The kind of value, by the option or the positional argument that has it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An option, or a positional word."""

    flags: tuple[str, ...]
    """All spellings of an option; none for a positional word."""
    type: ValueType
    """What its value is, or the word itself."""
    choices: tuple[str, ...]
    label: str
    """The value's name in the usage."""
    description: str
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and what may follow it."""

    name: str
    description: str
    options: Sequence[Argument]
    positionals: Sequence[Argument]
    takes_command: bool
    """True if the user's own command line follows after two dashes."""
    subverbs: Sequence[Verb] = ()
    """Words that may follow the verb and have a command line of their own, as in `audit stats`."""


def describe_verb(
    name: str, parser: ArgumentParser, subverb_parsers: Mapping[str, ArgumentParser] = MappingProxyType({})
) -> Verb:
    """The verb whose command line this parser reads, with its subverbs and their parsers."""
    arguments = [_argument(action) for action in parser._actions if action.help != SUPPRESS]  # there is no public list
    return Verb(
        name,
        _first_sentence(parser.description or ""),
        [argument for argument in arguments if argument.flags],
        [argument for argument in arguments if not argument.flags],
        "-- COMMAND" in (parser.usage or ""),
        [describe_verb(subverb, each) for subverb, each in subverb_parsers.items()],
    )


def _argument(action: Action) -> Argument:
    label = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    names = action.option_strings or [label]
    choices = tuple(map(str, action.choices or ()))
    value_type = _BY_METAVAR.get(label, ValueType.OTHER)
    if action.nargs == 0:
        value_type = ValueType.NOTHING
    elif value_type is ValueType.AGENT:
        choices = tuple(AGENTS_BY_NAME)
    elif choices := choices or next((tuple(_CHOICES[name]) for name in names if name in _CHOICES), ()):
        value_type = ValueType.CHOICES
    elif choices := tuple(_KNOWN[name] for name in names if name in _KNOWN):
        value_type = ValueType.KNOWN
    repeats = action.nargs in ("*", "+") or type(action).__name__ == "_AppendAction"
    description = _first_sentence(action.help or "")
    return Argument(tuple(action.option_strings), value_type, choices, label.lower(), description, repeats)


def _first_sentence(text: str) -> str:
    """The first sentence, without its full stop; argparse spells a percent sign as `%%`."""
    return text.partition(". ")[0].removesuffix(".").replace("%%", "%")
