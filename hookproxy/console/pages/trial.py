"""The form that tries a call, and what each hook did with it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...audit import lines
from ...audit.records import HookRun
from ...model.hooks import Ended
from ...trial.observe import ObservedRun
from ...trial.report import TrialReport
from ..html import Html, block, difference, el, facts, join, pretty
from . import call, filters, words

_KINDS: Final = {0: "good", 1: "bad", 2: "warn"}
"""By the exit status of `hookproxy try`."""


class Form(Struct, frozen=True):
    """What was typed."""

    server: str = ""
    tool: str = ""
    arguments: str = "{}"
    result: str = ""


def form(typed: Form, token: str) -> Html:
    """The form."""
    return el(
        "form",
        filters.hidden("token", token),
        el(
            "div",
            filters.field("Server, as hooks see it", "server", typed.server, placeholder="server"),
            filters.field("Tool, by the server's own name", "tool", typed.tool, required=True),
            class_="pair",
        ),
        _area("Arguments, a JSON object", "arguments", typed.arguments),
        el(
            "details",
            el("summary", "With a result, for hooks after the call"),
            _area("Result, a CallToolResult as JSON", "result", typed.result),
            open=bool(typed.result),
        ),
        el("p", "Hooks run for real. Nothing is forwarded, nobody is asked, and nothing is audited.", class_="quiet"),
        el("div", el("button", "Try it", type="submit"), class_="buttons"),
        method="post",
        action="try",
        class_="form",
    )


def _area(label: str, name: str, value: str) -> Html:
    area = el("textarea", value, name=name, rows="6", spellcheck="false", autocomplete="off")
    return el("label", el("span", label), area)


def outcome(report: TrialReport) -> Html:
    """What would happen to the call, hook by hook."""
    trial, attempt = report.trial, report.attempt
    by, reason = report.decided_by
    kind = "wait" if trial.decision == "asked" else _KINDS[report.status]
    head = el("h2", words.badge(report.decision, kind), words.code(attempt.tool))
    passes = "" if trial.is_judged else "No hook or rule applies to this call: it passes unchanged."
    rows = facts(
        [
            ("By", by),
            ("Reason", trial.unreadable or reason or passes),
            ("The person is asked", report.approval_text),
            *(("Remark", remark) for remark in trial.observation.remarks),
        ]
    )
    hooks = [call.hook_run(as_record(run)) for run in trial.observation.runs]
    skipped = [el("li", words.code(one.spec.label), f" {one.why}") for one in report.not_run]
    return el(
        "section",
        head,
        rows,
        _arguments(report),
        el("h2", "Hooks"),
        *(hooks or [el("p", "No hook ran.", class_="quiet")]),
        el("details", el("summary", f"Hooks that did not run: {len(skipped)}"), el("ul", *skipped), open=True)
        if skipped
        else "",
        _answer(report),
        class_="call",
        aria_live="polite",
    )


def _arguments(report: TrialReport) -> Html:
    proposed = report.trial.proposed
    if not proposed or report.trial.decision in ("deny", "asked-deny"):
        return Html("")
    shown = difference(pretty(report.attempt.arguments), pretty(proposed), "Changed arguments")
    return join([el("h2", "Arguments, as typed and as they would run"), shown])


def _answer(report: TrialReport) -> Html:
    if not report.trial.response:
        return Html("")
    return join([el("h2", "What the agent gets"), block(pretty(report.trial.response), "What the agent gets")])


def as_record(run: ObservedRun) -> HookRun:
    """The run as the audit would record it, with all that the hook got and printed."""
    spec, result, hook_run = run.spec, run.result, run.hook_run
    verdict = hook_run.verdict if hook_run is not None else None
    return HookRun(
        source=spec.source,
        event=spec.event,
        dialect=spec.dialect,
        command=spec.target or spec.label,
        tool_name=hook_run.tool_name if hook_run is not None else "",
        ended=result.ended.value if result is not None else Ended.CANCELLED.value,
        exit=result.code if result is not None else 0,
        ms=result.ms if result is not None else 0.0,
        verdict=lines.verdict_word(verdict) if verdict is not None else "none",
        reason=(verdict.failure or verdict.reason) if verdict is not None else "",
        feedback=verdict.feedback if verdict is not None else (),
        messages=verdict.messages if verdict is not None else (),
        input=run.stdin.decode(errors="backslashreplace"),
        stdout=result.stdout.decode(errors="backslashreplace") if result is not None else "",
        stderr=result.stderr.decode(errors="backslashreplace") if result is not None else "",
    )
