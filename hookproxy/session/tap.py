"""What a session knows of whoever watches it: it gets all bytes, changes nothing, and ends with the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..jsonrpc.known_secrets import KnownSecrets
from ..model.hooks import Session

if TYPE_CHECKING:
    import anyio.abc

TakeBytes = Callable[[bytes], None]


class Tap(Protocol):
    """Gets what both sides send, and changes nothing of it."""

    def connect(self, from_agent: TakeBytes, from_server: TakeBytes) -> tuple[TakeBytes, TakeBytes]:
        """Return what gets the bytes of each side in the place of these, and passes them on to these."""

    def agent_ended(self) -> None:
        """The agent's last line has been processed."""

    def server_ended(self) -> None:
        """The server's last line has been processed."""


class Watching(Tap, Protocol):
    """The policy that is only watched, in one session."""

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Judge calls in `tasks` from now on."""

    def stop(self) -> None:
        """Judge no further calls: nothing is only watched any more."""

    def change_session(self, session: Session) -> None:
        """As in Proxy."""

    def use_secrets(self, secrets: KnownSecrets) -> None:
        """As in Proxy."""

    async def end_session(self) -> None:
        """Run the SessionEnd hooks, if the agent has opened the session."""

    def handle_server_exit(self, why: str) -> None:
        """As in Proxy."""

    def end_all(self, why: str) -> None:
        """End all calls whose hooks still run; `why` is a sentence without a full stop."""

    async def wait(self) -> None:
        """Wait until all calls and hooks have ended that are watched."""

    async def aclose(self) -> None:
        """Write the records that are left, and close the hooks' runners."""
