"""The ways by which approvals that wait in one process are reported to people, who may answer them from elsewhere.

How it works: for each approval, whoever asks gets an `Invite` for each way that is configured. The webhook's posts it
with an answer's URL, whose token this object keeps; what comes to that URL goes to whoever asks, who reports what
became of it. A way that fails is reported, and the invitation ends with False (law 3).
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from http import HTTPStatus
from time import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..live.messages import Answer, AnswerTaken, GivenAnswer, WaitingApproval
from ..model.approval_settings import ApprovalSettings, WebhookSettings
from ..model.errors import UserError
from ..network import address
from ..network.connect import tls_context
from ..network.post import CollectedResponse, request_head, send_alone
from . import desktop, pass_on, webhook
from .answers import PATH, AnswerServer, PortTaken, Spawn, new_token

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from ..transports.http.request_reader import Request
    from ..transports.http.responder import Responder

Invite = Callable[[WaitingApproval], Awaitable[bool]]
"""As `session.waiting_approvals.Invite`."""

_POST_SECONDS: Final = 10.0  # for all of it: chat programs answer within one
_LONGEST_RESPONSE: Final = 64 * 1024  # bytes of a response, which is not looked at
_REDIRECTION: Final = 3  # the first digit of a status
_MOST_POSTED: Final = 64  # at a time: a person answers one after another, and an agent must not flood a chat
_MOST_SHOWING: Final = 4  # at a time: each is a process
_MOST_TOKENS: Final = 1024  # twice as many as requests of one session wait at a time
_PORT_SECONDS: Final = 1.0  # between two looks whether the run that has the port has ended
_PLACES: Final = "hookproxy console or hookproxy top"


class Ways:
    """The ways of one process."""

    def __init__(
        self,
        take: Callable[[GivenAnswer], Awaitable[AnswerTaken]],
        secret_of: Callable[[WebhookSettings], bytes],
        folder: str,
        spawn: Spawn,
        report: Callable[[str], None],
    ) -> None:
        """`take` gives an answer to whoever asks. `secret_of` reads a secret, and raises UserError.

        In `folder` the runs of this account are found, to which other answers are passed on. `spawn` starts tasks.
        """
        self._take = take
        self._secret_of = secret_of
        self._folder = folder
        self._spawn = spawn
        self._report = report
        self._secrets: dict[WebhookSettings, bytes] = {}
        self._servers: dict[WebhookSettings, AnswerServer] = {}
        self._posted = 0  # approvals that wait for the webhook's answer
        self._showing = 0  # notifications that are being shown
        self.own_address = ""
        """The address of a listener of ours that gives answers to `handle`; empty: each webhook has its own."""
        self._tokens: dict[str, tuple[str, str]] = {}
        """Of the last approvals that were posted: their tokens, and what the webhook is called."""

    def prepare(self, settings: ApprovalSettings) -> None:
        """Read what will be needed. Raises UserError."""
        if settings.webhook is not None:
            self._secret(settings.webhook)

    def invitations(self, settings: ApprovalSettings, *, may_answer: bool, consoles_find_it: bool) -> Sequence[Invite]:
        """What reports one approval to people; `may_answer`: whoever gets the webhook's messages may answer."""
        invitations: list[Invite] = []
        if settings.webhook is not None and may_answer:
            invitations.append(partial(self._post, settings.webhook))
        if settings.desktop:
            invitations.append(partial(self._notify, consoles_find_it))
        return invitations

    async def notify(self, approval: WaitingApproval, where: str) -> bool:
        """Show a notification about a call that waits there. False: it could not be shown, which is reported."""
        if self._showing >= _MOST_SHOWING:
            return True  # the others say already that something waits
        self._showing += 1
        try:
            problem = await desktop.notify(approval, where, os.environ)
        finally:
            self._showing -= 1
        if problem:
            self._report(f"an approval waits, and the desktop does not say so: {problem}")
        return not problem

    async def aclose(self) -> None:
        """Take no more answers."""
        for server in self._servers.values():
            await server.aclose()

    # --- the desktop ---

    async def _notify(self, consoles_find_it: bool, approval: WaitingApproval) -> bool:
        """Nobody can answer the notification itself, so it helps only if a console will show the approval."""
        return await self.notify(approval, _PLACES) and consoles_find_it

    # --- the webhook ---

    async def _post(self, hook: WebhookSettings, approval: WaitingApproval) -> bool:
        """Post the approval; if that is done, answers are taken until this is cancelled."""
        if self._posted >= _MOST_POSTED:
            self._report(f"{_MOST_POSTED} calls wait for the webhook: one more call of {approval.tool} is not posted")
            return False
        self._posted += 1
        try:
            return await self._post_one(hook, approval)
        finally:
            self._posted -= 1

    async def _post_one(self, hook: WebhookSettings, approval: WaitingApproval) -> bool:
        place = address.parse(hook.url)
        token = new_token()
        self._keep_token(approval.id, token, f"the webhook {place.origin}")
        try:
            server = None if self.own_address else self._server(hook)
            if server is not None:
                await server.open(hook.listen)
            base = hook.public_url or (f"{self.own_address}{PATH}" if server is None else server.address)
            await self._send(place, webhook.body(approval, f"{base}/{approval.id}/{token}"), self._secret(hook))
            while True:
                await anyio.sleep(_PORT_SECONDS)
                if server is not None:  # the run that has had the port may have ended
                    await server.open(hook.listen)
        except (OSError, PortTaken, UserError, ValueError) as problem:
            text = problem.message if isinstance(problem, UserError) else str(problem) or type(problem).__name__
            self._report(f"the webhook {place.origin} cannot ask about a call of {approval.tool}: {text}")
            return False

    def _keep_token(self, approval: str, token: str, by: str) -> None:
        """Also when it no longer waits: whoever answers too late learns that."""
        if len(self._tokens) >= _MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[approval] = token, by

    async def _send(self, place: address.Address, posted: bytes, secret: bytes) -> None:
        """Raises OSError, also for a response that is not 2xx. No redirect is followed, and no proxy is used."""
        response = CollectedResponse(_LONGEST_RESPONSE)
        request = request_head(b"POST", place, webhook.headers(secret, posted, time()), posted)
        if place.is_tls:
            await anyio.to_thread.run_sync(lambda: self._tls)  # reading all certificates takes 50 ms
        try:
            with anyio.fail_after(_POST_SECONDS):
                await send_alone(place, request, response, {}, lambda: self._tls)
        except TimeoutError:
            raise ConnectionError(f"it has not answered within {_POST_SECONDS:g} s") from None
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            redirects = ", and redirects are not followed" if response.status // 100 == _REDIRECTION else ""
            raise ConnectionError(f"it has answered with status {response.status}{redirects}")

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return tls_context(None, None, None)

    def _secret(self, hook: WebhookSettings) -> bytes:
        """Raises UserError."""
        if hook not in self._secrets:
            secret = self._secret_of(hook)
            if len(secret) < webhook.SHORTEST_SECRET:
                hint = "make one: openssl rand -hex 32"
                text = f"approvals.webhook.secret: the value has fewer than {webhook.SHORTEST_SECRET} bytes"
                raise UserError(text, hint)
            self._secrets[hook] = secret
        return self._secrets[hook]

    def _server(self, hook: WebhookSettings) -> AnswerServer:
        """Raises UserError."""
        server = self._servers.get(hook)
        if server is None:
            server = self._servers[hook] = AnswerServer(self._secret(hook), self._answer, self._spawn, self._report)
        return server

    # --- answers ---

    @cached_property
    def handle(self) -> Callable[[Request, Responder], None]:
        """Responds to an answer that has come to a listener of ours; it knows no secret."""
        return AnswerServer(b"", self._answer, self._spawn, self._report).handle

    async def take(self, answer: Answer) -> AnswerTaken | None:
        """Take an answer with its token; None: no approval with this token waits here."""
        token, by = self._tokens.get(answer.approval, ("", ""))
        if not token or not hmac.compare_digest(token, answer.token):
            return None
        return await self._take(GivenAnswer(answer, by))

    async def _answer(self, answer: Answer) -> AnswerTaken | None:
        if answer.approval in self._tokens:
            return await self.take(answer)
        return await pass_on.pass_on(self._folder, answer)
