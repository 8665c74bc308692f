"""What a shell needs to know about a verb, read from the parser of its command line."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from ...audit.view.files import DECISIONS
from ...dialects.agent_side import names as names_of_agents
from ...dialects.registry import DIALECTS
from ...model.hooks import Event
from ...wrapping.known_agents import AGENTS_BY_NAME

T = TypeVar("T")


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
    "--as": tuple(DIALECTS),
    "--decision": DECISIONS,
    "--event": tuple(Event),
    "--for": names_of_agents(),
    "--from": tuple(DIALECTS),
    "--since": ("1h", "24h", "7d"),
    "--to": names_of_agents(),
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
class Value:
    """The value of an option, or a positional argument."""

    type: ValueType
    choices: tuple[str, ...] = ()
    label: str = ""
    """Its name in the usage."""
    description: str = ""
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its spellings."""

    flags: tuple[str, ...]
    value: Value
    description: str

    @property
    def is_flag(self) -> bool:
        """True if it has no value."""
        return self.value.type is ValueType.NOTHING


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and what may follow it."""

    name: str
    description: str
    options: tuple[Option, ...]
    positionals: tuple[Value, ...]
    takes_command: bool
    """True if the user's own command line follows after two dashes."""
    subverbs: tuple[Verb, ...] = ()
    """Words that may follow the verb and have a command line of their own, as in `audit stats`."""


def describe_verb(
    name: str, parser: ArgumentParser, subverb_parsers: Mapping[str, ArgumentParser] = MappingProxyType({})
) -> Verb:
    """The verb whose command line this parser reads, with its subverbs and their parsers."""
    actions = [action for action in parser._actions if action.help != SUPPRESS]  # argparse has no public list of them
    return Verb(
        name,
        _first_sentence(parser.description or ""),
        tuple(_options(actions)),
        tuple(_value(action) for action in actions if not action.option_strings),
        "-- COMMAND" in (parser.usage or ""),
        tuple(describe_verb(subverb, each) for subverb, each in subverb_parsers.items()),
    )


def _options(actions: list[Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings:
            yield Option(tuple(action.option_strings), _value(action), _first_sentence(action.help or ""))


def _value(action: Action) -> Value:
    label = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    choices = tuple(str(choice) for choice in action.choices or ())
    if action.nargs == 0:
        value_type = ValueType.NOTHING
    elif _BY_METAVAR.get(label) is ValueType.AGENT:
        value_type, choices = ValueType.AGENT, tuple(AGENTS_BY_NAME)
    elif choices or (choices := tuple(_by_name(_CHOICES, action, ()))):
        value_type = ValueType.CHOICES
    elif known := _by_name(_KNOWN, action, ""):
        value_type, choices = ValueType.KNOWN, (known,)
    else:
        value_type = _BY_METAVAR.get(label, ValueType.OTHER)
    repeats = action.nargs in ("*", "+") or type(action).__name__ == "_AppendAction"
    return Value(value_type, choices, label.lower(), _first_sentence(action.help or ""), repeats)


def _by_name(table: Mapping[str, T], action: Action, default: T) -> T:
    """The entry of an option, or of a positional argument."""
    names = action.option_strings or [str(action.metavar)]
    return next((table[name] for name in names if name in table), default)


def _first_sentence(text: str) -> str:
    """The first sentence, without its full stop; argparse spells a percent sign as `%%`."""
    return text.partition(". ")[0].removesuffix(".").replace("%%", "%")
