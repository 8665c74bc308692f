"""What is wrong with a hookproxy.toml, in a sentence with its line, its key and a hint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, get_args

from pydantic import BaseModel

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FORMER_KEYS: Final = {"on_trouble": "on_failure"}
"""Keys that were named otherwise before, and are read under both names."""

_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w\-.\"' \t]+?)\s*=")


def not_toml(path: str, text: str, message: str) -> ConfigError:
    """The error to raise about a text that is no TOML; `message` is what the reader said."""
    reason, _, place = message.partition(" (at ")
    line = re.search(r"line (\d+)", place)
    number = int(line[1]) if line else text.count("\n") + 1  # else it says "at end of document"
    hint = "strings stand in quotes" if reason == "Invalid value" else f"mend line {number}"
    return ConfigError(f"{path}:{number}", f"not TOML: {_lower(reason)}", hint)


def wrong_key(path: str, text: str, error: ErrorDetails, whole: type[BaseModel]) -> ConfigError:
    """The error to raise about what does not fit the model of the `whole` file."""
    at, kind = error["loc"], error["type"]
    line = _line_of(text, at)
    where = f"{path}:{line}" if line else path
    key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
    if kind == "extra_forbidden":
        what = "event" if at[0] == "hooks" and len(at) == 2 else "key"
        return ConfigError(where, f"{key}: unknown {what}", _hint(str(at[-1]), _keys_beside(at, whole)))
    if kind == "list_type" and isinstance(error["input"], dict):
        return ConfigError(where, f"{key}: there may be several of this table", f"write [[{key}]]")
    if kind == "missing":
        return ConfigError(where, f"{key} is missing", f"write {at[-1]} = …, as `hookproxy schema` has it")
    message = error["msg"].removeprefix("Input ").replace("should be a valid ", "should be a ")
    return ConfigError(where, f"{key}: {_lower(message)}", _example(str(at[-1]), error))


_EXAMPLES: Final = {
    "list_type": '["…"]',
    "string_type": '"…"',
    "bool_type": "true, or false",
    "bool_parsing": "true, or false",
    "int_type": "a number without quotes",
    "int_parsing": "a number without quotes",
    "float_type": "a number without quotes",
    "dict_type": '{ name = "…" }',
}
"""What may stand behind the equals sign, by the kind of error."""


def _example(key: str, error: ErrorDetails) -> str:
    """What could be written instead."""
    if error["type"] == "literal_error":
        return f"write {key} = {error['ctx']['expected'].partition(' or ')[0].partition(', ')[0]}"
    if error["type"] in _EXAMPLES:
        return f"write {key} = {_EXAMPLES[error['type']]}"
    return f"hookproxy schema tells what {key} may be"


def _hint(word: str, known: list[str]) -> str:
    return f"{suggestion(word, known)} known here: {', '.join(known)}".lstrip()


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _keys_beside(at: Sequence[str | int], whole: type[BaseModel]) -> list[str]:
    """The known keys of the table that has an unknown one."""
    table = whole
    for part in at[:-1]:
        if isinstance(part, str) and part in table.model_fields:  # else it is the name of a tool, whose table is next
            annotation = table.model_fields[part].annotation
            inner = [each for each in (annotation, *get_args(annotation)) if isinstance(each, type)]
            table = next((each for each in inner if issubclass(each, BaseModel)), table)
    return [field.alias or name for name, field in table.model_fields.items()]


def _line_of(text: str, at: Sequence[str | int]) -> int | None:
    """The line of a key, or of the table that it is missing in, where the file has a line for each."""
    lines = _lines(text)
    return next((lines[*at[:depth]] for depth in range(len(at), 0, -1) if (*at[:depth],) in lines), None)


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of each table and key that begins one; a string of several lines may look like more."""
    found: dict[tuple[str | int, ...], int] = {}
    tables: Counter[tuple[str | int, ...]] = Counter()
    here: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            here = at = _parts(header[2])
            if header[1] == "[[":
                here = at = (*here, tables[here])
                tables[at[:-1]] += 1
        elif key := _KEY.match(line):
            at = (*here, *_parts(key[1]))
        else:
            continue
        at = tuple(FORMER_KEYS.get(part, part) if isinstance(part, str) else part for part in at)
        for depth in range(1, len(at) + 1):
            found.setdefault(at[:depth], number)
    return found


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
