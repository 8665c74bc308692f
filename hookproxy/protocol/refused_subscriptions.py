"""The resources whose subscription was refused: what the server says of their changes does not reach the agent.

A server may send `notifications/resources/updated` for whatever it likes. Where rules or hooks have refused
`resources/subscribe` for a resource, the agent learns of no change of it, or of anything below it, however the server
spells its URI, until a later subscription to it is allowed.
"""

from __future__ import annotations

from typing import Final

from ..jsonrpc import raw_json
from ..model import resource_paths
from . import calls

_UPDATED: Final = b'"notifications/resources/updated"'
_MOST: Final = 1000  # resources: an agent subscribes to a few; beyond that, all such notifications are dropped


class RefusedSubscriptions:
    """The refused subscriptions of one session."""

    def __init__(self) -> None:
        self._resources: dict[str, None] = {}
        self._too_many = False

    def __bool__(self) -> bool:
        """Some subscription was refused."""
        return self._too_many or bool(self._resources)

    def note(self, arguments: bytes, *, refused: bool) -> None:
        """Note how a request to subscribe has ended; `arguments` has its URI."""
        uri = raw_json.text(bytes(raw_json.fields(arguments).get("uri", b""))) or ""
        if not refused:
            for resource in _readings(uri):
                self._resources.pop(resource, None)
        elif len(self._resources) < _MOST:
            self._resources |= dict.fromkeys(_readings(uri))
        else:
            self._too_many = True

    def covers(self, line: bytes) -> bool:
        """True for a notification about one of these resources, or one whose resource is not clear."""
        if b"updated" not in line and b"\\u" not in line:
            return False
        try:
            members = raw_json.fields(line)
            if calls.method(members) != _UPDATED:
                return False
            uri = raw_json.text(bytes(raw_json.fields(members.get("params", b"{}")).get("uri", b"")))
        except raw_json.AMBIGUOUS:
            return True
        if uri is None or self._too_many:
            return True
        return any(
            reading == resource or reading.startswith(f"{resource.rstrip('/')}/")
            for reading in _readings(uri)
            for resource in self._resources
        )


def _readings(uri: str) -> list[str]:
    """How the resource of a URI is known here: by the URI in lower case, and by the likeliest path that it means."""
    plain = resource_paths.clean(uri).casefold()
    try:
        paths = resource_paths.paths(uri)[:1]
    except ValueError:
        paths = ()
    return [plain, *(path.casefold() for path in paths)]
