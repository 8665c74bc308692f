"""The tables of cases/: the input of hooks and how their output is read. Each row names its source."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hookproxy.model.hooks import Ended, HookResult, Permission, Verdict


def table(name: str) -> dict[str, Any]:
    """One dialect's table: its lists of rows, `input` and `output`."""
    return tomllib.loads(sample(f"{name}.toml"))


def sample(name: str) -> str:
    """The text of a file of cases/, for example `lime.json`, the hook file on Lime's page."""
    return (Path(__file__).parent / "cases" / name).read_text("utf-8")


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
