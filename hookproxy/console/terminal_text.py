"""What `hookproxy top` shows, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from ..audit.records import CallRecord
from ..audit.view import one_call
from ..audit.view.table import Screen
from ..live.messages import NOTHING, CallInFlight, Counts
from . import words
from .call_filter import DECISIONS, NAMES, CallFilter
from .state import EndedCall, RunState, ShownApproval, State
from .visible import pretty, visible

MOST_ROWS: Final = 300
"""Calls that are listed: more than a person scrolls through; all are counted, and the audit has them."""

_PLAIN: Final = Screen(0, "utf-8", lambda text, _style: text)
_CELL: Final = 200  # characters of a text in the list; the page of the call has all of it


class Row(Struct, frozen=True):
    """A call in the list."""

    key: str
    """Unlike that of any other call."""
    time: str
    outcome: str
    kind: str
    """What kind of outcome this is: good, bad, warn, wait, note, quiet."""
    server: str
    tool: str
    took: str
    arguments: str


def counts(sums: Counts, runs: int, in_flight: int, waiting: int) -> str:
    """The sums, which are exact however many calls are listed."""
    parts = [words.number(runs, "run"), f"{in_flight:,} in flight", f"{sums.calls:,} ended"]
    parts += [f"{sums.refused:,} refused", f"{sums.rewritten:,} rewritten", f"{sums.failed:,} failed"]
    waits = f"{words.number(waiting, 'approval')} waiting: press w | " if waiting else ""
    return waits + ", ".join(parts)


def unread_runs(state: State) -> str:
    """A sentence about runs whose calls are not listed; empty if there are none."""
    unread = [run.servers or run.run.run for run in state.runs.values() if not run.run.judges]
    if not unread:
        return ""
    return visible(f"no hook, rule or audit needs the calls of {', '.join(unread)}: they pass unread")


def read_filter(text: str) -> CallFilter:
    """The filter that words such as `server:git decision:refused push` name. Raises ValueError with a sentence."""
    members: dict[str, str] = {}
    texts: list[str] = []
    for word in text.split():
        name, colon, value = word.partition(":")
        if colon and name in NAMES:
            members[name] = value
        else:
            texts.append(word)
    if texts:
        members["text"] = " ".join(texts)
    if (decision := members.get("decision", "")) not in DECISIONS:
        raise ValueError(f"decision:{decision} is not one of {', '.join(filter(None, DECISIONS))}")
    return CallFilter.from_query(members)


def rows(state: State, calls: CallFilter, now: float) -> Iterator[Row]:
    """The calls that the filter shows: those in flight, then those that have ended, the newest first."""
    flying = sorted(state.in_flight(calls), key=lambda known: known[1].at, reverse=True)
    ended = (_ended(call) for call in reversed(state.ended) if calls.matches(call.record))
    return islice(chain((_in_flight(run, call, now) for run, call in flying), ended), MOST_ROWS)


def _in_flight(run: RunState, call: CallInFlight, now: float) -> Row:
    session = run.session(call.session)
    stage, kind = words.STAGES[call.stage]
    waits = [f"{hook.source} since {words.elapsed(hook.since, now)}" for hook in call.hooks]
    size = words.size(call.arguments_bytes)
    arguments = size if call.arguments == NOTHING else words.spelled(call.arguments)
    cells = [session.server, call.tool, words.elapsed(call.at, now), "; ".join(waits) or arguments]
    return Row(f"{run.run.run}/{call.call}", _clock(call.at), stage, kind, *map(_cell, cells))


def _ended(ended: EndedCall) -> Row:
    record = ended.record
    outcome, kind = words.outcome(record)
    outcome = ", ".join([outcome, *words.changes(record)[:1]])
    shown = record.reason if record.result == "refused" else words.spelled(record.arguments)
    cells = [record.server, record.tool, words.duration(record.ms), shown]
    at = record.at
    key = f"{ended.run}/{record.call}"  # which it had in flight
    return Row(key, _clock(at.timestamp()) if at else "", outcome, kind, *map(_cell, cells))


def _cell(text: str) -> str:
    return visible(text[:_CELL].replace("\n", " "))


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def ended_call(record: CallRecord) -> str:
    """The page of a call that has ended: what each hook got, printed and took, and why others were not asked."""
    return visible("\n".join(one_call.text_of([record], _PLAIN)))


def call_in_flight(run: RunState, call: CallInFlight, now: float) -> str:
    """The page of a call that has not ended."""
    session = run.session(call.session)
    shown = f"too long to be shown live: {words.size(call.arguments_bytes)}"
    hooks = [f"{hook.event} hook {hook.source}, for {words.elapsed(hook.since, now)}" for hook in call.hooks]
    facts = [
        ("state", f"{words.STAGES[call.stage][0]}, for {words.elapsed(call.since, now)}"),
        *(("waits for", hook) for hook in hooks),
        ("agent", session.agent),
        ("user", session.user),
        ("alias", call.alias),
        ("session", call.session),
        ("call", call.call),
    ]
    parts = [
        "/".join(filter(None, (session.server, call.tool))),
        _facts(facts),
        "",
        "arguments, as the agent sent them",
    ]
    parts.append(shown if call.arguments == NOTHING else pretty(call.arguments))
    if call.rewritten != NOTHING:
        parts += ["", "arguments, as they are forwarded", pretty(call.rewritten)]
    return visible("\n".join(parts))


def approval(waiting: ShownApproval, agent: str) -> str:
    """An approval with everything that the person must know: the whole arguments, and what wants it."""
    asked = waiting.approval
    if asked.is_about_lock:
        facts = [("reason", asked.reason), ("agent", agent), ("withheld", "until somebody accepts it")]
        parts = [f"Accept what {asked.server} says of {asked.tool}?", _facts(facts), "", "recorded in hookproxy.lock"]
        return visible("\n".join([*parts, pretty(asked.recorded), "", "says now", pretty(asked.now)]))
    facts = [
        ("asked by", f"{asked.asked_by} ({asked.place})" if asked.place else asked.asked_by),
        ("reason", asked.reason),
        ("user", asked.user),
        ("agent", agent),
        ("alias", asked.alias),
        ("calls like", asked.similar),
        ("denied at", f"{_clock(asked.until)}, if nobody answers"),
    ]
    parts = [f"May {asked.tool} of {asked.server} run?", _facts(facts), "", "all arguments, as they will run"]
    return visible("\n".join([*parts, pretty(asked.arguments)]))


def _facts(rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:11}{value}" for name, value in rows if value)
