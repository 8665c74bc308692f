"""The paths that the URI of a resource may mean to the server that reads it, so that a rule about a path holds for it.

Servers read URIs by hand as often as with a library: some decode twice, some cut the scheme off and take the rest, some
strip what browsers strip. In a scheme of its own, a server may take any part for the path: what follows the host or
some folders, as in `repo://owner/name/contents/{+path}`, or a value in the query. So a URI means several paths: the
first is the likeliest one, as a library would read it. Rules are tried on each, and guards run for each (`readings`).
What can be read as anything has no path, and is refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from ..jsonrpc import raw_json

_STRIPPED: Final = "".join(map(chr, range(0x21)))
"""What browsers strip from both ends of a URL: control characters and blanks."""
_IGNORED: Final = re.compile(r"[\t\r\n]")
"""What browsers ignore everywhere in a URL."""
SCHEME: Final = re.compile(r"([^/\\?#:%]{2,}|[^/\\?#:%](?=://)):(.*)", re.DOTALL)
"""Whatever a server may take for one, such as `my_files`; a single letter is a drive, or both where `//` follows."""
_VALUES: Final = re.compile("[?#&;,]")
"""What stands before a value in a URI, by itself or with a name, as templates write lists of them."""
_FILE_NAME: Final = re.compile(r"(?=.*[^\d.]).*\.", re.DOTALL)
"""A name with a dot that is not a number, such as `.env`."""
_PATH_NAMES: Final = frozenset({"path", "file", "file_path", "filepath", "filename", "uri"})
_WEB: Final = frozenset({"http", "https"})
_AROUND_HOST: Final = re.compile(r"^.*@|:\d*\Z", re.DOTALL)
"""A user, and a port."""
_UNKNOWN_FOLDER: Final = re.compile("[$%]|~[^/]")
"""The beginning of what a rule takes for a path in any folder: that of a whole path only, not of its parts."""
_DRIVE: Final = re.compile(r"/*([A-Za-z])[:|](?=/|\Z)")
_MOST_DECODINGS: Final = 8  # more than any chain of servers does
_LONGEST: Final = 8192  # characters of a URI: twice the longest path
_MOST_FOLDERS: Final = 32  # in a URI that is not of a file: each may be the one in which the path begins
_MOST_PATHS: Final = 1024
_MOST_CHARACTERS: Final = 262_144  # of all readings of a URI, also of those that are the same: about 5 ms of work
_CHARACTERS_PER_TEXT: Final = 64  # that cost as much as a text does in itself
_MOST_SCHEMES: Final = 8  # before one another
_MOST_READINGS: Final = 32  # of one URI: a guard runs for each, and URIs of repositories with ten folders have fewer
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


@lru_cache(maxsize=4)  # each rule, alias and hook of a request asks for the same
def paths(uri: str) -> tuple[str, ...]:
    """Return the paths that a URI may mean, the likeliest first; none: it has no path. Raises Unreadable."""
    if len(uri) > _LONGEST:
        raise raw_json.Unreadable(f"its URI has more than {_LONGEST} characters, which no rule about paths can judge")
    cleaned = clean(uri)
    if not _has_path(cleaned):
        return ()
    path = decoded(re.split("[?#]", cleaned, maxsplit=1)[0])[-1]
    stages = decoded(cleaned)
    cuts = (re.split(signs, stage, maxsplit=1)[0] for stage in stages for signs in ("[?#]", "[?#;]"))
    texts = dict.fromkeys((_named(cleaned) or path, path, *stages, *cuts, *_values(stages)))
    return tuple(bounded(spelled for text in texts for spelled in _paths(text)))


def bounded(texts: Iterable[str]) -> dict[str, None]:
    """Return the readings of one URI, each once. Raises Unreadable if they are so many that judging all takes long."""
    found: dict[str, None] = {}
    left = _MOST_CHARACTERS
    for text in texts:
        left -= len(text) + _CHARACTERS_PER_TEXT
        if left < 0:
            raise raw_json.Unreadable("its URI may mean too many paths, or too long ones")
        found[text] = None
    return found


def readings(paths: Sequence[str]) -> tuple[str, ...]:
    """Return those of the paths of a URI that are different files, each once, for guards. Raises Unreadable."""
    plain = dict.fromkeys(re.sub("^//+", "/", posixpath.normpath(path)) for path in paths[1:])
    if len(plain) > _MOST_READINGS:
        raise raw_json.Unreadable(f"its URI may mean more than {_MOST_READINGS} paths, for each of which a hook runs")
    return (*paths[:1], *(path for path in plain if path not in paths[:1]))


def with_path(uri: str, path: str) -> str:
    """Return the URI of a file that a hook has chosen instead. Raises Unreadable where that cannot be said."""
    scheme = SCHEME.fullmatch(clean(uri))
    if scheme is None or scheme[1].lower() != "file":
        raise raw_json.Unreadable(f"the path in {uri!r} cannot be replaced: its scheme is not file")
    if not path.startswith("/"):
        raise raw_json.Unreadable(f"{path!r} is not an absolute path")
    return f"file://{quote(path)}"


def clean(uri: str) -> str:
    """The URI without what browsers strip and ignore."""
    return _IGNORED.sub("", uri.strip().strip(_STRIPPED))


def slashed(text: str) -> str:
    """The cleaned text, with plain dots and slashes in place of what servers take for them."""
    return clean(text).replace("\\", "/").translate(_DOTS)


def _has_path(uri: str) -> bool:
    """False for a URI that is only a name, such as `memo://insights`."""
    scheme = SCHEME.fullmatch(decoded(uri)[-1])
    if scheme is None or len(scheme[1]) == 1 or scheme[1].lower() == "file":
        return True
    rest = scheme[2].replace("\\", "/").translate(_DOTS)
    if "/" in rest.removeprefix("//").rstrip("/") or SCHEME.fullmatch(rest) is not None or ".." in rest:
        return True
    name, *parts = _VALUES.split(rest.strip("/"))
    values = [part.rpartition("=")[2] for part in parts]
    if scheme[1].lower() not in _WEB:  # whose host has dots
        values.append(name)
    return any(map(_FILE_NAME.match, values))


def _named(uri: str) -> str:
    """The value that is called a path, where a mere name stands before the query, as in `docs://read?path=.env`."""
    before, _, query = uri.partition("?")
    if not query or _has_path(before):
        return ""
    members = (part.partition("=") for part in re.split("[&;#]", query))
    return next((decoded(value)[-1] for name, _, value in members if value and name.lower() in _PATH_NAMES), "")


def _values(stages: list[str]) -> Iterator[str]:
    """The values in a URI that is not of a file, each as it may be decoded; a file's has none that anybody reads."""
    scheme = SCHEME.fullmatch(stages[-1])
    if scheme is not None and scheme[1].lower() == "file":
        return
    parts = dict.fromkeys(part for stage in stages for part in _VALUES.split(stage)[1:])
    if len(parts) > _MOST_PATHS:
        raise raw_json.Unreadable(f"its URI may mean more than {_MOST_PATHS} paths")
    for part in parts:
        for value in decoded(part.partition("=")[2] or part):
            if value[:1] != "%":
                yield value
            if "+" in value:  # a blank, in a form
                yield value.replace("+", " ")


def decoded(text: str) -> list[str]:
    """The text, and as it is after each decoding until nothing changes. Raises Unreadable."""
    stages = [text]
    for _ in range(_MOST_DECODINGS):
        try:
            text = unquote_to_bytes(stages[-1]).decode()
        except UnicodeError:
            raise raw_json.Unreadable("its URI is not UTF-8 when it is decoded") from None
        if "\0" in text:
            raise raw_json.Unreadable("its URI contains a NUL, where some readers stop")
        if text == stages[-1]:
            return stages
        stages.append(text)
    raise raw_json.Unreadable("its URI is encoded too many times")


def _paths(text: str, schemes: int = 0) -> Iterator[str]:
    """The paths that a text without percent signs may mean; `schemes` stand before it. Raises Unreadable."""
    plain = slashed(text)
    scheme = SCHEME.fullmatch(plain)
    if scheme is None or len(scheme[1]) == 1:
        yield from _spelled(plain)
    if scheme is None:
        return
    if schemes > _MOST_SCHEMES:
        raise raw_json.Unreadable(f"its URI has more than {_MOST_SCHEMES} schemes")
    rest, is_file = scheme[2], scheme[1].lower() == "file"
    if SCHEME.fullmatch(rest):  # such as `view-source:file:///x`
        yield from _paths(rest, schemes + 1)
    if rest.startswith("//"):
        yield from _with_host(rest[2:], is_file=is_file)
    yield from _spelled(rest)
    if not is_file:
        yield from _endings(rest)


def _with_host(text: str, *, is_file: bool) -> Iterator[str]:
    """The paths that a host and what follows it may mean."""
    authority, slash, path = text.partition("/")
    below = re.sub("^/+", "/", slash + path)
    both = [below, authority + below]
    if not is_file and authority.lower() not in ("", "localhost"):
        both.reverse()  # the authority is a part of the name, such as a repository
    for spelled in filter(None, both):
        yield from _spelled(spelled)
    for host in {authority: None, _AROUND_HOST.sub("", authority): None}:
        if host:
            yield from _spelled(f"/{host}{below}")
            yield from _spelled(host + below)


def _endings(path: str) -> Iterator[str]:
    """What a server reads that takes the path from some folder on, in its own folder or from the root."""
    names = [name for name in posixpath.normpath(path.strip()).split("/") if name]
    if len(names) > _MOST_FOLDERS:
        raise raw_json.Unreadable(f"its URI has more than {_MOST_FOLDERS} folders, in each of which a path may begin")
    for at in range(len(names)):
        ending = "/".join(names[at:])
        if not _UNKNOWN_FOLDER.match(ending):
            yield ending
        yield f"/{ending}"


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
