"""Who may use the console: pure checks of one request, before anything else looks at it.

The first address has a random token; whoever opens it gets a cookie, and nothing works without. The names of this
machine's loopback are the only hosts, so that no name of somebody else's can be made to point here. The cookie belongs
to a path that nobody can guess: browsers send cookies of 127.0.0.1 to every port, also to the server of another user.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct, field

_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")
"""Any port: it is another one through ssh."""

_BYTES: Final = 32  # of a secret: 256 bits cannot be guessed
COOKIE: Final = "hookproxy"
MAX_FORM_BYTES: Final = 16 * 1024 * 1024  # arguments to try; no form is longer

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # "no-referrer" would take the Origin of our own forms away
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), display-capture=()",
    "Cache-Control": "no-store",  # arguments of calls do not belong on the disk
}


class Refused(Exception):
    """A request that is not served: the status, and a sentence for the person."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def _secret() -> str:
    return secrets.token_urlsafe(_BYTES)


class Access(Struct, frozen=True):
    """The secrets of one console. They end with it."""

    token: str = field(default_factory=_secret)
    """In the first address."""
    cookie: str = field(default_factory=_secret)
    form_token: str = field(default_factory=_secret)
    """In each form: a page of another origin cannot read it."""
    folder: str = field(default_factory=lambda: secrets.token_hex(16))
    """The first part of the path of all pages."""

    def check(self, method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        """True for the first address with its token, False for another page. Raises Refused. Names are lower case."""
        host = headers.get("host", "")
        if not _HOST.fullmatch(host):
            raise Refused(421, "This console is only at 127.0.0.1 and localhost.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not self._is_first(path, query):
            raise Refused(403, "Another site has sent this request.")
        if method == "POST" and headers.get("origin") != f"http://{host}":
            raise Refused(403, "Another site has sent this form.")
        if method not in ("GET", "HEAD", "POST"):
            raise Refused(405, "There is no such method here.")
        if method != "POST" and self._is_first(path, query):
            return True
        if not (path.startswith(f"/{self.folder}/") and self._has_cookie(headers.get("cookie", ""))):
            raise Refused(401, "Open the address that hookproxy console has printed: it has the token.")
        return False

    def _is_first(self, path: str, query: Mapping[str, str]) -> bool:
        return path == "/" and _same(query.get("token", ""), self.token)

    def _has_cookie(self, header: str) -> bool:
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        return any(name == COOKIE and _same(value, self.cookie) for name, _, value in pairs)

    def form(self, body: bytes) -> dict[str, str]:
        """The members of a form. Raises Refused if it has not our token."""
        members = {name: values[-1] for name, values in parse_qs(body.decode(errors="replace"), True).items()}
        if not _same(members.pop("token", ""), self.form_token):
            raise Refused(403, "The form is not from this console: load the page again.")
        return members

    @property
    def set_cookie(self) -> str:
        """The header that sets the cookie."""
        return f"{COOKIE}={self.cookie}; Path=/{self.folder}/; HttpOnly; SameSite=Strict"

    def first_address(self, origin: str) -> str:
        """The address to open; `origin` is http://HOST:PORT."""
        return f"{origin}/?token={self.token}"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())
