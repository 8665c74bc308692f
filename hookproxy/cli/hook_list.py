"""The hooks in the output of `check`: one line for each, below what is wrong; or with `--verbose` each one whole.

In the short list, a finding that several places share stands once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from ..checks.report import FailureEffect, Finding, HookEntry, Report
from ..dialects.shared.hook_file import CANNOT_FIRE
from ..model.counts import counted
from ..model.hooks import Event
from ..model.settings import SeenNames
from .layout import Page, label, short_path

_LONGEST_COMMAND: Final = 100  # characters: with the rest of its entry that is two lines of a narrow terminal
_LABELS: Final = (("warning:", "bold yellow"), ("note:", "cyan"))
_AFTER_FAILURE: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the result passes, and the model is informed that it was not judged",
}
_WITHOUT_EFFECT: Final[dict[str, str]] = {
    Event.PRE_TOOL_USE: "the call passes",
    Event.POST_TOOL_USE: "the result passes",
    Event.POST_TOOL_USE_FAILURE: "the result passes",
    Event.PERMISSION_REQUEST: "the request stays undecided",
}
"""What happens after a failure that has no effect."""

_NAMES: Final = {
    SeenNames.BOTH: "; once under a tool's own name, once under its familiar one",
    SeenNames.FAMILIAR: "; under a tool's familiar name if it has one",
    SeenNames.OWN: "",
}
"""Under which names of a tool a hook runs that matches both."""


def print_hooks(page: Page, report: Report, cwd: str) -> None:
    """Print the findings and remarks, and the hooks of each file."""
    explained = {
        finding
        for entry in report.entries
        for finding in (*entry.findings, *entry.remarks)
        if not entry.fires and CANNOT_FIRE in finding.text
    }  # the hook's own entry says it
    keys = {finding: entry.key for entry in report.entries for finding in (*entry.findings, *entry.remarks)}
    any_finding = False
    for (name, style), findings in zip(_LABELS, (report.findings, report.remarks), strict=True):
        shown = [finding for finding in findings if finding not in explained]
        for text, places in _by_text(shown, keys, cwd).items():
            page.row((f"{name} ", style), f"{places}: {text}" if places else text)
            any_finding = True
    if any_finding:
        page.line()
    for file, entries in groupby(report.entries, lambda entry: entry.file):
        with page.details():
            _file(page, file, list(entries), cwd)


def _by_text(findings: Sequence[Finding], keys: Mapping[Finding, str], cwd: str) -> dict[str, str]:
    """The places of each text: files, each with its lines. `keys` has the keys of hooks, by their findings."""
    lines: dict[str, dict[str, Counter[int]]] = {}
    for finding in findings:
        if finding in keys:
            text = finding.text.removeprefix(f"{keys[finding]} ")
        else:
            text = finding.text if finding.text.startswith(finding.key) else f"{finding.key}: {finding.text}"
        of_file = lines.setdefault(text, {}).setdefault(short_path(finding.file, cwd), Counter())
        if finding.line:
            of_file[finding.line] += 1
    return {text: "; ".join(_places(file, of_file) for file, of_file in files.items()) for text, files in lines.items()}


def _places(file: str, lines: Counter[int]) -> str:
    """A file with the lines in it, for example `settings.json:3, 7 (2 hooks)`."""
    numbers = ", ".join(f"{line} ({count} hooks)" if count > 1 else f"{line}" for line, count in lines.items())
    return f"{file}:{numbers}" if numbers else file


def _file(page: Page, file: str, entries: Sequence[HookEntry], cwd: str) -> None:
    dialects = dict.fromkeys(entry.dialect for entry in entries if entry.dialect)
    page.line((short_path(file, cwd), "bold"), f" ({', '.join(dialects)})" if dialects else "")
    places = [str(entry.line) if entry.line else entry.key.removeprefix(file) for entry in entries]
    width = max(map(len, places))
    for place, entry in zip(places, entries, strict=True):
        page.row((f"  {place:>{width}}  ", "dim"), _summary(entry))
    page.line()


def _summary(entry: HookEntry) -> str:
    """One hook: when it runs, what runs, and what else decides."""
    if not entry.fires:
        texts = (finding.text.removeprefix(f"{entry.key} ") for finding in (*entry.remarks, *entry.findings))
        why = next((text for text in texts if CANNOT_FIRE in text), "never runs")
        return f"{_event(entry)}: {why}"
    when = " ".join(filter(None, (_event(entry), entry.matcher, entry.only_if and f"if {entry.only_if}")))
    notes = [
        f"{entry.timeout:g} s",
        f"if it fails, {_after_failure(entry)}" if entry.awaited else "nothing waits for it",
        "once for each name of a tool" if entry.names is SeenNames.BOTH else "",
        "managed" if entry.managed else "",
    ]
    command = entry.label if entry.command == entry.file else " ".join(entry.command.split())
    if len(command) > _LONGEST_COMMAND:
        command = f"{command[:_LONGEST_COMMAND].rstrip()} …"
    return f"{when}: {command} ({'; '.join(filter(None, notes))})"


def _event(entry: HookEntry) -> str:
    """The event as the file spells it, and as hookproxy does if that is another name."""
    return entry.event_name if entry.event in (entry.event_name, "") else f"{entry.event_name} ({entry.event})"


def _after_failure(entry: HookEntry) -> str:
    if entry.on_failure is FailureEffect.CONTINUE:
        return _WITHOUT_EFFECT.get(entry.event, "everything continues")
    return _AFTER_FAILURE[entry.on_failure] + ", but not after each failure" * entry.lets_pass


# --- each hook whole ---


def print_blocks(page: Page, report: Report, cwd: str) -> None:
    """Print a block for each hook, and one for each file with other findings."""
    for entry in report.entries:
        place = f"{entry.file}:{entry.line}" if entry.line else entry.file
        page.line((short_path(place, cwd), "bold"), f"  {entry.key}")
        for name, text in _rows(entry):
            page.row(label(name), text)
        _findings(page, entry.findings, entry.remarks, f"{entry.key} ")
    of_hooks = {finding for entry in report.entries for finding in (*entry.findings, *entry.remarks)}
    findings, remarks = (
        [finding for finding in every if finding not in of_hooks] for every in (report.findings, report.remarks)
    )
    for file in dict.fromkeys(finding.file for finding in (*findings, *remarks)):
        if file:
            page.line((short_path(file, cwd), "bold"))
        of_file, about_file = ([finding for finding in every if finding.file == file] for every in (findings, remarks))
        _findings(page, of_file, about_file)


def _findings(page: Page, findings: Sequence[Finding], remarks: Sequence[Finding], beginning: str = "") -> None:
    """Print these below what they are about, each without this beginning."""
    for (name, style), of_label in zip(_LABELS, (findings, remarks), strict=True):
        for finding in of_label:
            page.row((f"  {name} ", style), finding.text.removeprefix(beginning))
    page.line()


def _rows(entry: HookEntry) -> Iterator[tuple[str, str]]:
    """The rows of a hook's block: label and text."""
    if entry.dialect:
        yield "dialect", entry.dialect
    if entry.managed:
        yield "managed", "runs last, on the final arguments; cannot be switched off"
    yield "event", _event(entry) + _fires(entry)
    if not entry.fires:
        return
    yield "matcher", (entry.matcher or "all") + (_NAMES[entry.names] if entry.names else "")
    if entry.only_if:
        yield "if", entry.only_if
    yield "command", entry.command
    yield "timeout", counted(entry.timeout, "second")
    reported = "; the failure is reported on standard error" * (entry.on_failure is FailureEffect.CONTINUE)
    yield "failure", (_after_failure(entry) if entry.awaited else "nothing waits for it") + reported


def _fires(entry: HookEntry) -> str:
    """Whether the hook can run, as far as its dialect is known."""
    if entry.fires:
        return ", fires behind MCP"
    if entry.event:
        return ", but never runs"
    return ", cannot fire behind MCP" if entry.dialect else ""
