"""Turns errors of the TOML parser and of pydantic into one sentence with the line, the key and a hint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, get_args

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from ..model.settings import FORMER_KEYS
from ..model.sizes import SIZE

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w\-.\"' \t]+?)\s*=")


_KEYS_OF_GATEWAYS: Final = (("gateway",), ("servers",), ("permissions", "for"))
"""Keys that gateway.toml has and hookproxy.toml has not: somebody took the one for the other."""


def toml_error(path: str, text: str, message: str) -> ConfigError:
    """The error to raise for a text that is not TOML; `message` is the message of the parser."""
    reason, _, position = message.partition(" (at ")
    line = re.search(r"line (\d+)", position)
    number = int(line[1]) if line else text.count("\n") + 1  # otherwise the message says "at end of document"
    hint = "put strings in quotes" if reason == "Invalid value" else f"correct line {number}"
    return ConfigError(f"{path}:{number}", f"not TOML: {_lower(reason)}", hint)


def validation_error(path: str, text: str, error: ErrorDetails, model: type[BaseModel]) -> ConfigError:
    """The error to raise for a file that does not fit its model."""
    at, kind = error["loc"], error["type"]
    line = line_of(text, at)
    where = f"{path}:{line}" if line else path
    key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
    if kind == "extra_forbidden":
        if at in _KEYS_OF_GATEWAYS:
            hint = "only a gateway's file has it, which `hookproxy serve --config FILE` reads"
            return ConfigError(where, f"{key}: unknown key", hint)
        what = "event" if at[0] == "hooks" and len(at) == 2 else "key"
        return ConfigError(where, f"{key}: unknown {what}", _hint(str(at[-1]), _known_keys(at, model)))
    if kind == "list_type" and isinstance(error["input"], dict):
        return ConfigError(where, f"{key}: must be an array of tables", f"write [[{key}]]")
    if kind == "missing":
        return ConfigError(where, f"{key} is missing", f"add {at[-1]} = …; {_schema_verb(model)} shows what it may be")
    if kind == "string_pattern_mismatch" and at[-1] == "[key]":
        problem = f"{'.'.join(map(str, at[:-2]))}: {str(at[-2])!r} is not a valid name"
        return ConfigError(where, problem, f"it must match {error['ctx']['pattern']}")
    message = error["msg"].removeprefix("Input ").replace("should be a valid ", "should be a ")
    return ConfigError(where, f"{key}: {_lower(message)}", _example(str(at[-1]), error, model))


def _schema_verb(model: type[BaseModel]) -> str:
    """The command that shows what the keys of such a file may be."""
    return "`hookproxy schema --gateway`" if "gateway" in model.model_fields else "`hookproxy schema`"


_EXAMPLES: Final = {
    "list_type": '["…"]',
    "string_type": '"…"',
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a number without quotes",
    "int_parsing": "a number without quotes",
    "float_type": "a number without quotes",
    "dict_type": '{ name = "…" }',
}
"""An example of a valid value, by the type of the error."""


_EXAMPLES_OF_PATTERNS: Final = {
    SIZE.replace(r"\Z", "$"): '"1GiB"',  # as pydantic has it
    "^file:.": '"file:/etc/hookproxy/NAME"',
    "^http://": '"http://127.0.0.1:9090"',
    "^https?://[^/]": '"https://collector.example.com:4318"',
    "^(redis|rediss|unix)://.": '"redis://127.0.0.1:6379/0"',
}
"""An example of a valid value, by the pattern that it must match."""


def _example(key: str, error: ErrorDetails, model: type[BaseModel]) -> str:
    if error["type"] == "literal_error":
        choices = re.findall("'([^']*)'", error["ctx"]["expected"])
        near = suggestion(str(error["input"]), choices) if choices else ""
        return near or f"write {key} = {error['ctx']['expected'].partition(' or ')[0].partition(', ')[0]}"
    if error["type"] in _EXAMPLES:
        return f"write {key} = {_EXAMPLES[error['type']]}"
    if error["type"] == "string_pattern_mismatch" and (example := _EXAMPLES_OF_PATTERNS.get(error["ctx"]["pattern"])):
        return f"write {key} = {example}"
    return f"{_schema_verb(model)} shows what {key} may be"


def _hint(key: str, known: list[str]) -> str:
    return f"{suggestion(key, known)} expected one of: {', '.join(known)}".lstrip()


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _known_keys(at: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """The valid keys of the table that contains an unknown one."""
    from pydantic import BaseModel  # it is imported already: the error comes from it

    table = model
    for part in at[:-1]:
        if isinstance(part, str) and part in table.model_fields:  # otherwise the name of a tool
            annotation = table.model_fields[part].annotation
            types = [inner for inner in (annotation, *get_args(annotation)) if isinstance(inner, type)]
            table = next((inner for inner in types if issubclass(inner, BaseModel)), table)
    return [field.alias or name for name, field in table.model_fields.items()]


def line_of(text: str, at: Sequence[str | int]) -> int | None:
    """The line of a key or, if the key has none, of the innermost table around it that has one."""
    lines = _lines(text)
    return next((lines[*at[:depth]] for depth in range(len(at), 0, -1) if (*at[:depth],) in lines), None)


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of each table and of each key at the start of a line. A multi-line string may look like more of them."""
    found: dict[tuple[str | int, ...], int] = {}
    counts: Counter[tuple[str | int, ...]] = Counter()
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = at = _parts(header[2])
            if header[1] == "[[":
                table = at = (*table, counts[table])
                counts[at[:-1]] += 1
        elif key := _KEY.match(line):
            at = (*table, *_parts(key[1]))
        else:
            continue
        for path in {at, tuple(FORMER_KEYS.get(part, part) if isinstance(part, str) else part for part in at)}:
            for depth in range(1, len(path) + 1):
                found.setdefault(path[:depth], number)
    return found


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
