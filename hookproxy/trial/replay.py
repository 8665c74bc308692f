"""Runs recorded calls through the hooks as they are configured now, and tells which would be decided otherwise.

Hooks for what comes before a call run for real, one call after another, in the order of the record. No result is
recorded, so none after it are asked. One call and a few sessions are in memory at a time, however long the record.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from ..audit import log
from ..audit.records import BadLine, CallRecord, Entry
from ..config.load import Loaded
from ..dialects.dialect import Group
from ..jsonrpc import normalize
from ..model.hooks import Event, Session
from ..protocol import calls
from .run import Attempt, Plan, Trial, Trials

_EVENTS: Final = frozenset({Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST})
_SESSIONS: Final = 16  # whose hooks are kept at a time: agents that share a file take turns, and workers cost memory
_DECIDED: Final = frozenset({"allow", "deny", "asked", "asked-allow", "asked-deny"})
_RUN: Final = frozenset({"allow", "asked", "asked-allow"})


class Judged(Struct, frozen=True):
    """What was, or would be, decided about a call."""

    decision: str
    by: str = ""
    """Who says so, in words; empty where nobody had anything to say."""
    reason: str = ""
    arguments: bytes = b""
    """JSON: those that run; empty: none do, or they are not known."""


class Difference(Struct, frozen=True):
    """A call that would be decided otherwise."""

    record: CallRecord
    before: Judged
    after: Judged


class Unread(Struct, frozen=True):
    """A line that cannot be replayed, and why."""

    line: int
    why: str


class Tally(Struct, rename={"failed_hooks": "troubled"}):
    """How many calls came to what."""

    replayed: int = 0
    differing: int = 0
    digests: int = 0
    """Recorded with a digest of their arguments alone."""
    undecided: int = 0
    """Recorded as ended before they were decided."""
    limited: int = 0
    """Recorded as refused by a limit, which is about the times of calls: replayed, none is reached."""
    unread: int = 0
    """Lines that are no record of a call or a note, or cannot be judged."""
    failed_hooks: int = 0
    """Of those replayed: a hook failed."""


class Replay:
    """A replay of one record; `tally` is filled in as it goes on."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str], cwd: str) -> None:
        self.tally = Tally()
        self._sessions = _Sessions(loaded, environ, cwd)

    async def __aenter__(self) -> Self:
        """What hooks keep ends with the block, however that ends."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self._sessions.aclose()

    async def over(self, entries: Iterable[Entry]) -> AsyncIterator[Difference | Unread]:
        """The differences and the lines that cannot be replayed, as they are found. Raises UserError."""
        for entry in entries:
            found = await self._one(entry) if isinstance(entry, CallRecord) else _unread(entry)
            if isinstance(found, Unread):
                self.tally.unread += 1
            if found is not None:
                yield found

    async def _one(self, record: CallRecord) -> Difference | Unread | None:
        if record.v > log.VERSION:
            return Unread(record.line, f"it has format {record.v}, and this hookproxy reads {log.VERSION}")
        if _is_limited(record):
            self.tally.limited += 1
            return None
        if record.decision not in _DECIDED:
            self.tally.undecided += 1
            return None
        if not record.arguments:
            self.tally.digests += 1
            return None
        trials = await self._sessions.of(record)
        raw_id = calls.own_id({"id": record.id})
        trial = await trials.call(
            Attempt(record.tool, bytes(record.arguments), id=b"1" if raw_id == b"null" else raw_id)
        )
        if trial.unreadable:
            return Unread(record.line, trial.unreadable.rstrip("."))
        return self._compared(record, trial)

    def _compared(self, record: CallRecord, trial: Trial) -> Difference | None:
        self.tally.replayed += 1
        self.tally.failed_hooks += any(run.statement and run.statement.verdict.failure for run in trial.seen.runs)
        before, after = was(record), would_be(trial, bytes(record.arguments))
        if not differ(before, after):
            return None
        self.tally.differing += 1
        return Difference(record, before, after)


def _is_limited(record: CallRecord) -> bool:
    return record.by.startswith("limits[") and not any(hook.outcome == "blocking" for hook in record.hooks)


def _unread(entry: Entry) -> Unread | None:
    """None: a note, which is about no call."""
    return Unread(entry.line, entry.why) if isinstance(entry, BadLine) else None


def was(record: CallRecord) -> Judged:
    """What the record says."""
    word = "ask" if record.decision.startswith("asked") else record.decision
    said = [hook for hook in record.hooks if hook.verdict == word]
    if record.decision == "deny":
        said = said or [hook for hook in record.hooks if hook.outcome == "blocking" or hook.verdict == "trouble"]
    if record.decision == "allow":
        said = [hook for hook in record.hooks if hook.verdict == "rewrite"]
    by = f"the {said[-1].event} hook {said[-1].source}" if said else ""
    runs = record.decision in ("allow", "asked-allow")  # of a call that was asked about, nothing says what would run
    arguments = bytes(record.rewritten or record.arguments) if runs else b""
    return Judged(record.decision, by, record.reason or (said[-1].reason if said else ""), arguments)


def would_be(trial: Trial, arguments: bytes) -> Judged:
    """What has been decided now."""
    by, reason = trial.because
    rewriting = [run.spec for run in trial.seen.runs if run.statement and run.statement.verdict.arguments is not None]
    if not by and trial.proposed and rewriting:
        by = f"the {rewriting[-1].event} hook {rewriting[-1].source}"
    runs = trial.decision in _RUN
    return Judged(trial.decision, by, reason, (trial.proposed or arguments) if runs else b"")


def differ(before: Judged, after: Judged) -> bool:
    """The decision is another, or other arguments run. That a person is asked is one decision, whatever they say."""
    same = before.decision == after.decision
    if not same and not (after.decision == "asked" and before.decision.startswith("asked")):
        return True
    return bool(before.arguments and after.arguments) and _value(before.arguments) != _value(after.arguments)


def _value(raw: bytes) -> object:
    """What counts of JSON: not the order of members, but how numbers are spelled."""
    try:
        return json.loads(normalize.normalise(raw), parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return raw


def _number(spelled: str) -> tuple[str]:
    return (spelled,)  # no JSON value is a tuple: true is not 1, nor is "1"


class _Sessions:
    """The hooks of each recorded session: what they keep, and what they have allowed, is for that session alone."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str], cwd: str) -> None:
        self._groups = tuple(map(_judging, loaded.groups))
        managed = loaded.settings.managed and replace(loaded.settings.managed, limits=())
        self._plan = Plan(_EVENTS, replace(loaded.settings, audit_all_calls=False, limits=(), managed=managed))
        self._trust = loaded.trust
        self._environ = environ
        self._cwd = cwd
        self._open: OrderedDict[tuple[str, str], Trials] = OrderedDict()

    async def of(self, record: CallRecord) -> Trials:
        """Those of the session that a call belongs to; one that has not been used for long begins anew."""
        key = (record.server, record.session)
        if key not in self._open:
            if len(self._open) >= _SESSIONS:
                _, oldest = self._open.popitem(last=False)
                await oldest.hooks.runners.aclose()
            project = self._environ.get("CLAUDE_PROJECT_DIR") or self._cwd
            session = Session(id=str(uuid.uuid4()), server=record.server, cwd=self._cwd, project_dir=project)
            self._open[key] = Trials(self._groups, self._plan, session, self._environ, self._trust)
        self._open.move_to_end(key)
        return self._open[key]

    async def aclose(self) -> None:
        """End what hooks keep."""
        for trials in self._open.values():
            await trials.hooks.runners.aclose()


def _judging(group: Group) -> Group:
    """Without the hooks that nobody waits for: they decide nothing, and what they do has been done."""
    return replace(group, hooks=tuple(spec for spec in group.hooks if not spec.background))
