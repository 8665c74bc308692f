"""The familiar names of requests about resources: those of Claude Code's tools that do the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..jsonrpc import raw_json
from ..model.aliases import Alias


def of_method(method: str, server: str) -> tuple[Alias, ...]:
    """Return the aliases of a method, for the server of this name: all that a request of it may have."""
    match method:
        case "resources/list":
            return (Alias(method, "ListMcpResourcesTool", automatic=True, server=server),)
        case "resources/read":
            return (
                Alias(method, "ReadMcpResourceTool", automatic=True, server=server),
                Alias(method, "Read", {"file_path": "uri"}, automatic=True, uri="uri"),
            )
        case "resources/subscribe":
            return (Alias(method, "Read", {"file_path": "uri"}, automatic=True, uri="uri"),)
        case _:
            return ()


def check(method: str, arguments: bytes) -> None:
    """Raise Unreadable, DuplicateKeys for a request whose URI may mean anything; it is of the server's own names."""
    for_request(of_method(method, ""), arguments)


def for_request(aliases: Sequence[Alias], arguments: bytes) -> list[Alias]:
    """Return those of a method's aliases that hold for a request: a URI without a path is not a file's.

    Raises Unreadable, DuplicateKeys for a URI that may mean anything.
    """
    return [*_for_request(aliases, arguments)]


def _for_request(aliases: Sequence[Alias], arguments: bytes) -> Iterator[Alias]:
    for alias in aliases:
        if not alias.uri or _has_path(alias, arguments):
            yield alias


def _has_path(alias: Alias, arguments: bytes) -> bool:
    from ..model import resource_paths  # only where a request is judged

    uri = raw_json.text(bytes(raw_json.fields(arguments).get(alias.uri, b"")))
    return uri is not None and bool(resource_paths.paths(uri))
