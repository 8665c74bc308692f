"""The keys of an issuer: found by its metadata (OpenID Connect discovery, RFC 8414), fetched, kept, and renewed.

Keys that are known stay in use while the issuer cannot be reached. No token can make hookproxy send more than one
request for keys in `_MIN_INTERVAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Struct

from ..model.errors import UserError
from . import addresses
from .access_tokens import IssuerSettings

if TYPE_CHECKING:
    from joserfc.jwk import Key

    from .fetch import Fetch

_FRESH: Final = 600.0  # seconds: so long may a key be used that the issuer has withdrawn
_MAX_AGE: Final = 86_400.0  # seconds for which keys are used whose issuer cannot be reached: a day, to repair it
_MIN_INTERVAL: Final = 10.0  # seconds between two requests because of tokens with unknown keys
_RETRY_INTERVAL: Final = (
    60.0  # seconds between two attempts to renew keys that can still be used: a call waits for each
)
_TIMEOUT: Final = 10.0  # seconds for all requests of one attempt: calls wait for it
_OIDC: Final = "/.well-known/openid-configuration"
_OAUTH: Final = "/.well-known/oauth-authorization-server"


class _Metadata(Struct):
    issuer: str
    jwks_uri: str


class IssuerKeys:
    """The keys with which one issuer signs."""

    def __init__(
        self, settings: IssuerSettings, report: Callable[[str], None], *, clock: Callable[[], float] = monotonic
    ) -> None:
        """`report` gets lines for people; `clock` counts seconds. Raises UserError for an unusable issuer."""
        try:
            addresses.check_endpoint("gateway.oidc.issuer", settings.issuer, settings.issuer)
        except UserError as error:
            hint = "an https address, as the issuer's metadata has it; http only on this machine"
            raise UserError(error.message, hint) from None
        self._settings = settings
        self._report = report
        self._clock = clock
        self._keys: Sequence[Key] = ()
        self._fetched = self._tried = -_MAX_AGE  # times by the clock
        self._failure = ""  # of the last attempt
        self._reported: frozenset[str] = frozenset()
        self._fetching = anyio.Lock()

    @property
    def known(self) -> Sequence[Key]:
        """The keys that can be used now; none: they must be fetched first."""
        return self._keys if self._clock() - self._fetched < _MAX_AGE else ()

    @property
    def failure(self) -> str:
        """Why the last attempt to fetch them has failed; empty: it has not."""
        return self._failure

    @property
    def should_renew(self) -> bool:
        """They are old, and nobody renews them now."""
        now = self._clock()
        pause = _RETRY_INTERVAL if self._failure and self._keys else _MIN_INTERVAL
        old = now - self._fetched >= _FRESH
        return old and now - self._tried >= pause and not self._fetching.locked()

    @property
    def may_change(self) -> bool:
        """A call of `renew` may bring other keys: the last attempt is long ago, or one has not ended."""
        return self._fetching.locked() or self._clock() - self._tried >= _MIN_INTERVAL

    async def renew(self) -> None:
        """Fetch the keys, unless that was tried just now; if somebody fetches them already, wait for the result.

        It does not raise: `failure` says what went wrong, and so does the report. On cancel, an attempt that has begun
        is completed first, so that clients which leave cannot cause more requests; it ends in `_TIMEOUT`.
        """
        async with self._fetching:
            if self._clock() - self._tried < _MIN_INTERVAL:
                return
            with anyio.CancelScope(shield=True):
                await self._attempt()

    async def _attempt(self) -> None:
        self._tried = self._clock()
        try:
            with anyio.fail_after(_TIMEOUT):
                keys, left_out = await self._fetch()
        except UserError as error:
            self._failed(error.message)
            return
        except TimeoutError:
            self._failed(f"{addresses.shown(self._settings.issuer)} has not responded within {_TIMEOUT:.0f} s")
            return
        finally:
            self._tried = self._clock()
        self._keys, self._fetched = keys, self._tried
        if self._failure:
            self._report(f"{addresses.shown(self._settings.issuer)}: its keys are known again")
            self._failure = ""
        for line in left_out:
            if line not in self._reported:
                self._report(f"{addresses.shown(self._settings.issuer)}: {line}")
        self._reported = frozenset(left_out)

    def _failed(self, why: str) -> None:
        if why != self._failure:
            self._report(f"the keys of {addresses.shown(self._settings.issuer)} cannot be fetched: {why}")
        self._failure = why

    async def _fetch(self) -> tuple[Sequence[Key], Sequence[str]]:
        """The keys, and the lines about those that are left out. Raises UserError."""
        from .fetch import fetching  # takes 70 ms: only where there is an issuer
        from .verify_jwt import read_keys

        async with fetching(self._settings.issuer, self._settings.ca_file) as fetch:
            place = await self._jwks_uri(fetch)
            response = await fetch.get("jwks_uri", place)
        if response.status_code != 200:
            raise UserError(f"{addresses.shown(place)} responds with status {response.status_code}", _HINT)
        try:
            keys, left_out = read_keys(response.content)
        except ValueError:
            raise UserError(f"{addresses.shown(place)} is not a JWK Set", _HINT) from None
        if not keys:
            why = f": {left_out[0]}" if left_out else ""
            raise UserError(f"{addresses.shown(place)} has no usable key{why}", _HINT)
        return keys, left_out

    async def _jwks_uri(self, fetch: Fetch) -> str:
        """Where the keys are, by the issuer's metadata. Raises UserError."""
        issuer = self._settings.issuer
        for url in _metadata_addresses(issuer):
            response = await fetch.get("the issuer", url)
            if response.status_code >= 500 or response.status_code == 429:
                raise UserError(f"{addresses.shown(url)} responds with status {response.status_code}", _HINT)
            if response.status_code != 200:
                continue
            try:
                metadata = msgspec.json.decode(response.content, type=_Metadata)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if metadata.issuer != issuer:  # RFC 8414 section 3.3: character by character
                what = f"{addresses.shown(url)} is about the issuer {addresses.shown(metadata.issuer)}, not {issuer}"
                raise UserError(what, "gateway.oidc.issuer must be exactly as the issuer has it, with or without /")
            return metadata.jwks_uri
        raise UserError(f"{addresses.shown(issuer)} has no metadata with issuer and jwks_uri", _HINT)


_HINT: Final = "check gateway.oidc.issuer, and that the issuer is reached from here"


def _metadata_addresses(issuer: str) -> Iterator[str]:
    """Where an issuer's metadata may be: OpenID Connect Discovery section 4, and RFC 8414 sections 3.1 and 5."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}{path}{_OIDC}"
    yield f"{origin}{_OAUTH}{path}"
    if path:
        yield f"{origin}{_OIDC}{path}"
