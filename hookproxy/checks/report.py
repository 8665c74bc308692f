"""The report of `check` as values, and as the JSON document of `check --json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from ..dialects.dialect import Group
from ..hooks import watched
from ..hooks.coverage import Coverage, SeenTool
from ..model.aliases import Alias
from ..model.hooks import HookSpec
from ..model.settings import FORMER_KEYS, SeenNames, Settings
from ..trust.sources import ManagedSummary, Watched
from .flow_entries import CoveredEntry

if TYPE_CHECKING:
    from ..trust.check_unchanged import Dependencies  # only if trust is required: it takes 5 ms


class FailureEffect(StrEnum):
    """What happens when a hook crashes, times out, cannot start or prints invalid output.

    In each case it is also reported on standard error.
    """

    BLOCK = "block"  # the call is refused
    WITHHOLD = "withhold"  # the result is withheld
    INFORM_MODEL = "tell"  # the result passes, with a note to the model that it was not checked
    CONTINUE = "continue"  # the failure has no effect


class Finding(Struct, frozen=True):
    """A message for the author of a configuration, and the place that it is about."""

    file: str
    """Empty: the message is not about a file."""
    line: int | None
    key: str
    text: str
    """One sentence without a full stop."""

    @property
    def place(self) -> str:
        """File and line, for people."""
        return f"{self.file}:{self.line}" if self.line else self.file


class HookEntry(Struct, frozen=True):
    """One hook as its file defines it. For a hook that cannot run here, only the fields about its place are set."""

    file: str
    line: int | None
    key: str
    dialect: str = ""
    event: str = ""
    """The event; empty if hookproxy has no such event."""
    event_name: str = ""
    """The event as its file spells it."""
    matcher: str = ""
    only_if: str = ""
    command: str = ""
    timeout: float = 0.0
    on_failure: FailureEffect = FailureEffect.CONTINUE
    decides: bool = False
    """A call waits for it."""
    lets_pass: bool = False
    """A call passes after one of the ways in which it may fail."""
    fires: bool = False
    """Whether it can run behind MCP."""
    awaited: bool = False
    """Whether something waits for its output."""
    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    managed: bool = False
    """It belongs to the administrator, and the user cannot turn it off."""
    label: str = ""
    """The name that people and the model see."""
    sees_values: bool = False
    """It sees the values of hidden secrets."""
    names: SeenNames | None = None
    """Under which names it runs for a tool with a familiar name; None: its matcher says which, or it cannot run."""
    tools: tuple[SeenTool, ...] | None = None
    """The tools of the server that it sees; None: they are not known, or it cannot run."""


class CheckedServer(Struct, frozen=True):
    """The server that was started to list its tools."""

    name: str
    """As hooks see it."""
    command: tuple[str, ...]
    coverage: Coverage | None = None
    """None: it did not list its tools."""
    failure: str = ""
    """Why it did not list its tools."""
    info: str = ""
    """The name that it gives itself."""
    noise: int = 0
    """How many lines on its standard output were not JSON."""
    idle_rules: tuple[str, ...] = ()
    """The rules that are about none of its tools."""
    hidden: tuple[str, ...] = ()
    """What its texts hide, a line for each."""
    unknown_tools: tuple[str, ...] = ()
    """The tools of `[tools.X]` that it does not list."""
    idle_secrets: tuple[str, ...] = ()
    """The tables of `[secrets]` that are about none of its tools."""
    restoring: tuple[str, ...] = ()
    """The tools that may have the values of secrets."""
    flow: tuple[CoveredEntry, ...] = ()
    """What each source and each sink of data may be about."""


class Report(Struct, frozen=True):
    """The whole configuration, with findings and remarks about it."""

    settings: Settings
    entries: tuple[HookEntry, ...]
    """Sorted by file and line."""
    findings: tuple[Finding, ...]
    """Each one once, including those of entries."""
    remarks: tuple[Finding, ...]
    """What may be intended: that depends on facts that are not known here."""
    managed: ManagedSummary | None = None
    """None: nothing is managed."""
    trust: Dependencies | None = None
    """The files that must stay as they were trusted; None: trust is not required."""
    server: CheckedServer | None = None
    """None: no server was named."""
    watched: Watched | None = None
    """What is only watched, and neither in `settings` nor in `entries`; None: nothing is."""
    starts: bool = True
    """Whether `run` starts. With `strict` it does not if there is a finding that does not depend on the server."""


class ConfiguredHook(Struct, frozen=True):
    """A configured hook with its group, the settings and the environment."""

    spec: HookSpec
    group: Group
    settings: Settings
    environ: Mapping[str, str]


VERSION: Final = 1
"""The version of the JSON document's format."""


def to_json(report: Report) -> str:
    """One JSON document, in ASCII, because paths may contain bytes that are not UTF-8."""
    return json.dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, object]:
    """The members of the document."""
    managed, trust = report.managed, report.trust
    return {
        "v": VERSION,
        "settings": _settings(report.settings),
        "managed": managed
        and {
            "files": list(managed.files),
            "settings": _with_former_keys(managed.set_by),
            "only": managed.managed_only,
        },
        "trust": trust and {"files": list(trust.files), "not_covered": trust.not_covered},
        "hooks": [_members(entry) for entry in report.entries],
        "watched": report.watched and {"files": report.watched.files, "parts": list(watched.parts(report.watched))},
        "findings": [asdict(finding) for finding in report.findings],
        "remarks": [asdict(remark) for remark in report.remarks],
        "server": report.server and _server(report.server, report.entries),
        "starts": report.starts,
    }


def _server(server: CheckedServer, entries: Sequence[HookEntry]) -> dict[str, object]:
    coverage, names = server.coverage, names_of_tools(entries)
    return {
        "name": server.name,
        "command": list(server.command),
        "info": server.info,
        "failure": server.failure or None,
        "noise": server.noise,
        "idle_rules": list(server.idle_rules),
        "unknown_tools": list(server.unknown_tools),
        "idle_secrets": list(server.idle_secrets),
        "restoring_tools": list(server.restoring),
        "flow": [{"key": of.entry.key, "kind": of.kind, "tools": list(of.tools)} for of in server.flow],
        "hidden_tools": list(coverage.hidden) if coverage else [],
        "tools": coverage
        and [
            {"tool": tool, "names": [_name(name) for name in names.get(tool, ())], "rules": tool in coverage.ruled}
            for tool in coverage.tools
        ],
        "methods": coverage
        and [
            {
                "method": method.method,
                "hooks": [{"label": spec.label, "event": spec.event, "name": name} for spec, name in method.seen],
                "rules": method.ruled,
            }
            for method in coverage.methods
        ],
    }


def _name(name: NameOfTool) -> dict[str, object]:
    alias = name.seen.alias
    return {
        "name": name.seen.name,
        "why": alias_origin(alias),
        "arguments": dict(alias.arguments) if alias else {},
        "hooks": [{"file": entry.file, "line": entry.line, "key": entry.key} for entry in name.hooks],
    }


class NameOfTool(Struct):
    """A name under which hooks see a tool, with these hooks."""

    seen: SeenTool
    hooks: list[HookEntry]


def names_of_tools(entries: Sequence[HookEntry]) -> dict[str, list[NameOfTool]]:
    """The names under which hooks see each tool. Tools that no hook sees are left out."""
    by_tool: dict[str, dict[str, NameOfTool]] = {}
    for entry in entries:
        for seen in entry.tools or ():
            by_tool.setdefault(seen.tool, {}).setdefault(seen.name, NameOfTool(seen, [])).hooks.append(entry)
    return {tool: list(names.values()) for tool, names in by_tool.items()}


def alias_origin(alias: Alias | None) -> str:
    """Where a tool's name for hooks comes from, in a few words; empty: it is one of the tool's own names."""
    if alias is None or not alias.name:
        return ""
    if alias.preset:
        return f"preset {alias.preset}"
    return "its name and arguments" if alias.automatic else "[tools.X]"


def _with_former_keys(members: Mapping[str, object]) -> dict[str, object]:
    """The settings under their former names as well: no key of this document is taken away."""
    return {**members, **{old: members[new] for old, new in FORMER_KEYS.items() if new in members}}


def _settings(settings: Settings) -> dict[str, object]:
    members = asdict(settings)
    members["aliases"] = [
        {
            "tool": alias.tool,
            "as": alias.name or None,
            "arguments": dict(alias.arguments),
            "preset": alias.preset or None,
        }
        for alias in settings.aliases
    ]
    members["shown_tools"] = [asdict(shown) for shown in settings.shown_tools]
    members["limits"] = [
        {limit.measure.value: limit.most, "then": limit.beyond}
        | {name: value for name, value in asdict(limit).items() if name not in ("most", "measure", "beyond", "watched")}
        for limit in settings.limits
    ]
    for name in ("flow_sources", "flow_sinks"):
        members[name] = [to_builtins(entry) for entry in getattr(settings, name)]
    del members["watched_rules"]  # what is only watched is elsewhere
    lock = settings.lock
    members["lock"] = lock and {name: value for name, value in asdict(lock).items() if name != "data"}
    members["secrets"] = to_builtins(settings.secrets)
    members["approvals"] = to_builtins(settings.approvals)
    members["roots"] = {"give": settings.roots.given, "allow": settings.roots.allowed}
    members["pack_rules"] = [_settings(of_pack) for of_pack in settings.pack_rules]
    members["managed"] = settings.managed and _settings(settings.managed)
    return _with_former_keys(members)


def _members(entry: HookEntry) -> dict[str, object]:
    runs = ("matcher", "if", "command", "timeout", "on_failure", "lets_pass", "awaited")
    members = {"if" if name == "only_if" else name: value for name, value in asdict(entry).items()}
    members = {name: members[name] for name in members if name not in ("decides", "label")}
    return members | {
        "dialect": entry.dialect or None,
        "event": entry.event or None,
        **({} if entry.fires else dict.fromkeys(runs)),
        "tools": None if entry.tools is None else [{"tool": tool.tool, "name": tool.name} for tool in entry.tools],
        "findings": [finding.text for finding in entry.findings],
        "remarks": [remark.text for remark in entry.remarks],
    }
