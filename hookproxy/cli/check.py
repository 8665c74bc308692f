"""`hookproxy check`: shows every hook and permission rule, and what about them cannot work, before anything runs.

It reads what `run` would read. With a command line it also starts the server, and shows what hooks see of its tools.
Exit status: 0 clean; 1 findings (`checks.inspect` defines them); 2 `run` would not start (under `strict`: because of a
finding that does not depend on the server), or the server does not list its tools.

`--json` prints one document. New keys may be added to it. No key is removed or changes its meaning without another `v`.

    v         1
    settings  the keys of hookproxy.toml that concern every call; those of its tables as `audit_file` and so on, the
              permission rules as the lists `allow`, `ask` and `deny`; `aliases`, objects with tool, as (null: hooks
              use the server's name for the tool), arguments (from the hooks' names to the server's) and preset (null:
              the alias comes from no preset); `limits`, objects with tool, calls, per, by;
              `managed`: the settings that hold for managed hooks and rules instead; null if nothing is managed
    managed   null, or: files, the administrator's files; settings, the keys of `settings` that these files set, each
              with its place; only, whether only managed hooks run
    trust     null if trust is not required, or: files, which are used only in the state in which they were trusted;
              not_covered, what else hooks run, each in a few words
    hooks     one object for each hook, in the order of files and lines:
      file, line, key    where it is written: the file's absolute path; line is null if it is not known
      dialect            null for a file in which no hook can fire
      event, event_name  the event, and how the file spells it; event is null if it does not exist behind MCP
      matcher, if        as written; empty: all calls
      command            the line for sh, or the words of a program, quoted as for sh
      timeout            seconds
      on_failure         "block": the call is refused; "withhold": the result is withheld; "tell": the result passes,
                         and the model is informed; "continue": nothing. Standard error reports it in each case
      lets_pass          whether a call passes after one of the ways in which it may fail
      fires              whether it can run behind MCP; if not, the keys from matcher to awaited are null
      awaited            whether anything waits for its output
      managed            whether it is the administrator's, so that nobody else can switch it off
      names              how it runs for a tool that its matcher matches by the own name and by a familiar one: "both"
                         (once under each), "own" or "familiar"; null if its matcher cannot match both
      tools              null if the server's tools are not known; else the tools that it sees: objects with tool, the
                         server's name, and name, the name that the hook sees
      findings, remarks  sentences about it
    findings  all findings, also those of hooks: file (empty: no file), line, key, text. None: exit status 0
    remarks   the same for remarks, which do not change the exit status
    server    null without COMMAND, or: name, as hooks see it; command, its words; info, the name that it gives itself;
              failure, why it did not list its tools, or null; noise, how many lines on its standard output were not
              JSON; idle_rules, the deny and ask rules that are about none of its tools; tools, null after a failure,
              else one object for each tool, in the order of its list:
      tool               the server's name for it
      names              an object for each name under which hooks see it: name; why (empty: its own name; "[tools.X]",
                         "preset NAME" or "its name and arguments"); arguments, from the hooks' names to the server's;
                         hooks, objects with file, line and key
      rules              whether a permission rule or a limit applies to it
    starts    whether `run` starts: false under `strict` if there is a finding that does not depend on the server
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from ..checks import report as check_report
from ..checks.inspect import inspect
from ..checks.report import CheckedServer, FailureEffect, Finding, HookEntry, Report
from ..config.hook_files import is_own_configuration
from ..config.load import Loaded
from ..config.toml_text import ask_fallback, setting_line
from ..hooks import failures
from ..hooks.coverage import coverage
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..model.hooks import Event
from ..model.settings import SeenNames, Settings
from .common import (
    add_fail_closed_option,
    add_hook_options,
    add_strict_option,
    load_named,
    show,
    split_command,
    unread_file,
    working_directory,
)
from .hook_list import print_hooks
from .hook_runtime import redirected_output, run
from .layout import MARGIN, alias_text, print_line, row, short_path, visible
from .options import Parser
from .run import server_name
from .server_table import print_server

if TYPE_CHECKING:
    import argparse

USAGE: Final = (
    "hookproxy check [[DIALECT=]FILE]... [--config FILE] [--hooks [DIALECT=]FILE]... [--project DIR] [--name NAME] "
    "[--fail-closed] [--strict] [--json] [--verbose] [-- COMMAND [ARG...]]"
)

_WARNING: Final = Text.assemble("  ", ("warning:", "bold yellow"), " ")
_NOTE: Final = Text.assemble("  ", ("note:", "cyan"), " ")
_CONSEQUENCES: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the result passes, and the model is informed that it was not judged",
}
_HOW_TO_REFUSE: Final = (
    'such calls: on_failure = "deny" in hookproxy.toml or a [[use]] table of it, or run --fail-closed'
)
_NAMES: Final = {
    SeenNames.BOTH: "; once under a tool's own name, once under its familiar one",
    SeenNames.FAMILIAR: "; under a tool's familiar name if it has one",
    SeenNames.OWN: "",
}
"""Under which names of a tool a hook runs that matches both."""
_IN_PROCESS_TYPES: Final = ("python", "http")
"""The hook types that run in our own process: whether they can run is known before anything runs."""

_CONTINUATIONS: Final[dict[str, str]] = {
    Event.PRE_TOOL_USE: "the call continues",
    Event.POST_TOOL_USE: "the result passes",
    Event.POST_TOOL_USE_FAILURE: "the result passes",
    Event.PERMISSION_REQUEST: "the request stays undecided",
}
"""What happens after a failure that has no effect."""


async def _prepare_runners(loaded: Loaded) -> None:
    """Prepare the runners of all hooks, as `run` does. Raises ConfigError for what does not exist."""
    from ..hooks.evaluate import Hooks

    await Hooks(loaded.groups, loaded.settings, "", os.environ, loaded.trust).runners.aclose()


def main(arguments: Sequence[str]) -> int:
    """Print the configuration and the findings. Returns the exit status."""
    option_words, command = split_command(arguments)
    options = build_parser().parse_args(option_words)
    if options.name and not command:
        raise UserError("--name names no server, because there is no COMMAND", "write -- COMMAND [ARG...] after it")
    cwd = working_directory()
    _name_files(options, cwd)
    loaded = load_named(options, cwd)
    types = {spec.type for group in loaded.groups for spec in group.hooks}
    if "mcp_tool" in types:  # what runs hooks is imported only where it is needed: it takes 40 ms
        from ..hooks.evaluate import check_mcp_tool_hooks

        check_mcp_tool_hooks(loaded.groups, loaded.settings)
    if not types.isdisjoint(_IN_PROCESS_TYPES):
        with redirected_output():
            run(partial(_prepare_runners, loaded))
    if unread := unread_file(options.config, loaded.path, cwd):
        sys.stderr.write(f"hookproxy: {unread}\n")
    report = inspect(loaded, os.environ)
    starts = not (report.findings and (options.strict or loaded.settings.strict))
    failure: UserError | None = None
    if command:
        server, failure = _list_tools(loaded, options.name or server_name(command), command)
        report = inspect(loaded, os.environ, server)
    report = replace(report, starts=starts)
    show(check_report.to_json(report) if options.json else _text(report, cwd, options.verbose))
    if failure is not None:
        raise failure
    if not starts:
        return EXIT_USER_ERROR
    return EXIT_FINDINGS if report.findings else 0


def _name_files(options: argparse.Namespace, cwd: str) -> None:
    """Take each file that stands alone as the value of `--hooks`, or of `--config` if it is a hookproxy.toml."""
    for file in options.files:
        path = os.path.join(cwd, file)
        if options.config is None and is_own_configuration(path):
            options.config = path
        else:
            options.hooks.append(file)


def _list_tools(loaded: Loaded, name: str, command: Sequence[str]) -> tuple[CheckedServer, UserError | None]:
    """Start the server and list its tools. Returns what hooks see of it, and the error if it does not list them."""
    from ..checks.rules_without_tools import rules_without_tools
    from ..checks.server_tools import list_tools

    try:
        listed = run(partial(list_tools, command, os.environ, on_slow=_report_wait))
    except UserError as error:
        failure = UserError(error.message, error.hint)
        return CheckedServer(name, tuple(command), failure=error.message), failure
    found = coverage(loaded.groups, loaded.settings, name, listed.tools, command, listed.server_info)
    idle = rules_without_tools(loaded.settings, name, listed.tools, command, listed.server_info)
    return CheckedServer(name, tuple(command), found, "", listed.server_info, listed.noise, idle), None


def _report_wait(seconds: float) -> None:
    """Say why nothing is shown yet: the server has so many seconds left."""
    end = datetime.now() + timedelta(seconds=seconds)
    sys.stderr.write(f"hookproxy: waiting for the server's list of tools, until {end:%H:%M:%S} at the latest\n")


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "check",
        USAGE,
        "Show every configured hook, and what about it cannot work. With the server's COMMAND, start the server, list "
        "its tools, and show which hook sees which tool under which name. Exit status: 0 clean (notes do not count), "
        "1 warnings, 2 `run` would not start, or the server does not list its tools.",
    )
    parser.add_argument(
        "files", metavar="[DIALECT=]FILE", nargs="*", help="a hook file, as for --hooks, or a hookproxy.toml"
    )
    add_hook_options(parser)
    parser.add_argument("--name", help="the server's name as hooks see it (default: derived from COMMAND)")
    add_fail_closed_option(parser)
    add_strict_option(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document, for programs")
    parser.add_argument("--verbose", action="store_true", help="show each hook whole, with its findings below it")
    return parser


def _text(report: Report, cwd: str, verbose: bool) -> str:
    """The output for people: the hooks, the rules, the tools, and the summary."""
    console = Console(highlight=False)
    with console.capture() as captured:
        (_blocks if verbose else print_hooks)(console, report, cwd)
        _rules(console, "permission rules", report.settings)
        if report.settings.managed:
            _rules(console, "managed permission rules", report.settings.managed)
        _managed_settings(console, report)
        _trust(console, report)
        _tools(console, "tools", report.settings)
        if report.settings.managed:
            _tools(console, "managed tools", replace(report.settings.managed, aliases=()))  # aliases are shown above
        _passing(console, report, cwd, verbose)
        if report.server:
            print_server(console, report.server, report.entries)
        print_line(console, Text(_summary(report), "bold"))
    return captured.get()


def _blocks(console: Console, report: Report, cwd: str) -> None:
    """Print a block for each hook, and one for each file with other findings."""
    for entry in report.entries:
        _block(console, entry, cwd)
    for file, findings in _file_findings(report).items():
        if file:
            print_line(console, Text(visible(short_path(file, cwd), console), "bold"))
        for finding, label in findings:
            row(console, label, finding.text)
        print_line(console, Text())


def _managed_settings(console: Console, report: Report) -> None:
    """What the administrator has set, with its place: nobody else can weaken it."""
    if report.managed is None:
        return
    print_line(console, Text("managed: cannot be switched off or weakened", "bold"))
    for file in report.managed.files:
        row(console, Text("  file".ljust(MARGIN), "dim"), file)
    if report.managed.managed_only:
        row(console, Text("  only".ljust(MARGIN), "dim"), "only managed hooks run")
    lines = [
        f"{setting_line(report.settings, name)} ({place})"
        for name, place in report.managed.set_by.items()
        if name not in ("allow", "ask", "deny", "agent_rules", "aliases", "limits")
    ]
    for line in dict.fromkeys(lines):  # the fallback and its program are one key
        row(console, Text("  setting".ljust(MARGIN), "dim"), line)
    print_line(console, Text())


def _trust(console: Console, report: Report) -> None:
    """The files that must be trusted, and what trust does not cover."""
    if report.trust is None:
        return
    print_line(console, Text("trust: required; these files are used only while they are unchanged", "bold"))
    for file in report.trust.files:
        row(console, Text("  file".ljust(MARGIN), "dim"), file)
    for unknown in report.trust.not_covered:
        row(console, Text("  other".ljust(MARGIN), "dim"), f"not covered: {unknown}")
    print_line(console, Text())


def _rules(console: Console, heading: str, settings: Settings) -> None:
    """The permission rules, the strongest first."""
    rules_by_decision = {
        decision: (*own, *(f"{one.text} ({one.place})" for one in settings.agent_rules if one.decision == decision))
        for decision, own in (("deny", settings.deny), ("ask", settings.ask), ("allow", settings.allow))
    }
    if not any(rules_by_decision.values()):
        return
    print_line(console, Text(heading, "bold"))
    for decision, rules in rules_by_decision.items():
        label = Text(f"  {decision}".ljust(MARGIN), "dim")
        for rule in rules:
            row(console, label, rule)
    if settings.ask:
        row(console, Text("  asks".ljust(MARGIN), "dim"), ask_fallback(settings))
    if settings.deny and not settings.hide_denied:
        row(console, Text("  listed".ljust(MARGIN), "dim"), "denied tools stay in tools/list")
    print_line(console, Text())


def _passing(console: Console, report: Report, cwd: str, verbose: bool) -> None:
    """Which hooks let a call pass if they fail, and what changes that. The short list of hooks says it of each."""
    passing = [entry for entry in report.entries if entry.lets_pass]
    if not passing:
        return
    deciding = sum(entry.decides for entry in report.entries)
    print_line(console, Text(f"{failures.passing_sentence(len(passing), deciding)}:", "bold"))
    for entry in passing if verbose else ():
        place = f"{entry.file}:{entry.line}" if entry.line else f"{entry.file}: {entry.key}"
        row(console, Text("  hook".ljust(MARGIN), "dim"), f"{short_path(place, cwd)} ({entry.dialect})")
    row(console, Text("  refuse".ljust(MARGIN), "dim"), _HOW_TO_REFUSE)
    print_line(console, Text())


def _tools(console: Console, heading: str, settings: Settings) -> None:
    """The aliases of tools, and the rate limits."""
    rows = [("alias", f"{alias.tool} {alias_text(alias)}") for alias in settings.aliases]
    rows += [("limit", f"{limit.tool}: {counted(limit.calls, 'call')} per {limit.per}") for limit in settings.limits]
    if not rows:
        return
    print_line(console, Text(heading, "bold"))
    for name, text in rows:
        row(console, Text(f"  {name}".ljust(MARGIN), "dim"), text)
    print_line(console, Text())


def _block(console: Console, entry: HookEntry, cwd: str) -> None:
    """Print one hook."""
    place = f"{entry.file}:{entry.line}" if entry.line else entry.file
    head = Text(visible(short_path(place, cwd), console), "bold")
    print_line(console, Text.assemble(head, "  ", visible(entry.key, console)))
    for name, text in _rows(entry):
        row(console, Text(f"  {name}".ljust(MARGIN), "dim"), text)
    for label, findings in ((_WARNING, entry.findings), (_NOTE, entry.remarks)):
        for finding in findings:
            row(console, label, finding.text.removeprefix(f"{entry.key} "))
    print_line(console, Text())


def _rows(entry: HookEntry) -> Iterator[tuple[str, str]]:
    """The rows of a hook's block: label and text."""
    spelled = entry.event_name if entry.event in (entry.event_name, "") else f"{entry.event_name} ({entry.event})"
    if entry.dialect:
        yield "dialect", entry.dialect
    if entry.managed:
        yield "managed", "runs last, on the final arguments; cannot be switched off"
    yield "event", spelled + _fires(entry)
    if not entry.fires:
        return
    yield "matcher", (entry.matcher or "all") + (_NAMES[entry.names] if entry.names else "")
    if entry.only_if:
        yield "if", entry.only_if
    yield "command", entry.command
    yield "timeout", counted(entry.timeout, "second")
    yield "failure", _failure(entry)


def _fires(entry: HookEntry) -> str:
    """Whether the hook can run, as far as its dialect is known."""
    if entry.fires:
        return ", fires behind MCP"
    if entry.event:
        return ", but never runs"
    return ", cannot fire behind MCP" if entry.dialect else ""


def _failure(entry: HookEntry) -> str:
    """What happens when the hook fails."""
    if not entry.awaited:
        return "nothing waits for it; it is reported on standard error"
    if entry.on_failure is not FailureEffect.CONTINUE:
        return _CONSEQUENCES[entry.on_failure] + ", but not after each failure" * entry.lets_pass
    continuation = _CONTINUATIONS.get(entry.event, "everything continues")
    return f"{continuation}; the failure is reported on standard error"


def _file_findings(report: Report) -> dict[str, list[tuple[Finding, Text]]]:
    """The findings and remarks about files instead of hooks, with their labels."""
    of_hooks = {finding for entry in report.entries for finding in (*entry.findings, *entry.remarks)}
    by_file: dict[str, list[tuple[Finding, Text]]] = {}
    for label, findings in ((_WARNING, report.findings), (_NOTE, report.remarks)):
        for finding in findings:
            if finding not in of_hooks:
                by_file.setdefault(finding.file, []).append((finding, label))
    return by_file


def _summary(report: Report) -> str:
    active = sum(entry.fires for entry in report.entries)
    inactive = len(report.entries) - active
    settings = report.settings
    rules = sum(each.rule_count for each in (settings, settings.managed) if each)
    parts = [
        counted(active, "hook"),
        f"{inactive} that cannot run" if inactive else "",
        counted(rules, "permission rule") if rules else "",
        counted(len(report.findings), "warning"),
        "" if report.starts else "and strict is set: run does not start",
    ]
    return ", ".join(part for part in parts if part)
