"""Strict reading of hook files for all dialects: typed members, and errors that name the key.

A member of the wrong type is an error. Its value is never guessed (law 3).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import join
from typing import Final, NoReturn, TypeVar

from msgspec import Struct

from ...model.errors import ConfigError
from ...model.hooks import Event
from ..dialect import HookList

SESSION_END_TIMEOUT: Final = 1.5
"""Seconds, as in Claude Code. The agent has disconnected by then and does not wait."""

SESSION_END_TIMEOUT_LIMIT: Final = 60.0
"""The longest `timeout` of a SessionEnd hook in seconds, as in Claude Code."""

MILLISECONDS_THRESHOLD: Final = 10_000.0
"""Longer timeouts are taken for milliseconds: few people mean three hours, many mean ten seconds."""

LONG_TIMEOUT: Final = 3600.0
"""Seconds. A longer timeout gets a note, because the agent gives up on the call before."""

_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "a string", bool: "true or false", int: "a number", float: "a number",
    list: "a list", dict: "an object", type(None): "null",
}  # fmt: skip


def suggestion(word: str, known: Iterable[str]) -> str:
    """For example `did you mean 'timeout'?`. Empty if no known name is similar."""
    import difflib  # 2 ms, for errors only

    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return f"did you mean {spelled[near[0]]!r}?" if near else ""


class Table(Struct, frozen=True):
    """One object or table of a configuration file, with its place. Its methods return members of the right type."""

    where: str
    """The file."""
    path: str
    """The key path in the file, for example `hooks.PreToolUse[0]`. Empty for the whole file."""
    members: Mapping[str, object]

    def place(self, key: str = "") -> str:
        """The key path of a member, for example `hooks.PreToolUse[0].timeout`."""
        return ".".join(part for part in (self.path, key) if part)

    def error(self, key: str, message: str, hint: str) -> ConfigError:
        """The error about a member, for the caller to raise."""
        return ConfigError(self.where, f"{self.place(key)} {message}".strip(), hint)

    def unknown(self, known: Sequence[str]) -> dict[str, str]:
        """The keys that are not in `known`, each with a suggestion or an empty string."""
        return {key: suggestion(key, known) for key in self.members if key not in known}

    def require(self, key: str, hint: str = "") -> None:
        """Raise ConfigError if the member is absent."""
        if key not in self.members:
            misspelt = next(
                (f"write {key} for {other}" for other, similar in self.unknown((key,)).items() if similar), ""
            )
            raise self.error(key, "is missing", hint or misspelt or f"add {key}")

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
        """True or false. False if the member is absent."""
        value = self.members.get(key, False)
        if not isinstance(value, bool):
            raise self._mistyped(key, "true or false", value)
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of strings. None if the member is absent."""
        if key not in self.members:
            return None
        return tuple(self._text(f"{key}[{at}]", item) for at, item in enumerate(self._list(key)))

    def tables(self, key: str) -> list[Table]:
        """A list of objects, each with its own key path. Empty if the member is absent."""
        return [self._table(f"{key}[{at}]", item) for at, item in enumerate(self._list(key))]

    def table(self, key: str) -> Table:
        """An object. Empty if the member is absent."""
        return self._table(key, self.members.get(key, {}))

    def seconds(self, key: str, default: float) -> float:
        """A timeout. Raises ConfigError unless it is more than 0 and cannot be meant as milliseconds."""
        value = self.members.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._mistyped(key, "a number of seconds", value)
        if not 0 < value < math.inf:
            raise self.error(
                key,
                f"must be more than 0 seconds, not {value}",
                "write the most seconds that the hook may take, for example 5",
            )
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
                key, "contains a NUL character, which command lines and variables cannot contain", "remove it"
            )
        return value

    def _mistyped(self, key: str, wanted: str, value: object) -> ConfigError:
        return self.error(
            key, f"must be {wanted}, not {_TYPE_NAMES.get(type(value), type(value).__name__)}", f"write {wanted}"
        )


def read_json(path: str, text: str) -> Table:
    """The object in a JSON file, without duplicate keys. Raises ConfigError, which names the line or the key."""

    def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) != len(pairs):
            names = [key for key, _ in pairs]
            duplicate = next(key for key in names if names.count(key) > 1)
            raise ConfigError(
                path, f"the key {duplicate!r} appears twice in one object", "one of the two values would be lost"
            )
        return members

    def no_constant(name: str) -> NoReturn:
        raise ConfigError(path, f"{name} is not JSON", "write a number, or null")

    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text, object_pairs_hook=object_of, parse_constant=no_constant)
    except json.JSONDecodeError as problem:
        hint = (
            f"correct it at column {problem.colno}"
            if text.strip()
            else 'the file is empty: write at least {"hooks": {}}'
        )
        raise ConfigError(f"{path}:{problem.lineno}", f"not JSON: {problem.msg}", hint) from None
    except (RecursionError, ValueError) as problem:  # nested too deeply, or a number with thousands of digits
        raise ConfigError(
            path, f"cannot be read as JSON: {problem}", "nest it less deeply, and shorten long numbers"
        ) from None
    if not isinstance(value, dict):
        raise ConfigError(path, "must contain one JSON object", 'write {"hooks": {…}}')
    return Table(path, "", value)


def read_document(path: str, text: str) -> Table:
    """The object in a hook file: YAML or TOML by the suffix of its name, otherwise JSON. Raises ConfigError."""
    if path.endswith((".yaml", ".yml")):
        return read_yaml(path, text)
    return read_toml(path, text) if path.endswith(".toml") else read_json(path, text)


def read_toml(path: str, text: str) -> Table:
    """The table in a TOML file. Raises ConfigError, which names the line."""
    import tomllib  # only few configurations have such a file

    try:
        return Table(path, "", tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise ConfigError(
            path, f"not TOML: {problem}", "correct it there: quote strings, and write each key once"
        ) from None


def read_yaml(path: str, text: str) -> Table:
    """The mapping in a YAML file, without duplicate keys. Raises ConfigError, which names the line."""
    from .yaml_file import load  # 20 ms, only if there is such a file

    return Table(path, "", load(path, text))


T = TypeVar("T")


def merge(lists: Iterable[HookList]) -> HookList:
    """All hooks, notes and remarks of these lists, in order."""
    all_lists = list(lists)
    return HookList(
        tuple(hook for each in all_lists for hook in each.hooks),
        tuple(note for each in all_lists for note in each.notes),
        tuple(remark for each in all_lists for remark in each.remarks),
    )


def read_events(
    table: Table,
    events: Mapping[str, Event],
    unavailable: Mapping[str, str],
    entries: Callable[[str], Sequence[T]],
    read_entry: Callable[[str, T], HookList],
) -> HookList:
    """The hooks in a table whose keys are names of events. `entries` gives an event's entries; `read_entry` reads one.

    An `unavailable` event that has entries gets a remark with the reason. Raises ConfigError for other keys.
    """
    found: list[HookList] = []
    for name in table.members:
        if name not in events and name not in unavailable:
            known = [*events, *unavailable]
            raise table.error(name, "is not an event", suggestion(name, known) or f"the events are {', '.join(known)}")
        event_entries = entries(name)
        if name in events:
            found += [read_entry(name, entry) for entry in event_entries]
        elif event_entries:
            reason = unavailable[name]
            remark = f"{table.where}: {table.place(name)} cannot fire behind MCP: {reason}"
            found.append(HookList((), remarks=(remark,)))
    return merge(found)


def compile_member(table: Table, key: str, compile_text: Callable[[str], T]) -> T:
    """A compiled matcher or rule. Raises ConfigError, which names the key and the text."""
    text = table.text(key)
    try:
        return compile_text(text)
    except (re.error, ValueError, OverflowError, RecursionError) as problem:
        raise table.error(
            key,
            f"{text!r} cannot be used: {problem}",
            "write a tool's name, several names separated by |, or a regular expression",
        ) from None


def read_timeout(table: Table, event: Event, default: float) -> float:
    """The hook's timeout in seconds. SessionEnd hooks have a shorter one, because the agent has disconnected."""
    if event is not Event.SESSION_END:
        return table.seconds("timeout", default)
    return min(table.seconds("timeout", SESSION_END_TIMEOUT), SESSION_END_TIMEOUT_LIMIT)


def resolve_program(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The command, its program joined to `folder` if it is a relative path. A bare name is looked up in PATH."""
    if not words or "/" not in words[0]:
        return words
    return (join(folder, words[0].removeprefix("./")), *words[1:])
