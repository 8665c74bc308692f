"""The credentials of a run for one remote server: a stored login, renewed when it is needed.

Several runs share a login: whoever renews it holds its lock, reads it again, and sends a request only if it is still
the old one. So a refresh token is used once, and nobody removes what another run or `hookproxy login` has stored.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio

from ..model.credentials import NotReady
from ..model.errors import UserError
from ..protocol import feedback
from . import addresses, challenges, token_requests
from .login_store import LoginStore, Signature
from .stored_login import StoredLogin, client_secret
from .token_requests import TokenRefused, TokenUnavailable

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]
"""Sends a POST to an address with headers and a body, without following redirects. Status and body. Raises OSError."""

RENEWAL_TIMEOUT: Final = 30.0
"""Seconds for one renewal, as in the SDK. An answer that comes later is lost, and with it perhaps the login."""

_MARGIN: Final = 60.0  # seconds before its end at which a token is renewed: a request may be on its way so long
_MARGIN_SHARE: Final = 0.2  # of a token's lifetime, if that is less: tokens of 30 s must not be renewed for each call
_JUST_ISSUED: Final = 10.0  # seconds in which a refused token is not renewed again: the server refuses the new one too
_LOOK_INTERVAL: Final = 0.01  # seconds between two looks at the file of a login, which take time from each call
_RETRY_PAUSE: Final = 5.0  # seconds after a renewal without a response: calls must not all wait for a dead server


class StoredCredentials:
    """The `Authorization` header for one server, from its stored login. It is a `model.credentials.Credentials`."""

    def __init__(
        self,
        url: str,
        store: LoginStore,
        post: Post,
        environ: Mapping[str, str],
        *,
        now: Callable[[], float] = time.time,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`report` gets lines for standard error. Raises UserError for an address that no login can have."""
        self._server = addresses.server_address(url)
        self._url = url
        self._store = store
        self._post = post
        self._environ = environ
        self._now = now
        self._report = report
        self._login: StoredLogin | None = None
        self._usable: str | None = None  # the value that was found last, which holds in this time:
        self._usable_from = self._look_at = math.inf
        self._signature: Signature | None = None
        self._renewing = anyio.Lock()
        self._rejected = ""  # the access token whose renewal was refused for good
        self._retry_at = 0.0  # no renewal before this time
        self._failure = ""  # the sentence about the last renewal that failed
        self._hint = feedback.login_needed(addresses.shown(url), self._command())

    @property
    def hint(self) -> str:
        """What the model and the person read after a refusal: a sentence with the command to run, or the cause."""
        return self._hint

    def value_now(self) -> str | None:
        """The value, unless the stored login has changed or must be renewed. Raises NotReady."""
        now = self._now()
        if self._usable_from <= now < self._look_at:
            return self._usable
        signature = self._store.signature(self._server)
        if signature is None:
            self._login = self._signature = None
        elif signature != self._signature or self._login is None or self._is_due(self._login):
            raise NotReady
        self._usable, self._usable_from, self._look_at = _header(self._login), now, now + _LOOK_INTERVAL
        return self._usable

    async def value(self) -> str | None:
        """Return the header's value now, renewed if it ends within a minute; None: there is no login.

        A token that cannot be renewed is used as it is: this machine's clock may be wrong, and the server decides. On
        cancel, a renewal that has begun is completed first. Raises ValueError if the stored login cannot be used.
        """
        try:
            login = await self._current()
            if login is not None and self._is_due(login):
                login = await self._renewed(login) or login
        except UserError as error:
            self._hint = self._unusable(error)
            raise ValueError(f"{error.message} ({error.hint})") from None
        return _header(login)

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        """Return another value for one further attempt, or None; `hint` says then what to do.

        The server has refused a request that had the value `used`. Concurrent refusals renew the token once. On cancel,
        a renewal that has begun is completed first.
        """
        try:
            login = await self._current()
            if login is None or _header(login) != used:
                return _header(self._found(login))
            if status == 403:
                self._hint = self._not_permitted(login, challenges.parameters(challenge))
                return None
            if self._is_just_issued(login):
                self._hint = self._ended("the server refuses a token that was just issued")
                return None
            return _header(await self._renewed(login))
        except UserError as error:
            self._hint = self._unusable(error)
            return None

    # --- the stored login ---

    async def _current(self) -> StoredLogin | None:
        """The login as it is stored now. Unless its file has changed, nothing is read."""
        self._usable_from = math.inf
        signature = self._store.signature(self._server)
        if signature is None:
            self._login = None
        elif signature != self._signature:
            self._login = await self._store.read(self._server)
        self._signature = signature
        return self._login

    def _is_due(self, login: StoredLogin) -> bool:
        if login.expires_at is None:
            return False
        margin = min(_MARGIN, _MARGIN_SHARE * (login.expires_at - login.issued_at))
        return self._now() >= login.expires_at - margin

    def _is_just_issued(self, login: StoredLogin) -> bool:
        lifetime = _JUST_ISSUED if login.expires_at is None else (login.expires_at - login.issued_at) / 2
        return 0 <= self._now() - login.issued_at < min(_JUST_ISSUED, lifetime)

    # --- renewing ---

    async def _renewed(self, old: StoredLogin) -> StoredLogin | None:
        """The login in place of `old`, by another run or by a request; None: there is none, and `hint` says why."""
        async with self._renewing:
            login = await self._current()
            if _token(login) != _token(old):
                return self._found(login)
            now = self._now()
            if _token(old) == self._rejected or self._retry_at - _RETRY_PAUSE <= now < self._retry_at:
                self._hint = self._failure
                return None
            try:
                return await self._renew(old)
            except UserError as error:  # the lock, or the client's secret
                self._failed(self._unusable(error))
                return None

    async def _renew(self, old: StoredLogin) -> StoredLogin | None:
        async with self._store.lock(self._server):
            login = await self._current()
            if login is None or _token(login) != _token(old):
                return self._found(login)
            renewed: StoredLogin | None = None
            with anyio.CancelScope(shield=True):  # a refresh token that was sent is used up
                renewed = await self._request_tokens(login)
            return renewed  # noqa: RET504  # not in the block: for checkers it may swallow exceptions

    async def _request_tokens(self, login: StoredLogin) -> StoredLogin | None:
        """Renew the login at its authorization server, and store it. The lock is held."""
        now = self._now()
        request = token_requests.renewal_request(login, client_secret(login.client, self._environ), now)
        if request is None:
            self._failed(self._ended("it has ended and has no refresh token"), login)
            return None
        try:
            with anyio.fail_after(RENEWAL_TIMEOUT):
                status, body = await self._post(request.url, request.headers, request.body)
            tokens = token_requests.read_response(status, body)
        except TokenRefused as error:
            why = f"{addresses.shown(login.issuer)} responds with {error}"
            self._failed(self._ended(request.hide(why)), login)
            return None
        except (TokenUnavailable, OSError) as error:
            why = request.hide(_reason(error, login.issuer))
            self._failed(feedback.token_not_renewed(addresses.shown(self._url), why))
            return None
        return await self._stored(token_requests.with_tokens(login, tokens, now))

    def _failed(self, text: str, rejected: StoredLogin | None = None) -> None:
        """Keep why there is no new token, for the calls that follow: for good if the old one is `rejected`."""
        self._hint = self._failure = text
        if rejected is None:
            self._retry_at = self._now() + _RETRY_PAUSE
        else:
            self._rejected = _token(rejected)

    def _found(self, login: StoredLogin | None) -> StoredLogin | None:
        """The login that another process has stored; None: it has removed it."""
        if login is None:
            self._hint = feedback.login_needed(addresses.shown(self._url), self._command())
        return login

    async def _stored(self, login: StoredLogin) -> StoredLogin:
        """Store the renewed login. If that fails, this run goes on with it, and the others need another login."""
        try:
            await self._store.write(login, keyring=self._store.in_keyring(self._server))
            self._signature = self._store.signature(self._server)
        except UserError as error:
            self._signature = self._store.signature(self._server)
            self._report(f"hookproxy: the renewed login at {addresses.shown(self._url)} is not stored: {error.message}")
        self._login, self._usable_from = login, math.inf
        return login

    # --- sentences ---

    def _command(self, scope: str = "") -> str:
        """The command that logs in, as before. All that comes from a server is quoted for the shell.

        It has no file or variable with a secret: the model reads it, and `login` remembers them.
        """
        scopes = ("--scope", scope) if scope else ()
        return shlex.join(("hookproxy", "login", addresses.shown(self._url), *scopes))

    def _ended(self, why: str) -> str:
        command = self._command(self._login.scope if self._login else "")
        return feedback.login_ended(addresses.shown(self._url), why, command)

    def _not_permitted(self, login: StoredLogin, parameters: Mapping[str, str]) -> str:
        """The sentence for status 403. Only if the server names scopes that the login lacks does another login help."""
        server = addresses.shown(self._url)
        needed = challenges.union(login.scope, parameters.get("scope", ""))
        if parameters.get("error") != "insufficient_scope" or needed == challenges.union(login.scope):
            return feedback.request_not_permitted(server)
        return feedback.more_scopes_needed(server, self._command(needed))

    def _unusable(self, error: UserError) -> str:
        return feedback.credentials_unusable(addresses.shown(self._url), f"{error.message} ({error.hint})")


def _token(login: StoredLogin | None) -> str:
    return login.secrets.access_token if login is not None and login.secrets else ""


def _header(login: StoredLogin | None) -> str | None:
    token = _token(login)
    return f"Bearer {token}" if token else None


def _reason(error: Exception, issuer: str) -> str:
    """Why there is no response, without a full stop."""
    if isinstance(error, TimeoutError):
        return f"{addresses.shown(issuer)} has not responded within {RENEWAL_TIMEOUT:.0f} s"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"{addresses.shown(issuer)} cannot be used: {text}".rstrip(".")
