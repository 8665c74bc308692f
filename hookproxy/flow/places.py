"""Where a call reads from or sends to, in a few words for people and models."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ..jsonrpc import raw_json

_ADDRESSES: Final = ("url", "uri", "address", "href", "endpoint")
_PATHS: Final = ("file_path", "path", "filename", "file", "notebook_path", "directory", "folder")
_PEOPLE: Final = ("to", "recipient", "recipients", "channel", "chat_id", "email")
_LONGEST: Final = 80  # characters: the agent chooses it, and a sentence must stay one


def place_of(arguments: bytes) -> str:
    """The host of an address, a path or a recipient in the arguments of a call; empty if none is known by its name."""
    try:
        members = {name.casefold(): raw_json.text(bytes(raw)) for name, raw in raw_json.fields(arguments).items()}
    except ValueError:
        return ""
    for name in (*_ADDRESSES, *_PATHS, *_PEOPLE):
        if text := members.get(name):
            return shown(_host(text) if name in _ADDRESSES else text)
    return ""


def shown(text: str) -> str:
    """A text that the agent or a server has chosen, as a part of a sentence: short, and of printable characters."""
    clean = "".join(sign if sign.isprintable() else " " for sign in text[: _LONGEST + 1]).strip().replace("`", "'")
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def _host(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    return parts.hostname or text
