"""Check the names of a judged call's arguments: no server may read one argument where its hooks read another (law 1).

Servers may ignore case, stop at NUL, or normalise Unicode text in names. Hooks take names as they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final

from ..jsonrpc import raw_json
from ..model.hooks import Tool
from . import schema_names

GUARDED_NAMES: Final = frozenset(
    {
        "command",
        "content",
        "file_path",
        "new_string",
        "notebook_path",
        "old_string",
        "path",
        "pattern",
        "prompt",
        "query",
        "url",
    }
)
"""The arguments of the tools for which most guards are written. A tool may have them although it is not listed yet."""


def check(arguments: bytes, names: Collection[str], listed: Tool | None) -> None:
    """Raise Unreadable for names that readers may take for others.

    `arguments`: a normalised JSON object; `names`: those of its own members; `listed`: the tool, if it is listed.
    """
    _check_object(names)
    known = frozenset[str]() if listed is None else listed.properties
    for name in names:
        if name in known or name in GUARDED_NAMES:
            continue
        meant = raw_json.folded_key(name)
        if listed is not None and (spelled := listed.by_loose_key.get(raw_json.loose_key(name))) is not None:
            raise raw_json.Unreadable(schema_names.misspelled(name, spelled))
        if meant in GUARDED_NAMES:
            raise raw_json.Unreadable(
                f"servers may take its argument {name!r} for {meant!r}, and tools/list has not shown a tool that has "
                f"{name!r}"
            )
    if arguments.count(b"{") > 1:
        schema = b"" if listed is None or not _has_inner_names(listed.input_schema) else listed.input_schema
        hook = _checked if schema else _check_pairs
        found = json.loads(arguments, object_pairs_hook=hook, parse_int=_no_number, parse_float=_no_number)
        if schema:
            schema_names.check(schema, found)


def _has_inner_names(schema: bytes) -> bool:
    """False: certainly no object within the arguments has names in the schema."""
    return schema.count(b'"properties"') > 1 or b'ef"' in schema or b"\\" in schema  # $ref, $dynamicRef


def _check_pairs(pairs: list[tuple[str, object]]) -> None:
    """Check an object at any depth. It returns nothing, so that nothing is kept."""
    if pairs:
        _check_object([name for name, _ in pairs])


def _checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _check_pairs(pairs)
    return dict(pairs)


def _no_number(_: str) -> None:
    """Numbers are not needed."""


def _check_object(names: Collection[str]) -> None:
    """Raise Unreadable if two names of one object may be taken for each other, or one has a NUL."""
    text = "".join(names)
    if "\0" in text:
        raise raw_json.Unreadable("the name of an argument contains a NUL, where some readers stop")
    if len(names) > 1 and len(set(map(str.lower if text.isascii() else raw_json.folded_key, names))) != len(names):
        first, second = _twins(names)
        raise raw_json.Unreadable(f"some readers take its arguments {first!r} and {second!r} for the same")


def _twins(names: Iterable[str]) -> tuple[str, str]:
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(raw_json.folded_key(name), name)
        if first is not name:
            return first, name
    raise AssertionError("called only for twins")
