"""The tables of cases/: the input of hooks and how their output is read. Each row names its source."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

from hookproxy.model.hooks import Ended, HookResult, Permission, Verdict

_CASES: Final = Path(__file__).parent / "cases"


class Failing(NamedTuple):
    """What a system does when a hook fails, as `[[failing]]` says it."""

    denial: dict[str, Any]
    """How its hooks deny a call on standard output; of a system that reads no JSON, as Claude Code's do."""
    source: str
    """The text that says what happens after a failure, in Markdown."""


class Agent(NamedTuple):
    """What an agent gives to its hooks, and what it reads, as `[agent]` says it."""

    before: dict[str, Any]
    """The document before its own shell runs `rm x`."""
    before_variables: dict[str, str]
    after: dict[str, Any] | None
    """The document after the tool `read` of the server `files` has answered `hello`; None: it has no such event."""
    after_variables: dict[str, str]
    denied: dict[str, Any] | str
    """What it reads as a denial because of `no rm`: JSON with status 0, or with status 2 this text."""
    no_decision: str
    """What is printed without a decision. In Cursor, no output is a failure of a hook with `failClosed`."""


def names() -> dict[str, str]:
    """The name of each table, and its dialect's."""
    return {path.stem: path.stem.replace("_", "-") for path in sorted(_CASES.glob("*.toml"))}


def failing() -> dict[str, Failing]:
    """By the name of a dialect."""
    return {
        row.get("dialect", name): Failing(json.loads(row["denial"]), row["source"])
        for stem, name in names().items()
        for row in table(stem).get("failing", ())
    }


def agents() -> dict[str, Agent]:
    """By the name of a dialect; those whose agents run commands as hooks."""
    return {name: _agent(row) for stem, name in names().items() if (row := table(stem).get("agent"))}


def _agent(row: dict[str, Any]) -> Agent:
    denied = row["denied"]
    return Agent(
        json.loads(row["before"]),
        row.get("before_variables", {}),
        json.loads(row["after"]) if "after" in row else None,
        row.get("after_variables", {}),
        json.loads(denied) if denied.startswith("{") else denied,
        row.get("no_decision", ""),
    )


def table(name: str) -> dict[str, Any]:
    """One dialect's table: its lists of rows, `input` and `output`."""
    return tomllib.loads(sample(f"{name}.toml"))


def sample(name: str) -> str:
    """The text of a file of cases/, for example `lime.json`, the hook file on Lime's page."""
    return (_CASES / name).read_text("utf-8")


def result(case: dict[str, Any]) -> HookResult:
    """How the hook of a row ended, and its output."""
    return HookResult(
        Ended[case.get("ended", "EXITED")],
        code=case.get("code", 0),
        stdout=case.get("stdout", "").encode(),
        stderr=case.get("stderr", "").encode(),
        cut=case.get("cut", False),
        detail=case.get("detail", ""),
    )


def verdict(case: dict[str, Any]) -> Verdict:
    """The expected verdict of a row. A member that Verdict does not have is an error."""
    members = dict(case.get("verdict", {}))
    for name in members.keys() & {"arguments", "replacement", "content", "meta"}:
        members[name] = members[name].encode()
    for name in members.keys() & {"feedback", "messages", "allows"}:
        members[name] = tuple(members[name])
    members["variables"] = tuple(map(tuple, members.get("variables", ())))
    if "permission" in members:
        members["permission"] = Permission[members["permission"]]
    return Verdict(**members)
