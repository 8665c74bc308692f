"""Refusals of credentials: each is reported once, and remembered until the server accepts a request.

An `initialize` that the server refuses for another reason says so: an agent that tries both eras shows only its error,
which hides the login.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol import feedback
from ...protocol.calls import Progress
from . import messages
from .exchange import Exchange


class RefusedCredentials:
    """What was refused last."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported = ""  # the refusal that was reported last
        self.earlier: tuple[str, str] | None = None
        """The refusal that later errors mention, without a full stop, and what helps; None: there is none."""

    def accepted(self, exchange: Exchange) -> None:
        """The server has accepted a request. If that had credentials, their next refusal is reported again."""
        self.earlier = None
        if exchange.used_authorization is not None:
            self._reported = ""

    def refused(self, exchange: Exchange, hint: str) -> tuple[str, str]:
        """Report a refusal; return why this request fails, and what an error says of it later. Remember it then.

        `hint` says what helps; empty: nothing that we could do, but what the server says may.
        """
        if hint:
            whose, why = "", f"because a login is needed (HTTP {exchange.status})"
        else:
            whose, why = "the credentials of ", f"with HTTP status {exchange.status}{exchange.error_text()}"
        this, earlier = (f"The server has refused {whose}{which} request, {why}" for which in ("this", "an earlier"))
        text = f"{this}. {hint}".rstrip(". ")
        if text != self._reported:
            self._reported = text
            self._report(text)
        self.earlier = None  # this one is reported in full
        return this, earlier

    def mention(self, raw_id: bytes, line: bytes) -> bytes:
        """Add to the error of an `initialize` that the server has refused credentials before."""
        if self.earlier is None or not (text := messages.error_message(line)):
            return line
        (earlier, hint), text = self.earlier, text.rstrip(".")
        why = f"{earlier}. The server has answered initialize with the error: {text}"
        failure = feedback.remote_failure(raw_id, why, Progress.NOT_SENT, is_call=False, refusal=line, hint=hint)
        return failure.rstrip(b"\n")
