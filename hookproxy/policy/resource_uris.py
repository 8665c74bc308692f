"""Rules about the URI of a resource, such as `resources/read(secret://*)`, whichever way the URI is spelled.

A server may decode a URI, several times, remove dots and slashes, or ignore a query, a host or capitals. So a URI has
several readings: a deny or ask rule holds if one of them matches it, an allow rule only if all do. The texts of rules
are read the same way. A URI whose paths are not clear has no readings, and deny and ask rules apply to it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..jsonrpc.unicode_text import normalized
from ..model import resource_paths
from .globs import WorkBudget, path_pattern

_MEMBER: Final = "uri"
"""The member with the URI, in the params of `methods.has_uri`."""

_QUERY: Final = re.compile("[?#]")
_VALUES: Final = re.compile("[?#;]")
_PARAMETERS: Final = re.compile(r";[^/\\]*")
"""Of one folder in a path, which some servers leave out."""
_USER: Final = re.compile(r"^.*@", re.DOTALL)
_PORT: Final = re.compile(r":\d*\Z")
_DRIVE: Final = re.compile(r"/([A-Za-z])[:|](?=/|\Z)")


def of_arguments(arguments: bytes) -> str | None:
    """Return the URI in the params of a request; None: there is none. Raises ValueError."""
    return raw_json.text(bytes(raw_json.fields(arguments).get(_MEMBER, b"")))


_WORK_PER_CHARACTER: Final = 20  # steps: as a text, a reading is decoded and made a path for each rule
_WORK_PER_OTHER_CHARACTER: Final = 50  # and normalised, outside of ASCII


class UriReadings(Struct, frozen=True):
    """What servers may take a URI for, first as it is."""

    texts: tuple[str, ...]
    folded: tuple[str, ...]
    """The same without case and forms of Unicode: rules that deny or ask ignore these."""
    joined: str
    """All of these."""
    size: int
    """Characters in all of them, and in the texts."""

    def any_match(
        self, matches_uri: Callable[[str], bool], matches_text: Callable[[str], bool], word: str, budget: WorkBudget
    ) -> bool:
        """True if a reading matches a deny or ask rule: as a URI, without case, or as a text. Raises BudgetExceeded.

        `word` is in `joined` if one does, unless the URI has a way up in it; empty: not known.
        """
        if word and word not in self.joined and ".." not in self.joined and self.joined.isascii():
            budget.spend(50 + len(self.joined) // 8)
            return False
        each = _WORK_PER_CHARACTER if self.joined.isascii() else _WORK_PER_OTHER_CHARACTER
        budget.spend(1000 * len(self.texts) + each * self.size)
        return any(map(matches_uri, self.folded)) or any(map(matches_text, self.texts))


NONE: Final = UriReadings((), (), "", 0)
"""Of a request without a URI."""


@lru_cache(maxsize=4)  # the rules, conditions and people's approvals of a request ask for the same
def readings(uri: str) -> UriReadings:
    """Return what servers may take a URI for, first as it is. Raises Unreadable where it may mean anything."""
    resource_paths.paths(uri)
    texts = tuple(resource_paths.bounded(_readings(uri)))
    folded = tuple(map(_folded, texts))
    joined = "\n".join(folded)
    return UriReadings(texts, folded, joined, len(joined) + sum(map(len, texts)))


@lru_cache(maxsize=1024)  # conditions of hooks have no place of their own for it
def matcher(specifier: str) -> Callable[[str], bool]:
    """Return a function that tells whether a folded reading of a URI matches the specifier of a deny or ask rule."""
    forms = dict.fromkeys(map(_folded, _forms(specifier)))
    pattern = re.compile("|".join(f"(?:{path_pattern(form).pattern})" for form in forms), re.DOTALL)
    return lambda folded: pattern.fullmatch(folded) is not None


@lru_cache(maxsize=1024)  # of allow rules: each request is compared with all of them
def _allowed(specifier: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(path_pattern, _readings(specifier)))


def all_match(specifier: str, uri: str) -> bool:
    """True if all readings of a URI match the specifier of an allow rule, each in one of its own readings."""
    try:
        patterns = _allowed(specifier)
        return all(any(pattern.fullmatch(reading) for pattern in patterns) for reading in readings(uri).texts)
    except (ValueError, RecursionError):
        return False


def _forms(specifier: str) -> Sequence[str]:
    """The text of a rule as written, and as URIs are compared; its query and its host are meant."""
    try:
        stages = resource_paths.decoded(resource_paths.clean(specifier))
    except ValueError:
        return (specifier,)
    meant = [form for stage in stages for form in _spellings(stage, meant=True)]
    return tuple(dict.fromkeys((specifier, *meant)))


def _readings(uri: str) -> Iterator[str]:
    """As `readings`, in order, also for what has stars in it; some come twice."""
    clean = resource_paths.clean(uri)
    stages = resource_paths.decoded(clean)
    texts = [*stages, *(signs.split(stage, maxsplit=1)[0] for stage in stages for signs in (_QUERY, _VALUES))]
    texts += [_PARAMETERS.sub("", stage) for stage in stages]
    texts += resource_paths.decoded(_QUERY.split(clean, maxsplit=1)[0])
    yield from (uri, clean, *stages)
    for text in dict.fromkeys(texts):
        yield from _spellings(text)


def _spellings(text: str, *, meant: bool = False) -> Iterator[str]:
    """A decoded text as a URI without dots and needless slashes, with and without a host that may not count.

    With `meant`, everything in it counts.
    """
    slashed = resource_paths.slashed(text)
    scheme = resource_paths.SCHEME.fullmatch(slashed)
    if scheme is None:
        if not meant or slashed.startswith("/"):
            yield from (f"file://{path}" for path in _paths(slashed))
        return
    name, rest = scheme[1].lower(), scheme[2]
    if not meant and resource_paths.SCHEME.fullmatch(rest):  # such as `view-source:file:///x`
        yield from _spellings(rest)
    spelled = _of_file(rest, meant=meant) if name == "file" else _of_others(rest, meant=meant)
    yield from (f"{name}://{part}" for part in spelled)


def _of_file(rest: str, *, meant: bool) -> Iterator[str]:
    """What may follow `file://`: it has a host after exactly two slashes, which a server may take for a folder."""
    if not rest.startswith("//") or rest.startswith("///"):
        yield from _paths(rest)
        return
    host, slash, path = rest[2:].partition("/")
    is_here = host.lower() in ("", "localhost")
    if is_here or not meant:
        yield from _paths(slash + path)
    if not is_here:
        yield from (host.lower() + below for below in _paths(slash + path))
    if not meant or not is_here:
        yield from _paths(f"/{host}{slash}{path}")


def _of_others(rest: str, *, meant: bool) -> Iterator[str]:
    """What may follow the scheme and `//` in other URIs: the dots may be removed below the host, and with it."""
    host, slash, path = rest.lstrip("/").partition("/")
    lower = host.lower()
    without_user = _USER.sub("", lower)
    without_port = _PORT.sub("", without_user) if rest.startswith("//") else without_user
    hosts = [lower] if meant else [lower, without_user, without_port]
    below = [*_paths(slash + path)] if slash else [""]
    yield from (name + path for name in dict.fromkeys(hosts) for path in below)
    for whole in _paths(rest):
        first, slash, path = whole[1:].partition("/")
        yield first.lower() + slash + path


def _paths(text: str) -> Iterator[str]:
    """A path from the root, without dots and empty folders; also as a folder, if it is written as one."""
    head, values = _divided(text)
    for whole, rest in dict.fromkeys(((text, ""), (head, values))):
        path = re.sub("/+", "/", f"/{whole.strip()}")
        plain = re.sub("^//", "/", posixpath.normpath(path))
        yield plain + rest
        if plain == "/":
            yield rest
        elif path.endswith("/"):
            yield f"{plain}/{rest}"
        drive = _DRIVE.match(plain)
        if drive is not None:
            yield f"/{drive[1].upper()}:{plain[drive.end() :]}{rest}"
            yield (plain[drive.end() :] or "/") + rest


def _divided(text: str) -> tuple[str, str]:
    """The text up to its query or fragment, and these."""
    head = _QUERY.split(text, maxsplit=1)[0]
    return head, text[len(head) :]


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else normalized("NFKC", normalized("NFKC", text).casefold())
