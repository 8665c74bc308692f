"""Strict reading of hook files for all dialects: typed members, errors that name the key, hooks' labels.

A member of the wrong type is an error, never a guess (law 3).
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import basename, join
from typing import Final, NoReturn, TypeVar

from msgspec import Struct

from ...model.errors import ConfigError
from ...model.hooks import Event
from ..dialect import HookList

SESSION_END_TIMEOUT: Final = 1.5
"""Seconds, as in Claude Code: the agent has gone by then, and waits for nobody."""

SESSION_END_TIMEOUT_LIMIT: Final = 60.0
"""Seconds that Claude Code grants a SessionEnd hook with a `timeout` of its own."""

MILLISECONDS_THRESHOLD: Final = 10_000.0
"""A timeout from here on is taken for milliseconds: few people mean three hours, many mean ten seconds."""

LONG_TIMEOUT: Final = 3600.0
"""Seconds from which a timeout deserves a remark: the agent will have given up on the call."""

_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "a string", bool: "true or false", int: "a number", float: "a number",
    list: "a list", dict: "an object", type(None): "null",
}  # fmt: skip


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean 'timeout'?`, or nothing where nothing known comes near."""
    import difflib  # 2 ms, for errors only

    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return f"did you mean {spelled[near[0]]!r}?" if near else ""


class Table(Struct, frozen=True):
    """One object or table of a configuration, which knows its place and gives its members typed."""

    where: str
    """The file."""
    path: str
    """The key in the file, `hooks.PreToolUse[0]`; empty for the whole file."""
    members: Mapping[str, object]

    def place(self, key: str = "") -> str:
        """`hooks.PreToolUse[0].timeout`, for people."""
        return ".".join(part for part in (self.path, key) if part)

    def error(self, key: str, message: str, hint: str) -> ConfigError:
        """The error to raise about one member."""
        return ConfigError(self.where, f"{self.place(key)} {message}".strip(), hint)

    def unknown(self, known: Sequence[str]) -> dict[str, str]:
        """The keys that are not among `known`, each with a suggestion or an empty string."""
        return {key: suggestion(key, known) for key in self.members if key not in known}

    def require(self, key: str, hint: str = "") -> None:
        """Raise ConfigError if the member is absent."""
        if key not in self.members:
            near = next((f"write {key} for {other}" for other, it in self.unknown((key,)).items() if it), "")
            raise self.error(key, "is missing", hint or near or f"add it: {key}")

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        return self._text(key, self.members.get(key, default))

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """One of these strings."""
        value = self.text(key, default)
        if value not in choices:
            options = ", ".join(choices)
            raise self.error(
                key, f"must be one of {options}, not {value!r}", suggestion(value, choices) or f"write one of {options}"
            )
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where it is absent."""
        value = self.members.get(key, False)
        if not isinstance(value, bool):
            raise self._mistyped(key, "true or false", value)
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of strings; None where it is absent."""
        if key not in self.members:
            return None
        return tuple(self._text(f"{key}[{at}]", item) for at, item in enumerate(self._list(key)))

    def tables(self, key: str) -> list[Table]:
        """A list of objects, each with its own place."""
        return [self._table(f"{key}[{at}]", item) for at, item in enumerate(self._list(key))]

    def table(self, key: str) -> Table:
        """An object; empty where it is absent."""
        return self._table(key, self.members.get(key, {}))

    def seconds(self, key: str, default: float) -> float:
        """A timeout: more than no time, and not milliseconds by mistake."""
        value = self.members.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._mistyped(key, "a number of seconds", value)
        if not 0 < value < math.inf:
            raise self.error(key, f"must be more than 0 seconds, not {value}", "write how long the hook may take: 5")
        if value >= MILLISECONDS_THRESHOLD:
            raise self.error(key, f"looks like milliseconds: {value}", f"write seconds: {value // 1000} for {value}")
        return float(value)

    def _list(self, key: str) -> list[object]:
        value = self.members.get(key, [])
        if not isinstance(value, list):
            raise self._mistyped(key, "a list", value)
        return value

    def _table(self, key: str, value: object) -> Table:
        if not isinstance(value, dict):
            raise self._mistyped(key, "an object", value)
        return Table(self.where, self.place(key), value)

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self._mistyped(key, "a string", value)
        if "\0" in value:
            raise self.error(
                key, "holds a NUL character, which no command line and no variable can carry", "take it out"
            )
        return value

    def _mistyped(self, key: str, wanted: str, value: object) -> ConfigError:
        return self.error(
            key, f"must be {wanted}, not {_TYPE_NAMES.get(type(value), type(value).__name__)}", f"write {wanted}"
        )


def read_json(path: str, text: str) -> Table:
    """The object in a JSON file, no key twice in any object. Raises ConfigError that names line or key."""

    def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) != len(pairs):
            names = [key for key, _ in pairs]
            twin = next(key for key in names if names.count(key) > 1)
            raise ConfigError(path, f"the key {twin!r} stands twice in one object", "one of the two is lost")
        return members

    def no_constant(name: str) -> NoReturn:
        raise ConfigError(path, f"{name} is not JSON", "write a number, or null")

    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text, object_pairs_hook=object_of, parse_constant=no_constant)
    except json.JSONDecodeError as problem:
        hint = f"mend it at column {problem.colno}" if text.strip() else 'it is empty: {"hooks": {}} is the least'
        raise ConfigError(f"{path}:{problem.lineno}", f"not JSON: {problem.msg}", hint) from None
    except (RecursionError, ValueError) as problem:  # nested too deep; a number with thousands of digits
        raise ConfigError(path, f"cannot be read as JSON: {problem}", "write less into one file") from None
    if not isinstance(value, dict):
        raise ConfigError(path, "must hold one JSON object", 'write {"hooks": {…}}')
    return Table(path, "", value)


def read_document(path: str, text: str) -> Table:
    """The object in a hook file, by its name's ending YAML, TOML or else JSON. Raises ConfigError."""
    if path.endswith((".yaml", ".yml")):
        return read_yaml(path, text)
    return read_toml(path, text) if path.endswith(".toml") else read_json(path, text)


def read_toml(path: str, text: str) -> Table:
    """The table in a TOML file. Raises ConfigError that names the line."""
    import tomllib  # for the few who have such a file

    try:
        return Table(path, "", tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise ConfigError(
            path, f"not TOML: {problem}", "mend it there: strings stand in quotes, and no key twice"
        ) from None


def read_yaml(path: str, text: str) -> Table:
    """The mapping in a YAML file, no key twice in any mapping. Raises ConfigError that names the line."""
    from .yaml_file import load  # 20 ms, for those who have such a file

    return Table(path, "", load(path, text))


T = TypeVar("T")


def merge(lists: Iterable[HookList]) -> HookList:
    """The hooks of all of them, and the notes of all, in their order."""
    found = list(lists)
    return HookList(
        tuple(hook for one in found for hook in one.hooks), tuple(note for one in found for note in one.notes)
    )


def read_events(
    table: Table,
    events: Mapping[str, Event],
    unavailable: Mapping[str, str],
    entries: Callable[[str], Sequence[T]],
    read_entry: Callable[[str, T], HookList],
) -> HookList:
    """The hooks in a table whose keys are names of events. `entries` gives an event's entries; `read_entry` reads one.

    An `unavailable` event that has entries gets a note with the reason. Raises ConfigError for a key that is no event.
    """
    found: list[HookList] = []
    for name in table.members:
        if name not in events and name not in unavailable:
            known = [*events, *unavailable]
            raise table.error(name, "is no event", suggestion(name, known) or f"known: {', '.join(known)}")
        event_entries = entries(name)
        if name in events:
            found += [read_entry(name, entry) for entry in event_entries]
        elif event_entries:
            reason = unavailable[name]
            found.append(HookList((), (f"{table.where}: {table.place(name)} cannot fire behind MCP: {reason}",)))
    return merge(found)


def compile_member(table: Table, key: str, compile_text: Callable[[str], T]) -> T:
    """What a matcher or rule compiles to. Raises ConfigError that names the key and the text."""
    written = table.text(key)
    try:
        return compile_text(written)
    except (re.error, ValueError, OverflowError, RecursionError) as problem:
        raise table.error(
            key,
            f"{written!r} cannot be used: {problem}",
            "write a tool's name, names with | between them, or a regular expression",
        ) from None


def read_timeout(table: Table, event: Event, usual: float) -> float:
    """The hook's timeout in seconds; for SessionEnd the short one, since the agent has gone."""
    if event is not Event.SESSION_END:
        return table.seconds("timeout", usual)
    return min(table.seconds("timeout", SESSION_END_TIMEOUT), SESSION_END_TIMEOUT_LIMIT)


def resolve_program(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """A command whose program, if it is a relative path, is in `folder`; a bare name is looked up in PATH."""
    if not words or "/" not in words[0]:
        return words
    return (join(folder, words[0].removeprefix("./")), *words[1:])


_ASSIGNMENT: Final = re.compile(r"\w+=")
_INTERPRETER: Final = re.compile(
    r"(?:[a-z]*sh|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|env|exec|sudo|nice|timeout|npx|uvx?|pwsh)(?:\.exe)?"
)
"""Programs that run another: the label is that one's name, if it can be told."""
_SCRIPT: Final = re.compile(r".*[/.]\w.*", re.DOTALL)


def command_label(command: str) -> str:
    """What people and the model know a shell command by: `python3 guards/paths.py --x` is `paths.py`."""
    try:
        words = shlex.split(command)
    except ValueError:  # an open quotation mark, say in a comment
        words = command.split()
    return argv_label(words) or command.strip()


def argv_label(words: list[str]) -> str:
    """The same for a command that is split into words already."""
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words:
        return ""
    program = _last_part(words[0])
    if _INTERPRETER.fullmatch(program):
        for word in words[1:]:
            if word in ("-c", "-e", "-m"):  # code or a module follows, not a script
                break
            if not word.startswith("-") and not _ASSIGNMENT.match(word) and _SCRIPT.fullmatch(word):
                return _last_part(word)
    return program


def _last_part(word: str) -> str:
    return basename(word.rstrip("/;&|)")) or word
