"""What an entry becomes when its server is behind the gateway: pure, and the same for every syntax.

    "command": "npx", "args": ["-y", "server"]
    "command": "/usr/bin/hookproxy", "args": ["connect", "git"], "env": {"HOOKPROXY_ENTRY": "…"}

The gateway starts or reaches the server, so nothing of the entry's own is used any more; `rewrite_entry` keeps it for
`unwrap`. A server that runs as the user keeps its command, after two dashes:

    "command": "/usr/bin/hookproxy", "args": ["connect", "git", "--socket", "/run/mcp.sock", "--", "npx", "server"]

There, `--socket=PATH` in one word shows that the entry had an empty list of arguments, as `--name` does for `run`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from ..config.gateway_models import DEFAULT_SOCKET, SERVER_NAME
from .find_servers import Entry, Kind
from .known_agents import HEADER_KEYS, REMOTE_KEYS, REMOTE_ONLY_KEYS
from .remote_entry import NotTranslatable, Remote
from .wrap_entry import parse_wrapping

_NAME: Final = re.compile(SERVER_NAME)


class Gateway(Struct, frozen=True):
    """How agents reach the gateway."""

    socket: str = ""
    """Its path; empty where `connect` finds it."""
    url: str = ""
    """Its address instead, `https://HOST[:PORT]`."""
    from_caller: bool = False
    """The servers run as the user who starts the agent (`from_caller` in the gateway's configuration)."""

    def words(self, entry: Entry, launcher: tuple[str, ...]) -> tuple[str, ...]:
        """The words before the server's own command, or the whole command line. Raises NotTranslatable."""
        if not _NAME.match(entry.name):
            raise NotTranslatable("has a name that no server of a gateway can have: rename it as the gateway has it")
        start = (*launcher, "connect", entry.name)
        if self.from_caller:
            if entry.kind is not Kind.STARTED:
                raise NotTranslatable("has an address: only a command can run as its user")
            socket = self.socket or DEFAULT_SOCKET
            if (present := parse_wrapping(entry.argv)) is not None:
                has_empty_list = not present.added_list
            else:
                has_empty_list = entry.list_node is not None and not entry.list_node.items
            return (*start, *((f"--socket={socket}",) if has_empty_list else ("--socket", socket)), "--")
        if self.url:
            return (*start, "--url", self.url)
        return (*start, "--socket", self.socket) if self.socket else start


def rewritten(entry: Entry) -> Remote:
    """What changes besides the command: the address and what belongs to it are left out. Raises NotTranslatable."""
    values = entry.values
    remote_keys = [key for key in REMOTE_KEYS if values.get(key)]
    if entry.kind is Kind.STARTED and entry.command is not None and entry.parent is entry.body:
        replaced = entry.command.key
    elif entry.kind is Kind.REMOTE and remote_keys:
        replaced = remote_keys[0]
    else:
        raise NotTranslatable("has its command in a table of its own: write it as the agent does today")
    removed = frozenset({*REMOTE_ONLY_KEYS, entry.shape.command, entry.shape.args} & values.keys() - {replaced})
    return Remote((), {}, (), replaced, removed, _notes(entry))


def _notes(entry: Entry) -> tuple[str, ...]:
    """What there is to know about credentials that the entry has."""
    has_credentials = any(entry.values.get(key) for key in (entry.shape.env, *HEADER_KEYS))
    return (
        "what it needed stays in its env, for unwrap: remove credentials there when the gateway has them",
    ) * has_credentials
