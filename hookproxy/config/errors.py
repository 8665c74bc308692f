"""Turns errors of the TOML parser and of pydantic into one sentence with the line, the key and a hint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Final, get_args

from ..dialects.shared.hook_file import meant, suggestion
from ..model.durations import DURATION
from ..model.errors import ConfigError
from ..model.late_pattern import late_pattern
from ..model.settings import FORMER_KEYS
from ..model.sizes import SIZE

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_MOST_SHOWN: Final = 60  # characters of a value in a message of one line
_HEADER: Final = late_pattern(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = late_pattern(r"\s*([\w\-.\"' \t]+?)\s*=")


FindLine = Callable[[str, Sequence[str | int]], int | None]
"""Returns the line of a key in a text, as `line_of`."""

_KEYS_OF_GATEWAYS: Final = (("gateway",), ("servers",), ("permissions", "for"))
"""Keys that gateway.toml has and hookproxy.toml has not: somebody took the one for the other."""


_SPELLED: Final = {
    ("use", "hooks"): 'write file = "…", and its system as dialect = "claude" if the file does not show it',
    ("permissions", "for", "groups"): 'a group is named in `users`, with @ in front: users = ["@developers"]',
    ("model", "model"): 'the model is named by name = "…"',
}
"""By table and key: how to write what has another form here than on the command line, or than people expect."""
_EVENT_KEYS: Final = ("event", "events", "on", "hook_event_name")
"""In a hook, by which other systems say for which event it is."""


def toml_error(path: str, text: str, message: str) -> ConfigError:
    """The error to raise for a text that is not TOML; `message` is the message of the parser."""
    reason, _, position = message.partition(" (at ")
    line = re.search(r"line (\d+)", position)
    number = int(line[1]) if line else text.count("\n") + 1  # otherwise the message says "at end of document"
    from .toml_repairs import toml_repair  # only for errors

    problem, repair = toml_repair(path, text, number, reason)
    return ConfigError(f"{path}:{number}", f"not TOML: {problem}", repair)


def validation_error(
    path: str, text: str, error: ErrorDetails, model: type[BaseModel], find_line: FindLine | None = None
) -> ConfigError:
    """The error to raise for a file that does not fit its model. `find_line` is for files that are not TOML."""
    at, kind = tuple(part for part in error["loc"] if not _is_alternative(part)), error["type"]
    line = (find_line or line_of)(text, at)
    where = f"{path}:{line}" if line else path
    key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
    if kind == "extra_forbidden":
        return _unknown_key(where, key, at, model)
    in_list = len(at) == 3 and isinstance(at[2], int)  # not a key of `[hooks.composition]`
    if at[0] == "hooks" and in_list and not isinstance(error["input"], dict):
        return ConfigError(where, f"{key}: a hook is a table", f"write [[hooks.{at[1]}]], and below it command = …")
    if kind == "list_type" and isinstance(error["input"], dict):
        return ConfigError(where, f"{key}: must be an array of tables", f"write [[{key}]]")
    if kind == "model_type" and not _is_of_cases(model):
        if at == ("hooks",) and isinstance(error["input"], list):
            return ConfigError(where, "hooks: the event stands in the brackets", "write [[hooks.PreToolUse]]")
        table = f"[{key}]" if isinstance(at[-1], str) else f"[[{key.rpartition('[')[0]}]]"
        return ConfigError(where, f"{key}: must be a table", f"write {table}, and its keys below that line")
    if kind in ("missing", "model_type"):
        return _missing(where, key, at, model, kind)
    if kind == "string_pattern_mismatch" and at[-1] == "[key]":
        table, name = ".".join(map(str, at[:-2])), str(at[-2])
        valid = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).lstrip("_.-")[:64] or "NAME"
        hint = f"use letters, digits and _ . -, at most 64: [{table}.{valid}]"
        return ConfigError(where, f"{table}: {name!r} is not a valid name", hint)
    return ConfigError(where, f"{key}: {_problem(error)}", _example(at, error, model))


_NEARLY_THE_SAME: Final = 0.9  # of two keys: `source` and `sources`; no key of another table is meant then


def _is_alternative(part: str | int) -> bool:
    """Whether a part of an error's place is what pydantic calls one of several types, and nothing in the file."""
    return isinstance(part, str) and part.startswith(("literal[", "constrained-str", "list[constrained-str"))


def _missing(where: str, key: str, at: Sequence[str | int], model: type[BaseModel], kind: str) -> ConfigError:
    """The error about a key that is missing, or in a file with cases is not a table."""
    if kind != "missing":
        return ConfigError(
            where, f"{key}: must be a table", f"write {at[-1]} = {{ … }}; {_schema_verb(model)} shows one"
        )
    if _is_of_cases(model):
        return ConfigError(where, f"{key} is missing", f'add {at[-1]} = "…"')
    of_table = _EXAMPLES_OF_KEYS.get(".".join(map(str, at[-2:])))
    example = of_table or _EXAMPLES_OF_KEYS.get(str(at[-1]), "…")
    return ConfigError(where, f"{key} is missing", f"add {at[-1]} = {example}; {_schema_verb(model)} shows more")


def _is_of_cases(model: type[BaseModel]) -> bool:
    """Whether it is a file with cases, of which there is no schema."""
    return "case" in model.model_fields


def _unknown_key(where: str, key: str, at: tuple[str | int, ...], model: type[BaseModel]) -> ConfigError:
    """The error about a key that its table does not have."""
    known = _known_keys(at, model)
    hint = meant(str(at[-1]), known)
    if not hint and at[0] != "hooks":
        hint = suggestion(str(at[-1]), known, _NEARLY_THE_SAME)
    if at in _KEYS_OF_GATEWAYS:
        hint = "only a gateway's file has it, which `hookproxy serve --config FILE` reads"
    elif at[0] == "hooks" and at[-1] in _EVENT_KEYS:
        hint = "the name of the table says the event: [[hooks.PreToolUse]]"
    elif at[0] == "hooks" and at[-1] == "hooks" and len(at) > 2:  # as the files of most other systems have it
        hint = f"each of them is a table of its own here: write [[hooks.{at[1]}]], and below it matcher and command"
    elif spelled := _SPELLED.get(tuple(part for part in at if isinstance(part, str))):
        hint = spelled
    elif hint := hint or _where_it_belongs(at, model):
        pass
    else:
        what = "event" if at[0] == "hooks" and len(at) == 2 else "key"
        return ConfigError(where, f"{key}: unknown {what}", _hint(str(at[-1]), known))
    return ConfigError(where, f"{key}: unknown key", hint)


def _problem(error: ErrorDetails) -> str:
    """What is wrong with a value, in words."""
    kind = error["type"]
    if kind in ("too_short", "string_too_short"):
        return "is empty"
    if kind == "string_pattern_mismatch" and error["ctx"]["pattern"] == "^file:.":
        return "is a secret, which must not stand here but in a file"
    if kind == "string_pattern_mismatch":
        return f"{str(error['input'])[:_MOST_SHOWN]!r} is not of the form that it must have"
    message = error["msg"].removeprefix("Input ").replace("should be a valid ", "should be a ")
    return _lower(message.replace("should be a integer", "should be an integer"))


def _where_it_belongs(at: Sequence[str | int], model: type[BaseModel]) -> str:
    """The repair for a key that the file has, but in another table; empty if it has none of this name."""
    name, here = str(at[-1]), ".".join(part for part in at[:-1] if isinstance(part, str))
    if not here:
        inside = [f"[{table}]" for table in _tables(model) if name in _keys_of(table, model)]
        return f"it is a key of {' and of '.join(inside)}: write it below that line" if inside else ""
    if name in _keys_of("", model) and _table_of(model, name) is None:
        table = f"[{here}]" if isinstance(at[-2], str) else f"[[{here}]]"
        others = [f"[{other}]" for other in _tables(model) if other != here and name in _keys_of(other, model)]
        if _is_array_of_tables(model, name):
            move = f"it is a key of {' and of '.join(others)}: move it there; or " if others else "it is "
            return f"{move}a table of its own: write [[{name}]], and its keys below that line"
        stands = f"`{name}` stands in {table} because it is written below that table"
        return f"{stands}: move it above {table}, before the first line with brackets"
    inside = [f"[{table}]" for table in _tables(model) if table != here and name in _keys_of(table, model)]
    if "servers" in at[:1] and (others := [table for table in inside if table != f"[{here}]"]):
        return f"it is a key of {' and of '.join(others)}: move it there"
    return f"it is a key of {' and of '.join(inside)}: move it there" if inside else ""


def _tables(model: type[BaseModel]) -> list[str]:
    """The names of the tables of a whole file."""
    return [name for name in model.model_fields if _table_of(model, name) is not None]


def _keys_of(table: str, model: type[BaseModel]) -> list[str]:
    """The keys of a table of the file; of the file itself if the name is empty."""
    inner = _table_of(model, table) if table else model
    return [] if inner is None else [field.alias or name for name, field in inner.model_fields.items()]


def _table_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a table that is the value of a key, not an item of a list or a dictionary."""
    from pydantic import BaseModel  # it is imported already: the error comes from it

    annotation = model.model_fields[name].annotation if name in model.model_fields else None
    of_optional = [part for part in get_args(annotation) if part is not NoneType]
    if len(of_optional) == 1 and NoneType in get_args(annotation):
        annotation = of_optional[0]
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _is_array_of_tables(model: type[BaseModel], name: str) -> bool:
    """True if a file has `[[name]]`."""
    from pydantic import BaseModel

    todo = [model.model_fields[name].annotation]
    found = False
    while todo:
        annotation = todo.pop()
        found = found or (isinstance(annotation, type) and issubclass(annotation, BaseModel))
        todo += get_args(annotation)
    return found


def _schema_verb(model: type[BaseModel]) -> str:
    """The command that shows what the keys of such a file may be."""
    if _is_of_cases(model):
        return "`hookproxy help test`"
    return "`hookproxy schema --gateway`" if "gateway" in model.model_fields else "`hookproxy schema`"


_EXAMPLES: Final = {
    "list_type": '["…"]',
    "string_type": '"…"',
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "100",
    "int_parsing": "100",
    "int_from_float": "100",
    "float_type": "100",
    "float_parsing": "100",
    "dict_type": '{ name = "…" }',
    "datetime_type": "2026-11-23T12:00:00Z",
}
"""An example of a valid value, by the type of the error."""


_EXAMPLES_OF_PATTERNS: Final = {
    SIZE.replace(r"\Z", "$"): '"1GiB"',  # as pydantic has it
    DURATION.replace(r"\Z", "$"): '"10m"',
    "^file:.": '"file:/etc/hookproxy/{key}"',
    "^http://": '"http://127.0.0.1:9090"',
    "^https?://[^/]": '"https://collector.example.com:4318"',
    "^(redis|rediss|unix)://.": '"redis://127.0.0.1:6379/0"',
    "^0?[0-7]{3}$": '"0660"',
    r"^[A-Za-z0-9_\-]{1,32}$": '"gateway-1"',
}
"""An example of a valid value, by the pattern that it must match."""

_EXAMPLES_OF_KEYS: Final = {
    "calls": "100",
    "certificate": '"cert.pem"',
    "file": '".claude/settings.json"',
    "issuer": '"https://idp.example.com"',
    "key": '"key.pem"',
    "labels": '["secret"]',
    "model.name": '"small-model"',
    "model.url": '"http://localhost:11434/v1"',
    "per": '"minute"',
    "tool": '"search_*"',
    "url": '"https://mcp.example.com/mcp"',
    "users": '["@developers"]',
    "webhook.secret": '"env:APPROVAL_SECRET"',
    "webhook.url": '"https://chat.example/hooks/approvals"',
}
"""An example of a value for each key that a table must have: `TABLE.KEY` where tables have different ones."""

_NUMBER: Final = late_pattern(r"\s*([0-9]{1,15})\s*([A-Za-z]*)\s*")
"""A number that stands in quotes, with the name of a unit after it."""

_UNITS: Final = {
    1: frozenset(["", "s", "sec", "secs", "second", "seconds"]),
    60: frozenset(["m", "min", "mins", "minute", "minutes"]),
    3_600: frozenset(["h", "hour", "hours"]),
    86_400: frozenset(["d", "day", "days"]),
}
"""Names of units of time, by their seconds: keys with a duration have seconds."""

_BOUNDS: Final = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "… with a number greater than {}"),
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "… with a number less than {}"),
}
"""The member of an error about a bound, and what may be written for it."""


def _example(at: Sequence[str | int], error: ErrorDetails, model: type[BaseModel]) -> str:
    """A repair: how the key may be written."""
    kind, value = error["type"], error["input"]
    key = next((part for part in reversed(at) if isinstance(part, str)), "")
    if kind in ("literal_error", "enum"):
        choices = re.findall("'([^']*)'", error["ctx"]["expected"])
        near = (suggestion(str(value), choices) or _same_word(str(value), choices)) if choices else ""
        return near or f"write {key} = {error['ctx']['expected'].partition(' or ')[0].partition(', ')[0]}"
    if kind == "list_type" and isinstance(value, str):
        return f"write {key} = {_as_list(key, value)}"
    if kind == "string_type" and type(value) in (int, float):
        return f'write {key} = "{value}"'
    if kind in _EXAMPLES:
        return f"write {key} = {_quoted_number(key, kind, value) or _default(at, model) or _EXAMPLES[kind]}"
    if kind in _BOUNDS:
        bound, valid = _BOUNDS[kind]
        return f"write {key} = {valid.format(format(error['ctx'][bound], '.15g'))}"
    if kind in ("too_short", "string_too_short"):
        example = _EXAMPLES_OF_KEYS.get(key)
        return f"write {key} = {example}" if example else f"write something, or remove {'it' * (key != at[-1]) or key}"
    if kind == "string_pattern_mismatch" and (example := _EXAMPLES_OF_PATTERNS.get(error["ctx"]["pattern"])):
        return f"write {key} = {example.format(key=key) if '{key}' in example else example}"
    return f"{_schema_verb(model)} shows what {key} may be"


def _quoted_number(key: str, kind: str, value: object) -> str:
    """The number that was meant where it stands in quotes; empty if there is none, or its unit is another one."""
    number = _NUMBER.fullmatch(value) if isinstance(value, str) and kind.startswith(("int_", "float_")) else None
    if number is None:
        return ""
    in_seconds = next((seconds for seconds, names in _UNITS.items() if number[2].lower() in names), 0)
    is_duration = in_seconds == 1 or "seconds" in key or key == "timeout"
    return str(int(number[1]) * in_seconds) if in_seconds and is_duration else ""


_SAME_WORDS: Final = (
    (
        "deny",
        frozenset(
            ["block", "blocked", "refuse", "reject", "forbid", "disallow", "never", "no", "none", "false", "off"]
        ),
    ),
    ("ask", frozenset(["prompt", "confirm", "approve_each", "question", "elicit"])),
    ("allow", frozenset(["permit", "approve", "accept", "pass", "yes", "ok", "true", "all"])),
)
"""What people write for a decision, as other systems call it."""


def _same_word(value: str, choices: Sequence[str]) -> str:
    """As `suggestion`, for a word that other systems have for one of these choices."""
    same = next((name for name, words in _SAME_WORDS if value.lower() in words and name in choices), "")
    return f"did you mean {same!r}?" if same else ""


def _as_list(key: str, text: str) -> str:
    """A text as the list that was meant: a command line word by word."""
    import json
    import shlex

    try:
        words = shlex.split(text) if key in ("command", "argv") else [text]
    except ValueError:  # a quote that is not closed
        words = [text]
    return json.dumps(words, ensure_ascii=False)


def _default(at: Sequence[str | int], model: type[BaseModel]) -> str:
    """The default number of a key; empty if it has none."""
    name, table = at[-1], _model_around(at, model)
    field = next((field for own, field in table.model_fields.items() if (field.alias or own) == name), None)
    value = field.default if field is not None else None
    return f"{value:g}" if isinstance(value, float) else str(value) if type(value) is int else ""


def _hint(key: str, known: list[str]) -> str:
    return f"{suggestion(key, known)} expected one of: {', '.join(known)}".lstrip()


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _known_keys(at: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """The valid keys of the table that contains an unknown one."""
    return [field.alias or name for name, field in _model_around(at, model).model_fields.items()]


def _model_around(at: Sequence[str | int], model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table that contains a key."""
    from pydantic import BaseModel  # it is imported already: the error comes from it

    table = model
    for part in at[:-1]:
        fields = {field.alias or name: field for name, field in table.model_fields.items()}
        if isinstance(part, str) and part in fields:  # otherwise the name of a tool
            annotation = fields[part].annotation
            types = [inner for inner in (annotation, *get_args(annotation)) if isinstance(inner, type)]
            table = next((inner for inner in types if issubclass(inner, BaseModel)), table)
    return table


def line_of(text: str, at: Sequence[str | int]) -> int | None:
    """The line of a key or, if the key has none, of the innermost table around it that has one."""
    lines = _lines(text)
    return next((lines[*at[:depth]] for depth in range(len(at), 0, -1) if (*at[:depth],) in lines), None)


def place_of(path: str, text: str, at: Sequence[str | int]) -> str:
    """The file, and the line of a key in it if it has one."""
    return f"{path}:{line}" if (line := line_of(text, at)) else path


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of each table and of each key at the start of a line. A multi-line string may look like more of them."""
    found: dict[tuple[str | int, ...], int] = {}
    counts: Counter[tuple[str | int, ...]] = Counter()
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = at = _in_last(_parts(header[2]), counts)
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


def _in_last(names: tuple[str | int, ...], counts: Mapping[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """Where a header leads: to the last table of each array of tables on the way."""
    at: tuple[str | int, ...] = ()
    for name in names[:-1]:
        at = (*at, name)
        if number := counts.get(at, 0):
            at = (*at, number - 1)
    return (*at, *names[-1:])


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
