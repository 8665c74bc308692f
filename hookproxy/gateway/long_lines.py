"""Long lines of agents over Unix sockets: what looks at them, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from ..model.settings import MAX_DEPTH
from .pace import MEDIUM_BYTES

if TYPE_CHECKING:
    from .gateway import Gateway


class LongLook:
    """As `Look`, for the lines of a user's agents over a Unix socket."""

    def __init__(self, gateway: Gateway, user: str) -> None:
        self._gateway = gateway
        self._user = user

    @property
    def limit(self) -> int:
        """As `Look`."""
        return self._gateway.config.gateway.max_request_bytes

    async def why_refused(self, pieces: Sequence[bytes]) -> str:
        """As `Look`."""
        why = await self._gateway.long_messages.why_refused(self._user, pieces, MAX_DEPTH)
        await anyio.sleep(self._gateway.delay(self._user))
        return why

    def note_time(self, size: int, seconds: float) -> None:
        """As `Look`."""
        if size >= MEDIUM_BYTES:
            self._gateway.pace.spend(self._user, seconds)
