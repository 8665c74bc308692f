"""The history: filters, the table of calls from the newest on, and charts that the page loads after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from ...audit.records import BadLine, CallRecord, NoteRecord
from ..call_filter import CallFilter
from ..history import Listing, Row
from ..html import Html, cut, el, join, table
from . import filters, words

PERIODS: Final = {"1h": "1 hour", "24h": "1 day", "7d": "7 days", "30d": "30 days", "all": "all"}
"""Periods up to now that one click chooses."""

DEFAULT_PERIOD: Final = "7d"


class View(Struct, frozen=True):
    """What the address of the page names."""

    calls: CallFilter
    since: str = DEFAULT_PERIOD
    """As `hookproxy audit --since`; `all`: from the first line on."""
    until: str = ""

    @staticmethod
    def from_query(query: Mapping[str, str]) -> View:
        """The view of an address."""
        since = query.get("since", "").strip()[:100] or DEFAULT_PERIOD
        return View(CallFilter.from_query(query), since, query.get("until", "").strip()[:100])

    def query(self, **more: str) -> str:
        """The view as a part of an address."""
        return urlencode(
            {**self.calls.members, "since": self.since, **({"until": self.until} if self.until else {}), **more}
        )


def history(view: View, path: str, listing: Listing, is_first: bool) -> Html:
    """The page. Charts are only on the first one."""
    period = (
        filters.field("Since", "since", view.since, placeholder="24h, 2026-11-01"),
        filters.field("Until", "until", view.until, placeholder="now"),
    )
    chips = el(
        "nav", *(_chip(view, since, name) for since, name in PERIODS.items()), class_="chips", aria_label="Period"
    )
    charts = el(
        "section",
        el("p", "Reading the audit …", class_="quiet"),
        el("noscript", el("a", "Show the charts", href=f"history-charts?{view.query()}")),
        data_load=f"history-charts?{view.query()}",
        aria_label="Charts",
        aria_live="polite",
        class_="loading",
    )
    exports = el(
        "p",
        "Export these calls: ",
        el("a", "JSON lines", href=f"export?{view.query(format='jsonl')}", download=True),
        " ",
        el("a", "CSV", href=f"export?{view.query(format='csv')}", download=True),
        " · ",
        el("a", "Replay them", href=f"replay?{view.query()}"),
        " through a changed configuration",
        class_="exports",
    )
    return join(
        [
            el("p", "The audit in ", words.code(path), class_="quiet"),
            filters.form(view.calls, *period, action="history"),
            chips,
            charts if is_first else "",
            exports,
            calls_table(listing),
            _older(view, listing),
        ]
    )


def _chip(view: View, since: str, name: str) -> Html:
    address = View(view.calls, since).query()
    current = "true" if since == view.since and not view.until else None
    return el("a", name, href=f"history?{address}", aria_current=current)


def calls_table(listing: Listing) -> Html:
    """The calls of one page."""
    if not listing.rows:
        return el("p", "No call matches." if not listing.searched_to else "No call matches so far.", class_="empty")
    heads = ("Time", "Outcome", "Server", "Tool", "Arguments", "Took", "Agent")
    return table(heads, (_row(one) for one in listing.rows), "Calls, the newest first", "cards calls")


def _row(row: Row) -> Html:
    one = row.entry
    if isinstance(one, CallRecord):
        return _call(one)
    if isinstance(one, NoteRecord):
        note = f"{one.server}: {one.note}" if one.server else one.note
        return el("tr", el("td", words.time_of(one)), el("td", cut(note), colspan="6"), class_="note")
    assert isinstance(one, BadLine), one
    what = f"The line at byte {row.place.offset} is not a record: {one.why}."
    return el("tr", el("td"), el("td", what, colspan="6"), class_="note bad")


def _call(one: CallRecord) -> Html:
    address = urlencode({"call": one.call, "session": one.session})
    tool = el("a", cut(one.tool, 80), href=f"history-call?{address}") if one.call else cut(one.tool, 80)
    why = f"{one.by}: {one.reason}" if one.by and one.reason else one.by or one.reason
    arguments = bytes(memoryview(one.arguments)[:800]).decode(errors="replace")
    cell = join([el("code", cut(arguments, 160)), el("div", cut(why, 200), class_="why") if why else ""])
    return el(
        "tr",
        el("td", words.time_of(one)),
        el("td", words.outcome(one), words.badge("rewritten", "note") if "arguments" in one.changed else ""),
        el("td", cut(one.server, 60)),
        el("th", tool, scope="row"),
        el("td", cell, class_="arguments"),
        el("td", words.duration(one.ms), class_="number"),
        el("td", cut(one.agent, 40)),
    )


def _older(view: View, listing: Listing) -> Html:
    if listing.older is None:
        return Html("")
    address = f"history?{view.query(before=str(listing.older))}"
    if listing.searched_to:
        return el("p", f"Searched back to {listing.searched_to}. ", el("a", "Search on", href=address, class_="button"))
    return el("p", el("a", "Older calls", href=address, class_="button", rel="next"))
