"""JSON that a person has changed while parts of it were masked: what stands where a mark was shown is what it was.

A mark counts only in its place, and alone: a text with a mark that was not shown so there could be anything.
"""

from __future__ import annotations

from typing import Final

from ..jsonrpc import normalize, raw_json

_MARK: Final = "[masked: "
_PLACEHOLDER: Final = "{{secret:"  # as agents write them: elsewhere it is a text like others
_CHANGED: Final = "a text with a masked part was changed or moved: leave it as it is shown, or write a whole new one"


def unmasked(changed: bytes, shown: bytes, value: bytes) -> bytes:
    """The changed JSON with the parts of `value` that were masked when it was `shown`; all three are normalised.

    Raises ValueError for a mark that was not shown in that place.
    """
    return raw_json.encode(_unmasked(*(normalize.decode(raw) for raw in (changed, shown, value))))


def _unmasked(changed: object, shown: object, value: object) -> object:
    if isinstance(changed, str):
        if changed == shown:
            return value
        if _MARK in changed or (_PLACEHOLDER in changed and shown != value):
            raise ValueError(_CHANGED)
        return changed
    if isinstance(changed, dict):
        return _object(changed, shown, value)
    if isinstance(changed, list):
        before = zip(shown, value, strict=True) if isinstance(shown, list) and isinstance(value, list) else ()
        known = [*before]
        return [_unmasked(item, *(known[at] if at < len(known) else (None, None))) for at, item in enumerate(changed)]
    return changed


def _object(changed: dict[str, object], shown: object, value: object) -> dict[str, object]:
    if not (isinstance(shown, dict) and isinstance(value, dict)):
        shown = value = {}
    names = dict(zip(shown, value, strict=True))  # masking keeps the order of members, and may have masked their names
    result: dict[str, object] = {}
    for key, item in changed.items():
        name = names.get(key, key)
        if (key not in names and _MARK in key) or name in result:
            raise ValueError(_CHANGED)
        result[name] = _unmasked(item, shown.get(key), value.get(name)) if key in names else _unmasked(item, None, None)
    return result
