"""The cookies of one server, in memory: load balancers set them to lead a session to the same instance.

They go back only to the origin that has set them, whatever their `Domain` says, and end with the run.
Source: RFC 6265, sections 5.2 to 5.4.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_PAIR: Final = re.compile(rb"\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*=([\x20-\x3a\x3c-\x7e]*)")
_MAX_COOKIES: Final = 50  # as many as RFC 6265 (6.1) wants for one domain
_MAX_COOKIE_BYTES: Final = 4096  # of name and value, as there
_MAX_DATE: Final = 64  # bytes of Expires: dates have 29
_SECONDS: Final = re.compile(rb"-?[0-9]{1,10}")  # of Max-Age; ten digits are 300 years


class _Cookie(Struct, frozen=True):
    value: bytes
    path: bytes
    ends: float | None
    """Seconds since 1970; None: it stays."""


class Cookies:
    """What one origin has set. Times are seconds since 1970."""

    def __init__(self, host: str, *, is_tls: bool) -> None:
        self._host = host.lower().encode()
        self._is_tls = is_tls
        self._cookies: dict[tuple[bytes, bytes], _Cookie] = {}  # by name and path

    def __bool__(self) -> bool:
        return bool(self._cookies)

    def note(self, header: bytes, target: bytes, now: float) -> None:
        """Keep, replace or remove what a Set-Cookie header says; `target` is that of the request."""
        pair, *written = header.split(b";")
        parsed = _PAIR.fullmatch(pair)
        if parsed is None or len(pair) > _MAX_COOKIE_BYTES:
            return
        attributes = {
            name.strip().lower(): value.strip() for name, _, value in (setting.partition(b"=") for setting in written)
        }
        if not self._may_set(attributes):
            return
        path = attributes.get(b"path", b"")
        if not path.startswith(b"/"):
            path = target.partition(b"?")[0].rpartition(b"/")[0] or b"/"
        key = parsed[1], path
        ends = _end(attributes, now)
        if ends is not None and ends <= now:
            self._cookies.pop(key, None)
        elif key in self._cookies or len(self._cookies) < _MAX_COOKIES:
            self._cookies[key] = _Cookie(parsed[2].strip(), path, ends)

    def _may_set(self, attributes: dict[bytes, bytes]) -> bool:
        """The cookie is for this host, and may be sent on its connections."""
        domain = attributes.get(b"domain", b"").lower().removeprefix(b".")
        is_ours = domain in (b"", self._host) or self._host.endswith(b"." + domain)
        return is_ours and (self._is_tls or b"secure" not in attributes)

    def header(self, target: bytes, now: float) -> bytes:
        """Return the Cookie line of a request; empty: there are none for it."""
        path = target.partition(b"?")[0]
        ended = [key for key, setting in self._cookies.items() if setting.ends is not None and setting.ends <= now]
        for key in ended:
            del self._cookies[key]
        matching = [(name, setting) for (name, _), setting in self._cookies.items() if _matches(path, setting.path)]
        matching.sort(key=lambda pair: -len(pair[1].path))  # longer paths first, says the RFC
        text = b"; ".join(b"%b=%b" % (name, setting.value) for name, setting in matching)
        return b"Cookie: %b\r\n" % text if text else b""


def _matches(path: bytes, of_cookie: bytes) -> bool:
    return path == of_cookie or path.startswith(of_cookie if of_cookie.endswith(b"/") else of_cookie + b"/")


def _end(attributes: dict[bytes, bytes], now: float) -> float | None:
    """When the cookie ends. `Max-Age` counts before `Expires`, and what cannot be read is ignored."""
    if _SECONDS.fullmatch(seconds := attributes.get(b"max-age", b"")):
        return now + int(seconds)
    if expires := attributes.get(b"expires"):
        from email.utils import parsedate_to_datetime  # takes 10 ms, and few servers need it

        try:
            return parsedate_to_datetime(expires[:_MAX_DATE].decode("latin-1").replace("-", " ")).timestamp()
        except (ValueError, OverflowError, IndexError):
            return None
    return None
