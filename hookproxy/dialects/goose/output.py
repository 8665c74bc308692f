"""Reads the exit status and the decision of a Goose hook into a verdict."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...model.hooks import NO_VERDICT, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from ..shared import decision_json, exit_status

FIELDS: Final = {"decision": Effect.DECIDES, "reason": Effect.REASON}
_WORDS: Final = decision_json.DecisionWords(denies=("block",), allows=("allow",))


def _decision(spec: HookSpec, result: HookResult) -> Verdict | None:
    """A block counts with any exit status; of another hook that succeeds, only no output and `allow` are a decision."""
    if spec.event is not Event.PRE_TOOL_USE:
        return None
    verdict = decision_json.read(_WORDS, spec, result)
    if verdict is not None and verdict.permission is Permission.DENY:
        return verdict
    if result.code or not result.stdout.strip():
        return None
    if verdict is not None and verdict.permission is Permission.ALLOW:
        return NO_VERDICT  # a person may still be asked
    return Verdict(failure="printed something other than a decision, so it made none")


read_output: Final = partial(exit_status.read_output, exit_status.ExitStatusRules(read_json=_decision))
"""The verdict of a hook run. Never raises."""
