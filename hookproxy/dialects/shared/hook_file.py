"""Strict reading of hook files for all dialects: typed members, and errors that name the key.

A member of the wrong type is an error. Its value is never guessed (law 3).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import dirname, isfile, join
from typing import Final, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...model.errors import ConfigError
from ...model.late_pattern import late_pattern
from ...model.similar_names import suggestion as suggestion
from ..dialect import HookList

SESSION_END_TIMEOUT: Final = 1.5
"""Seconds, as in Claude Code. The agent has disconnected by then and does not wait."""

SESSION_END_TIMEOUT_LIMIT: Final = 60.0
"""The longest `timeout` of a SessionEnd hook in seconds, as in Claude Code."""

MILLISECONDS_THRESHOLD: Final = 10_000.0
"""Seconds. Longer timeouts are probably meant in milliseconds: few people mean three hours, many mean ten seconds."""

_SIMILAR_KEY: Final = 0.8
"""How similar an unknown key must be to a known one to be its misspelling, from 0 to 1: `timout` is (0.92), but
`comment` and `command` (0.71) are two words."""

LONG_TIMEOUT: Final = 3600.0
"""Seconds. A longer timeout gets a note, because the agent gives up on the call before."""

_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "a string", bool: "true or false", int: "a number", float: "a number",
    list: "a list", dict: "an object", type(None): "null",
}  # fmt: skip


_SAME_MEANING: Final = tuple(
    frozenset(words.split())
    for words in (
        "matcher matchers match matches tools tool tool_name tool_names toolName toolNames pattern patterns filter",
        "command commands cmd run script program executable bash exec",
        "timeout timeoutSec timeout_sec timeoutMs timeout_ms timeoutSeconds timeout_seconds seconds",
        "if when condition only_if",
        "hooks handlers handler hook",
        "async background",
        "env environment environ",
        "cwd workdir workingDirectory working_directory directory",
        "as alias name known_as called",
        "file path filename log",
    )
)
"""Names by which hook files of different systems say the same, and people who know another one."""


def meant(key: str, known: Iterable[str], present: Iterable[str] = ()) -> str:
    """As `suggestion`, for a key of another system: which one of the `known` keys says the same; empty: none.

    A key is not meant if it is `present` itself: then a file has both, for two systems.
    """
    words = next((words for words in _SAME_MEANING if key in words), frozenset())
    same = [name for name in known if name in words]
    return f"did you mean {same[0]!r}?" if same and words.isdisjoint(set(present) - {key}) else ""


CANNOT_FIRE: Final = "cannot fire behind MCP"
"""In remarks about events that only an agent has."""
NO_HOOKS: Final = "contains no hooks"
"""What sentences say about a file that has none at all."""
SWITCHED_OFF: Final = "so none of its hooks run"
"""In remarks about a file that switches its hooks off."""
LEFT_OUT: Final = "is left out"
NOT_AN_EVENT: Final = "is not an event, so its hooks never run"
"""In notes on what the system itself cannot read."""


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

    def without_nulls(self) -> Table:
        """The same, for systems to which a member that is null is absent."""
        return Table(self.where, self.path, {key: value for key, value in self.members.items() if value is not None})

    def error(self, key: str, message: str, hint: str) -> ConfigError:
        """The error about a member, for the caller to raise."""
        return ConfigError(self.where, f"{self.place(key)} {message}".strip(), hint)

    def unknown(self, known: Sequence[str]) -> dict[str, str]:
        """The keys that are not in `known`, each with a suggestion or an empty string. Comments are left out."""
        return {
            key: suggestion(key, known, _SIMILAR_KEY) or meant(key, known, self.members)
            for key in self.members
            if key not in known and not is_comment(key)
        }

    def require(self, key: str, hint: str = "") -> None:
        """Raise ConfigError if the member is absent."""
        if key not in self.members:
            misspelt = next((f"write {key} for {other}" for other in self.members if suggestion(other, (key,))), "")
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

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """The members of an object of strings, such as an environment. Empty if the member is absent."""
        table = self.table(key)
        return tuple((name, table.text(name)) for name in table.members)

    def seconds(self, key: str, default: float) -> float:
        """A timeout as it is written. Raises ConfigError unless it is a number more than 0."""
        value = self.members.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._mistyped(key, "a number of seconds", value)
        if not 0 < value <= sys.float_info.max:
            hint = "write the most seconds that the hook may take, for example 5"
            raise self.error(key, f"must be more than 0 seconds, not {str(value)[:20]}", hint)
        return float(value)

    def plausible_seconds(self, key: str, default: float) -> float:
        """The same in our own files. Raises ConfigError for a timeout that is probably meant in milliseconds, too."""
        value = self.seconds(key, default)
        if value >= MILLISECONDS_THRESHOLD:
            raise self.error(
                key, f"looks like milliseconds: {value:.15g}", f"write seconds: {value // 1000:.15g} for {value:.15g}"
            )
        return value

    def milliseconds(self, key: str, default: float) -> float:
        """A timeout that is written in milliseconds, in seconds like `default`. Raises ConfigError as `seconds`."""
        value = self.members.get(key, default * 1000)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, "must be a number of milliseconds", f'write "{key}": 5000 for five seconds')
        if not 0 < value <= sys.float_info.max:
            raise self.error(key, "must be more than 0 milliseconds and finite", f'write "{key}": 5000')
        return value / 1000

    def items(self, key: str) -> Table:
        """A list as a table, whose keys are the places of its items: `PreToolUse[0]`. Empty if the member is absent."""
        items = {f"{key}[{at}]": item for at, item in enumerate(self._list(key))}
        return Table(self.where, self.path, items)

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


def folder_above(path: str, manifest: str) -> str:
    """The innermost folder above a file that has this manifest; empty: there is none. Raises nothing."""
    folder = dirname(path)
    while folder != dirname(folder):
        if isfile(join(folder, manifest)):
            return folder
        folder = dirname(folder)
    return ""


def respelled(table: Table, event_name: Callable[[str], str]) -> Table:
    """The events of a file under their usual names. Raises ConfigError for one in two spellings."""
    members = {event_name(name): entries for name, entries in table.members.items()}
    if len(members) < len(table.members):
        raise ConfigError(table.where, "hooks has one event in two spellings", "write each event once")
    return replace(table, members=members)


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
        raise ConfigError(f"{path}:{problem.lineno}", f"not JSON: {problem.msg}", _json_repair(problem)) from None
    except (RecursionError, ValueError) as problem:  # nested too deeply, or a number with thousands of digits
        raise ConfigError(
            path, f"cannot be read as JSON: {problem}", "nest it less deeply, and shorten long numbers"
        ) from None
    if not isinstance(value, dict):
        raise ConfigError(path, "must contain one JSON object", 'write {"hooks": {…}}')
    return Table(path, "", value)


def _json_repair(problem: json.JSONDecodeError) -> str:
    """How to correct a text that is not JSON, where the parser stopped: it says only what it did not expect."""
    text, at, place = problem.doc, problem.pos, f"column {problem.colno}"
    if not text.strip():
        return 'the file is empty: write at least {"hooks": {}}'
    rest, before = text[at:].lstrip(), text[:at].rstrip()
    repairs = (
        (not rest, f"the file ends too early: close {_not_closed(text)}"),
        (rest.startswith(("//", "/*", "#")), f"JSON has no comments: remove it at {place}"),
        (before.endswith(",") and rest[:1] in "}]", f"remove the comma before {place}: nothing comes after it"),
        (rest.startswith("'"), f"write double quotes at {place}"),
        (rest[:1] in ("\u201c", "\u201d", "\u2018", "\u2019"), f"write straight double quotes at {place}"),
        (problem.msg.startswith("Expecting ','"), f"put a comma before {place}, or close what is open there"),
        (problem.msg.startswith("Expecting property name"), f"put the name at {place} in double quotes"),
        (problem.msg.startswith("Expecting ':'"), f"put a colon before {place}"),
        (problem.msg.startswith("Extra data"), f"remove what follows the last bracket, from {place} on"),
        (problem.msg.startswith("Unterminated string"), f"close the string that begins at {place} with a double quote"),
        (problem.msg.startswith("Invalid control"), f"write \\n or \\t in the string at {place}, or end it there"),
        (problem.msg.startswith("Invalid \\"), f"write each backslash twice at {place}"),
        (rest[:4] in ("True", "None") or rest[:5] == "False", f"write true, false or null at {place}"),
    )
    return next((repair for applies, repair in repairs if applies), f"correct it at {place}")


_CLOSES: Final = {"{": "}", "[": "]"}


def _not_closed(text: str) -> str:
    """The brackets that are missing at the end of a text."""
    waiting: list[str] = []
    for token in re.findall(r'"(?>(?:\\.|[^"\\])*)"?|[{}\[\]]', text):
        if token in _CLOSES:
            waiting.append(_CLOSES[token])
        elif waiting and token == waiting[-1]:
            waiting.pop()
    return "".join(reversed(waiting)) or "what is open"


def read_document(path: str, text: str, *, comments: bool = False) -> Table:
    """The object in a hook file: YAML or TOML by the suffix of its name, otherwise JSON. Raises ConfigError.

    `comments`: the JSON may have comments and trailing commas.
    """
    if path.endswith((".yaml", ".yml")):
        return read_yaml(path, text)
    if path.endswith(".toml"):
        return read_toml(path, text)
    return read_json(path, without_comments(text) if comments else text)


_JSON_TOKEN: Final = late_pattern(
    r"""
      "(?>(?:\\.|[^"\\])*)"?                # a string, so that nothing in it is taken for a comment
    | (?P<comment>//[^\n\r]*|/\*.*?\*/)
    | [{\[,](?>(?:\s|//[^\n\r]*|/\*.*?\*/)*),   # a comma without a value before it: an error
    | (?P<comma>,(?=(?>(?:\s|//[^\n\r]*|/\*.*?\*/)*)[}\]]))
    """,
    re.VERBOSE | re.DOTALL,
)
"""The parts of JSON with comments that matter: its trailing commas, comments, and strings."""


def without_comments(text: str) -> str:
    """JSON with blanks in place of comments and trailing commas, so that errors name the same lines and columns."""
    return _JSON_TOKEN.sub(lambda found: _blank(found[0]) if found.lastgroup else found[0], text)


def _blank(text: str) -> str:
    return "".join(character if character in "\n\r" else " " for character in text)


def read_toml(path: str, text: str) -> Table:
    """The table in a TOML file. Raises ConfigError, which names the line."""
    from ...model.toml import NotToml, parse_toml  # only few configurations have such a file

    try:
        return Table(path, "", parse_toml(text))
    except NotToml as problem:
        raise ConfigError(
            path, f"not TOML: {problem}", "correct it there: quote strings, and write each key once"
        ) from None


def read_yaml(path: str, text: str) -> Table:
    """The mapping in a YAML file, without duplicate keys. Raises ConfigError, which names the line."""
    from .yaml_file import load  # 20 ms, only if there is such a file

    return Table(path, "", load(path, text))


def is_comment(key: str) -> bool:
    """Whether a key is there for readers. JSON has no comments, so people write them as members."""
    return key in ("comment", "comments", "description") or key.startswith(("_", "$", "//", "#"))


T = TypeVar("T")


def merge(lists: Iterable[HookList]) -> HookList:
    """All hooks, notes and remarks of these lists, in order."""
    all_lists = list(lists)
    return HookList(
        tuple(hook for hook_list in all_lists for hook in hook_list.hooks),
        tuple(note for hook_list in all_lists for note in hook_list.notes),
        tuple(remark for hook_list in all_lists for remark in hook_list.remarks),
    )


def read_events(
    table: Table,
    events: Iterable[str],
    unavailable: Mapping[str, str],
    read_event: Callable[[str], HookList],
    hint: Callable[[str], str] = lambda _name: "",
) -> HookList:
    """The hooks in a table whose keys are names of events; `read_event` reads the entries of one.

    An `unavailable` event that has entries gets a remark with the reason. A key that is not an event gets a note with
    the `hint` for it: the agents skip it, because each of their versions adds events.
    """
    known = list(events)
    found: list[HookList] = []
    for name, entries in table.members.items():
        place = f"{table.where}: {table.place(name)}"
        if name in known:
            found.append(read_event(name))
        elif name in unavailable:
            if entries:
                found.append(HookList((), remarks=(f"{place} {CANNOT_FIRE}: {unavailable[name]}",)))
        elif not is_comment(name):
            names = [*known, *unavailable]
            what = hint(name) or suggestion(name, names, _SIMILAR_KEY) or f"the events are {', '.join(names)}"
            found.append(HookList((), (f"{place} {NOT_AN_EVENT}: {what}",)))
    return merge(found)


def or_left_out(where: str, place: str, read: Callable[[], HookList]) -> HookList:
    """What `read` returns. An entry at `place` that it refuses gets a note instead: its agent skips it, and goes on."""
    try:
        return read()
    except ConfigError as error:
        what = error.message.removeprefix(f"{where}: ").removeprefix(place).lstrip(". ")
        return HookList((), (f"{where}: {place} {LEFT_OUT}: {what}: {error.hint}",))


def read_each(table: Table, key: str, read: Callable[[Table], HookList]) -> HookList:
    """What `read` returns for each object in a list. A malformed one is left out, as in `or_left_out`.

    Raises ConfigError if the member is not a list.
    """
    items = table.items(key)

    def read_item(name: str) -> HookList:
        return or_left_out(table.where, items.place(name), lambda: read(items.table(name)))

    return merge(map(read_item, items.members))


def compile_member(table: Table, key: str, compile_text: Callable[[str], T]) -> T:
    """A compiled matcher or rule. Raises ConfigError, which names the key and the text."""
    text = table.text(key)
    try:
        return compile_text(text)
    except (re.error, ValueError, OverflowError, RecursionError) as problem:
        raise table.error(
            key,
            f"{text!r} cannot be used: {problem}",
            _repair_of(key, text),
        ) from None


def _repair_of(key: str, text: str) -> str:
    """How to write a matcher or an `if` that cannot be used."""
    from ...policy.rule_repairs import rule_repair  # only for errors

    if key == "if":
        return rule_repair(text) or "write Tool or Tool(specifier), such as Bash(git push:*)"
    if re.fullmatch(r"[\w*?.\-]+", text) and "*" in text:
        return f"matchers are regular expressions: write {text.replace('.*', '*').replace('*', '.*')}"
    return "write a tool's name, several names separated by |, or a regular expression"


def long_timeout_notes(seconds: float) -> list[str]:
    """A note on a timeout that is longer than agents wait for a call."""
    if seconds >= MILLISECONDS_THRESHOLD:
        milliseconds = f"if they are meant as milliseconds, write {seconds / 1000:g}"
        return [f"a timeout of {seconds:.15g} is read as seconds, as written: {milliseconds}"]
    if seconds > LONG_TIMEOUT:
        return [f"a timeout of {seconds:g} seconds is longer than agents wait for a call"]
    return []


_PROBABLY_SECONDS: Final = 0.1
"""A shorter timeout, in seconds, is too short to start a program: its author probably meant seconds."""


def milliseconds_notes(key: str, seconds: float) -> list[str]:
    """A note on a timeout in milliseconds that was probably meant in seconds, or is longer than agents wait."""
    if seconds < _PROBABLY_SECONDS:
        ms = seconds * 1000
        return [f"`{key}` is in milliseconds: {ms:g} ms end the hook at once; {ms:g} seconds are {ms * 1000:g}"]
    if seconds > LONG_TIMEOUT:
        return [f"a timeout of {seconds:g} seconds is longer than agents wait for a call"]
    return []


def resolve_program(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The command, its program joined to `folder` if it is a relative path. A bare name is looked up in PATH."""
    if not words or "/" not in words[0]:
        return words
    return (join(folder, words[0].removeprefix("./")), *words[1:])
