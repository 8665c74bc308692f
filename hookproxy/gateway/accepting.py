"""Accepts connections at a Unix socket, also while descriptors are short: then those that are kept are used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    import socket

    from ..network.spare_descriptors import SpareDescriptors

_AGAIN_SECONDS: Final = 0.1
"""After an error in accepting, mostly because there are no more descriptors: connections wait in the queue."""


async def connections(
    listener: socket.socket, spare: SpareDescriptors, on_failure: Callable[[OSError], None] = lambda _error: None
) -> AsyncIterator[socket.socket]:
    """The connections at this socket, one after another, until it is cancelled."""
    while True:
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue
        except OSError as error:
            on_failure(error)
            if not spare.give():
                await anyio.sleep(_AGAIN_SECONDS)
            continue
        spare.refill()
        connection.setblocking(False)
        yield connection
