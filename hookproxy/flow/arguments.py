"""The arguments of a call by which data leaves, where a sink names them.

A name stands for all spellings that servers take for it (`raw_json.loose_key`), and for the familiar one. An argument
that the server does not list may be one that it takes under another name, so it is looked at, too; so is, as a whole,
what cannot be read, and a request of another method, which has no arguments (law 3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ..jsonrpc import raw_json
from ..policy import methods
from .matching import Act, View

_NOTHING: Final = frozenset({b"null", b'""', b"[]", b"{}"})
"""Values by which nothing leaves: servers send them along for arguments that are not given."""


def has_arguments(act: Act, names: Collection[str]) -> bool:
    """True if the call has one of the arguments, or if that cannot be said; without names, it has."""
    return not names or bool(looked_at(act, names))


def looked_at(act: Act, names: Collection[str]) -> set[bytes]:
    """The JSON values that are looked at: those of the arguments with these names; without names, all together."""
    if not names or methods.is_method(act.tool):
        return {act.views[0].readings[0]}
    wanted = frozenset(map(raw_json.loose_key, names))
    own, *familiar = act.views
    try:
        values = {value for view in familiar for value in _values(view, wanted, None)}
        return values.union(_values(own, wanted, act.listed))
    except ValueError:
        return {own.readings[0]}


def _values(view: View, wanted: Collection[str], listed: Collection[str] | None) -> Iterator[bytes]:
    for arguments in view.readings:
        for name, value in raw_json.fields(arguments).items():
            key = raw_json.loose_key(name)
            if (key in wanted or (listed is not None and key not in listed)) and bytes(value) not in _NOTHING:
                yield bytes(value)
