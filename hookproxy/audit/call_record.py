"""What the audit records: a call from its beginning to its end, and a message that was refused before it was a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Raw, Struct, field

from ..model.call_end import CallEnd, Refused, Responded
from ..model.decision import Proceed
from ..model.flow import Chain
from ..model.hooks import HookRun, HookSpec

_ANSWERS: Final = {"approval": "allow", "rejection": "deny"}


class Skipped(Struct, frozen=True):
    """A configured hook that did not run for a call."""

    spec: HookSpec
    why: str
    """A sentence for people, without a full stop."""


class RefusedMessage(Struct, frozen=True):
    """A message of the agent that was refused before it was a call: it cannot be read for certain, or must not pass."""

    why: str
    """A sentence."""
    id: bytes = b"null"
    """The id to which the refusal responds, as spelled."""
    line: bytes = b""
    """The message; empty: it is not known any more, because it was too long."""
    agent: str = ""
    """Name and version as the agent gave them."""


class CallSpan(Protocol):
    """The telemetry span of a call."""

    def end(self, record: Record) -> None:
        """End the span of a finished call, and record its metrics."""


class WatchedCall(Struct, eq=False):
    """One call as a policy judges it that is only watched: it has a record of its own, of what would have happened."""

    replaces: str = ""
    """The file of the policy that is watched in place of the one in force; empty: it would be added to that."""
    record: Record | None = None
    """None: it has not been judged yet."""
    ended: bool = False
    """The record is complete."""
    on_end: Callable[[], None] | None = None
    """Called when it is."""
    on_decided: Callable[[str], None] | None = None
    """Called with the result when the call itself has ended: what it waits for may never come."""

    def end(self) -> None:
        """The record is complete."""
        self.ended = True
        if self.on_end is not None:
            self.on_end()


class Record(Struct):
    """What is known about one call, filled in during the call. Times are in milliseconds."""

    session: str
    server: str
    tool: str
    id: bytes
    """JSON, as the agent spelled it."""
    arguments: bytes
    """JSON, as the agent sent them, normalised."""
    agent: str = ""
    """Name and version as the agent gave them."""
    method: str = ""
    """The method, of which `tool` is the name as well; empty or `tools/call`: it is a tool's call."""
    protocol: str = ""
    """The version of MCP that the agent speaks, as it says; empty: it is not known."""
    alias: str = ""
    """The tool's name for hooks, if it has an alias."""
    hook_runs: list[HookRun] = field(default_factory=list)
    earlier_hooks: Sequence[Raw] = ()
    """The hooks that have run for it elsewhere, as a line shows them, and how long they took:"""
    earlier_ms: float = 0.0
    native: str = ""
    """The id of the record of the agent's own event about it, if another configuration has judged that; else empty."""
    final: bytes = b""
    """The rewritten arguments, if a hook rewrote them."""
    decision: str = ""
    """`allow`, `deny`, `asked-allow`, `asked-deny`, `asked`; empty if the call ended before."""
    call: str = ""
    """Its id in the audit: that of the run, and its number in it."""
    by: str = ""
    """Who refused it: a hook's label, a permission rule, a limit's key."""
    cause: str = ""
    """Why it was refused, as a `RefusalCause`; `stopped` by a hook that stopped all calls, or `audit`."""
    place: str = ""
    """Where the rule or limit that refused it is configured: file, line and key."""
    exceeds: tuple[str, ...] = ()
    """The limits beyond which it runs, each with its place: a person was asked, or the model reads of it."""
    reason: str = ""
    """Why it was refused, in the words of the person who said no if there are any; or another remark about it."""
    labels: Sequence[str] = ()
    """What its result has brought into the session."""
    chains: Sequence[Chain] = ()
    """What the call has carried to sinks of data, or would have."""
    result: str = "ok"
    """`ok`, `error`, `refused`, `cancelled`, `lost`; `pending` if it continues in further requests; `sent` if nobody
    reads its response; `begun` in the line that is written before a call whose record is required is forwarded."""
    asked_by: str = ""
    """Which hook or rule a person was asked for, in words; empty: nobody was asked."""
    answer: str = ""
    """What was answered: `allow`, `allow_session`, `allow_similar`, `deny`; empty: nothing."""
    answered_by: str = ""
    """Who has answered, and from where; empty: nobody has."""
    edited: bool = False
    """The person has changed the arguments: `final` has them."""
    result_before: bytes = b""
    """The server's response, if hooks changed it."""
    result_after: bytes = b""
    """The response that the agent got instead."""
    skipped: Sequence[Skipped] = ()
    """The configured hooks for events of calls that did not run."""
    repeats: int = 0
    """How often the call was repeated because a hook asked for it."""
    ms: float = 0.0
    at: float = 0.0
    """When it ended, in seconds since 1970."""
    begun: bool = False
    """A line that it has begun is written."""
    watched: WatchedCall | None = None
    """What a policy would have done that is only watched; None: there is none, or it is not about this call."""
    span: CallSpan | None = None
    """The call's telemetry span, until the record is written."""

    @property
    def own_hook_ms(self) -> float:
        """How long the hooks took that have run here."""
        return sum(run.result.ms for run in self.hook_runs) if self.hook_runs else 0.0

    @property
    def answered(self) -> str:
        """What was answered, and by whom."""
        return f"{self.answer} by {self.answered_by}" if self.answer else self.answered_by

    @property
    def result_changed(self) -> bool:
        """Hooks changed the response."""
        return bool(self.result_after)

    def note_allowed(self, proceed: Proceed) -> None:
        """The call may be forwarded."""
        self._note_answer()
        self.decision, self.final = "asked-allow" if proceed.asked else "allow", proceed.arguments or b""
        self.chains = proceed.chains
        self.exceeds = proceed.exceeds

    def note_end(self, end: CallEnd) -> None:
        """Derive from how the call has ended what is recorded of it. What a person has said about it stays."""
        self._note_answer()
        self.result, self.reason = end.result, end.reason or self.reason
        if isinstance(end, Refused):
            self.decision = "asked-deny" if end.asked else "deny"
            self.cause, self.by, self.place = end.cause, end.by, end.place
        elif isinstance(end, Responded) and end.asks:
            self.decision = "asked"

    def _note_answer(self) -> None:
        """Derive who has answered from the runs of programs that do so in a person's place, unless a person has."""
        if self.answered_by:
            return
        for number, run in enumerate(self.hook_runs):
            if run.verdict.answer and not self.answered_by:
                asking = self.hook_runs[number - 1].spec if number else run.spec
                self.asked_by, self.answer = f"the {asking.event} hook {asking.label}", _ANSWERS[run.verdict.answer]
                self.answered_by = f"the program {run.spec.target}"
