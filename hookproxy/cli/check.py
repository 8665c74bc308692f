"""`hookproxy check`: shows every hook and permission rule, and what about them cannot work, before anything runs.

It reads what `run` would read. With a command line it also starts the server, and shows what hooks see of its tools.
Exit status: 0 clean; 1 findings (`checks.inspect` defines them); 2 `run` would not start (under `strict`: because of a
finding that does not depend on the server), or the server does not list its tools.
`docs/json-output.md` describes the document of `--json`.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..checks import flow_entries
from ..checks import report as check_report
from ..checks.inspect import inspect
from ..checks.report import CheckedServer, HookEntry, Report
from ..config.hook_files import is_own_configuration
from ..config.load import Loaded
from ..config.toml_text import ask_fallback, setting_line
from ..hooks import failures, watched
from ..hooks.coverage import coverage
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..model.flow import Source
from ..model.settings import Settings
from .agent_entry import use_entry
from .common import load_named, show, tell, unread_file, working_directory
from .hook_list import print_blocks, print_hooks
from .hook_runtime import redirected_output, run_until_done
from .layout import Page, Rows, alias_text, new_page, short_path
from .offline import OfflinePolicy, gateway_named, is_gateway_file
from .options import ENTRY_OPTIONS, GATEWAY_OPTIONS, HOOK_OPTIONS, Parser, parse_with_command
from .progress import waiting
from .run import server_name
from .server_table import print_server

_MEANINGS: Final = {
    "ask": "a person is asked about calls that no rule is about",
    "deny": "calls that no rule is about are refused",
}
"""What the default of permissions means."""
_SHOWN_ELSEWHERE: Final = frozenset({
    "allow", "ask", "deny", "default_permission", "agent_rules", "aliases", "shown_tools", "limits", "flow_sources",
    "flow_sinks",
})  # fmt: skip
"""Settings that have a section of their own."""
_HOW_TO_REFUSE: Final = (
    'such calls: on_failure = "deny" in hookproxy.toml or a [[use]] table of it, or run --fail-closed'
)
_IN_PROCESS_TYPES: Final = ("python", "http", "cel", "cedar", "opa")
"""The hook types that run in our own process: whether they can run is known before anything runs."""


def main(arguments: Sequence[str]) -> int:
    """Print the configuration and the findings. Returns the exit status."""
    options, command = parse_with_command(build_parser(), arguments)
    cwd = working_directory()
    _name_files(options, cwd)
    cwd, command = _as_agent(options, cwd, command)
    if (config := gateway_named(options, cwd)) is not None:
        from . import check_gateway

        list_tools = partial(_list_gateway_tools, command) if command else None
        return check_gateway.main(options, config, list_tools, _rules, cwd)
    loaded = load_named(options, cwd)
    types = {spec.type for group in loaded.all_groups for spec in group.hooks}
    if "mcp_tool" in types:  # what runs hooks is imported only where it is needed: it takes 40 ms
        from ..hooks.evaluate import check_mcp_tool_hooks

        check_mcp_tool_hooks(loaded.groups, loaded.settings)
    if not types.isdisjoint(_IN_PROCESS_TYPES):
        from ..hooks.evaluate import Hooks

        groups = loaded.all_groups
        with redirected_output():  # prepares the runners, as `run` does, and raises ConfigError for what does not exist
            run_until_done(lambda: Hooks(groups, loaded.settings, "", os.environ, loaded.trust).runners.aclose())
    tell(unread_file(options.config, loaded.path, cwd))
    report = inspect(loaded, os.environ)
    starts = not (report.findings and (options.strict or loaded.settings.strict))
    failure: UserError | None = None
    if command:
        server, failure = _list_tools(loaded, options.name or server_name(command), command)
        report = inspect(loaded, os.environ, server)
    from . import guard_entries

    of_guard = guard_entries.checked(loaded, options.agent)
    findings, remarks = (*report.findings, *of_guard.findings), (*report.remarks, *of_guard.remarks)
    report = replace(report, starts=starts, findings=findings, remarks=remarks)
    show(check_report.to_json(report) if options.json else _text(report, cwd, options.verbose))
    if failure is not None:
        raise failure
    if not starts:
        return EXIT_USER_ERROR
    return EXIT_FINDINGS if report.findings else 0


def _name_files(options: Namespace, cwd: str) -> None:
    """Take each file that stands alone as the value of `--hooks`, or of `--config` if it is a hookproxy.toml."""
    for file in options.files:
        path = os.path.join(cwd, file)
        if options.config is None and (is_own_configuration(path) or is_gateway_file(path)):
            options.config = path
        else:
            options.hooks.append(file)


def _as_agent(options: Namespace, cwd: str, command: list[str]) -> tuple[str, list[str]]:
    """The working directory and the command of the server as an agent's entry has them. Raises UserError."""
    try:
        entry = use_entry(options, cwd)
    except UserError:
        from . import guard_entries

        if options.server is not None or options.tools or not guard_entries.of_agent(options.agent):
            raise
        return cwd, command  # its servers are not wrapped, and the guard judges its own tools
    if entry is None:
        if options.tools:
            raise UserError(
                "--tools is for the server of an agent's entry", "hookproxy check -- COMMAND lists a server's tools"
            )
        return cwd, command
    if options.tools and not command and not entry.command:
        raise UserError(f"{entry.name} of {entry.file} is at an address", "leave out --tools: it starts a command only")
    return entry.cwd, command or (list(entry.command) if options.tools else [])


def _list_tools(loaded: Loaded, name: str, command: Sequence[str]) -> tuple[CheckedServer, UserError | None]:
    """Start the server and list its tools. Returns what hooks see of it, and the error if it does not list them."""
    from ..checks.server_tools import list_tools
    from ..policy.tool_tables import idle_secret_tables, is_about, unknown_tools

    try:
        with waiting(f"the tools of {name}"):
            listed = run_until_done(partial(list_tools, command, os.environ, on_slow=_report_wait))
    except UserError as error:
        failure = UserError(error.message, error.hint)
        return CheckedServer(name, tuple(command), failure=error.message), failure
    found = coverage(loaded.groups, loaded.settings, name, listed.tools, command, listed.server_info)
    idle = tuple(dict.fromkeys(rule.text for rule in found.idle_rules))
    names = [tool.name for tool in listed.tools]
    restore = [] if (secrets := loaded.settings.secrets) is None else secrets.restore
    server = CheckedServer(
        name,
        tuple(command),
        found,
        info=listed.server_info,
        noise=listed.noise,
        idle_rules=idle,
        hidden=listed.hidden,
        unknown_tools=unknown_tools(loaded.settings, names),
        flow=flow_entries.covered(loaded.settings, loaded.groups, name, listed.tools, command, listed.server_info),
        idle_secrets=idle_secret_tables(secrets, name, names),
        restoring=tuple(
            tool
            for tool in names
            if any(is_about(table.tool, tool) and is_about(table.server, name) for table in restore)
        ),
    )
    return server, None


def _list_gateway_tools(command: Sequence[str], policy: OfflinePolicy) -> tuple[CheckedServer, UserError | None]:
    """As `_list_tools`, for the server of a gateway."""
    assert policy.server is not None, "it is of a gateway"
    return _list_tools(policy.loaded, policy.server.name, command)


def _report_wait(seconds: float) -> None:
    """Say why nothing is shown yet: the server has so many seconds left."""
    if sys.stderr is not None and sys.stderr.isatty():
        return  # `waiting` says it there
    end = datetime.now() + timedelta(seconds=seconds)
    tell(f"waiting for the server's list of tools, until {end:%H:%M:%S} at the latest")


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "check",
        "Show every configured hook, and what about it cannot work. With the server's COMMAND, start the server, list "
        "its tools, and show which hook sees which tool under which name. Exit status: 0 clean (notes do not count), "
        "1 warnings, 2 `run` would not start, or the server does not list its tools.",
        rest="[-- COMMAND [ARG...]]",
    )
    parser.add_argument(
        "files",
        metavar="[DIALECT=]FILE",
        nargs="*",
        help="a hook file, as for --hooks, a hookproxy.toml or a gateway.toml",
    )
    parser.add_common(*HOOK_OPTIONS)
    parser.add_argument("--name", help="the server's name as hooks see it (default: derived from COMMAND)")
    parser.add_common(*ENTRY_OPTIONS, *GATEWAY_OPTIONS)
    parser.add_argument(
        "--tools", action="store_true", help="with --agent: start the entry's server and list its tools"
    )
    parser.add_common("--fail-closed", "--strict", "--json")
    parser.add_argument("--verbose", action="store_true", help="show each hook whole, with its findings below it")
    return parser


def _text(report: Report, cwd: str, verbose: bool) -> str:
    """The output for people: the hooks, the rules, the tools, and the summary."""
    page = new_page(short=not verbose)
    (print_blocks if verbose else print_hooks)(page, report, cwd)
    with page.details():
        _print_rest(page, report, cwd, verbose)
    if report.server:
        print_server(page, report.server, report.entries)
    page.begin_end()
    page.line((_summary(report), "bold"))
    return page.text


def _print_rest(page: Page, report: Report, cwd: str, verbose: bool) -> None:
    """What is configured beside the hooks, and the server."""
    settings, managed = report.settings, report.settings.managed
    page.section("permission rules", _rules(settings))
    for of_pack in settings.pack_rules:
        page.section(f"permission rules of {of_pack.called}: they only narrow", _rules(of_pack))
    if managed:
        page.section("managed permission rules", _rules(managed))
    page.section("managed: cannot be switched off or weakened", _managed_settings(report))
    if report.watched is not None:
        page.section(watched.summary(report.watched), (("watched", part) for part in watched.parts(report.watched)))
    page.section("trust: required; these files are used only while they are unchanged", _trust(report))
    page.section("where data may go", _flow(settings))
    page.section("tools", _tools(settings))
    page.section("secrets: the agent gets placeholders", _secrets(report))
    if not settings.roots.passes_all:
        page.section("roots", iter([("roots", str(settings.roots))]))
    if managed:
        page.section("managed tools", _tools(replace(managed, aliases=(), shown_tools=())))  # they are shown above
    if passing := [entry for entry in report.entries if entry.lets_pass]:
        deciding = sum(entry.decides for entry in report.entries)
        rows = _passing(passing if verbose else (), cwd)
        page.section(f"{failures.passing_sentence(len(passing), deciding)}:", rows)


def _managed_settings(report: Report) -> Rows:
    """What the administrator has set, with its place: nobody else can weaken it."""
    if report.managed is None:
        return
    for file in report.managed.files:
        yield "file", file
    if report.managed.managed_only:
        yield "only", "only managed hooks run"
    lines = [
        f"{setting_line(report.settings, name)} ({place})"
        for name, place in report.managed.set_by.items()
        if name not in _SHOWN_ELSEWHERE
    ]
    for line in dict.fromkeys(lines):  # the fallback and its program are one key
        yield "setting", line


def _trust(report: Report) -> Rows:
    """The files that must be trusted, and what trust does not cover."""
    if report.trust is not None:
        yield from (("file", file) for file in report.trust.files)
        yield from (("other", f"not covered: {unknown}") for unknown in report.trust.not_covered)


def _rules(settings: Settings) -> Rows:
    """The permission rules, the strongest first."""
    for decision, own in (("deny", settings.deny), ("ask", settings.ask), ("allow", settings.allow)):
        yield from ((decision, rule) for rule in own)
        of_agents = [rule for rule in settings.agent_rules if rule.decision == decision]
        yield from ((decision, f"{rule.text} ({rule.place})") for rule in of_agents)
    if settings.default_permission != "allow":
        yield (
            "default",
            f"{settings.default_permission} ({_MEANINGS[settings.default_permission]}, unless a hook decides)",
        )
    if settings.ask or settings.default_permission == "ask":
        yield "asks", ask_fallback(settings)
    if (settings.deny or settings.default_permission == "deny") and not settings.hide_denied:
        yield "listed", "denied tools stay in tools/list"


def _flow(settings: Settings) -> Rows:
    """The sources and sinks of data, the administrator's too."""
    for entry in flow_entries.entries_of(settings):
        yield "source" if isinstance(entry, Source) else "sink", flow_entries.summary(entry)


def _passing(shown: Sequence[HookEntry], cwd: str) -> Rows:
    """Hooks that let a call pass if they fail, and what changes that. The short list of hooks says it of each."""
    for entry in shown:
        place = f"{entry.file}:{entry.line}" if entry.line else f"{entry.file}: {entry.key}"
        yield "hook", f"{short_path(place, cwd)} ({entry.dialect})"
    yield "refuse", _HOW_TO_REFUSE


def _tools(settings: Settings) -> Rows:
    """The aliases of tools, how the agent sees tools, and the rate limits."""
    yield from (("alias", f"{alias.tool} {alias_text(alias)}") for alias in settings.aliases)
    for shown in settings.shown_tools:
        how = "hidden from the agent" if shown.hidden else f"the agent calls it {shown.name}" if shown.name else ""
        described = "" if shown.description is None else "the agent gets another description"
        yield "shown", f"{shown.tool}: {', '.join(filter(None, (how, described)))}"
    for limit in settings.limits:
        yield "limit", limit.summary


def _secrets(report: Report) -> Rows:
    """What is hidden, and who sees it nevertheless."""
    secrets = report.settings.secrets
    if secrets is None:
        return
    skipped = f" but {', '.join(secrets.skip)}" if secrets.skip else ""
    yield "rules", f"those of gitleaks{skipped}"
    yield from (("detector", f"{name} {regex}") for name, regex in secrets.detectors.items())
    yield from (("value", f"{name} {source}") for name, source in secrets.values.items())
    yield from (("allowed", regex) for regex in secrets.allow)
    yield from (("off", f"{table.tool} of {_of_servers(table.server)}") for table in secrets.off)
    for table in secrets.restore:
        yield "restored", f"{', '.join(table.rules)} in arguments of {table.tool} of {_of_servers(table.server)}"
    for entry in report.entries:
        if entry.sees_values:
            yield "hook", f"{entry.label} sees the values"


def _of_servers(pattern: str) -> str:
    return "any server" if pattern == "*" else pattern


def _summary(report: Report) -> str:
    active = sum(entry.fires for entry in report.entries)
    inactive = len(report.entries) - active
    rules = sum(layer.rule_count for layer in report.settings.with_rules)
    parts = [
        counted(active, "hook"),
        f"{inactive} that cannot run" if inactive else "",
        counted(rules, "permission rule") if rules else "",
        f"only watched: {watched.amounts(report.watched)}" if report.watched else "",
        counted(len(report.findings), "warning"),
        "" if report.starts else "and strict is set: run does not start",
    ]
    return ", ".join(filter(None, parts))
