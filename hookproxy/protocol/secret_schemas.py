"""Whether masked structured output still fits its tool's outputSchema, and what is left out where it does not.

A placeholder may break a pattern, a format, a list of values or a greatest length. Then the member goes, if the schema
lets it go; else the whole result is withheld. A schema with keywords that are not checked here decides nothing: whether
the original fits it is not known either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..jsonrpc import raw_json, schema
from . import structured_content

_MOST_PLACES: Final = 64  # masked texts that are looked at one by one: each costs a check of the whole value

Path = tuple[str | int, ...]


def fitting(original: bytes, masked: bytes, output_schema: bytes) -> bytes | None:
    """The masked structured output as it fits the schema, without members that cannot; None: nothing fits.

    Both are objects of JSON, the same but for what is masked.
    """
    before, after = raw_json.decoded(original), raw_json.decoded(masked)
    known = frozenset(structured_content.strings(before))
    if not schema.fits(output_schema, before, known) or schema.fits(output_schema, after, known):
        return masked
    paths = list(_changed(before, after, ()))
    if len(paths) > _MOST_PLACES:
        return None
    for member in {
        _member_of(path) for path in paths if not schema.fits(output_schema, _with(before, path, after), known)
    }:
        if not member:
            return None
        masked = _without(masked, member)
    return masked if schema.fits(output_schema, raw_json.decoded(masked), known) else None


def _changed(before: object, after: object, path: Path) -> Iterator[Path]:
    """Where both differ. Names of members may differ, too."""
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        for old, new in zip(before, after, strict=True):
            if old != new:
                yield (*path, new)
            else:
                yield from _changed(before[old], after[new], (*path, new))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed(old, new, (*path, number))
    elif before != after:
        yield path


def _with(before: object, path: Path, after: object) -> object:
    """`before` with what `after` has at this path."""
    if not path:
        return after
    step, *rest = path
    if isinstance(before, dict) and isinstance(after, dict):
        old = {name: item for name, item in before.items() if name in after or name == step}
        if step not in before:  # the name itself is masked
            return {**old, step: after[step]}
        return {**before, step: _with(before[step], tuple(rest), after[step])}
    if isinstance(before, list) and isinstance(after, list) and isinstance(step, int):
        return [_with(item, tuple(rest), after[at]) if at == step else item for at, item in enumerate(before)]
    return after


def _member_of(path: Path) -> Path:
    """The path of the member that this one is in: an item of a list goes with its list."""
    while path and not isinstance(path[-1], str):
        path = path[:-1]
    return path


def _without(raw: bytes, path: Path) -> bytes:
    """The value without this member; one that went with another member is gone already."""
    step, *rest = path
    if isinstance(step, int):
        end = raw.index(b"[") + 1
        for item in map(bytes, raw_json.items(raw)[: step + 1]):  # between them there are only blanks and commas
            start = raw.index(item, end)
            end = start + len(item)
        return raw_json.splice(raw, [((start, end), _without(raw[start:end], tuple(rest)))])
    spans = raw_json.members(raw)
    if step not in spans:
        return raw
    if not rest:
        return raw_json.without_member(raw, step)
    start, end = spans[step]
    return raw_json.splice(raw, [((start, end), _without(raw[start:end], tuple(rest)))])
