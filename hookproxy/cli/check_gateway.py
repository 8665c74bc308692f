"""`hookproxy check` of a gateway's file: what would stop `serve`, what will not work, and what holds at each server.

It looks at what `serve` looks at, by the same functions, and listens nowhere. With `--user` the rules and servers are
those of this user.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..checks import report as check_report
from ..checks.inspect import NO_HOOK, inspect
from ..checks.report import CheckedServer, Finding, Report
from ..checks.startup_notes import KeyLines, finding
from ..gateway.start_checks import start_errors, start_notes
from ..gateway.start_problems import start_problems
from ..hooks import watched
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, ConfigError, UserError
from ..secrets.mask import Masking
from . import findings
from .common import show
from .explained import for_whom
from .hook_list import print_blocks, print_hooks
from .layout import Page, Rows, new_page, short_path
from .offline import OfflinePolicy, not_admitted, policy_at, server_named, user_named
from .server_table import print_server

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..gateway.identities import Identity
    from ..model.settings import Settings

ListTools = Callable[[OfflinePolicy], tuple[CheckedServer, UserError | None]]
"""Starts the server of the command line and lists its tools; the error if that fails."""
RulesOf = Callable[["Settings"], Rows]
"""The rows of permission rules."""

VERSION: Final = 1
"""The version of the JSON document's format."""


class _Checked(Struct, frozen=True):
    """What was found out about one server."""

    server: GatewayServer
    policy: OfflinePolicy
    admitted: bool
    """The user may use it, or nobody in particular is meant."""
    report: Report


def main(options: Namespace, config: GatewayConfig, list_tools: ListTools | None, rules_of: RulesOf, cwd: str) -> int:
    """Print what was found. Returns the exit status. Raises UserError."""
    identity = user_named(options, config)
    one = options.server is not None or list_tools is not None
    servers = [server_named(options, config)] if one else list(config.servers.values())
    if identity is not None and one and not servers[0].allows(identity.principal):
        raise not_admitted(config, servers[0], identity)
    failure: UserError | None = None
    checked = []
    for server in servers:
        policy = policy_at(server, identity)
        listed = None
        if list_tools is not None:
            listed, failure = list_tools(policy)
        admitted = identity is None or server.allows(identity.principal)
        report = inspect(policy.loaded, policy.environ, listed, allows_users=bool(server.rules_for_users))
        checked.append(_Checked(server, policy, admitted, report))
    errors = list(start_errors(config))
    whole = _Whole(config, identity, checked, errors, options.strict)
    show(whole.to_json() if options.json else whole.text(rules_of, cwd, options.verbose))
    if failure is not None:
        raise failure
    if errors or not whole.starts:
        return EXIT_USER_ERROR
    return EXIT_FINDINGS if whole.findings else 0


class _Whole:
    """All of it, for people and for programs."""

    def __init__(
        self,
        config: GatewayConfig,
        identity: Identity | None,
        checked: Sequence[_Checked],
        errors: Sequence[ConfigError],
        strict: bool,
    ) -> None:
        self._config = config
        self._identity = identity
        self._checked = checked
        self._errors = errors
        lines = KeyLines()
        of_servers = [found for one in checked for found in one.report.findings if found.text != NO_HOOK]
        self.findings = list(dict.fromkeys([*of_servers, *(finding(text, lines) for text in start_problems(config))]))
        of_loading = {note for one in checked for note in (*one.policy.loaded.notes, *one.policy.loaded.remarks)}
        remarks = [found for one in checked for found in one.report.remarks]
        remarks += [finding(note, lines) for note in config.notes if note not in of_loading]
        if not errors:
            remarks += [finding(note, lines) for note in start_notes(config)]
        self._remarks = [remark for remark in dict.fromkeys(remarks) if remark not in self.findings]
        self._lines = lines
        wants_strict = strict or any(one.policy.loaded.settings.strict for one in checked)
        self.starts = not errors and not (wants_strict and self.findings)

    # --- for programs ---

    def to_json(self) -> str:
        """One JSON document, as that of `check --json` for each server."""
        principal = self._identity.principal if self._identity else None
        document = {
            "v": VERSION,
            "gateway": {
                "file": self._config.path,
                "policy": self._config.version,
                "user": principal and principal.name,
                "groups": principal and list(principal.groups),
            },
            "errors": [_error_members(error, self._lines) for error in self._errors],
            "servers": {
                one.server.name: {"admitted": one.admitted, **check_report.document(one.report)}
                for one in self._checked
            },
            "findings": [_finding_members(found) for found in self.findings],
            "remarks": [_finding_members(found) for found in self._remarks],
            "starts": self.starts,
        }
        return json.dumps(document, indent=2) + "\n"

    # --- for people ---

    def text(self, rules_of: RulesOf, cwd: str, verbose: bool) -> str:
        """The findings, the hooks of all servers, and what holds at each of them."""
        page = new_page(short=not verbose)
        path, version = short_path(self._config.path, cwd), self._config.version[:12]
        signed = f" with {self._config.bundle.shown}" if self._config.bundle is not None else ""
        page.line((path, "bold"), f": policy {version}{signed}{for_whom(self._identity)}")
        for error in self._errors:
            of_error = finding(error.message, self._lines)
            page.row(("error: ", "bold red"), _placed(of_error, cwd))
            page.row(("  repair: ", "dim"), error.hint)
        merged = _merged([one.report for one in self._checked], self.findings, self._remarks)
        (print_blocks if verbose else print_hooks)(page, merged, cwd)
        with page.details():
            for one in self._checked:
                self._server(page, one, rules_of)
        page.begin_end()
        page.line((self._summary(merged), "bold"))
        return page.text

    def _server(self, page: Page, one: _Checked, rules_of: RulesOf) -> None:
        what = _what_it_is(one.server)
        if not one.admitted:
            page.section(f"server {one.server.name}: {what}", iter([("not for", self._not_for(one.server))]))
            return
        page.section(f"server {one.server.name}: {what}", self._rows(one, rules_of))
        if (of_server := one.policy.loaded.watched) is not None:
            page.section(watched.summary(of_server), (("watched", part) for part in watched.parts(of_server)))
        if one.report.server:
            print_server(page, one.report.server, one.report.entries)

    def _rows(self, one: _Checked, rules_of: RulesOf) -> Rows:
        settings, table = one.policy.loaded.settings, one.server.table
        if table.users is not None and self._identity is None:
            yield "for", ", ".join(table.users) or "nobody"
        yield from rules_of(settings)
        if settings.managed:
            yield from ((name, f"{text} (managed)") for name, text in rules_of(settings.managed))
        if self._identity is None:
            yield from _rules_for_people(one.server)
        if settings.roots.given != ():  # else as by default: none
            yield "roots", str(settings.roots)
        for limit in settings.limits:
            whose = "each session" if limit.of_session else "all users together" if limit.together else "one user"
            yield "limit", f"{limit.summary} (of {whose})"

    def _not_for(self, server: GatewayServer) -> str:
        name = self._identity.principal.name if self._identity else ""
        return f"{name}, because allow = {json.dumps(server.table.users, ensure_ascii=False)}"

    def _summary(self, merged: Report) -> str:
        parts = [
            counted(len(self._checked), "server"),
            counted(sum(entry.fires for entry in merged.entries), "hook"),
            counted(len(self._errors), "error") if self._errors else "",
            counted(len(self.findings), "warning"),
            "" if self.starts else "serve does not start",
        ]
        return ", ".join(filter(None, parts))


def _rules_for_people(server: GatewayServer) -> Rows:
    for rules, _ in server.rules_for_users:
        for_whom = f"for {', '.join(rules.users)}" + (", only watched" if rules.mode == "monitor" else "")
        for kind in ("deny", "ask", "allow"):
            yield from ((kind, f"{rule} ({for_whom})") for rule in getattr(rules, kind))
        if rules.default is not None:
            yield "default", f"{rules.default} ({for_whom})"


def _what_it_is(server: GatewayServer) -> str:
    if server.table.from_caller:
        return "started by its user"
    return Masking().text(server.table.url or " ".join(server.command))


def _merged(reports: Sequence[Report], findings: Sequence[Finding], remarks: Sequence[Finding]) -> Report:
    """One report of all hooks: those for all servers are the same for each."""
    entries = {(entry.file, entry.line, entry.key): entry for report in reports for entry in report.entries}
    return replace(reports[0], entries=tuple(entries.values()), findings=tuple(findings), remarks=tuple(remarks))


def _placed(found: Finding, cwd: str) -> str:
    return findings.placed(found, short_path(found.place, cwd))


def _finding_members(found: Finding) -> dict[str, object]:
    return {"file": found.file, "line": found.line, "key": found.key, "text": found.text}


def _error_members(error: ConfigError, lines: KeyLines) -> dict[str, object]:
    return {**_finding_members(finding(error.message, lines)), "hint": error.hint}
