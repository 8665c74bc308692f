"""Reads the table `[secrets]`. A name, a pattern or a source that cannot be used stops the start (law 3).

It reads no secret: `secret_values` does, when a run begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from ..model.secret_settings import SecretSettings, SecretsOff, SecretsRestore
from ..policy.globs import glob
from ..secrets.engine import PatternError, check_installed, compiled
from ..secrets.placeholders import is_rule_id
from ..secrets.rules import known_rules
from ..trust.sources import FileContext
from .errors import place_of
from .models import Secrets
from .secret_source import source_of
from .validate import dotted


def secret_settings(
    table: Secrets, path: str, text: str, file_context: FileContext, within: Sequence[str] = ()
) -> SecretSettings:
    """The settings of a file with this text; `within` are the names on the way to the table.

    Raises ConfigError, and UserError if the package for patterns is not installed.
    """
    check_installed()
    place = _Place(path, text, (*within, "secrets"))
    known = {rule.id for rule in known_rules()}
    for names, key in ((table.detectors, "detectors"), (table.values, "values")):
        for name in names:
            _check_name(name, place.of(key, name), known, table.detectors if key == "values" else ())
    for name, regex in table.detectors.items():
        _check_pattern(regex, place.of("detectors", name))
    for number, regex in enumerate(table.allow):
        _check_pattern(regex, place.of("allow", number))
    folder = os.path.dirname(path)
    return SecretSettings(
        table.detectors,
        {
            name: source_of(value, place.of("values", name), folder, file_context)
            for name, value in table.values.items()
        },
        tuple(table.allow),
        tuple(_skipped(table.skip, place)),
        tuple(_off(table, place)),
        tuple(
            SecretsRestore(tool, server, tuple(_texts(entry.rules)))
            for entry in table.restore
            for tool in _texts(entry.tool)
            for server in _texts(entry.server)
        ),
    )


class _Place:
    """Where in the file something stands, for people."""

    def __init__(self, path: str, text: str, key: tuple[str, ...]) -> None:
        self._path, self._text, self._key = path, text, key

    def of(self, *names: str | int) -> str:
        """File, line and key."""
        key = (*self._key, *names)
        return f"{place_of(self._path, self._text, key)}: {dotted(key)}"


def _off(table: Secrets, place: _Place) -> Iterator[SecretsOff]:
    for number, entry in enumerate(table.off):
        if entry.tool is None and entry.server is None:
            raise ConfigError(
                place.of("off", number),
                "says nothing of what it is about",
                "set tool or server; whoever wants no masking at all removes the table [secrets]",
            )
        yield from (SecretsOff(tool, server) for tool in _texts(entry.tool) for server in _texts(entry.server))


def _skipped(patterns: Sequence[str], place: _Place) -> Iterator[str]:
    """The ids of the rules that these globs name."""
    for number, pattern in enumerate(patterns):
        matches = re.compile(glob(pattern), re.DOTALL)
        ids = [rule.id for rule in known_rules() if matches.fullmatch(rule.id)]
        if not ids:
            near = suggestion(pattern, [rule.id for rule in known_rules()])
            hint = near or "hookproxy secrets scan FILE names the rules that find something"
            raise ConfigError(place.of("skip", number), f"no rule of gitleaks is called {pattern!r}", hint)
        yield from ids


def _texts(value: str | list[str] | None) -> Sequence[str]:
    return ("*",) if value is None else (value,) if isinstance(value, str) else value


def _check_name(name: str, where: str, known: set[str], others: Mapping[str, str] | Sequence[str]) -> None:
    if not is_rule_id(name):
        raise ConfigError(
            where, f"{name!r} cannot be a name", "write letters, digits, `-`, `_` and dots, 64 at most, as in my-token"
        )
    if name in known:
        raise ConfigError(where, f"{name!r} is a rule of gitleaks", f"choose another name, such as my-{name}")
    if name in others:
        raise ConfigError(where, f"{name!r} is a detector, too", "give one of them another name: placeholders show it")


def _check_pattern(regex: str, where: str) -> None:
    try:
        pattern = compiled(regex.encode())
    except PatternError as problem:
        hint = "write it in the syntax of RE2, which has no look-around and no back references"
        raise ConfigError(where, f"is not a regular expression: {problem}", hint) from None
    if pattern.fullmatch(b""):
        raise ConfigError(where, "matches the empty text, and so everywhere", "ask for at least one character")
