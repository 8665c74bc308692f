"""Runs recorded calls through the hooks that are configured now, and finds the calls whose decision would differ.

Arguments that are recorded with masked or missing parts are replayed as they are recorded: who judges by such a part
judges the mark, and whoever reads the result must know of which calls that holds.

Hooks that run before a call really run, one call after another, in the order of the record. Results are not recorded,
so hooks after a call do not run. Only one call and a few sessions are in memory at a time, even for a long record.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from ..audit import lines
from ..audit.records import BadLine, CallRecord, Entry, joined
from ..config.load import Loaded
from ..dialects.dialect import Group
from ..jsonrpc import normalize
from ..model.errors import UserError
from ..model.hooks import Event, Session
from ..model.settings import Settings
from ..protocol import calls
from .run import Plan, TrialCall, TrialResult, TrialRunner

_EVENTS: Final = frozenset({Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST})
_MAX_SESSIONS: Final = 16  # kept at a time: several agents may share a file, and workers need memory
_MAX_PARTIAL: Final = 1000  # calls that are named: more would not help anybody
_DECISIONS: Final = frozenset({"allow", "deny", "asked", "asked-allow", "asked-deny"})
_DECISIONS_THAT_RUN: Final = frozenset({"allow", "asked", "asked-allow"})


class Outcome(Struct, frozen=True):
    """The decision about a call, as recorded or as it would be now."""

    decision: str
    by: str = ""
    """Who decided, in words; empty if no hook or rule decided anything."""
    reason: str = ""
    arguments: bytes = b""
    """The arguments that run, as JSON; empty: the call does not run, or they are not known."""


class Difference(Struct, frozen=True):
    """A call whose decision would differ."""

    record: CallRecord
    before: Outcome
    after: Outcome


class UnreadableLine(Struct, frozen=True):
    """A line that cannot be replayed, and why."""

    line: int
    why: str


class Tally(Struct, rename={"failed_hooks": "troubled"}):
    """How many calls had which outcome."""

    replayed: int = 0
    differing: int = 0
    digests: int = 0
    """Recorded only with a digest of their arguments."""
    undecided: int = 0
    """Ended before they were decided."""
    limited: int = 0
    """Refused by a rate limit or a sink. They are not replayed: that depends on the times and results of calls."""
    unread: int = 0
    """Lines that are neither the record of a call nor a note, or whose call cannot be judged."""
    failed_hooks: int = 0
    """Replayed calls for which a hook failed."""
    partial: int = 0
    """Replayed calls of whose arguments parts are masked or left out in the record."""
    partial_calls: list[str] = []
    """The first of them: their ids, or the numbers of their lines."""


class RecordedSession(Struct, frozen=True):
    """What judges the calls of a recorded session now."""

    loaded: Loaded
    environ: Mapping[str, str]
    session: Session
    """As hooks see it."""


class NotAdmitted(Exception):
    """Whoever called would find no server now; the text says why."""


SessionOf = Callable[[CallRecord], RecordedSession]
"""What judges a recorded call now. Raises NotAdmitted; and UserError if that cannot be known."""


def same_for_all(loaded: Loaded, environ: Mapping[str, str], cwd: str) -> SessionOf:
    """One policy for the calls at all servers: that of `run`."""

    def session_of(record: CallRecord) -> RecordedSession:
        project = environ.get("CLAUDE_PROJECT_DIR") or cwd
        session = Session(str(uuid.uuid4()), record.server, cwd, project).in_project(loaded.project)
        return RecordedSession(loaded, environ, session)

    return session_of


class Replay:
    """The replay of one audit file; `tally` is filled in while it runs."""

    def __init__(self, session_of: SessionOf) -> None:
        self.tally = Tally()
        self._sessions = _Sessions(session_of)

    async def __aenter__(self) -> Self:
        """Kept processes of hooks end with the block, also after an error."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self._sessions.aclose()

    async def over(self, entries: Iterable[Entry]) -> AsyncIterator[Difference | UnreadableLine]:
        """Yield the differences, and the lines that cannot be replayed, as they are found. Raises UserError."""
        for entry in joined(entries):
            found = await self._replay_call(entry) if isinstance(entry, CallRecord) else _unread(entry)
            if isinstance(found, UnreadableLine):
                self.tally.unread += 1
            if found is not None:
                yield found

    async def _replay_call(self, record: CallRecord) -> Difference | UnreadableLine | None:
        if record.v > lines.VERSION:
            return UnreadableLine(record.line, f"it has format {record.v}, and this hookproxy reads {lines.VERSION}")
        if is_limited(record):
            self.tally.limited += 1
            return None
        if record.decision not in _DECISIONS:
            self.tally.undecided += 1
            return None
        if not record.arguments:
            self.tally.digests += 1
            return None
        try:
            trials = await self._sessions.of(record)
        except NotAdmitted as why:
            return self._noted(record, recorded_outcome(record), Outcome("deny", "the gateway", str(why)))
        except UserError as problem:
            return UnreadableLine(record.line, f"{problem.message} ({problem.hint})")
        raw_id = calls.response_id({"id": record.id})
        trial = await trials.call(
            TrialCall(record.tool, bytes(record.arguments), id=b"1" if raw_id == b"null" else raw_id)
        )
        if trial.unreadable:
            return UnreadableLine(record.line, trial.unreadable.rstrip("."))
        return self._compared(record, trial)

    def _compared(self, record: CallRecord, trial: TrialResult) -> Difference | None:
        self.tally.failed_hooks += any(run.hook_run and run.hook_run.verdict.failure for run in trial.observation.runs)
        return self._noted(record, recorded_outcome(record), current_outcome(trial, bytes(record.arguments)))

    def _noted(self, record: CallRecord, before: Outcome, after: Outcome) -> Difference | None:
        self.tally.replayed += 1
        if record.is_partial:
            self.tally.partial += 1
            if len(self.tally.partial_calls) < _MAX_PARTIAL:
                self.tally.partial_calls.append(record.call or f"line {record.line}")
        if not outcomes_differ(before, after):
            return None
        self.tally.differing += 1
        return Difference(record, before, after)


def is_limited(record: CallRecord) -> bool:
    """Whether a rate limit or a sink of data has refused it, or asked: that depends on the calls before."""
    return bool(record.chains) or (
        record.by.startswith("limits[") and not any(hook.outcome == "blocking" for hook in record.hooks)
    )


def _unread(entry: Entry) -> UnreadableLine | None:
    """The line that cannot be replayed; None for a note, which is not about a call."""
    return UnreadableLine(entry.line, entry.why) if isinstance(entry, BadLine) else None


def recorded_outcome(record: CallRecord) -> Outcome:
    """The outcome in the record."""
    word = "ask" if record.decision.startswith("asked") else record.decision
    deciding = [hook for hook in record.hooks if hook.verdict == word]
    if record.decision == "deny":
        deciding = deciding or [
            hook for hook in record.hooks if hook.outcome == "blocking" or hook.verdict == "trouble"
        ]
    if record.decision == "allow":
        deciding = [hook for hook in record.hooks if hook.verdict == "rewrite"]
    by = f"the {deciding[-1].event} hook {deciding[-1].source}" if deciding else ""
    runs = record.decision in ("allow", "asked-allow")  # for `asked`, the record does not say what would run
    arguments = bytes(record.rewritten or record.arguments) if runs else b""
    return Outcome(record.decision, by, record.reason or (deciding[-1].reason if deciding else ""), arguments)


def current_outcome(trial: TrialResult, arguments: bytes) -> Outcome:
    """The outcome of a trial."""
    by, reason = trial.decided_by
    rewriting = [
        run.spec for run in trial.observation.runs if run.hook_run and run.hook_run.verdict.arguments is not None
    ]
    if not by and trial.proposed and rewriting:
        by = f"the {rewriting[-1].event} hook {rewriting[-1].source}"
    executes = trial.decision in _DECISIONS_THAT_RUN
    return Outcome(trial.decision, by, reason, (trial.proposed or arguments) if executes else b"")


def outcomes_differ(before: Outcome, after: Outcome) -> bool:
    """Whether the decision or the arguments that run differ. Asking a person is one decision, whatever the answer."""
    same = before.decision == after.decision
    if not same and not (after.decision == "asked" and before.decision.startswith("asked")):
        return True
    return bool(before.arguments and after.arguments) and not same_json(before.arguments, after.arguments)


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two texts are the same JSON value: the order of members does not count, the spelling of numbers does."""
    return _value(one) == _value(other)


def _value(raw: bytes) -> object:
    """A JSON value for comparison."""
    try:
        return json.loads(normalize.normalize(raw), parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return raw


def _number(spelled: str) -> tuple[str]:
    return (spelled,)  # a tuple equals no other JSON value: true is not 1, and "1" is not 1


class _Sessions:
    """The hooks of each recorded session. Workers and what hooks have allowed are kept for that session only."""

    def __init__(self, session_of: SessionOf) -> None:
        self._session_of = session_of
        self._open: OrderedDict[tuple[str, str, str], TrialRunner] = OrderedDict()

    async def of(self, record: CallRecord) -> TrialRunner:
        """The trials of the session that a call belongs to. A session that was not used for long starts again.

        Raises as SessionOf.
        """
        key = (record.server, record.session, record.user)
        if key not in self._open:
            of_record = self._session_of(record)
            if len(self._open) >= _MAX_SESSIONS:
                _, oldest = self._open.popitem(last=False)
                await oldest.hooks.runners.aclose()
            groups = tuple(map(awaited_hooks, of_record.loaded.groups))
            plan = Plan(_EVENTS, without_limits(of_record.loaded.settings))
            self._open[key] = TrialRunner(groups, plan, of_record.session, of_record.environ, of_record.loaded.trust)
        self._open.move_to_end(key)
        return self._open[key]

    async def aclose(self) -> None:
        """End the kept processes of hooks."""
        for trials in self._open.values():
            await trials.hooks.runners.aclose()


def without_limits(settings: Settings) -> Settings:
    """The settings without rate limits and labels, which depend on the times and the results of calls."""
    none = dict.fromkeys(("limits", "flow_sources", "flow_sinks"), ())
    managed = settings.managed and replace(settings.managed, **none)
    return replace(settings, **none, audit_all_calls=False, managed=managed)


def awaited_hooks(group: Group) -> Group:
    """The group without background hooks: they decide nothing, and their effects have happened already."""
    return replace(group, hooks=tuple(spec for spec in group.hooks if not spec.background))
