"""What `check --json` prints; the docstring of `cli.check` says what its keys mean."""

from __future__ import annotations

import json
from typing import Final

from msgspec.structs import asdict

from ..model.settings import Settings
from .report import Entry, Report

VERSION: Final = 1
"""The number of the JSON document's format."""


def text(report: Report) -> str:
    """One JSON document, in ASCII: paths may hold what is no UTF-8."""
    document = {
        "v": VERSION,
        "settings": _settings(report.settings),
        "managed": _managed(report),
        "trust": report.trust and {"files": list(report.trust.files), "not_covered": report.trust.unknown},
        "hooks": [_members(entry) for entry in report.entries],
        "findings": [asdict(one) for one in report.findings],
        "remarks": [asdict(one) for one in report.remarks],
    }
    return json.dumps(document, indent=2) + "\n"


def _managed(report: Report) -> dict[str, object] | None:
    managed = report.managed
    if managed is None:
        return None
    return {"files": list(managed.files), "settings": dict(managed.given), "only": managed.only}


def _settings(settings: Settings) -> dict[str, object]:
    members = asdict(settings)
    members["aliases"] = [
        {"tool": one.tool, "as": one.name or None, "arguments": dict(one.arguments), "preset": one.preset or None}
        for one in settings.aliases
    ]
    members["limits"] = [asdict(one) for one in settings.limits]
    members["managed"] = settings.managed and _settings(settings.managed)
    return members


def _members(entry: Entry) -> dict[str, object]:
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
