"""Access tokens of one issuer: whose is this? Tokens that were verified are remembered for a short time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import Final

from ..model.credentials import NotReady
from ..model.errors import not_installed
from .access_tokens import IssuerSettings, IssuerUnavailable, UnknownKey, VerifiedToken
from .issuer_keys import IssuerKeys
from .token_file import digest_of

_REMEMBERED_FOR: Final = 60.0  # seconds: a signature takes 60 µs to check, and a withdrawn key must end soon
_MAX_REMEMBERED: Final = 10_000  # tokens, of 1 KB each: more users than one gateway has in a minute


class TokenIssuer:
    """The access tokens of the issuer that the settings name."""

    def __init__(
        self,
        settings: IssuerSettings,
        report: Callable[[str], None],
        *,
        now: Callable[[], float] = time,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`report` gets lines for people. Raises UserError for an unusable issuer, or if the extra is not installed."""
        try:
            from .verify_jwt import verify  # takes 90 ms: only where there is an issuer
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "joserfc":
                raise
            raise not_installed("gateway.oidc", "joserfc", "gateway") from None
        self.settings = settings
        self._verify = verify
        self._keys = IssuerKeys(settings, report, clock=clock)
        self._now = now
        self._clock = clock
        self._remembered: dict[bytes, tuple[VerifiedToken, float]] = {}  # by digest; until when, by the clock

    async def prepare(self) -> None:
        """Fetch the keys, so that the first call need not wait. It does not raise: a failure is reported."""
        await self._renew()

    def check_now(self, token: bytes) -> VerifiedToken:
        """What the token says. Its audience and its scopes are for the caller to compare.

        Raises NotReady if keys must be fetched first; TokenRejected; IssuerUnavailable.
        """
        digest = digest_of(token)
        remembered = self._remembered.get(digest)
        if remembered is not None and self._clock() < remembered[1] and self._now() < remembered[0].expires:
            return remembered[0]
        if self._keys.should_renew:
            raise NotReady
        try:
            return self._verified(token, digest)
        except (UnknownKey, IssuerUnavailable):
            if self._keys.may_change:
                raise NotReady from None
            raise

    async def check(self, token: bytes) -> VerifiedToken:
        """The same, after the keys have been fetched if they must be. On cancel, such a request is completed first.

        Raises TokenRejected; IssuerUnavailable.
        """
        try:
            return self.check_now(token)
        except NotReady:
            await self._renew()
        return self._verified(token, digest_of(token))

    def _verified(self, token: bytes, digest: bytes) -> VerifiedToken:
        keys = self._keys.known
        if not keys:
            raise IssuerUnavailable(self._keys.failure or "its keys are not known yet")
        try:
            verified = self._verify(token.decode("ascii", "replace"), keys, self.settings, self._now())
        except UnknownKey:
            if self._keys.failure:
                raise IssuerUnavailable(self._keys.failure) from None
            raise
        self._remember(digest, verified)
        return verified

    async def _renew(self) -> None:
        before = self._keys.known
        await self._keys.renew()
        if self._keys.known is not before:  # a key may be gone
            self._remembered.clear()

    def _remember(self, digest: bytes, verified: VerifiedToken) -> None:
        while len(self._remembered) >= _MAX_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = (verified, self._clock() + _REMEMBERED_FOR)
