"""What `hookproxy top` shows, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from ..audit.records import CallRecord
from ..audit.view import one_call
from ..audit.view.table import Screen
from ..live.messages import NOTHING, CallInFlight, Counts, RunSession
from .call_filter import DECISIONS, NAMES, CallFilter
from .html import pretty
from .pages import words
from .state import EndedCall, RunState, ShownApproval, State
from .visible import visible

MOST_ROWS: Final = 300
"""Calls that are listed: more than a person scrolls through; all are counted, and the audit has them."""

_PLAIN: Final = Screen(0, "utf-8", lambda text, _style: text)
_CELL: Final = 200  # characters of a text in the list; the page of the call has all of it
_UNKNOWN: Final = RunSession("", "")


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
    found: dict[str, str] = {}
    texts: list[str] = []
    for word in text.split():
        name, colon, value = word.partition(":")
        if colon and name in NAMES:
            found[name] = value
        else:
            texts.append(word)
    if texts:
        found["text"] = " ".join(texts)
    if (decision := found.get("decision", "")) not in DECISIONS:
        raise ValueError(f"decision:{decision} is none of {', '.join(filter(None, DECISIONS))}")
    return CallFilter.from_query(found)


def rows(state: State, calls: CallFilter, now: float) -> Iterator[Row]:
    """The calls that the filter shows: those in flight, then those that have ended, the newest first."""
    left = MOST_ROWS
    flying = sorted(state.in_flight(), key=lambda one: one[1].at, reverse=True)
    for run, call in flying:
        session = run.sessions.get(call.session, _UNKNOWN)
        if left and calls.matches_in_flight(session.server, call.tool, session.agent, call.arguments):
            left -= 1
            yield _in_flight(run, session, call, now)
    for ended in reversed(state.ended):
        if not left:
            return
        if calls.matches_record(ended.record):
            left -= 1
            yield _ended(ended)


def _in_flight(run: RunState, session: RunSession, call: CallInFlight, now: float) -> Row:
    stage, kind = words.STAGES[call.stage]
    took = words.duration(max(now - call.at, 0) * 1000)
    waits = [f"{one.source} since {words.duration(max(now - one.since, 0) * 1000)}" for one in call.hooks]
    arguments = pretty_short(bytes(call.arguments), call.arguments_bytes)
    cells = [session.server, call.tool, took, "; ".join(waits) or arguments]
    return Row(f"{run.run.run}/{call.call}", _clock(call.at), stage, kind, *map(_cell, cells))


def _ended(ended: EndedCall) -> Row:
    record = ended.record
    outcome, kind = words.outcome_words(record)
    if "arguments" in record.changed:
        outcome += ", rewritten"
    elif "result" in record.changed:
        outcome += ", commented"
    shown = record.reason if record.result == "refused" else bytes(record.arguments).decode(errors="replace")
    cells = [record.server, record.tool, words.duration(record.ms), shown]
    at = record.at
    return Row(ended_key(ended), _clock(at.timestamp()) if at else "", outcome, kind, *map(_cell, cells))


def ended_key(ended: EndedCall) -> str:
    """The key of a call that has ended: that which it had in flight."""
    return f"{ended.run}/{ended.record.call}"


def pretty_short(raw: bytes, size: int) -> str:
    """Arguments on one line; of those that a line does not have, the size."""
    return words.size(size) if raw == bytes(NOTHING) else raw.decode(errors="replace")


def _cell(text: str) -> str:
    return visible(text[:_CELL].replace("\n", " "))


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def ended_call(record: CallRecord) -> str:
    """The page of a call that has ended: what each hook got, printed and took, and why others were not asked."""
    return visible("\n".join(one_call.text_of([record], _PLAIN)))


def call_in_flight(run: RunState, call: CallInFlight, now: float) -> str:
    """The page of a call that has not ended."""
    session = run.sessions.get(call.session, _UNKNOWN)
    hooks = [
        f"{one.event} hook {one.source}, for {words.duration(max(now - one.since, 0) * 1000)}" for one in call.hooks
    ]
    rewritten = "" if call.rewritten == NOTHING else pretty(bytes(call.rewritten))
    shown = f"too long to be shown live: {words.size(call.arguments_bytes)}"
    if call.arguments != NOTHING:
        shown = pretty(bytes(call.arguments))
    facts = [
        ("state", f"{words.STAGES[call.stage][0]}, for {words.duration(max(now - call.since, 0) * 1000)}"),
        *(("waits for", one) for one in hooks),
        ("agent", session.agent),
        ("user", session.user),
        ("alias", call.alias),
        ("session", call.session),
        ("call", call.call),
    ]
    parts = [f"{session.server}/{call.tool}", _facts(facts), "", "arguments, as the agent sent them", shown]
    if rewritten:
        parts += ["", "arguments, as they are forwarded", rewritten]
    return visible("\n".join(parts))


def approval(waiting: ShownApproval, agent: str) -> str:
    """An approval with everything that the person must know: the whole arguments, and what wants it."""
    one = waiting.approval
    facts = [
        ("asked by", f"{one.asked_by} ({one.place})" if one.place else one.asked_by),
        ("reason", one.reason),
        ("user", one.user),
        ("agent", agent),
        ("alias", one.alias),
        ("denied at", f"{_clock(one.until)}, if nobody answers"),
    ]
    parts = [f"May {one.tool} of {one.server} run?", _facts(facts), "", "all arguments, as they will run"]
    return visible("\n".join([*parts, pretty(bytes(one.arguments))]))


def _facts(rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:11}{value}" for name, value in rows if value)
