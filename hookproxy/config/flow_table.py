"""Reads the table `[flow]`: its patterns are checked here, so that a misspelled one stops the start (law 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from ..flow.matching import Matcher
from ..model.errors import ConfigError
from ..model.flow import FlowMatch, Sink, Source
from ..policy import methods
from .errors import line_of
from .models import Flow, FlowEntry
from .validate import dotted, place_in_file

_ADDRESS: Final = re.compile(r"[/@?#\s]|^[^:\[\]]+:\d*$")  # with a scheme, a path, a user or a port
_HINT = 'write globs as permission rules have them, such as tool = "read_*" or path = "**/.env"'


def flow_settings(
    table: Flow, path: str, text: str, within: Sequence[str | int] = ()
) -> tuple[tuple[Source, ...], tuple[Sink, ...]]:
    """The sources and sinks of a file with this text; `within` are the names on the way to the table.

    Raises ConfigError.
    """
    sources, sinks = [], []
    for number, source in enumerate(table.sources):
        at = (*within, "flow", "sources", number)
        match, place = _match(source, path, at), place_in_file(path, line_of(text, at), dotted(at))
        key = dotted(at)
        sources.append(Source(match, tuple(source.labels), key, source.secrets, table.seconds, place))
    for number, sink in enumerate(table.sinks):
        at = (*within, "flow", "sinks", number)
        match, place = _match(sink, path, at), place_in_file(path, line_of(text, at), dotted(at))
        labels, watched = tuple(sink.labels), sink.mode == "monitor"
        arguments = _texts(sink.arguments)
        sinks.append(
            Sink(match, labels, dotted(at), sink.action, sink.by, sink.back_to_origin, place, watched, arguments)
        )
    return tuple(sources), tuple(sinks)


def _match(entry: FlowEntry, path: str, at: Sequence[str | int]) -> FlowMatch:
    match = FlowMatch(
        _texts(entry.tool),
        _texts(entry.method),
        _texts(entry.server),
        _texts(entry.path),
        _texts(entry.host),
        _texts(entry.resource),
        _texts(entry.annotation),
    )
    where = f"{path}: {dotted(at)}"
    if match == FlowMatch():
        raise ConfigError(
            where,
            "says nothing of what it is about",
            'set tool, method, server, path, host, resource or annotation; tool = "*" is every tool',
        )
    _check_names(match, where)
    try:
        Matcher(match)
    except ValueError as problem:
        raise ConfigError(where, str(problem), _HINT) from None
    return match


def _check_names(match: FlowMatch, where: str) -> None:
    """Raise ConfigError for a name that would match nothing."""
    for key, values in (("tool", match.tools), ("method", match.methods)):
        for value in values:
            if "(" in value:
                raise ConfigError(
                    f"{where}.{key}", f"{value!r} has parentheses", "name paths and hosts by their own keys"
                )
            if key == "method" and not any(fnmatchcase(name, value) for name in methods.JUDGED):
                raise ConfigError(
                    f"{where}.{key}",
                    f"{value!r} is not a method that is judged",
                    f"tools are named by the key tool; methods are {', '.join(methods.JUDGED)}",
                )
    for value in match.hosts:
        if (name := _host_of(value)) != value:
            example = f', such as host = "{name}"' if name else ""
            raise ConfigError(f"{where}.host", f"{value!r} is not a domain", f"write the domain alone{example}")


def _host_of(text: str) -> str:
    """The host of an address; of a domain, itself."""
    if not _ADDRESS.search(text):
        return text
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


def _texts(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
