"""The shape of a channel: where frames come from and go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

READ_AT_ONCE: Final = 65536  # bytes: the capacity of a pipe on Linux; more can not be there, less costs another call
DRAINED: Final = 1024 * 1024  # bytes: the most that a pipe can hold unless root allows more
FULL: Final = 256 * 1024  # bytes queued for a peer that does not read, from which on nothing more is read for it
EMPTY: Final = 64 * 1024  # bytes queued at which reading goes on: a pipe's worth, so that the peer never waits for us


class Channel(Protocol):
    """One peer's pair of byte streams. Everything happens in the event loop's own thread, and nothing waits."""

    def start(
        self,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_full: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        """Begin to read: each piece goes to `on_bytes` in the loop's own callback, the end of input once to `on_end`.

        `on_full(True)` says that the peer does not take what is written, `on_full(False)` that it does again;
        `on_gone` that it has closed its reading side, which is noticed although nothing is written.
        """

    def write(self, piece: bytes) -> None:
        """Send bytes in order: at once what the peer takes at once, the rest when it does. Dropped if it is gone."""

    def pause(self) -> None:
        """Read no more until `resume`."""

    def resume(self) -> None:
        """Read again."""

    @property
    def gone(self) -> bool:
        """The peer takes no more bytes: it closed its reading side."""

    @property
    def queued(self) -> int:
        """Bytes written that the peer has not taken yet."""

    def drain(self) -> None:
        """Read all that is there now, however slowly it is taken; not more than a pipe holds."""

    async def flushed(self) -> None:
        """Wait until the peer has taken everything queued, or is gone."""

    def end_output(self) -> None:
        """Close the writing side once everything queued has gone."""

    def close(self) -> None:
        """Stop reading and close both sides; what is still queued is lost."""
