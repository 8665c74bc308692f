"""What several runs of the proxy count and remember together, as the code of a call sees it.

Without it each run keeps its own. Where it cannot be reached, limits and approvals fail closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from ..model.flow import ClearedFlow, KnownLabels, Reading
    from ..model.hooks import EventContext, Tool
    from ..model.limits import CountedCall, Limit
    from ..model.reported_call import ReportedCall
    from .rate_limits import LimitReached, WindowOf
    from .similar_calls import SimilarCalls


class StoreUnavailable(Exception):
    """The store cannot be reached. The text says why, in a few words without a full stop."""


class Approved(Struct, frozen=True, omit_defaults=True):
    """The calls that a person has allowed for a session: those of a tool, or only some of them."""

    tool: str
    managed: bool = False
    """Managed hooks or rules required the approval."""
    rule: str = ""
    """Only the calls that this permission rule covers."""
    similar: SimilarCalls | None = None
    """Only these calls."""
    limits: tuple[str, ...] = ()
    """A person was asked because they exceed the limits with these keys: they may exceed those, and that is all."""


class SharedLimits(Protocol):
    """Limits that are counted for several runs together. Both functions raise StoreUnavailable."""

    async def exceeded(self, limits: Sequence[Limit], call: CountedCall) -> Sequence[LimitReached]:
        """Return the limits that one more call would exceed."""

    async def count(
        self, limits: Sequence[Limit], call: CountedCall, approved: Iterable[str] = ()
    ) -> LimitReached | None:
        """Count a call that is about to be forwarded, as `RateLimits.count`."""


class SharedApprovals(Protocol):
    """What a person has allowed for a session that several runs serve. Both functions raise StoreUnavailable."""

    async def approved(self) -> Sequence[Approved]:
        """Return all that is allowed."""

    async def allow(self, calls: Approved) -> None:
        """Allow these calls for the rest of the session. With too many entries, nothing is added."""


class SharedSecrets(Protocol):
    """What `[secrets]` has hidden in a session that several runs serve: what one hides, another may restore.

    All functions raise StoreUnavailable. Values never leave the account of the user. A value is text with a character
    for each of its bytes.
    """

    async def key(self) -> bytes:
        """Return the key of the placeholders: with it, all runs of the session give a value the same one."""

    async def keep(self, values: Mapping[str, str]) -> None:
        """Keep the value of each of these placeholders until the session ends."""

    async def value_of(self, placeholder: str) -> str | None:
        """Return the value for which a placeholder stands; None: no run of this session has made it."""


class SharedLabels(Protocol):
    """What sources have brought into a session that several runs serve. All functions raise StoreUnavailable.

    A *print* is a keyed hash of a text that was read, as `flow.prints` makes it: no text itself is kept.
    """

    async def key(self) -> bytes:
        """The key of prints, which is the same for the whole session: 16 bytes."""

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        """What sticks to the session now, and which of it these prints of a call's texts carry; None: all of it."""

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        """Note a reading, before the agent gets it; its `number` is given here.

        With `whole`, any text may carry it, as its prints are too many.
        """

    async def remove(self, labels: Collection[str]) -> None:
        """Take these labels from the session."""

    async def clear(self, cleared: ClearedFlow) -> None:
        """Note what a person allows."""


class NativeCalls(Protocol):
    """What the agent's own hooks tell of the session that a run belongs to."""

    @property
    def is_away(self) -> bool:
        """Nobody can say anything now."""

    async def join(self) -> None:
        """Wait until it is known which session that is, if anybody can say."""

    async def claim(self, context: EventContext, listed: Tool | None, call_id: str) -> ReportedCall | None:
        """What an event has reported of this very call; None: nothing, or another call has claimed it.

        `listed` is the tool's entry in `tools/list`, and `call_id` the agent's own id of the call, or empty.
        """

    def note_end(self, reported: ReportedCall, decision: str, result: str, size: int, seconds: float) -> None:
        """A claimed call has ended: as its record says, with a response of so many bytes, after so long a time."""


class SessionCalls(Protocol):
    """The calls of a session that have ended."""

    def json(self) -> bytes:
        """All that are kept, as JSON."""

    def note(self, server: str, tool: str, arguments: bytes, decision: str, result: str) -> None:
        """A call has ended, as its record says."""


class WritesTranscript(Protocol):
    """Writes what is done in a session to a file."""

    def note_call(self, context: EventContext) -> None:
        """Hooks are about to judge a call."""

    def note_result(self, context: EventContext) -> None:
        """A call has ended, with an outcome that hooks see."""


class Shared(Struct, frozen=True):
    """What one session shares with others."""

    window_of: WindowOf | None = None
    """Gives the windows of rate limits that runs of the same process share; None: each run has its own."""
    limits: SharedLimits | None = None
    """Counts the rate limits of all processes; None: they are counted in this one."""
    approvals: SharedApprovals | None = None
    """Keeps what a person allows for the session; None: it is kept in this run."""
    secrets: SharedSecrets | None = None
    """Keeps what `[secrets]` has hidden in the session; None: it is kept in this run."""
    labels: SharedLabels | None = None
    """Keeps the labels of the session; None: `new_labels` says who does."""
    new_labels: Callable[[], SharedLabels] | None = None
    """Gives who keeps them, where something says where data may go; None: they are kept in this run."""
    calls: SessionCalls | None = None
    """Keeps the calls that have ended, for hooks that get them; None: each run keeps its own."""
    transcript: WritesTranscript | None = None
    """Writes what is done for hooks that read it in a file; None: none does."""
    native: NativeCalls | None = None
    """Knows what the agent's own hooks tell; None: the agent is seen by this run alone."""


NOTHING_SHARED: Final = Shared()
