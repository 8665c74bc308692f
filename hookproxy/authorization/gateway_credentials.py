"""The credentials of `hookproxy connect --url` at a gateway: a token that the user was given, or a stored login.

Law: whoever is refused reads where the token must be put and which command makes one. No text here has a token in it.
"""

# ruff: noqa: D102  # methods without a docstring are described by Credentials
from __future__ import annotations

from collections.abc import Callable

from ..model.credentials import Credentials
from ..model.errors import UserError
from ..protocol import feedback
from . import challenges


class GivenToken:
    """A token in a file or a variable. It is a `model.credentials.Credentials`."""

    def __init__(self, gateway: str, place: str, read: Callable[[], str]) -> None:
        """`place` is where the token is, for people. `read` returns it as it is there now, and raises UserError."""
        self._gateway = gateway
        self._place = place
        self._read = read
        self._value = f"Bearer {read()}"
        self.hint = ""

    def value_now(self) -> str | None:
        return self._value

    async def value(self) -> str | None:
        return self._value

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        """The token that has taken the place of the refused one meanwhile."""
        try:
            value = f"Bearer {self._read()}"
        except UserError as problem:
            why = f"{problem.message} ({problem.hint})"
        else:
            if value != used:
                self._value = value
                return value
            why = challenges.parameters(challenge).get("error_description") or f"HTTP status {status}"
        self.hint = feedback.token_refused(self._gateway, self._place, why)
        return None


class LoginOrToken:
    """A stored login where there is one. It is a `model.credentials.Credentials`."""

    def __init__(self, gateway: str, login: Credentials) -> None:
        self._gateway = gateway
        self._login = login
        self._token_hint = ""
        self.value_now = login.value_now
        self.value = login.value

    @property
    def hint(self) -> str:
        return self._token_hint or self._login.hint

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        """A gateway that names no issuer has no login: it takes tokens of its file only."""
        if (value := await self._login.refused(status, challenge, used)) is not None:
            return value
        has_issuer = "resource_metadata" in challenges.parameters(challenge)
        self._token_hint = "" if used or has_issuer else feedback.token_needed(self._gateway)
        return None
