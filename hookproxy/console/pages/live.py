"""The live page: runs, approvals that wait for a person, calls in flight and calls that have ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from ...audit.records import CallRecord
from ...live.messages import NOTHING, CallInFlight, Counts, Settled, WaitingApproval
from ..call_filter import CallFilter
from ..html import Html, block, cut, el, facts, join, pretty
from ..state import EndedCall, RunState, ShownApproval, State
from . import filters, words

if TYPE_CHECKING:
    from msgspec import Raw

HEADS: Final = ("Time", "Outcome", "Server", "Tool", "Arguments", "Took", "Agent")
MOST_IN_FLIGHT: Final = 100
"""Calls in flight that are listed; all are counted."""

_ACTIONS: Final = {
    "allow": "Allowed once",
    "allow_session": "Allowed for this session",
    "deny": "Denied",
    "expired": "Nobody has answered in time: it was denied",
    "withdrawn": "It waits no more: the call or its run has ended",
}


def live(calls: CallFilter) -> Html:
    """The frame of the page; the stream of events fills it, the first of which has all that is known."""
    empty = el("p", "No run is known yet.", class_="quiet")
    table = el(
        "table",
        el("caption", "Calls, the newest first", class_="quiet"),
        el("thead", el("tr", *(el("th", name, scope="col") for name in HEADS))),
        el("tbody", id="in-flight"),
        el("tbody", id="ended"),
    )
    return join(
        [
            el("div", "", class_="sr", id="announcement", role="status", aria_live="assertive"),
            el("noscript", el("p", "This page follows the calls with a script of the console.", class_="problem")),
            el("section", id="approvals", aria_label="Approvals"),
            el("div", empty, id="runs"),
            filters.form(calls, action="./", follows=True),
            el(
                "div",
                el("span", "connecting", class_="state", id="state", role="status"),
                el("span", "", id="counts"),
                el("button", "Notify me of approvals", type="button", id="notify", class_="plain", hidden=True),
                el("button", "Pause", type="button", id="pause", class_="plain", aria_pressed="false"),
                class_="bar",
            ),
            el("div", table, class_="scroll cards calls"),
        ]
    )


def counts(sums: Counts, in_flight: int) -> Html:
    """The sums, which are exact however many calls are listed."""
    parts = [
        (in_flight, "in flight"),
        (sums.calls, "ended"),
        (sums.refused, "refused"),
        (sums.rewritten, "rewritten"),
        (sums.failed, "failed"),
        (sums.asked, "asked"),
    ]
    return join(join([el("b", f"{count:,}"), f" {name}    "]) for count, name in parts)


def runs(state: State) -> Html:
    """All runs that can be reached."""
    if not state.runs:
        return el("p", "No run of hookproxy is known now. Each that starts appears here by itself.", class_="empty")
    return el("ul", *map(_run, state.runs.values()), class_="runs", aria_label="Runs")


def _run(one: RunState) -> Html:
    run = one.run
    agents = ", ".join(dict.fromkeys(session.agent for session in one.sessions.values() if session.agent))
    command = run.url or " ".join(run.command)
    unread = "" if run.judges else words.badge("its calls pass unread", "warn")
    return el(
        "li",
        el("b", cut(one.servers or command or "server", 60)),
        f" {cut(agents, 60)} " if agents else " ",
        el("span", f"process {run.pid}", class_="quiet"),
        unread,
        title=cut(f"{command} in {run.cwd}", 200),
    )


# --- calls ---


def in_flight(state: State, calls: CallFilter) -> Html:
    """The calls that have not ended, the newest first."""
    found = [
        _in_flight(run, call, now)
        for now in [datetime.now(UTC).timestamp()]
        for run, call in state.in_flight()
        if calls == CallFilter()
        or calls.matches_in_flight(_server(run, call), call.tool, _agent(run, call), call.arguments)
    ]
    return join(reversed(found[-MOST_IN_FLIGHT:]))


def _server(run: RunState, call: CallInFlight) -> str:
    session = run.sessions.get(call.session)
    return session.server if session else ""


def _agent(run: RunState, call: CallInFlight) -> str:
    session = run.sessions.get(call.session)
    return session.agent if session else ""


def _user(run: RunState, call: CallInFlight) -> str:
    session = run.sessions.get(call.session)
    return session.user if session else ""


def _in_flight(run: RunState, call: CallInFlight, now: float) -> Html:
    address = urlencode({"run": run.run.run, "call": call.call})
    hooks = ", ".join(f"{hook.source} since {words.duration(max(now - hook.since, 0) * 1000)}" for hook in call.hooks)
    cell = join(
        [_arguments(call.arguments, call.arguments_bytes), el("div", cut(hooks), class_="why") if hooks else ""]
    )
    return el(
        "tr",
        el("td", _time(words.moment(call.at))),
        el(
            "td",
            words.badge(*words.STAGES[call.stage]),
            words.badge("rewritten", "note") if call.rewritten != NOTHING else "",
        ),
        el("td", cut(_server(run, call), 60)),
        el("th", el("a", cut(call.tool, 80), href=f"call?{address}"), scope="row"),
        el("td", cell, class_="arguments"),
        el("td", words.duration(max(now - call.at, 0) * 1000), class_="number"),
        el("td", cut(_agent(run, call), 40)),
        class_="waits",
    )


def ended(one: EndedCall) -> Html:
    """The row of a call that has ended."""
    record = one.record
    address = urlencode({"run": one.run, "call": record.call})
    why = f"{record.by}: {record.reason}" if record.by and record.reason else record.by or record.reason
    cell = join([_arguments(record.arguments, 0), el("div", cut(why, 200), class_="why") if why else ""])
    return el(
        "tr",
        el("td", _time(record.at)),
        el("td", words.outcome(record), *_changes(record)),
        el("td", cut(record.server, 60)),
        el("th", el("a", cut(record.tool, 80), href=f"call?{address}"), scope="row"),
        el("td", cell, class_="arguments"),
        el("td", words.duration(record.ms), class_="number"),
        el("td", cut(record.agent, 40)),
    )


def _changes(record: CallRecord) -> Iterable[Html]:
    if "arguments" in record.changed:
        yield words.badge("rewritten", "note")
    if "result" in record.changed:
        yield words.badge("commented", "note")


def _arguments(raw: Raw, size: int) -> Html:
    if raw == NOTHING and size:
        return el("span", f"{words.size(size)}: too long to be shown here", class_="quiet")
    text = bytes(memoryview(raw)[:800]).decode(errors="replace")
    return el("code", cut(text, 160))


def _time(at: datetime | None) -> Html:
    """The time of day: what is live is of today."""
    try:
        local = at.astimezone() if at else None
    except (OverflowError, ValueError):  # in the first or last year that datetime knows
        local = None
    return el("time", f"{local:%H:%M:%S}", datetime=local.isoformat(timespec="milliseconds")) if local else Html("")


def call_in_flight(run: RunState, call: CallInFlight) -> Html:
    """The page of a call that has not ended."""
    before, after = (pretty(bytes(raw)) if raw != NOTHING else "" for raw in (call.arguments, call.rewritten))
    now = datetime.now(UTC).timestamp()
    hooks = [
        el("li", words.code(hook.source), f" {hook.event}, since {words.duration(max(now - hook.since, 0) * 1000)}")
        for hook in call.hooks
    ]
    rows = facts(
        [
            ("State", words.badge(*words.STAGES[call.stage])),
            ("Since", words.clock(words.moment(call.since))),
            ("Came", words.clock(words.moment(call.at))),
            ("Server", _server(run, call)),
            ("Tool", words.code(call.tool)),
            ("User", _user(run, call)),
            ("Agent", _agent(run, call)),
            ("Session", words.code(call.session)),
            ("Call", words.code(call.call)),
            ("Waits for", el("ul", *hooks) if hooks else ""),
        ]
    )
    shown = (
        block(before, "Arguments")
        if before
        else el("p", f"{words.size(call.arguments_bytes)}: too long to be shown live.")
    )
    ran = join([el("h2", "Arguments, rewritten"), block(after, "Arguments, rewritten")]) if after else ""
    return el("article", rows, el("h2", "Arguments"), shown, ran, class_="call")


# --- approvals ---


def key(run: str, approval: str) -> str:
    """The name of an approval on the page."""
    return f"{run}/{approval}"


def approval(waiting: ShownApproval, agent: str, token: str) -> Html:
    """An approval with everything that the person must know: the whole arguments, and what wants it."""
    one = waiting.approval
    wants = f"{one.asked_by} ({one.place})" if one.place else one.asked_by
    name = f"approval-{key(waiting.run, one.id)}"
    return el(
        "article",
        el("h2", words.badge("waits for you", "wait"), "May ", words.code(one.tool), f" of {one.server} run?", id=name),
        facts(
            [
                ("Asked by", wants),
                ("Reason", one.reason),
                ("User", one.user),
                ("Agent", agent),
                ("Known to hooks as", one.alias),
                ("Waits until", words.clock(words.moment(one.until))),
            ]
        ),
        block(pretty(bytes(one.arguments)), f"All arguments of {one.tool}"),
        el("div", _allow(waiting, token), _deny(waiting, token), class_="buttons"),
        el("output", ""),
        class_="approval",
        aria_labelledby=name,
        data_key=key(waiting.run, one.id),
    )


def _allow(waiting: ShownApproval, token: str) -> Html:
    buttons = [el("button", "Allow once", type="submit", name="action", value="allow")]
    if waiting.approval.may_allow_session:
        session = el(
            "button",
            "Allow for this session",
            type="submit",
            name="action",
            value="allow_session",
            class_="plain",
            title="This tool, whatever its arguments, until the session ends",
        )
        buttons.append(session)
    return el("form", *_members(waiting.run, waiting.approval, token), *buttons, method="post", action="answer")


def _deny(waiting: ShownApproval, token: str) -> Html:
    """A form of its own: Enter in the reason must not allow anything."""
    return el(
        "form",
        *_members(waiting.run, waiting.approval, token),
        filters.hidden("action", "deny"),
        filters.field("Reason, for the model", "reason", "", maxlength="4000"),
        el("button", "Deny", type="submit", class_="deny"),
        method="post",
        action="answer",
        class_="reason",
    )


def _members(run: str, one: WaitingApproval, token: str) -> list[Html]:
    return [filters.hidden(name, value) for name, value in (("token", token), ("run", run), ("approval", one.id))]


def settled(one: Settled | None) -> str:
    """What became of an approval, in a sentence."""
    if one is None:
        return _ACTIONS["withdrawn"]
    return f"{_ACTIONS.get(one.action, one.action)}{f' by {one.by}' if one.by else ''}"
