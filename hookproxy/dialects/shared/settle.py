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
    for one in hook_runs:
        if _denies(one) and denied:
            one = replace(one, verdict=replace(one.verdict, reason=""))
        denied = denied or _denies(one)
        settled.append(one)
    return settled


def joined_replacements(hook_runs: Sequence[HookRun], joint: str) -> list[HookRun]:
    """The runs in which the last text that replaces the output has all of them, with `joint` between them."""
    replacing = [one for one in hook_runs if _replaces(one)]
    if len(replacing) < 2:  # nothing to join
        return list(hook_runs)
    texts = [raw_json.text(one.verdict.replacement or b"") for one in replacing]
    joined = raw_json.encode(joint.join(text for text in texts if text))
    return [
        replace(one, verdict=replace(one.verdict, replacement=joined if one is replacing[-1] else None))
        if any(one is other for other in replacing)
        else one
        for one in hook_runs
    ]


def _denies(one: HookRun) -> bool:
    return one.verdict.permission is Permission.DENY and not one.spec.background


def _replaces(one: HookRun) -> bool:
    return one.verdict.replacement is not None and not (one.verdict.failure or one.spec.background)
