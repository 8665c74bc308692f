"""Audit records of calls, and what is learned from them."""

from __future__ import annotations

import json
from typing import Any

from hookproxy.audit import records
from hookproxy.learning.as_toml import toml_of
from hookproxy.learning.observations import Observations
from hookproxy.learning.proposal import Proposal
from hookproxy.learning.propose import propose

Line = dict[str, Any] | bytes


def line(tool: str, decision: str = "allow", **members: object) -> dict[str, Any]:
    """A line of the audit about a call; the arguments are `arguments`."""
    refused = decision in ("deny", "asked-deny")
    cause = {"deny": "rule", "asked-deny": "declined"}.get(decision, "")
    return {
        "v": 1,
        "time": "2026-11-21T08:00:00.000+00:00",
        "session": "s",
        "server": "files",
        "tool": tool,
        "id": 7,
        "arguments": {},
        "decision": decision,
        "cause": cause,
        "result": "refused" if refused else "ok",
        "agent": "claude-code 2.1",
    } | members


def reads(*paths: str, tool: str = "read_file", decision: str = "allow", **members: object) -> list[Line]:
    """Lines about calls of a tool that reads files, one for each path."""
    return [line(tool, decision, arguments={"path": path}, **members) for path in paths]


def runs(*lines: str, tool: str = "run", decision: str = "allow", **members: object) -> list[Line]:
    """Lines about calls of a tool that runs commands."""
    return [line(tool, decision, arguments={"command": command}, **members) for command in lines]


def observed(lines: list[Line]) -> Observations:
    """What these lines show."""
    observations = Observations()
    raw = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in lines]
    observations.add_all(records.entry(records.Line(at, text)) for at, text in enumerate(raw, 1))
    return observations


def learned(lines: list[Line]) -> Proposal:
    """What is learned from these lines."""
    return propose(observed(lines))


def rules(lines: list[Line]) -> list[str]:
    """The rules that are learned, each behind its permission."""
    return [f"{rule.permission} {rule.rule}" for rule in learned(lines).rules]


def text(lines: list[Line]) -> str:
    """The TOML that is printed."""
    observations = observed(lines)
    return toml_of(propose(observations), observations, ["audit.jsonl"])
