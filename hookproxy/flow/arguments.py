"""The arguments by which something leaves, where a sink names them.

A name stands for all spellings that servers take for it (`raw_json.loose_key`), and for the familiar one. What cannot
be read, and a request of another method, which has no arguments, is looked at as a whole (law 3).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ..jsonrpc import raw_json
from ..policy import methods
from .matching import Act

_NOTHING: Final = frozenset({b"null", b'""', b"[]", b"{}"})
"""Values by which nothing leaves: servers send them along for arguments that are not given."""


def has_arguments(act: Act, names: Collection[str]) -> bool:
    """True if the call has one of the arguments, or if that cannot be said; without names, it has."""
    return not names or bool(looked_at(act, names))


def looked_at(act: Act, names: Collection[str]) -> set[bytes]:
    """The JSON values that are looked at: those of the arguments with these names; without names, all together."""
    if not names or methods.is_method(act.tool):
        return {act.views[0].readings[0]}
    wanted = {raw_json.loose_key(name) for name in names}
    try:
        return {
            bytes(value)
            for view in act.views
            for arguments in view.readings
            for name, value in raw_json.fields(arguments).items()
            if raw_json.loose_key(name) in wanted and bytes(value) not in _NOTHING
        }
    except ValueError:
        return {act.views[0].readings[0]}
