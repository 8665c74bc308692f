"""`hookproxy check`: every hook and permission rule, and what about them cannot work, before anything runs.

It reads what `run` would read. Exit status: 0 clean; 1 findings (`checks` says what counts); 2 `run` would not start.

`--json` prints one document. A key is never taken away or given another meaning without another `v`; new ones may come.

    v         1
    settings  the keys of hookproxy.toml that concern every call; those of its tables as `audit_file` and so on, the
              permission rules as the lists `allow`, `ask` and `deny`; `aliases`, objects with tool, as (null: hooks
              know the tool by its own names), arguments (the server's name by the hooks') and preset (null: none says
              so); `limits`, objects with tool, calls, per, by
              `managed`: what holds for managed hooks and rules instead; null where nothing is managed
    managed   null, or: files, the administrator's; settings, the keys of `settings` that they set, each with its place;
              only, whether no other hooks run
    trust     null where it is not required, or: files, which are used only as they were trusted; not_covered, what
              else hooks run, in a few words each
    hooks     one object for each hook, by file and line:
      file, line, key    where it is written; the file's absolute path; line null where it cannot be told
      dialect            null for a file in which no hook can fire
      event, event_name  the occasion, and how the file spells it; event null where it is none behind MCP
      matcher, if        as written; empty: all
      command            the line for sh, or the words of a program, quoted as for sh
      timeout            seconds
      on_failure         "block": the call is refused; "withhold": the result is; "tell": the result passes, and the
                         model is told; "continue": nothing. Standard error tells in each case
      fires              whether it can be asked behind MCP; if not, the keys from matcher to awaited are null
      awaited            whether anybody waits for what it says
      managed            whether it is the administrator's, which nobody else switches off
      findings, remarks  sentences about it
    findings  all of them, those of hooks too: file (empty: no file), line, key, text. None: exit status 0
    remarks   the same of what does not count
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from ..checks import inspect
from ..checks import report as check_report
from ..checks.report import FailureEffect, Finding, HookEntry, Report
from ..config.load import Loaded, load
from ..hooks.evaluate import Hooks, check_mcp_tool_hooks
from ..model.errors import EXIT_FINDINGS
from ..model.hooks import Event
from ..model.settings import Settings
from .common import add_sources, here, parser, show
from .hook_runtime import hooks_at_work, run
from .layout import MARGIN, count, known_as, put, row, short, visible

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy check [--config FILE] [--hooks [DIALECT=]FILE]... [--json]"

_WARNING: Final = Text.assemble("  ", ("warning:", "bold yellow"), " ")
_NOTE: Final = Text.assemble("  ", ("note:", "cyan"), " ")
_CONSEQUENCES: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the result passes, and the model is told that it was not judged",
}
_HERE: Final = ("python", "http")
"""The types of hooks that run in our own process: whether they can is known before anything runs."""

_GOES_ON: Final[dict[str, str]] = {
    Event.PRE_TOOL_USE: "the call goes on",
    Event.POST_TOOL_USE: "the result passes",
    Event.POST_TOOL_USE_FAILURE: "the result passes",
    Event.PERMISSION_REQUEST: "the question stays open",
}


async def _find(loaded: Loaded) -> None:
    """Find what hooks are made of, as `run` does. Raises ConfigError for what is not there."""
    await Hooks(loaded.groups, loaded.settings, "", os.environ, loaded.trust).runners.aclose()


def main(arguments: Sequence[str]) -> int:
    """Print what is configured and what was found; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    cwd = here()
    loaded = load(chosen.config, chosen.hooks, None, os.environ, cwd)
    check_mcp_tool_hooks(loaded.groups, loaded.settings)
    if any(spec.type in _HERE for group in loaded.groups for spec in group.hooks):
        with hooks_at_work():
            run(partial(_find, loaded))
    report = inspect.inspect(loaded, os.environ)
    show(check_report.to_json(report) if chosen.json else _text(report, cwd))
    return EXIT_FINDINGS if report.findings else 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "check",
        USAGE,
        "Show every hook that is configured, and what about it cannot work. "
        "Exit status: 0 clean, 1 findings, 2 `run` would not start.",
    )
    add_sources(taken)
    taken.add_argument("--json", action="store_true", help="one JSON document, for programs")
    return taken


def _text(report: Report, cwd: str) -> str:
    """For people: a block for each hook, one for each file that something else is said about, and the sum."""
    console = Console(highlight=False)
    with console.capture() as shown:
        for entry in report.entries:
            _block(console, entry, cwd)
        for file, told in _of_files(report).items():
            if file:
                put(console, Text(visible(short(file, cwd), console), "bold"))
            for one, label in told:
                row(console, label, one.text)
            put(console, Text())
        _rules(console, "permission rules", report.settings)
        if report.settings.managed:
            _rules(console, "managed permission rules", report.settings.managed)
        _managed_settings(console, report)
        _trust(console, report)
        _tools(console, "tools", report.settings)
        if report.settings.managed:
            _tools(console, "managed tools", replace(report.settings.managed, aliases=()))  # those stand above
        put(console, Text(_sum(report), "bold"))
    return shown.get()


def _managed_settings(console: Console, report: Report) -> None:
    """What the administrator has set, with its place: nobody else weakens that."""
    if report.managed is None:
        return
    put(console, Text("managed: cannot be switched off, nor weakened", "bold"))
    for file in report.managed.files:
        row(console, Text("  file".ljust(MARGIN), "dim"), file)
    if report.managed.managed_only:
        row(console, Text("  only".ljust(MARGIN), "dim"), "no hooks run but managed ones")
    for name, place in report.managed.set_by.items():
        if name not in ("allow", "ask", "deny", "aliases", "limits"):
            row(console, Text("  setting".ljust(MARGIN), "dim"), f"{name} = {getattr(report.settings, name)} ({place})")
    put(console, Text())


def _trust(console: Console, report: Report) -> None:
    """That trust is required, of which files, and what that leaves out."""
    if report.trust is None:
        return
    put(console, Text("trust: required, and these files are used only as they were trusted", "bold"))
    for file in report.trust.files:
        row(console, Text("  file".ljust(MARGIN), "dim"), file)
    for unknown in report.trust.not_covered:
        row(console, Text("  beside".ljust(MARGIN), "dim"), f"not covered: {unknown}")
    put(console, Text())


def _rules(console: Console, heading: str, settings: Settings) -> None:
    """The permission rules, the strongest first."""
    kinds = {"deny": settings.deny, "ask": settings.ask, "allow": settings.allow}
    if not any(kinds.values()):
        return
    put(console, Text(heading, "bold"))
    for kind, rules in kinds.items():
        label = Text(f"  {kind}".ljust(MARGIN), "dim")
        for rule in rules:
            row(console, label, rule)
    if settings.deny and not settings.hide_denied:
        row(console, Text("  listed".ljust(MARGIN), "dim"), "tools that are denied stay in tools/list")
    put(console, Text())


def _tools(console: Console, heading: str, settings: Settings) -> None:
    """What hooks call tools, and how many calls are allowed."""
    rows = [("alias", f"{one.tool} {known_as(one)}") for one in settings.aliases]
    rows += [("limit", f"{one.tool}: {count(one.calls, 'call')} per {one.per}") for one in settings.limits]
    if not rows:
        return
    put(console, Text(heading, "bold"))
    for name, text in rows:
        row(console, Text(f"  {name}".ljust(MARGIN), "dim"), text)
    put(console, Text())


def _block(console: Console, entry: HookEntry, cwd: str) -> None:
    place = f"{entry.file}:{entry.line}" if entry.line else entry.file
    head = Text(visible(short(place, cwd), console), "bold")
    put(console, Text.assemble(head, "  ", visible(entry.key, console)))
    for name, text in _rows(entry):
        row(console, Text(f"  {name}".ljust(MARGIN), "dim"), text)
    for label, found in ((_WARNING, entry.findings), (_NOTE, entry.remarks)):
        for one in found:
            row(console, label, one.text.removeprefix(f"{entry.key} "))
    put(console, Text())


def _rows(entry: HookEntry) -> Iterator[tuple[str, str]]:
    """What stands in a hook's block, with its label."""
    spelled = entry.event_name if entry.event in (entry.event_name, "") else f"{entry.event_name} ({entry.event})"
    if entry.dialect:
        yield "dialect", entry.dialect
    if entry.managed:
        yield "managed", "asked last, about the final arguments; cannot be switched off"
    yield "event", spelled + _fires(entry)
    if not entry.fires:
        return
    yield "matcher", entry.matcher or "all"
    if entry.only_if:
        yield "if", entry.only_if
    yield "command", entry.command
    yield "timeout", f"{entry.timeout:g} seconds"
    yield "failure", _failure(entry)


def _fires(entry: HookEntry) -> str:
    """Whether it can be asked, as far as its dialect is known."""
    if entry.fires:
        return ", fires behind MCP"
    if entry.event:
        return ", but never asked"
    return ", cannot fire behind MCP" if entry.dialect else ""


def _failure(entry: HookEntry) -> str:
    """What follows when the hook fails."""
    if not entry.awaited:
        return "nobody waits for it; standard error tells"
    if entry.on_failure is not FailureEffect.CONTINUE:
        return _CONSEQUENCES[entry.on_failure]
    goes_on = _GOES_ON.get(entry.event, "all goes on")
    return f"{goes_on}; standard error tells"


def _of_files(report: Report) -> dict[str, list[tuple[Finding, Text]]]:
    """What is said about files and not about hooks, with its label."""
    told = {one for entry in report.entries for one in (*entry.findings, *entry.remarks)}
    by_file: dict[str, list[tuple[Finding, Text]]] = {}
    for label, found in ((_WARNING, report.findings), (_NOTE, report.remarks)):
        for one in found:
            if one not in told:
                by_file.setdefault(one.file, []).append((one, label))
    return by_file


def _sum(report: Report) -> str:
    hooks = sum(entry.fires for entry in report.entries)
    idle = len(report.entries) - hooks
    settings = report.settings
    rules = sum(len(one.deny) + len(one.ask) + len(one.allow) for one in (settings, settings.managed) if one)
    parts = [
        count(hooks, "hook"),
        f"{idle} that cannot run" if idle else "",
        count(rules, "permission rule") if rules else "",
        count(len(report.findings), "warning"),
    ]
    return ", ".join(part for part in parts if part)
