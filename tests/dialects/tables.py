"""The tables of cases/: what hooks are told and how their results are read, each row with its source."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hookproxy.model.hooks import Ended, HookResult, Permission, Verdict


def table(name: str) -> dict[str, Any]:
    """The lists of rows `occasion` and `result` of one dialect's table."""
    return tomllib.loads(sample(f"{name}.toml"))


def sample(name: str) -> str:
    """A file of cases/, as `lime.json`, the hook file that Lime's page shows."""
    return (Path(__file__).parent / "cases" / name).read_text("utf-8")


def result(case: dict[str, Any]) -> HookResult:
    """How the hook of a row ended, and what it said."""
    return HookResult(
        Ended[case.get("ended", "EXITED")],
        code=case.get("code", 0),
        stdout=case.get("stdout", "").encode(),
        stderr=case.get("stderr", "").encode(),
        cut=case.get("cut", False),
        detail=case.get("detail", ""),
    )


def verdict(case: dict[str, Any]) -> Verdict:
    """What a row says that it means; a member of any other name is an error."""
    wanted = dict(case.get("verdict", {}))
    for name in wanted.keys() & {"arguments", "replacement", "content"}:
        wanted[name] = wanted[name].encode()
    for name in wanted.keys() & {"feedback", "messages", "allows"}:
        wanted[name] = tuple(wanted[name])
    if "permission" in wanted:
        wanted["permission"] = Permission[wanted["permission"]]
    return Verdict(**wanted)
