"""What is wrong with a value, in words, and how it may be written, with what the file has there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..dialects.shared.hook_file import suggestion
from ..model.durations import DURATION
from ..model.late_pattern import late_pattern
from ..model.sizes import SIZE, size_in_bytes
from .model_keys import is_of_pack, is_table_by_name, model_around, schema_verb

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_MOST_SHOWN: Final = 60  # characters of a value in a message of one line

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

_SIZE_PATTERN: Final = SIZE.replace(r"\Z", "$")  # as pydantic has it
_DURATION_PATTERN: Final = DURATION.replace(r"\Z", "$")
_EXAMPLES_OF_PATTERNS: Final = {
    _SIZE_PATTERN: '"1GiB"',
    _DURATION_PATTERN: '"10m"',
    "^file:.": '"file:/etc/hookproxy/{key}"',
    "^http://": '"http://127.0.0.1:9090"',
    "^https?://[^/]": '"https://collector.example.com:4318"',
    "^(redis|rediss|unix)://.": '"redis://127.0.0.1:6379/0"',
    "^0?[0-7]{3}$": '"0660"',
    r"^[A-Za-z0-9_\-]{1,32}$": '"gateway-1"',
}
"""An example of a valid value, by the pattern that it must match."""

_FORMS: Final = {
    "labels": (r"[^a-z0-9_-]+", "small letters, digits, _ and -"),
    "use": (r"[^a-z0-9-]+", "small letters, digits and -"),
    "rename": (r"[^A-Za-z0-9_.-]+", "letters, digits and _ . -"),
}
"""By key: the characters that a name may not have, and those that it may."""

EXAMPLES_OF_KEYS: Final = {
    "calls": "100",
    "certificate": '"cert.pem"',
    "description": '"what it does, in one sentence"',
    "format": '"hookproxy-pack-1"',
    "file": '".claude/settings.json"',
    "issuer": '"https://idp.example.com"',
    "key": '"key.pem"',
    "labels": '["secret"]',
    "model.name": '"small-model"',
    "model.url": '"http://localhost:11434/v1"',
    "monitor.file": '"next.toml"',
    "hookproxy": '"1.0"',
    "name": '"…"',
    "packages": '["regex==2025.9.1"]',
    "per": '"minute"',
    "programs": '["bash", "jq"]',
    "python": '"3.11"',
    "tool": '"search_*"',
    "url": '"https://mcp.example.com/mcp"',
    "version": '"1.0.0"',
    "users": '["@developers"]',
    "webhook.secret": '"env:APPROVAL_SECRET"',
    "webhook.url": '"https://chat.example/hooks/approvals"',
}
"""An example of a value for each key that a table must have: `TABLE.KEY` where tables have different ones."""

_NUMBER: Final = late_pattern(r"\s*([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*([A-Za-z]*)\s*")
"""A number that stands in quotes, with the name of a unit after it."""

_UNITS: Final = {
    1: frozenset(["", "s", "sec", "secs", "second", "seconds"]),
    60: frozenset(["m", "min", "mins", "minute", "minutes"]),
    3_600: frozenset(["h", "hour", "hours"]),
    86_400: frozenset(["d", "day", "days"]),
    604_800: frozenset(["w", "week", "weeks"]),
}
"""Names of units of time, by their seconds: keys with a duration have seconds."""

_BOUNDS: Final = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "… with a number greater than {}"),
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "… with a number less than {}"),
}
"""The member of an error about a bound, and what may be written for it."""

_SAME_WORDS: Final = (
    (
        "deny",
        frozenset(
            ["block", "blocked", "refuse", "reject", "forbid", "disallow", "never", "no", "none", "false", "off"]
        ),
    ),
    ("ask", frozenset(["prompt", "confirm", "approve_each", "question", "elicit"])),
    ("allow", frozenset(["permit", "approve", "accept", "pass", "yes", "ok", "true", "all"])),
    ("comment", frozenset(["warn", "warning", "tell", "note", "notify", "inform"])),
    ("monitor", frozenset(["observe", "watch", "shadow", "dry-run", "dry_run", "dryrun", "log", "report", "audit"])),
    ("evaluate_only", frozenset(["monitor", "observe", "watch", "shadow", "dry-run", "dry_run", "log"])),
    ("off", frozenset(["false", "no", "none", "never", "disabled"])),
    ("none", frozenset(["off", "false", "no", "deny", "block", "disabled"])),
    ("full", frozenset(["all", "everything", "plain"])),
    ("all", frozenset(["every", "everything", "full", "true", "on"])),
    ("command", frozenset(["shell", "bash", "sh", "script", "exec"])),
    ("anthropic", frozenset(["claude"])),
)
"""What people write for a word, as other systems call it."""


def problem(error: ErrorDetails) -> str:
    """What is wrong with a value, in words."""
    kind = error["type"]
    if kind in ("too_short", "string_too_short"):
        return "is empty"
    if kind == "string_pattern_mismatch" and error["ctx"]["pattern"] == "^file:.":
        return "is a secret, which must not stand here but in a file"
    if kind == "string_pattern_mismatch":
        return f"{str(error['input'])[:_MOST_SHOWN]!r} is not of the form that it must have"
    message = error["msg"].removeprefix("Input ").replace("should be a valid ", "should be a ")
    message = message.replace("should be a integer", "should be an integer").replace("a dictionary", "a table")
    return message[:1].lower() + message[1:]


def repair(at: Sequence[str | int], error: ErrorDetails, model: type[BaseModel]) -> str:
    """How the value at this place may be written."""
    kind, value = error["type"], error["input"]
    key = next((part for part in reversed(at) if isinstance(part, str)), "")
    if kind in ("literal_error", "enum"):
        return _of_choices(key, error)
    if kind == "dict_type":
        return _of_names(at, value, model)
    if kind == "string_pattern_mismatch":
        return _of_pattern(key, str(value), error["ctx"]["pattern"], model)
    if written := _of_type(at, key, kind, value):
        return written
    if kind in _EXAMPLES:
        return f"write {key} = {_number_meant(key, kind, value) or _default(at, model) or _EXAMPLES[kind]}"
    if kind in _BOUNDS:
        bound, valid = _BOUNDS[kind]
        return f"write {key} = {valid.format(format(error['ctx'][bound], '.15g'))}"
    if kind in ("too_short", "string_too_short"):
        example = EXAMPLES_OF_KEYS.get(key)
        return f"write {key} = {example}" if example else f"write something, or remove {'it' * (key != at[-1]) or key}"
    return f"{schema_verb(model)} shows what {key} may be"


def _of_type(at: Sequence[str | int], key: str, kind: str, value: object) -> str:
    """How to write what the file has there as a list or as a text; empty if another type is needed."""
    if kind == "list_type" and isinstance(value, str):
        return f"write {key} = {_as_list(key, value)}"
    if kind == "string_type" and type(value) in (int, float):
        return f'write {key} = "{value}{"s" * (key == "window")}"'
    return _of_string(at, key, value) if kind == "string_type" and isinstance(value, list | Mapping) else ""


def _of_choices(key: str, error: ErrorDetails) -> str:
    """How to write a value that is none of a few words."""
    value, expected = error["input"], error["ctx"]["expected"]
    choices = re.findall("'([^']*)'", expected)
    if key == "per" and (window := f"{value}s" if type(value) is int else duration_meant(str(value))):
        return f'a period of another length is window = "{window}" in the place of per'
    near = (suggestion(str(value), choices) or _same_word(str(value), choices)) if choices else ""
    if choices == ["off"] and not near:
        return f'remove it, or write a table with its keys; {key} = "off" does without'
    return near or f"write {key} = {expected.partition(' or ')[0].partition(', ')[0]}"


def _same_word(value: str, choices: Sequence[str]) -> str:
    """As `suggestion`, for a word that other systems have for one of these choices."""
    same = next((name for name, words in _SAME_WORDS if value.lower() in words and name in choices), "")
    return f"did you mean {same!r}?" if same else ""


def _of_string(at: Sequence[str | int], key: str, value: list[object] | Mapping[str, object]) -> str:
    """How to write a list or a table where a text is needed."""
    texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if isinstance(at[-1], int):
        inner = (
            texts or [text for text in value.values() if isinstance(text, str)] if isinstance(value, Mapping) else texts
        )
        return f"each item is a text: write {key} = {json.dumps(inner or ['…'], ensure_ascii=False)}"
    if key == "command" and texts:
        return f"write argv = {json.dumps(texts, ensure_ascii=False)}"
    if key == "matcher" and texts:
        return f"write {key} = {json.dumps('|'.join(texts), ensure_ascii=False)}"
    in_array = len(at) > 1 and isinstance(at[-2], int)
    array = ".".join(part for part in at[:-1] if isinstance(part, str))
    more = f", and a table [[{array}]] of its own for each other one" if in_array and len(texts) > 1 else ""
    return f"write {key} = {json.dumps(texts[0] if texts else '…', ensure_ascii=False)}{more}"


def _of_names(at: Sequence[str | int], value: object, model: type[BaseModel]) -> str:
    """How to write another value where a table with names of one's own is needed."""
    key = ".".join(part for part in at if isinstance(part, str))
    items = value if isinstance(value, list) else []
    if is_table_by_name(model_around(at, model), str(at[-1])):
        named = next((item["name"] for item in items if isinstance(item, Mapping) and "name" in item), "NAME")
        return f"write [{key}.{named}], and its keys below that line"
    if items and isinstance(items[0], Mapping):
        named = items[0].get("name", "NAME")
        return f'write [{key}], and below it {named} = "…"'
    pairs = [item.split("=", 1) for item in items if isinstance(item, str) and "=" in item]
    if pairs and len(pairs) == len(items):
        return f"write {at[-1]} = {{ {', '.join(f'{name.strip()} = {json.dumps(text)}' for name, text in pairs)} }}"
    return f'write {at[-1]} = {{ NAME = "…" }}'


def _of_pattern(key: str, value: str, pattern: str, model: type[BaseModel]) -> str:
    """How to write a text that has not the form that it must have."""
    if pattern == _DURATION_PATTERN and (meant := duration_meant(value)):
        return f'write {key} = "{meant}"'
    if pattern == "^https?://[^/]" and re.match(r"(?:\w+://)?[\w.\-]+(?::\d+)?(?:/|\Z)", value):
        host = value.partition("://")[2] or value
        is_here = re.match(r"localhost\b|127\.0\.0\.1\b", host)
        return f'write {key} = "{"http" if is_here else "https"}://{host}"'
    if is_of_pack(model):
        return _of_pack(key, value)
    if example := _EXAMPLES_OF_PATTERNS.get(pattern):
        return f"write {key} = {example.format(key=key) if '{key}' in example else example}"
    if form := _FORMS.get(key):
        lower = value if "A-Z" in form[0] else value.lower()
        if name := re.sub(form[0], "-", lower).strip("-_."):
            return f"it has {form[1]}: write {json.dumps(name)}"
    return f"{schema_verb(model)} shows what {key} may be"


def _of_pack(key: str, value: str) -> str:
    """As `_of_pattern`, for a `pack.toml`."""
    if key == "sha256":
        return "hookproxy pack new FOLDER writes the hashes anew"
    if key == "name" and (name := re.sub(r"[^a-z0-9-]+", "-", value.lower()).strip("-")[:64]):
        return f"it has small letters, digits and -: write name = {json.dumps(name)}"
    if key == "packages":
        name = re.match(r"[A-Za-z0-9._\-]*", value)[0] or "NAME"  # type: ignore[index]  # it matches always
        return f'each has its version, and nothing else: write "{name}==1.0", with the right number'
    if key == "programs":
        return f"each is a name without blanks: write programs = {json.dumps(value.split() or ['jq'])}"
    numbers = ".".join(str(int(digits[:9])) for digits in re.findall("[0-9]+", value)[:4])
    return f"it has numbers with points between them: write {key} = " + (
        f'"{numbers}"' if numbers else EXAMPLES_OF_KEYS.get(key, '"1.0"')
    )


def duration_meant(text: str) -> str:
    """A length of time as a configuration has it, `90m` for `1.5 hours`; empty if the text says none."""
    if (number := _NUMBER.fullmatch(text)) is None or not number[2]:
        return ""
    seconds = float(number[1]) * seconds_of_unit(number[2])
    units = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
    return next((f"{seconds / size:.0f}{unit}" for size, unit in units if seconds and not seconds % size), "")


def seconds_of_unit(name: str) -> int:
    """The seconds of a unit of time, by one of its names; 0: it is not one."""
    return next((seconds for seconds, names in _UNITS.items() if name.lower() in names), 0)


def _number_meant(key: str, kind: str, value: object) -> str:
    """The number that was meant by a text, or by a number with a point; empty if its unit is another one."""
    if not kind.startswith(("int_", "float_")):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else ""
    if not isinstance(value, str) or (number := _NUMBER.fullmatch(value)) is None:
        return ""
    if "bytes" in key and number[2]:
        return _bytes_meant(number[1], number[2])
    in_seconds = seconds_of_unit(number[2])
    is_duration = in_seconds == 1 or "seconds" in key or key == "timeout"
    return f"{float(number[1]) * in_seconds:.15g}" if in_seconds and is_duration else ""


def _bytes_meant(number: str, unit: str) -> str:
    """The bytes of a size as people write it: `64 mib`, `20M`, `1.5GB`; empty if the unit is another one."""
    one = f"1{unit[:1].upper()}iB" if unit[1:].lower() == "ib" else f"1{unit[:1].upper()}B"
    is_size = unit[1:].lower() in ("", "b", "ib") and re.match(SIZE, one)
    return f"{float(number) * size_in_bytes(one):.0f}" if is_size else ""


def _as_list(key: str, text: str) -> str:
    """A text as the list that was meant: a command line word by word."""
    import shlex

    try:
        words = shlex.split(text) if key in ("command", "argv") else [text]
    except ValueError:  # a quote that is not closed
        words = [text]
    return json.dumps(words, ensure_ascii=False)


def _default(at: Sequence[str | int], model: type[BaseModel]) -> str:
    """The default number of a key; empty if it has none."""
    name, table = at[-1], model_around(at, model)
    field = next((field for own, field in table.model_fields.items() if (field.alias or own) == name), None)
    value = field.default if field is not None else None
    return f"{value:g}" if isinstance(value, float) else str(value) if type(value) is int else ""
