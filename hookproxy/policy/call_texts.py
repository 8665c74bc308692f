"""The texts in the arguments of a call, as permission rules read them.

The agent chooses the arguments, so all work is counted against a budget. What no rule changes is made once for all
rules of a call, and only where one needs it. What cannot be read raises an error: deny and ask rules apply then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model import command_line
from ..model.late_pattern import late_pattern
from .globs import COMMAND_SEPARATORS, BudgetExceeded, WorkBudget
from .matchers import COMMAND_ARGUMENT

if TYPE_CHECKING:
    from .resource_uris import UriReadings

SHELL: Final = "Bash"
"""The familiar name of tools that run command lines."""
_LIKE_A_PLACE: Final = late_pattern(r"[/.:\\\s]")
"""In an argument's name: the name itself may be a path or an address."""
HALF_PAIR: Final = late_pattern(r"[\ud800-\udfff]")
NO_PATH: Final = 4096  # characters: a longer text is not a path or an address, unless it is spelled like one
MOST_TEXTS: Final = 1024  # in one call, and as many pairs of texts
_MOST_MEMBERS: Final = 16_384  # of all objects of a call
MOST_BYTES: Final = 65_536  # of all texts that are searched as a whole
_LONGEST: Final = 4_194_304  # bytes of all arguments
_MOST_NESTED: Final = 262_144  # of all lists and objects with their contents
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=raw_json.reject_constant)


class CallArguments:
    """The arguments of a call, and the work that judging it may still take."""

    def __init__(self, arguments: bytes, budget: WorkBudget | None = None) -> None:
        """`budget` is for several readings of one call together; None: this call has one of its own."""
        self._arguments = arguments
        self._members: dict[str, bytes] | None = None
        self._texts: dict[tuple[str, bool], CallTexts] = {}
        self._uri_readings: UriReadings | None = None
        self.budget: Final = WorkBudget() if budget is None else budget

    def members(self, judged: str) -> dict[str, bytes]:
        """Return the arguments that a rule about `judged` is about. Raises ValueError, BudgetExceeded."""
        members = self._members
        if members is None:
            if len(self._arguments) > _LONGEST or _too_many(self._arguments):
                raise BudgetExceeded
            self._members = members = {key: bytes(raw) for key, raw in raw_json.fields(self._arguments).items()}
        if judged not in members:
            return members
        # one of Claude Code's own tools: the rule is about no other argument
        return {key: raw for key, raw in members.items() if key.casefold() == judged}

    def texts(self, judged: str, *, without_long: bool) -> CallTexts:
        """Read what `members` returns, once for all rules. Raises ValueError, RecursionError, BudgetExceeded."""
        without_long = without_long and len(self._arguments) > MOST_BYTES  # otherwise none of them is long
        texts = self._texts.get((judged, without_long))
        if texts is None:
            self._texts[judged, without_long] = texts = CallTexts(self.members(judged), without_long, self.budget)
        return texts

    def uri_readings(self) -> UriReadings:
        """What servers may take the URI of a resource for, if there is one. Raises ValueError, BudgetExceeded."""
        if self._uri_readings is None:
            from . import resource_uris  # only for requests about resources

            self.members("")  # there may be too many to read
            uri = resource_uris.of_arguments(self._arguments)
            self._uri_readings = resource_uris.NONE if uri is None else resource_uris.readings(uri)
            self.budget.spend(30 * self._uri_readings.size)  # what reading it has taken
        return self._uri_readings


def _too_many(raw: bytes) -> bool:
    """True if there are too many members to read. It never counts too few, because quotes in texts are escaped."""
    most = raw.count(b'":')
    return most > _MOST_MEMBERS and most - raw.count(b'\\":') + raw.count(b'\\\\":') > _MOST_MEMBERS


class CallTexts:
    """Some arguments of a call, and the texts in them."""

    def __init__(self, members: dict[str, bytes], without_long: bool, budget: WorkBudget) -> None:
        """Raises ValueError, RecursionError, BudgetExceeded."""
        self.members: Final = members
        self._budget: Final = budget
        line_keys = [key for key, raw in members.items() if raw != b"null" and COMMAND_ARGUMENT.search(key)]
        self.has_commands: Final = bool(line_keys)
        """Some argument is a command by its name."""
        self.long: Final = [
            key
            for key, raw in members.items()
            if without_long and len(raw) > MOST_BYTES and raw[:1] == b'"' and key not in line_keys
        ]
        """The texts that are left out of all below because they are long."""
        values = _decoded({key: raw for key, raw in members.items() if key not in self.long}, budget)
        self.lines: Final[list[tuple[str, str]]] = []
        """The command lines, each with the argument in which it, or its first word, is."""
        self.not_a_line = ""
        """An argument with a command of which no line can be made."""
        self._read_lines(values, line_keys)
        nested = [_texts_and_keys(value) for value in values.values() if isinstance(value, list | dict)]
        self._single: Final = [value for value in values.values() if isinstance(value, str)]
        self._joined: Final = [" ".join(texts) for texts, _ in nested]
        self.all: Final = self._single + [text for texts, _ in nested for text in texts]
        """All texts, at any depth."""
        names = [key for key in members if _LIKE_A_PLACE.search(key)]
        self.known: Final = self.all + names + [key for _, keys in nested for key in keys]
        """All texts, and all names that may be a path or an address."""
        self.unreadable: Final = len(self.known) > MOST_TEXTS or HALF_PAIR.search("".join(self.known)) is not None
        """There are too many texts, or half of a surrogate pair."""
        self._whole: list[str] | None = None
        self._size = 0  # characters in them
        self._parts: set[str] | None = None

    def _read_lines(self, values: dict[str, object], line_keys: list[str]) -> None:
        """Note the command lines: texts, and lists of words, also behind the program in another argument."""
        lists = [key for key, value in values.items() if isinstance(value, list)]
        words: list[str] = []
        if lists:
            words = [key for key in command_line.word_arguments(lists) if command_line.has_words(values[key])]
        if not (line_keys or words):
            return
        keys = line_keys or [key for key in values if command_line.is_program(key)]
        tail = [values[key] for key in words if key not in keys]
        for key in keys or words[:1]:
            value = values.get(key) if keys else None
            if value is None and keys:
                continue
            try:
                self.lines.extend((key, line) for line in _lines(key, value, tail))
            except raw_json.Unreadable:
                self.not_a_line = key if keys else ""

    def whole(self) -> list[str]:
        """All texts that may be or spell one value: also a text and a list together. Raises BudgetExceeded."""
        if self._whole is None:
            self._whole = [*self.known, *_composed(self._single, self._joined, self._budget)]
            self._size = sum(map(len, self._whole))
        self._budget.spend(1000 * len(self._whole) + 8 * self._size)  # for the rule that is tried
        return self._whole

    def parts(self) -> set[str]:
        """The texts between separators of commands that are not in `whole`. Raises BudgetExceeded."""
        if self._parts is None:
            parts = {part.strip() for text in self.known for part in COMMAND_SEPARATORS.split(text)}
            self._parts = parts.difference(self.known)
        self._budget.spend(900 * len(self._parts))  # two thousand of them are too many
        return self._parts


def _lines(key: str, value: object, words: list[object]) -> list[str]:
    """The lines that a command and the words behind it may be; a text is also one alone. Raises Unreadable."""
    if isinstance(value, str) and not words:
        return [value]
    lines = command_line.readings(key, value, words)
    return [*lines, value] if isinstance(value, str) else lines


def _decoded(members: dict[str, bytes], budget: WorkBudget) -> dict[str, object]:
    """Return the decoded arguments. Raises ValueError, BudgetExceeded."""
    nested = sum(len(raw) for raw in members.values() if raw[:1] in (b"[", b"{"))
    flat = sum(map(len, members.values())) - nested
    if nested > _MOST_NESTED or flat > MOST_BYTES or len(members) > MOST_TEXTS:
        raise BudgetExceeded
    budget.spend(4 * nested + flat)
    return {key: _decode_value(raw) for key, raw in members.items()}


def _decode_value(raw: bytes) -> object:
    """Decode a JSON value, with numbers and booleans as texts of their spelling."""
    if raw[:1] == b'"' and (text := raw_json.text(raw)) is not None:  # nearly all
        return text
    value: object = _DECODER.decode(raw.decode(errors="surrogatepass"))  # `json.loads` would make a decoder each time
    return json.dumps(value) if isinstance(value, bool) else value


def _texts_and_keys(value: object) -> tuple[list[str], list[str]]:
    """Return all texts in a list or an object, in order, and all keys."""
    texts: list[str] = []
    keys: list[str] = []
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            keys.extend(part)
            todo.extend(reversed(part.values()))
        elif isinstance(part, list):
            todo.extend(reversed(part))
        elif part is not None:
            texts.append(part if isinstance(part, str) else json.dumps(part))
    return texts, keys


def _composed(texts: list[str], joined: list[str], budget: WorkBudget) -> list[str]:
    """Return what a text and a list may form together, such as a program and its arguments. Raises BudgetExceeded."""
    if not joined:
        return []
    short = [text for text in texts if len(text) <= NO_PATH]
    if len(texts) * len(joined) > MOST_TEXTS:
        raise BudgetExceeded
    budget.spend(4 * (len(joined) * sum(map(len, short)) + len(short) * sum(map(len, joined))))
    return [*joined, *(f"{text} {rest}" for text in short for rest in joined)]


def all_texts(raw: bytes) -> list[str]:
    """Every text in a JSON value, keys included. Raises ValueError."""
    if raw[:1] == b'"':
        text = raw_json.text(raw)
        if text is None:
            raise raw_json.Unreadable("a text has half of a surrogate pair")
        return [text]
    texts, keys = _texts_and_keys(_decode_value(raw)) if raw[:1] in (b"[", b"{") else ([], [])
    return texts + keys
