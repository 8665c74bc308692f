"""The form of filters that the live page and the history share."""

from __future__ import annotations

from ..call_filter import DECISIONS, CallFilter
from ..html import Html, el


def form(calls: CallFilter, *more: Html, action: str, follows: bool = False) -> Html:
    """The form. With `follows`, the page follows what is typed without a button."""
    decisions = [el("option", name, value=value, selected=value == calls.decision) for value, name in DECISIONS.items()]
    fields = [
        field("Search", "text", calls.text, kind="search", placeholder="tool, argument, reason"),
        field("Server", "server", calls.server),
        field("Tool", "tool", calls.tool, placeholder="write_*"),
        field("Agent", "agent", calls.agent),
        el("label", el("span", "Decision"), el("select", *decisions, name="decision")),
        *more,
    ]
    buttons = el(
        "div",
        el("button", "Filter", type="submit"),
        el("a", "Clear", href=action, class_="button plain"),
        class_="buttons",
    )
    return el(
        "form",
        *fields,
        buttons,
        method="get",
        action=action,
        class_="filters",
        role="search",
        data_follows=follows or None,
    )


def field(label: str, name: str, value: str, kind: str = "text", **attributes: str | bool) -> Html:
    """An input with its label."""
    entry = el("input", type=kind, name=name, value=value, autocomplete="off", spellcheck="false", **attributes)
    return el("label", el("span", label), entry)


def hidden(name: str, value: str) -> Html:
    """A member of a form that is not shown."""
    return el("input", type="hidden", name=name, value=value)
