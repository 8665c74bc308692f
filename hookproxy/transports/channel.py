"""What a channel is: a pair of byte streams to one peer, where messages come from and go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from ..protocol.fast_scan import ReadCall

READ_SIZE: Final = 65536  # bytes per read: the capacity of a pipe on Linux
DRAIN_LIMIT: Final = 1024 * 1024  # bytes that `drain` reads at most: the largest pipe without privileges
HIGH_WATER: Final = 256 * 1024  # bytes queued for a slow peer at which its counterpart is paused
LOW_WATER: Final = 64 * 1024  # bytes queued at which reading resumes: one pipe, so that the peer never waits for us

OnBytes = Callable[[bytes], None]
OnEnd = Callable[[], None]
OnFull = Callable[[bool], None]


class Passage(Protocol):
    """A long response on its way to the agent: its beginning is sent before its end has come."""

    size: int | None
    """Bytes of the whole message, for whoever knows it before the first of them; None: nobody does."""

    def write(self, piece: bytes) -> None:
        """Send the next bytes of the message."""

    def end(self) -> None:
        """The message is complete."""

    def abort(self) -> None:
        """The rest does not come: break off, so that nobody takes what was sent for the whole message."""


@runtime_checkable
class TakesPassages(Protocol):
    """An agent's side that can send a response in pieces beside all other messages."""

    def open_passage(self, raw_id: bytes, on_end: Callable[[], None]) -> Passage | None:
        """Begin to send the response to this request; None: it must be sent whole. `on_end` is called at its end."""


@runtime_checkable
class OffersPassages(Protocol):
    """A server's side that can give responses on in pieces."""

    find_passage: Callable[[bytes], Passage | None]
    """Where the long response to a request goes in pieces; None: it must come whole."""


@runtime_checkable
class SaysWhyEnded(Protocol):
    """An agent's side that answers what is in flight when the session ends."""

    why_ended: Callable[[], str]
    """Returns why the session has ended, in a sentence without a full stop; empty: there is nothing special."""


@runtime_checkable
class OffersCalls(Protocol):
    """An agent's side that has read calls already, to check them, and knows to which call a response belongs."""

    pass_call: Callable[[ReadCall], bool]
    """Passes a call on at once. False: it has done nothing, and the line of the call must come as all others do."""

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        """Send the agent the response to a call that was passed on so; `line` has no line end."""


@runtime_checkable
class TakesCalls(Protocol):
    """A server's side that need not read a call again, and knows to which call a response belongs."""

    pass_response: Callable[[bytes, bytes], bool]
    """Passes on the response to the call with this id. False: it has done nothing, and the line must come as others."""

    def send_call(self, call: ReadCall) -> None:
        """Send the server a call."""


@runtime_checkable
class Refuses(Protocol):
    """A channel that refuses messages of the agent itself: it cannot send them on."""

    on_refused: Callable[[str, bytes, bytes], None]
    """Called with each one before the refusal is sent: why, the id to which the refusal responds, and its line."""


@runtime_checkable
class FailsWaiting(Protocol):
    """An agent's side that knows which requests wait for a response."""

    def fail_waiting(self, why: str) -> None:
        """Answer all of them with an error that says what is known of them; `why` has no full stop."""


class EndSignal(Struct, eq=False):
    """Tells one listener that something has ended: an event would need a task that waits, which takes kilobytes."""

    is_set: bool = False
    _listener: Callable[[], object] | None = None

    def set(self) -> None:
        """It has ended. Further calls do nothing."""
        if not self.is_set:
            self.is_set = True
            if self._listener is not None:
                self._listener()

    def tell(self, listener: Callable[[], object]) -> None:
        """Call this when it ends; at once if it has ended already."""
        self._listener = listener
        if self.is_set:
            listener()


class Channel(Protocol):
    """One peer's pair of byte streams. Everything happens in the event loop's own thread, and nothing blocks."""

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        """Begin to read: `on_bytes` gets each piece in the loop's own callback, `on_end` is called once at the end.

        `on_full(True)` means that the peer does not read what is written, `on_full(False)` that it reads again.
        `on_gone` means that the peer has closed its reading side, which is noticed even if nothing is written.
        """

    def write(self, piece: bytes) -> None:
        """Send bytes in order: at once what the peer takes, the rest later. They are dropped if the peer is gone."""

    def pause(self) -> None:
        """Stop reading until `resume`."""

    def resume(self) -> None:
        """Read again."""

    @property
    def gone(self) -> bool:
        """True if the peer takes no more bytes, because it has closed its reading side."""

    @property
    def reads_lines(self) -> bool:
        """The peer finds messages by their line ends: other readers than ours may see more line ends than we do."""

    @property
    def is_substitute(self) -> bool:
        """What is being delivered is not the peer's: the channel has written an error in its place."""

    @property
    def queued(self) -> int:
        """Bytes written that the peer has not taken yet."""

    def drain(self) -> None:
        """Read all that is there now, even while the other side is slow, but no more than a pipe can hold."""

    async def flushed(self) -> None:
        """Wait until the peer has taken all queued bytes, or is gone."""

    def end_output(self) -> None:
        """Close the writing side once all queued bytes are written."""

    def close(self) -> None:
        """Stop reading and close both sides; bytes that are still queued are lost."""
