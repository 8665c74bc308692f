"""The paths that the URI of a resource may mean to the server that reads it, so that a rule about a path holds for it.

Servers read URIs by hand as often as with a library: some decode twice, some cut the scheme off and take the rest, some
strip what browsers strip. So a URI means several paths: the first is the one that hooks see, as a library would read
it, and rules are tried on each. What can be read as anything has no path, and is refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from ..jsonrpc import raw_json

_STRIPPED: Final = "".join(map(chr, range(0x21)))
"""What browsers strip from both ends of a URL: control characters and blanks."""
_IGNORED: Final = re.compile(r"[\t\r\n]")
"""What browsers ignore everywhere in a URL."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
"""A single letter is a drive, not a scheme."""
_DRIVE: Final = re.compile(r"/*([A-Za-z])[:|](?=/|\Z)")
_MOST_DECODINGS: Final = 8  # more than any chain of servers does
_LONGEST: Final = 8192  # characters of a URI: twice the longest path
_DOTS: Final = str.maketrans(
    {
        **dict.fromkeys("\u3002\uff0e\uff61\u2024", "."),
        **dict.fromkeys("\u2044\u2215\u29f8\uff0f", "/"),
        **dict.fromkeys("\u29f5\u29f9\ufe68\uff3c", "/"),
        "\u2025": "..",
        "\u2026": "...",
    }
)
"""Characters that become dots and slashes where a server normalises Unicode text."""


def paths(uri: str) -> tuple[str, ...]:
    """Return the paths that a URI may mean, the likeliest first; none: it has no path. Raises Unreadable."""
    if len(uri) > _LONGEST:
        raise raw_json.Unreadable(f"its URI has more than {_LONGEST} characters, which no rule about paths can judge")
    clean = _clean(uri)
    found: dict[str, None] = {}
    if not _has_path(clean):
        return ()
    path = _decoded(re.split("[?#]", clean, maxsplit=1)[0])[-1]
    stages = _decoded(clean)
    cuts = (re.split(signs, stage, maxsplit=1)[0] for stage in stages for signs in ("[?#]", "[?#;]"))
    for text in (path, *stages, *cuts):
        found.update(dict.fromkeys(_paths(text)))
    return tuple(found)


def with_path(uri: str, path: str) -> str:
    """Return the URI of a file that a hook has chosen instead. Raises Unreadable where that cannot be said."""
    scheme = _SCHEME.fullmatch(_clean(uri))
    if scheme is None or scheme[1].lower() != "file":
        raise raw_json.Unreadable(f"the path in {uri!r} cannot be replaced: its scheme is not file")
    if not path.startswith("/"):
        raise raw_json.Unreadable(f"{path!r} is not an absolute path")
    return f"file://{quote(path)}"


def _clean(uri: str) -> str:
    return _IGNORED.sub("", uri.strip().strip(_STRIPPED))


def _has_path(uri: str) -> bool:
    """False for a URI that is only a name, such as `memo://insights`."""
    scheme = _SCHEME.fullmatch(_decoded(uri)[-1])
    if scheme is None or scheme[1].lower() == "file":
        return True
    rest = scheme[2].replace("\\", "/").translate(_DOTS)
    return "/" in rest.removeprefix("//").rstrip("/") or _SCHEME.fullmatch(rest) is not None or ".." in rest


def _decoded(text: str) -> list[str]:
    """The text, and as it is after each decoding until nothing changes. Raises Unreadable."""
    stages = [text]
    for _ in range(_MOST_DECODINGS):
        try:
            decoded = unquote_to_bytes(stages[-1]).decode()
        except UnicodeError:
            raise raw_json.Unreadable("its URI is not UTF-8 when it is decoded") from None
        if "\0" in decoded:
            raise raw_json.Unreadable("its URI contains a NUL, where some readers stop")
        if decoded == stages[-1]:
            return stages
        stages.append(decoded)
    raise raw_json.Unreadable("its URI is encoded too many times")


def _paths(text: str) -> Iterator[str]:
    """The paths that a text without percent signs may mean."""
    slashed = _clean(text).replace("\\", "/").translate(_DOTS)
    scheme = _SCHEME.fullmatch(slashed)
    if scheme is None:
        yield from _spelled(slashed)
        return
    rest = scheme[2]
    if _SCHEME.fullmatch(rest):  # such as `view-source:file:///x`
        yield from _paths(rest)
    is_file = scheme[1].lower() == "file"
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        below = re.sub("^/+", "/", slash + path)
        both = [below, authority + below]
        if not is_file and authority.lower() not in ("", "localhost"):
            both.reverse()  # the authority is a part of the name, such as a repository
        for spelled in filter(None, both):
            yield from _spelled(spelled)
        if authority:
            yield from _spelled(f"/{authority}{below}")
    yield from _spelled(rest)


def _spelled(path: str) -> Iterator[str]:
    """A path as it is without dots, without the drive, and as it was written."""
    path = path.strip()
    if not path:
        return
    plain = re.sub("^//+", "/", posixpath.normpath(path))
    drive = _DRIVE.match(plain)
    if drive is not None:
        yield f"{drive[1].upper()}:{plain[drive.end() :]}"
        yield plain[drive.end() :] or "/"
    yield plain
    yield path
