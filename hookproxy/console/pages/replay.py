"""The replay of recorded calls through a changed configuration: the form, and each difference side by side."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...trial.replay import Difference, Outcome, Tally
from ..html import Html, block, cut, difference, el, facts, join, pretty
from . import filters, words
from .history import View


class Form(Struct, frozen=True):
    """What was typed."""

    view: View
    configuration: int = 0
    """The number of the configuration in the list."""
    rules: str = ""
    newest: int = 200


def form(typed: Form, configurations: Sequence[str], token: str) -> Html:
    """The form. Code that runs is only that of configurations which the command line of the console names."""
    choices = [
        el("option", name, value=number, selected=number == typed.configuration)
        for number, name in enumerate(configurations)
    ]
    rules = el(
        "textarea",
        typed.rules,
        name="rules",
        rows="4",
        spellcheck="false",
        autocomplete="off",
        placeholder='[permissions]\ndeny = ["delete_*"]',
    )
    return el(
        "form",
        filters.hidden("token", token),
        *(filters.hidden(name, value) for name, value in typed.view.calls.members.items()),
        el("p", _which(typed.view)),
        el(
            "div",
            filters.field("Since", "since", typed.view.since, placeholder="24h, 2026-11-01"),
            filters.field("Until", "until", typed.view.until, placeholder="now"),
            class_="pair",
        ),
        el(
            "div",
            el("label", el("span", "Configuration"), el("select", *choices, name="configuration")),
            filters.field("The newest calls, at most", "newest", str(typed.newest), kind="number", min="1", max="2000"),
            class_="pair",
        ),
        el("label", el("span", "Rules to add to it for the replay (nothing is written)"), rules),
        el(
            "label",
            el("input", type="checkbox", name="runs", value="yes", required=True),
            el("span", "Run the hooks before a call for real, with all their side effects, for each of these calls."),
            class_="check",
        ),
        el("p", "No call is forwarded, nobody is asked, and nothing is audited.", class_="quiet"),
        el("div", el("button", "Replay", type="submit"), class_="buttons"),
        method="post",
        action="replay",
        class_="form",
    )


def _which(view: View) -> str:
    members = view.calls.members
    return "Recorded calls" + (
        ", only " + ", ".join(f"{name} {value}" for name, value in members.items()) if members else ""
    )


class Replayed(Struct):
    """What a replay has found."""

    tally: Tally
    differences: list[Difference]
    more: int = 0
    """Differences beyond those that are shown."""
    unfinished: bool = False
    """The time for it was over."""
    left_out: bool = False
    """There are older calls in the period."""


def outcome(found: Replayed) -> Html:
    """The sums, and the differences."""
    tally = found.tally
    notes = [
        (
            "Not replayed",
            f"{tally.digests} of which only a digest of the arguments is recorded" if tally.digests else "",
        ),
        ("Not decided then", str(tally.undecided or "")),
        ("Refused by a rate limit then", str(tally.limited or "")),
        ("Not readable", str(tally.unread or "")),
        ("With a hook that failed", str(tally.failed_hooks or "")),
        ("Stopped", "the time was over before all calls were replayed" if found.unfinished else ""),
        ("Older calls", "were left out" if found.left_out else ""),
        ("More", f"{found.more} further differences" if found.more else ""),
    ]
    title = f"{words.number(tally.replayed, 'call')} replayed, {tally.differing or 'none'} would be decided differently"
    return el(
        "section",
        el("h2", title, role="status"),
        facts(notes),
        *(_difference(one) for one in found.differences),
    )


def _difference(one: Difference) -> Html:
    record = one.record
    changed = ""
    if one.before.arguments and one.after.arguments:
        changed = difference(pretty(one.before.arguments), pretty(one.after.arguments), "Changed arguments")
    head = el("h3", words.code(record.tool), f"of {cut(record.server, 80)} ", words.time_of(record))
    sides = el("div", _side("As recorded", one.before), _side("As it would be", one.after), class_="side")
    arguments = block(pretty(bytes(record.arguments)), "Arguments")
    whole = el("details", el("summary", "Arguments"), arguments)
    return el("article", head, sides, join([changed]) or whole, class_="hook")


def _side(title: str, judged: Outcome) -> Html:
    rows = facts([(title, words.decision(judged.decision)), ("By", judged.by), ("Reason", judged.reason)])
    return el("div", rows)
