"""The file `hookproxy.lock`: JSON for people and version control, in a stable order, and all its characters are seen.

What must hold: each entry's digest is that of its text. A file in which it is not was edited, or merged by halves, and
is not used. The digest protects against accidents, and a look at the file's history against the rest: it is not a
signature.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from errno import EACCES, EINVAL, ELOOP, ENOENT
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from ..files.folder_lock import lock_folder
from ..files.replace import replace_in_folder
from ..jsonrpc.raw_json import AMBIGUOUS
from ..model.errors import ConfigError, file_hint, not_written, printable
from .description import Description, Entry, Identity, Kind, canonical, digest, entry
from .names import is_unseen

NAME: Final = "hookproxy.lock"
VERSION: Final = 1
_VERSION_KEY: Final = "hookproxy_lock"
_MOST_BYTES: Final = 64 * 1024 * 1024  # as much as one message may have: a file of a hundred large servers has a tenth
_MODE: Final = 0o644  # of a new file: it is made to be committed, and holds what every client of the server reads
_AGAIN: Final = "restore it from version control, or remove it and make it anew with hookproxy lock"

_MEMBERS: Final = {Kind.TOOL: "tools", Kind.PROMPT: "prompts", Kind.TEMPLATE: "resource_templates"}

Lock = Mapping[str, Description]
"""What is pinned, by the servers' names."""


class _Pin(Struct, forbid_unknown_fields=True):
    digest: str
    text: msgspec.Raw


class _Server(Struct, forbid_unknown_fields=True):
    server: _Pin
    tools: dict[str, _Pin]
    prompts: dict[str, _Pin]
    resource_templates: dict[str, _Pin]


class _File(Struct, forbid_unknown_fields=True):
    hookproxy_lock: int
    servers: dict[str, _Server]


def text_of(lock: Lock) -> str:
    """The text of the file. Servers and entries are sorted, so that it only differs where something has changed."""
    servers = {name: _server_members(description) for name, description in sorted(lock.items())}
    text = json.dumps({_VERSION_KEY: VERSION, "servers": servers}, indent=2, ensure_ascii=False)
    return seen(text) + "\n"


def _server_members(description: Description) -> dict[str, object]:
    identity = msgspec.json.encode(description.identity, order="sorted")
    members: dict[str, object] = {"server": _pin(canonical(identity))}
    for kind, member in _MEMBERS.items():
        entries = sorted((item.name, item.text) for item in description.entries.values() if item.kind is kind)
        members[member] = {name: _pin(text) for name, text in entries}
    return members


def _pin(text: bytes) -> dict[str, object]:
    return {"digest": digest(text), "text": json.loads(text)}


def seen(text: str) -> str:
    """The text with an escape for each character that is not seen; line feeds stay."""
    if text.isascii() and all(map(str.isprintable, text.split("\n"))):
        return text
    return "".join(map(_seen, text))


def _seen(character: str) -> str:
    """The character, or its escape as in JSON."""
    if character == "\n" or (character.isprintable() and (character.isascii() or not is_unseen(character))):
        return character
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def update(path: str, change: Callable[[Lock], Lock]) -> Lock:
    """Replace the file as a whole by what `change` makes of it, or create it; nobody else changes it meanwhile.

    Returns what it has now. Raises ConfigError for a file that cannot be read, and UserError for one that cannot be
    written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    try:
        if not os.path.isdir(folder):  # a lock file is made where something is, and not in a misspelled folder
            raise FileNotFoundError(ENOENT, "its folder does not exist")
        locked = lock_folder(folder)
        try:
            status = _status_of(path)
            before = read(path) if status is not None else {}
            after = change(before)
            if status is None or after != before:
                mode = _MODE if status is None else stat.S_IMODE(status.st_mode) & 0o666
                replace_in_folder(locked, name, text_of(after).encode(), partial(_set_access, mode, status))
            return after
        finally:
            os.close(locked)
    except OSError as error:
        raise not_written(path, error) from None


def _status_of(path: str) -> os.stat_result | None:
    """The state of the file that is to be replaced; None: there is none. Raises OSError if it must not be replaced."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):  # whoever made the folder may have chosen what it points to
        raise OSError(ELOOP, "it is a link: name the file that it points to")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(EINVAL, "it is not a file")
    if not os.access(path, os.W_OK):  # a rename would replace what its owner has made read-only
        raise PermissionError(EACCES, "it may only be read")
    return status


def _set_access(mode: int, before: os.stat_result | None, fd: int) -> None:
    if before is not None and before.st_uid != os.geteuid():
        os.fchown(fd, before.st_uid, before.st_gid)  # it stays its owner's, or is not written
    os.fchmod(fd, mode)


def read(path: str) -> Lock:
    """Read the file. Raises ConfigError, with the line."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(EINVAL, "it is not a file")
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(printable(path), f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(printable(path), f"has more than {_MOST_BYTES} bytes", _AGAIN)
    return parse(data, path)


def parse(data: bytes, path: str = NAME) -> Lock:
    """The content of a file. Raises ConfigError, with the line."""
    try:
        canonical(data)
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get(_VERSION_KEY)
        if version is None or bytes(version) != str(VERSION).encode():
            raise _wrong_version(data, path, version)
        file = msgspec.json.decode(data, type=_File)
    except AMBIGUOUS as error:
        raise _unreadable(data, path, str(error)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _error(data, path, _place(str(error)), f"is not a lock file: {error}") from None
    return {name: _description(server, _Place(data, path, name)) for name, server in file.servers.items()}


class _Place(Struct, frozen=True):
    data: bytes
    path: str
    server: str


def _description(server: _Server, place: _Place) -> Description:
    text = _checked(server.server, place, f"what the server {printable(place.server)} says of itself")
    try:
        identity = msgspec.json.decode(text, type=Identity)
    except msgspec.MsgspecError as error:
        raise _error(place.data, place.path, server.server.digest, f"is not a lock file: {error}") from None
    entries: dict[tuple[Kind, str], Entry] = {}
    for kind, member in _MEMBERS.items():
        pins: Mapping[str, _Pin] = getattr(server, member)
        for name, pin in pins.items():
            what = f"the {kind.value} {printable(name)} of the server {printable(place.server)}"
            text = _checked(pin, place, what)
            try:
                item = entry(kind, text)
            except AMBIGUOUS as error:
                raise _error(place.data, place.path, pin.digest, f"{what} {error}") from None
            if item.name != name:
                raise _error(place.data, place.path, pin.digest, f"{what} has another name in its text")
            entries[kind, name] = item
    return Description(identity, entries)


def _checked(pin: _Pin, place: _Place, what: str) -> bytes:
    """The canonical text of a pin. Raises ConfigError unless its digest is right."""
    text = canonical(pin.text)
    if digest(text) != pin.digest:
        problem = f"{what} was edited: the text does not have this digest"
        raise _error(place.data, place.path, pin.digest, problem)
    return text


def _wrong_version(data: bytes, path: str, version: msgspec.Raw | None) -> ConfigError:
    if version is None:
        return _error(data, path, "", f"is not a lock file: it does not begin with {_VERSION_KEY}")
    came = printable(bytes(version)[:20].decode(errors="replace"))
    problem = f"is a lock file of version {came}; this hookproxy reads version {VERSION}"
    return ConfigError(
        f"{printable(path)}:{_line(data, _VERSION_KEY)}",
        problem,
        "update hookproxy, or remove the file and make it anew with hookproxy lock",
    )


def _unreadable(data: bytes, path: str, why: str) -> ConfigError:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return ConfigError(f"{printable(path)}:{error.lineno}", f"is not JSON: {error.msg}", _AGAIN)
    except (ValueError, RecursionError):
        pass
    twice = re.search("the key '(.*)' appears twice", why)
    return _error(data, path, twice[1] if twice else "", why)


def _error(data: bytes, path: str, near: str, problem: str) -> ConfigError:
    return ConfigError(f"{printable(path)}:{_line(data, near)}", printable(problem), _AGAIN)


def _place(problem: str) -> str:
    """What the decoder names in its message: an unknown member, or the last one of a path as `$.servers[...].tools`."""
    match = re.search(r"field `([^`]+)`", problem) or re.search(r"at `\$[^`]*\.(\w+)`", problem)
    return match[1] if match else ""


def _line(data: bytes, near: str) -> int:
    """The line on which a text stands for the last time; 1: it does not."""
    at = data.rfind(near.encode(errors="replace")) if near else -1
    return data.count(b"\n", 0, at) + 1 if at >= 0 else 1
