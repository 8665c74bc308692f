"""Reads and writes the archive of a bundle or a pack: a tar file of plain files, gzipped or not. Pure.

It is read strictly, because whoever delivers it may have made it: plain files and folders only (no links, devices,
sparse files, extended headers or long names, whose readers differ), each name once and harmless, sums and sizes right,
and nothing after the end. Modes, owners and times are ignored: what may be executed, the manifest says.
Source: POSIX.1-1988 ustar, and the header that GNU tar writes for short names.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from ..model.errors import printable
from . import names

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of an archive, packed or unpacked: hooks and their configuration are text, and a machine must hold several."""

MOST_FILES: Final = 2000
"""In an archive: a policy has tens."""

_BLOCK: Final = 512
_OCTAL: Final = re.compile(rb"[ 0]*([0-7]{1,11})[ \0]*")
_USTAR: Final = b"ustar\x0000"
_GNU: Final = b"ustar  \x00"
_FILE: Final = (b"0", b"\0")
_FOLDER: Final = b"5"
_TYPES: Final = {b"1": "a hard link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_HINT: Final = "make it with tar --format=ustar"
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31  # zlib's number for: with the head and the sum of gzip


class BadArchive(ValueError):
    """The archive cannot be used; the text is a sentence without a full stop."""


def read(data: bytes) -> dict[str, bytes]:
    """The files of the archive by their names. Raises BadArchive and names.BadName."""
    if data.startswith(_GZIP):
        data = _unzipped(data)
    files: dict[str, bytes] = {}
    for name, content in _entries(data):
        if name in files:
            raise BadArchive(f"there are two files {name}")
        files[name] = content
        if len(files) > MOST_FILES:
            raise BadArchive(f"it has more than {MOST_FILES} files")
    names.check_all(files)
    return files


def _unzipped(data: bytes) -> bytes:
    """The content, unless it has more than a bundle may have: no more than that is ever unpacked."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = unpacker.decompress(data, MOST_BYTES + 1)
    except zlib.error:
        raise BadArchive("it is not gzip, although it begins so") from None
    if len(content) > MOST_BYTES:
        raise BadArchive(f"it unpacks to more than {MOST_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise BadArchive("it is cut off, or there is something after its end")
    return content


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while True:
        header = data[at : at + _BLOCK]
        if len(header) < _BLOCK:
            raise BadArchive("it is cut off" if at else "it is not a tar file" if data else "it is empty")
        if not any(header):
            break
        name, is_file, size = _header(header)
        at += _BLOCK
        if is_file:
            content = data[at : at + size]
            if len(content) < size:
                raise BadArchive(f"it is cut off in {name}")
            yield name, content
        at += -(-size // _BLOCK) * _BLOCK
    if any(data[at:]):
        raise BadArchive("there is something after its end")


def _header(header: bytes) -> tuple[str, bool, int]:
    """Name, whether it is a file and no folder, and size. Raises BadArchive."""
    magic, kind = header[257:265], header[156:157]
    if magic not in (_USTAR, _GNU):
        raise BadArchive(f"it is not a tar file of the format ustar: {_HINT}")
    if sum(header) - sum(header[148:156]) + 8 * ord(" ") != _number(header[148:156]):
        raise BadArchive("the sum of a header is wrong")
    name = _name(header[:100], header[345:500], is_gnu=magic == _GNU)
    if kind not in (*_FILE, _FOLDER):
        what = _TYPES.get(kind, f"something that only newer formats have: {_HINT}")
        raise BadArchive(f"{printable(name)} is {what}")
    is_file, size = kind in _FILE, _number(header[124:136])
    if not is_file:
        name = name.rstrip("/") or "."
        if name != ".":
            names.check(name)
        if size:
            raise BadArchive(f"the folder {name} has a content")
    return name, is_file, size


def _name(field: bytes, before: bytes, *, is_gnu: bool) -> str:
    name, prefix = _text(field), "" if is_gnu else _text(before)
    if is_gnu and any(before):  # times, or the parts of a sparse file
        raise BadArchive(f"the header of {printable(name)} has more than a name: {_HINT}")
    return (f"{prefix}/{name}" if prefix else name).removeprefix("./")


def _text(field: bytes) -> str:
    text, _, rest = field.partition(b"\0")
    if any(rest):
        raise BadArchive("a header can be read in two ways")
    return text.decode("latin-1")  # what is not ASCII is refused as a name


def _number(field: bytes) -> int:
    match = _OCTAL.fullmatch(field)
    if match is None:
        raise BadArchive("a header has something else than a number")
    return int(match[1], 8)


# --- writing ---


def write(files: Mapping[str, bytes], executable: frozenset[str] = frozenset()) -> bytes:
    """The gzipped archive of these files: the same bytes for the same files. Raises names.BadName, BadArchive."""
    names.check_all(files)
    blocks = []
    for name, content in sorted(files.items()):
        blocks += [_made_header(name, len(content), 0o755 if name in executable else 0o644), content]
        blocks.append(bytes(-len(content) % _BLOCK))
    data = b"".join((*blocks, bytes(2 * _BLOCK)))
    if len(data) > MOST_BYTES or len(files) > MOST_FILES:
        raise BadArchive(f"it would have more than {MOST_BYTES} bytes, or more than {MOST_FILES} files")
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP_WINDOW)  # its head has no time
    return packer.compress(data) + packer.flush()


def _made_header(name: str, size: int, mode: int) -> bytes:
    prefix = b""
    text = name.encode()
    while len(text) > 100:  # the field of a name: the rest, up to a slash, is in the prefix
        first, _, text = text.partition(b"/")
        prefix = b"/".join(filter(None, (prefix, first)))
    fields = b"".join(
        (
            text.ljust(100, b"\0"),
            b"%07o\0" % mode,
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            b"%011o\0" % size,
            b"%011o\0" % 0,
            b" " * 8,
            b"0",
            bytes(100),
            _USTAR,
            bytes(32 + 32),
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            prefix.ljust(155, b"\0"),
            bytes(12),
        )
    )
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]
