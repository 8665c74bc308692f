"""What `check` finds out, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from ..dialects.dialect import Group
from ..model.hooks import HookSpec
from ..model.settings import Settings
from ..trust.sources import ManagedSummary
from ..trust.trusted_files import Dependencies


class FailureEffect(StrEnum):
    """What follows when a hook crashes, hangs, cannot start or answers nonsense. Standard error tells in each case."""

    BLOCK = "block"  # the call is refused
    WITHHOLD = "withhold"  # the result is withheld
    INFORM_MODEL = "tell"  # the result passes, and the model is told that it was not judged
    CONTINUE = "continue"  # nothing


class Finding(Struct, frozen=True):
    """Something that its author should know, and where."""

    file: str
    """Empty: it is about no file."""
    line: int | None
    key: str
    text: str
    """One sentence without a full stop."""


class HookEntry(Struct, frozen=True):
    """One hook as its file has it; of one that nothing here ever asks, only what its place tells."""

    file: str
    line: int | None
    key: str
    dialect: str = ""
    event: str = ""
    """The occasion; empty where the dialect's event is none here."""
    event_name: str = ""
    """The event as its file spells it."""
    matcher: str = ""
    only_if: str = ""
    command: str = ""
    timeout: float = 0.0
    on_failure: FailureEffect = FailureEffect.CONTINUE
    fires: bool = False
    """It can be asked behind MCP."""
    awaited: bool = False
    """Something waits for what it says."""
    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    managed: bool = False
    """The administrator's, which the user cannot switch off."""


class Report(Struct, frozen=True):
    """All that is configured, and what is to be said about it."""

    settings: Settings
    entries: tuple[HookEntry, ...]
    """By file, and there by line."""
    findings: tuple[Finding, ...]
    """Each one once: those of entries, too."""
    remarks: tuple[Finding, ...]
    """What may be as it should: it depends on what is not known here."""
    managed: ManagedSummary | None = None
    """Nothing is, where there is none."""
    trust: Dependencies | None = None
    """What must stay as it was trusted; None: that is not required."""


class ConfiguredHook(Struct, frozen=True):
    """A configured hook and what it stands among."""

    spec: HookSpec
    group: Group
    settings: Settings
    environ: Mapping[str, str]


VERSION: Final = 1
"""The number of the JSON document's format."""


def text(report: Report) -> str:
    """One JSON document, in ASCII: paths may hold what is no UTF-8."""
    document = {
        "v": VERSION,
        "settings": _settings(report.settings),
        "managed": _managed(report),
        "trust": report.trust and {"files": list(report.trust.files), "not_covered": report.trust.not_covered},
        "hooks": [_members(entry) for entry in report.entries],
        "findings": [asdict(one) for one in report.findings],
        "remarks": [asdict(one) for one in report.remarks],
    }
    return json.dumps(document, indent=2) + "\n"


def _managed(report: Report) -> dict[str, object] | None:
    managed = report.managed
    if managed is None:
        return None
    return {"files": list(managed.files), "settings": dict(managed.set_by), "only": managed.managed_only}


def _settings(settings: Settings) -> dict[str, object]:
    members = asdict(settings)
    members["aliases"] = [
        {"tool": one.tool, "as": one.name or None, "arguments": dict(one.arguments), "preset": one.preset or None}
        for one in settings.aliases
    ]
    members["limits"] = [asdict(one) for one in settings.limits]
    members["managed"] = settings.managed and _settings(settings.managed)
    return members


def _members(entry: HookEntry) -> dict[str, object]:
    runs: dict[str, object] = {
        "matcher": entry.matcher,
        "if": entry.only_if,
        "command": entry.command,
        "timeout": entry.timeout,
        "on_failure": entry.on_failure,
        "awaited": entry.awaited,
    }
    return {
        "file": entry.file,
        "line": entry.line,
        "key": entry.key,
        "dialect": entry.dialect or None,
        "event": entry.event or None,
        "event_name": entry.event_name,
        **(runs if entry.fires else dict.fromkeys(runs)),
        "fires": entry.fires,
        "managed": entry.managed,
        "findings": [one.text for one in entry.findings],
        "remarks": [one.text for one in entry.remarks],
    }
