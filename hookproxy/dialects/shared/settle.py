"""What several hooks of one event decide together, where a system's source says so; each function is a part of
`Dialect.settle`. Runs of background hooks decide nothing, and failed ones replace nothing: they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import HookRun, Permission


def only_first_reason(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    """The runs in which only the first of several denials has a reason."""
    denied = False
    settled = []
    for run in hook_runs:
        if _denies(run) and denied:
            run = replace(run, verdict=replace(run.verdict, reason=""))
        denied = denied or _denies(run)
        settled.append(run)
    return settled


def joined_replacements(hook_runs: Sequence[HookRun], joint: str) -> list[HookRun]:
    """The runs in which the last text that replaces the output has all of them, with `joint` between them."""
    replacing = [run for run in hook_runs if _replaces(run)]
    if len(replacing) < 2:  # nothing to join
        return list(hook_runs)
    texts = [raw_json.text(run.verdict.replacement or b"") for run in replacing]
    joined = raw_json.encode(joint.join(text for text in texts if text))
    return [
        replace(run, verdict=replace(run.verdict, replacement=joined if run is replacing[-1] else None))
        if _replaces(run)
        else run
        for run in hook_runs
    ]


def _denies(run: HookRun) -> bool:
    return run.verdict.permission is Permission.DENY and not run.spec.background


def _replaces(run: HookRun) -> bool:
    return run.verdict.replacement is not None and not (run.verdict.failure or run.spec.background)
