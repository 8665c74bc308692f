"""One call whole: the decision and who made it, the arguments and their rewrite, each hook, and why others did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from ...audit.records import CallRecord, HookRun
from ...audit.view.table import refusal_text
from .. import policy
from ..html import Html, block, difference, el, facts, join, pretty
from . import words

_LONGEST_LINK: Final = 4000  # bytes of arguments in a link: longer ones are no address for every browser
_DIGEST: Final = "Only a digest is recorded: audit.arguments and audit.results say how much is."


def page(found: Sequence[CallRecord]) -> Html:
    """All records of a call, of which one that ran as a task has several, and what may be done next."""
    return join([*map(one_record, found), next_steps(found[-1])])


def one_record(record: CallRecord) -> Html:
    """One record of a call."""
    refused = record.result == "refused"
    summary = facts(
        [
            ("Decision", words.decision(record.decision)),
            ("Refused by" if refused else "Remark", refusal_text(record) if refused else record.reason),
            ("Result", words.RESULTS.get(record.result, record.result)),
            ("Time", words.time_of(record)),
            ("Took", f"{words.duration(record.ms)}, of it {words.duration(record.hook_ms)} in hooks"),
            ("Server", record.server),
            ("Tool", join([words.code(record.tool), f" as {record.alias} for hooks" if record.alias else ""])),
            ("Agent", record.agent),
            ("Written by", f"{record.user} on {record.host}, process {record.pid}" if record.user else ""),
            ("Session", words.code(record.session) if record.session else ""),
            ("Call", words.code(record.call) if record.call else ""),
            ("Id", words.code(bytes(record.id).decode(errors="replace")) if record.id else ""),
            ("Repeated", f"{record.repeats} times" if record.repeats else ""),
        ]
    )
    return el("article", summary, arguments(record), _hooks(record), _result(record), class_="call")


def arguments(record: CallRecord) -> Html:
    """The arguments, and what hooks changed in them."""
    before, after = pretty(bytes(record.arguments)), pretty(bytes(record.rewritten))
    if before and after:
        return _part(
            "Arguments, as the agent sent them and as they ran", difference(before, after, "Changed arguments")
        )
    if before:
        return _part("Arguments", block(before, "Arguments"))
    digests = [("Digest", record.arguments_sha256), ("Digest after the rewrite", record.rewritten_sha256)]
    return _part(
        "Arguments", el("p", _DIGEST, class_="quiet"), facts((name, words.code(one)) for name, one in digests if one)
    )


def _hooks(record: CallRecord) -> Html:
    runs = [hook_run(run) for run in record.hooks] or [el("p", "No hook ran.", class_="quiet")]
    skipped = ""
    if record.skipped:
        rows = [
            el(
                "li",
                el("b", f"{one.event} "),
                words.code(one.command),
                f" {one.why}. ",
                el("span", one.source, class_="quiet"),
            )
            for one in record.skipped
        ]
        skipped = el(
            "details", el("summary", f"Hooks that did not run: {len(rows)}"), el("ul", *rows), open=len(rows) < 6
        )
    return _part("Hooks", *runs, skipped)


def hook_run(run: HookRun) -> Html:
    """A hook's run: what it decided, got and printed."""
    ended = f"{run.ended} with status {run.exit}" if run.ended == "exited" else run.ended
    head = el(
        "h3", words.verdict(run.verdict), " ", words.code(run.command), " ", el("span", run.event, class_="quiet")
    )
    rows = facts(
        [
            ("Reason", run.reason),
            *(("To the model", one) for one in run.feedback),
            *(("To the person", one) for one in run.messages),
            ("Ended", f"{ended} after {words.duration(run.ms)}"),
            ("Saw the tool as", run.tool_name),
            ("Configured", f"{run.source} ({run.dialect})"),
        ]
    )
    return el("section", head, rows, *_texts(run), class_="hook")


def _texts(run: HookRun) -> Iterator[Html]:
    for name, value, digest in (
        ("Got", run.input, run.input_sha256),
        ("Printed", run.stdout, run.stdout_sha256),
        ("On standard error", run.stderr, ""),
    ):
        if value:
            shown = pretty(value.encode(errors="surrogatepass")) if name != "On standard error" else value
            yield el(
                "details",
                el("summary", f"{name} ", el("span", words.size(len(value)), class_="quiet")),
                block(shown, name),
            )
        elif digest:
            yield facts([(f"{name}, digest", words.code(digest))])


def _result(record: CallRecord) -> Html:
    if "result" not in record.changed:
        return Html("")
    before, after = record.result_before, record.result_after
    if before and after:
        shown = difference(pretty(before.encode()), pretty(after.encode()), "Changed result")
        return _part("Result, of the server and as the agent got it", shown)
    digests = [("Digest", record.result_before_sha256), ("Digest after the change", record.result_after_sha256)]
    return _part(
        "Result",
        el("p", f"Hooks changed it. {_DIGEST}", class_="quiet"),
        facts((name, words.code(one)) for name, one in digests),
    )


def _part(title: str, *content: Html | str) -> Html:
    return el("section", el("h2", title), *content)


def next_steps(record: CallRecord) -> Html:
    """Links to the lines of a rule about this tool, and to the form that tries this call again."""
    name = policy.rule_name(record.server, record.tool)
    rules = [
        el("a", title, href=f"policy?{urlencode({'rule': decision, 'name': name})}#rule", class_="button plain")
        for decision, title in (("deny", "Never allow"), ("ask", "Ask a person"), ("allow", "Allow without asking"))
    ]
    arguments = bytes(record.arguments)
    members = {"server": record.server, "tool": record.tool}
    if arguments and len(arguments) <= _LONGEST_LINK:
        members["arguments"] = pretty(arguments)
    tried = el("a", "Try this call", href=f"try?{urlencode(members, errors='replace')}", class_="button plain")
    return el("p", "Lines for a rule about this tool:", *rules, tried, class_="buttons steps")


def copyable(value: str, label: str) -> Html:
    """Lines with a button that copies them."""
    button = el("button", "Copy", type="button", class_="copy", hidden=True, aria_label=f"Copy: {label}")
    return el("div", el("pre", value, tabindex="0", role="group", aria_label=label), button, class_="copyable")
