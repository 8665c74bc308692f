"""The policy: hooks, rules and settings in force with their places, what they see of a server, and lines to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...checks.report import CheckedServer, FailureEffect, HookEntry, Report, alias_origin, names_of_tools
from ...config.load import Loaded
from ...config.toml_text import ask_fallback
from ...model.aliases import Alias
from .. import policy
from ..html import Content, Html, cut, el, facts, join, table
from . import call, filters, words

_FAILURES: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the result passes, with a note to the model",
    FailureEffect.CONTINUE: "everything continues",
}
_DECISIONS: Final = {"deny": "never allow", "ask": "ask a person", "allow": "allow without asking"}


def page(loaded: Loaded, report: Report, server: Html, rule: Html) -> Html:
    """The whole page. `server` is about a server's tools, `rule` the form for lines to copy."""
    files = [loaded.path] if loaded.path else []
    files += list(loaded.managed.files) if loaded.managed else []
    source = join([words.code(", ".join(files))]) if files else "no hookproxy.toml: only the command line and defaults"
    active = [entry for entry in report.entries if entry.fires]
    return join(
        [
            el("p", "The configuration in force now, as it is in its files: ", source, class_="quiet"),
            _findings(report),
            _section("Hooks", hooks_table(loaded, report.entries), f"{words.number(len(active), 'hook')}"),
            _section("Permission rules and limits", _rules(loaded), ""),
            rule,
            server,
            _section("Settings", _settings(loaded), ""),
        ]
    )


def _section(title: str, content: Html, note: str) -> Html:
    return el("section", el("h2", title, el("span", f" {note}", class_="quiet") if note else ""), content)


def _findings(report: Report) -> Html:
    shown = [*((one, "warn", "warning") for one in report.findings), *((one, "note", "note") for one in report.remarks)]
    if not shown:
        return Html("")
    items = [
        el("li", words.badge(word, kind), f" {one.text} ", el("span", _place(one.file, one.line), class_="quiet"))
        for one, kind, word in shown
    ]
    title = f"{words.number(len(report.findings), 'warning')}, {words.number(len(report.remarks), 'note')}"
    return el("details", el("summary", title), el("ul", *items), open=bool(report.findings))


def _place(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line else file


def hooks_table(loaded: Loaded, entries: Sequence[HookEntry]) -> Html:
    """Each hook, with its place and layer."""
    if not entries:
        return el("p", "No hook is configured.", class_="empty")
    heads = ("Hook", "Event", "Matches", "Fails", "Where", "Layer")
    return table(heads, (_hook(loaded, entry) for entry in entries), "Hooks, by file and line", "cards")


def _hook(loaded: Loaded, entry: HookEntry) -> Html:
    if not entry.fires:
        event: Content = join([entry.event_name, " ", words.badge("cannot fire", "warn")])
    else:
        event = entry.event if entry.event == entry.event_name else f"{entry.event_name} ({entry.event})"
    seconds = f", {entry.timeout:g} s" if entry.fires else ""
    return el(
        "tr",
        el("th", words.code(cut(entry.command)) if entry.command else "", *(_notes(entry)), scope="row"),
        el("td", event),
        el("td", cut(entry.matcher or "every tool"), f", if {entry.only_if}" if entry.only_if else ""),
        el("td", f"{_FAILURES[entry.on_failure]}{seconds}" if entry.fires else ""),
        el("td", words.code(_place(entry.file, entry.line)), el("div", f"{entry.key} {entry.dialect}", class_="quiet")),
        el("td", "administrator" if entry.managed else policy.layer_of(loaded, entry.file)),
    )


def _notes(entry: HookEntry) -> list[Html]:
    return [el("div", words.badge("warning", "warn"), one.text, class_="why") for one in entry.findings]


def _rules(loaded: Loaded) -> Html:
    rows = [
        el(
            "tr",
            el("th", words.badge(*_rule_badge(rule.decision)), scope="row"),
            el("td", words.code(cut(rule.text))),
            el("td", words.code(rule.place)),
            el("td", rule.layer),
        )
        for rule in policy.rules_in_force(loaded)
    ]
    if not rows:
        return el("p", "No permission rule is configured.", class_="empty")
    rules = table(("Rule", "Tools", "Where", "Layer"), rows, "A deny beats an ask, and an ask beats an allow", "cards")
    if not loaded.settings.ask:
        return rules
    return join([rules, el("p", f"Where a person should be asked: {ask_fallback(loaded.settings)}.", class_="quiet")])


def _rule_badge(decision: str) -> tuple[str, str]:
    return decision, {"deny": "bad", "ask": "wait", "allow": "good"}.get(decision, "note")


def _settings(loaded: Loaded) -> Html:
    found = policy.settings_in_force(loaded)
    made = [_setting(one) for one in found if one.place]
    rest = [_setting(one) for one in found if not one.place]
    heads = ("Setting", "Value", "Where", "Layer")
    shown = table(heads, made, "Settings that are set", "cards") if made else el("p", "All are the defaults.")
    return join(
        [shown, el("details", el("summary", f"Defaults: {len(rest)}"), table(heads, rest, "Defaults", "cards"))]
    )


def _setting(one: policy.Setting) -> Html:
    return el(
        "tr",
        el("th", words.code(one.key), scope="row"),
        el("td", cut(one.value)),
        el("td", words.code(one.place) if one.layer else el("span", one.place or "default", class_="quiet")),
        el("td", one.layer),
    )


# --- lines to copy ---


def rule_form(decision: str, name: str, lines: policy.Lines | None) -> Html:
    """The form for a rule, and the lines that it adds: the console changes no file."""
    choices = [el("option", f"{one}: {text}", value=one, selected=one == decision) for one, text in _DECISIONS.items()]
    form = el(
        "form",
        el(
            "div",
            el("label", el("span", "Rule"), el("select", *choices, name="rule")),
            filters.field("Tools: a name or a pattern", "name", name, placeholder="delete_*", required=True),
            class_="pair",
        ),
        el("div", el("button", "Show the lines", type="submit"), class_="buttons"),
        method="get",
        action="policy#rule",
        class_="form",
    )
    shown: list[Html] = []
    if lines is not None:
        note = el(
            "p", f"Add them {lines.where}. Calls that start after hookproxy starts again follow them.", class_="quiet"
        )
        shown = [call.copyable(lines.text, "Lines to add"), note]
    return el("details", el("summary", "Write a rule"), form, *shown, id="rule", open=lines is not None)


# --- a server's tools ---


def server_form(command: Sequence[str], token: str) -> Html:
    """The button that starts the server which the command line of the console names."""
    title = el("h2", "What hooks see of a server")
    if not command:
        hint = "Start the console with the server's command to see its tools: hookproxy console -- COMMAND [ARG...]"
        return el("section", title, el("p", hint, class_="quiet"))
    form = el(
        "form",
        filters.hidden("token", token),
        el("p", "Starts ", words.code(" ".join(command)), ", lists its tools, and ends it."),
        el("button", "List its tools", type="submit"),
        method="post",
        action="policy-server#server",
    )
    return el("section", title, form, id="server")


def server_tools(server: CheckedServer, entries: Sequence[HookEntry]) -> Html:
    """Which hook sees which tool under which name: the table of `hookproxy check -- COMMAND`."""
    title = el("h2", f"What hooks see of {server.name}")
    coverage = server.coverage
    if coverage is None:
        return el("section", title, el("p", server.failure, class_="problem", role="alert"), id="server")
    names = names_of_tools(entries)
    rows: list[Html] = []
    for tool in coverage.tools:
        ruled = words.badge("rules", "note") if tool in coverage.ruled else ""
        seen = names.get(tool, [])
        if not seen:
            rows.append(
                el(
                    "tr",
                    el("th", cut(tool), scope="row"),
                    el("td", "no hook", class_="quiet"),
                    el("td"),
                    el("td", ruled),
                )
            )
        for number, one in enumerate(seen):
            hooks = ", ".join(f"{entry.label} ({entry.event})" for entry in one.hooks)
            rows.append(
                el(
                    "tr",
                    el("th", "" if number else cut(tool), scope="row"),
                    el("td", cut(one.seen.name), _origin(one.seen.alias)),
                    el("td", cut(hooks)),
                    el("td", "" if number else ruled),
                )
            )
    summary = facts([("Tools", str(len(coverage.tools))), ("Names itself", cut(server.info))])
    shown = table(("Tool", "Seen as", "By", "Rules"), rows, f"Tools of {server.name}", "cards")
    return el("section", title, summary, shown, id="server")


def _origin(alias: Alias | None) -> Html:
    if alias is None:
        return Html("")
    renamed = ", ".join(f"{name} for {hook_name}" for hook_name, name in alias.arguments.items())
    texts = [text for text in (alias_origin(alias), renamed) if text]
    return el("div", "; ".join(texts), class_="quiet") if texts else Html("")
