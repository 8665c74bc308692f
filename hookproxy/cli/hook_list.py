"""The short output of `check`: what is wrong first, then one entry for each hook. `--verbose` shows each hook whole.

A finding that several places share stands there once. On a terminal, lines are wrapped between words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ..checks.report import FailureEffect, Finding, HookEntry, Report
from ..dialects.shared.hook_file import CANNOT_FIRE
from ..model.hooks import Event
from ..model.settings import SeenNames
from .layout import print_line, row, short_path, visible

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_COMMAND: Final = 100  # characters: with the rest of its entry that is two lines of a narrow terminal
_LABELS: Final = (("warning", "bold yellow"), ("note", "cyan"))
_AFTER_FAILURE: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the model is informed",
}
_CONTINUATIONS: Final[dict[str, str]] = {
    Event.PRE_TOOL_USE: "the call passes",
    Event.POST_TOOL_USE: "the result passes",
    Event.POST_TOOL_USE_FAILURE: "the result passes",
    Event.PERMISSION_REQUEST: "the request stays undecided",
}
"""What happens after a failure that has no effect."""


def print_hooks(console: Console, report: Report, cwd: str) -> None:
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
        for text, places in _by_text([one for one in findings if one not in explained], keys, cwd).items():
            row(console, Text.assemble((f"{name}:", style), " "), f"{places}: {text}" if places else text)
            any_finding = True
    if any_finding:
        print_line(console, Text())
    for file, entries in groupby(report.entries, lambda entry: entry.file):
        _file(console, file, list(entries), cwd)


def _by_text(findings: Sequence[Finding], keys: Mapping[Finding, str], cwd: str) -> dict[str, str]:
    """The places of each text: files, each with its lines. `keys` has the keys of hooks, by their findings."""
    lines: dict[str, dict[str, Counter[int]]] = {}
    for one in findings:
        if one in keys:
            text = one.text.removeprefix(f"{keys[one]} ")
        else:
            text = one.text if one.text.startswith(one.key) else f"{one.key}: {one.text}"
        of_file = lines.setdefault(text, {}).setdefault(short_path(one.file, cwd), Counter())
        if one.line:
            of_file[one.line] += 1
    return {text: "; ".join(_places(file, of_file) for file, of_file in files.items()) for text, files in lines.items()}


def _places(file: str, lines: Counter[int]) -> str:
    """A file with the lines in it, for example `settings.json:3, 7 (2 hooks)`."""
    numbers = ", ".join(f"{line} ({count} hooks)" if count > 1 else f"{line}" for line, count in lines.items())
    return f"{file}:{numbers}" if numbers else file


def _file(console: Console, file: str, entries: Sequence[HookEntry], cwd: str) -> None:
    dialects = dict.fromkeys(entry.dialect for entry in entries if entry.dialect)
    head = Text(visible(short_path(file, cwd), console), "bold")
    print_line(console, Text.assemble(head, f" ({', '.join(dialects)})" if dialects else ""))
    places = [str(entry.line) if entry.line else entry.key for entry in entries]
    width = max(map(len, places))
    for place, entry in zip(places, entries, strict=True):
        row(console, Text.assemble((f"  {place:>{width}}  ", "dim")), _summary(entry))
    print_line(console, Text())


def _summary(entry: HookEntry) -> str:
    """One hook: when it runs, what runs, and what else decides."""
    event = entry.event_name if entry.event in (entry.event_name, "") else f"{entry.event_name} ({entry.event})"
    if not entry.fires:
        return f"{event}: {_why_never(entry)}"
    when = " ".join(part for part in (event, entry.matcher, entry.only_if and f"if {entry.only_if}") if part)
    after = _AFTER_FAILURE.get(entry.on_failure) or _CONTINUATIONS.get(entry.event, "everything continues")
    after += ", but not after each failure" * (entry.lets_pass and entry.on_failure is not FailureEffect.CONTINUE)
    notes = [
        f"{entry.timeout:g} s",
        f"if it fails, {after}" if entry.awaited else "nothing waits for it",
        "once for each name of a tool" if entry.names is SeenNames.BOTH else "",
        "managed" if entry.managed else "",
    ]
    return f"{when}: {_cut(entry.command)} ({'; '.join(note for note in notes if note)})"


def _why_never(entry: HookEntry) -> str:
    texts = (one.text.removeprefix(f"{entry.key} ") for one in (*entry.remarks, *entry.findings))
    return next((text for text in texts if CANNOT_FIRE in text), "never runs")


def _cut(command: str) -> str:
    """The command on one line, and not more of it than that."""
    line = " ".join(command.split())
    return line if len(line) <= _LONGEST_COMMAND else f"{line[:_LONGEST_COMMAND].rstrip()} …"
