"""What `hookproxy connect` says before it passes the agent's bytes on: which server it wants. Pure.

    hookproxy 1
    server NAME
    cwd FOLDER
    pipes

ends with an empty line. The gateway replies with the line `ok`, or with `error`, a sentence for people and a hint after
a tab. With `ok`, the connection is the agent's from then on. Beside `ok` comes a descriptor, at which the gateway says
in one line why it ends the session, unless the agent does. `pipes` asks for those of a `from_caller` server: two more
descriptors come, the server's input and its output.

`hookproxy reload` says `reload` instead; after `ok`, the gateway says in lines what has changed, and closes.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

VERSION: Final = b"hookproxy 1"
OK: Final = b"ok\n"

MAX_BYTES: Final = 8192
"""A path has at most 4096 bytes, a server's name 64."""

_KEYS: Final = (b"server", b"cwd", b"pipes", b"reload")
_LONGEST_KEY_SHOWN: Final = 32  # bytes: the names above are shorter
_LONGEST_TEXT: Final = 1000  # bytes: `connect` reads one piece


class Preamble(Struct, frozen=True):
    """What a connection asks for."""

    server: str
    """Empty: no server, but a reload."""
    cwd: str = ""
    """The folder in which the agent runs, as it says itself: text for people, and nothing is opened there."""
    pipes: bool = False
    """The caller starts the server, and wants its pipes."""


class NotAPreamble(ValueError):
    """A connection began with something else. The text is a sentence for people, without a full stop."""


def end_of(received: bytes) -> int:
    """Where the preamble ends in what was received so far; -1: it has not ended. Raises NotAPreamble."""
    end = received.find(b"\n\n")
    if not received.startswith(VERSION[: len(received)]) or (end < 0 and len(received) > MAX_BYTES):
        raise NotAPreamble("this is the socket of a hookproxy gateway: connect to it with `hookproxy connect`")
    return end + 2 if end >= 0 else -1


def read(received: bytes) -> Preamble:
    """What a whole preamble says. Raises NotAPreamble."""
    version, *lines = received.rstrip(b"\n").split(b"\n")
    if version != VERSION:
        raise NotAPreamble("this version of `hookproxy connect` does not fit the gateway")
    values: dict[bytes, bytes] = {}
    for line in lines:
        key, _, value = line.partition(b" ")
        if key not in _KEYS or key in values:
            problem = "it says twice" if key in values else "the gateway does not know"
            raise NotAPreamble(f"{problem} {key[:_LONGEST_KEY_SHOWN].decode(errors='replace')!a}")
        values[key] = value
    if values == {b"reload": b""}:
        return Preamble("")
    try:
        server = values[b"server"].decode()
    except (KeyError, UnicodeDecodeError):
        raise NotAPreamble("it does not say which server is wanted") from None
    if not server or b"reload" in values:
        raise NotAPreamble("it says nothing that can be done")
    return Preamble(server, values.get(b"cwd", b"").decode(errors="replace"), b"pipes" in values)


def error(text: str) -> bytes:
    """The reply that refuses a connection."""
    return b"error " + end_reason(text)


def end_reason(text: str) -> bytes:
    """What tells a connection why its session has ended."""
    return text.replace("\n", " ").encode(errors="replace")[:_LONGEST_TEXT] + b"\n"
