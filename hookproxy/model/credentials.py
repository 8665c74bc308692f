"""The shape of what supplies credentials for a remote server. `transports` asks for them; nothing here does I/O."""

from __future__ import annotations

from typing import Protocol


class NotReady(Exception):  # not a failure: the value takes some time
    """The value must be read or refreshed first."""


class Credentials(Protocol):
    """Supplies the `Authorization` header of requests to one remote server, and only to that server."""

    @property
    def hint(self) -> str:
        """What the model and the person read if a login is needed: a sentence with the command to run."""

    def value_now(self) -> str | None:
        """Return the same as `value` if nothing has to be read or refreshed. Raises NotReady."""

    async def value(self) -> str | None:
        """Return the header's value now, refreshed if needed; None: the request is sent without one.

        On cancel, a refresh that has begun is completed or has no effect: a refresh token must not be lost. Raises
        OSError, ValueError: the request is then not sent, and its error gives the text of the exception.
        """

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        """Return another value for one further attempt, or None: a person must log in.

        The server has refused a request with this status (401 or 403), the text of its `WWW-Authenticate` header
        (empty: none) and the value that was `used`. The server has not acted on the request, so it may be sent again.
        """


class NoCredentials:
    """No credentials: requests carry no `Authorization` header."""

    def __init__(self, hint: str = "") -> None:
        self.hint = hint

    def value_now(self) -> str | None:
        """As in Credentials."""
        return None

    async def value(self) -> str | None:
        """As in Credentials."""
        return None

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        """As in Credentials."""
        return None
