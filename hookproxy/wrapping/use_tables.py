"""Adds `[[use]]` tables to a hookproxy.toml, and removes them again: pure, and byte for byte.

They are appended as text, so that everything else in the file keeps its bytes; the result is parsed before it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..config.errors import toml_error
from ..model.errors import ConfigError
from ..model.toml import NotToml, parse_toml
from .syntax_tree import quoted

_USE: Final = "use"

_REMARK: Final = "# hookproxy setup wrote this; hookproxy uninstall removes it."


class UseTable(Struct, frozen=True):
    """A hook file of another system that a hookproxy.toml uses."""

    file: str
    dialect: str
    fails_closed: bool = False

    @property
    def values(self) -> Mapping[str, str]:
        """Its keys and values."""
        on_failure = {"on_failure": "deny"} if self.fails_closed else {}
        return {"file": self.file, "dialect": self.dialect, **on_failure}


def inserted_text(path: str, text: str, tables: Sequence[UseTable]) -> str:
    """The text to append to this one, so that it has these tables. Raises ConfigError."""
    lines = "\n\n".join(
        "\n".join((_REMARK, f"[[{_USE}]]", *(f"{key} = {quoted(value)}" for key, value in table.values.items())))
        for table in tables
    )
    line_break = "\r\n" if "\r\n" in text else "\n"
    start = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    inserted = f"{start}{lines}\n".replace("\n", line_break)
    before = _values(path, text)
    expected = {**before, _USE: [*_uses(before), *(table.values for table in tables)]}
    try:
        after = parse_toml(text + inserted)
    except NotToml:
        hint = 'write each of them as a table of its own: [[use]], and below it file = "…"'
        raise ConfigError(path, "has `use` as a list in brackets, to which setup cannot add", hint) from None
    if after != expected:
        raise ConfigError(path, "cannot be extended", "add the [[use]] tables by hand")
    return inserted


def without(path: str, text: str, inserted: str) -> str:
    """The text without what was inserted. Raises ConfigError if that has changed since."""
    changed = ConfigError(
        path, "what setup wrote into it has changed since", f"remove the [[{_USE}]] tables by hand, if you want to"
    )
    before, found, after = text.rpartition(inserted)
    if not found:
        raise changed
    whole, rest = _values(path, text), _values(path, before + after)
    remaining = list(_uses(whole))
    for table in _uses(_values(path, inserted)):
        if table not in remaining:
            raise changed
        remaining.remove(table)
    if {**whole, _USE: remaining} != {**rest, _USE: _uses(rest)}:
        raise changed
    return before + after


def _values(path: str, text: str) -> Mapping[str, object]:
    try:
        return parse_toml(text.removeprefix("\ufeff"))
    except NotToml as problem:
        raise toml_error(path, text, problem) from None


def _uses(values: Mapping[str, object]) -> list[object]:
    found = values.get(_USE)
    return found if isinstance(found, list) else []
