"""Reads the exit status and the JSON of a Crush hook into a verdict."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...model.hooks import Ended, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from ..shared import decision_json, exit_status

HALTS: Final = 49
"""The exit status that ends the agent's turn."""

FIELDS: Final = {
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "halt": Effect.DENIES_AND_STOPS,
    "context": Effect.TELLS_MODEL,
    "updated_input": Effect.REWRITES,
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "version": Effect.NONE,
}
"""What each member of the JSON output does here: Crush's own, and Claude Code's that it reads, too."""

_WORDS: Final = decision_json.DecisionWords(
    denies=("deny", "block"), allows=("allow", "approve"), asks=("ask",), merges=True
)
_RULES: Final = exit_status.ExitStatusRules(
    denies=lambda code: code in (exit_status.BLOCKS, HALTS),
    read_json=lambda spec, result: None if result.code else decision_json.read(_WORDS, spec, result),
)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. Never raises."""
    verdict = exit_status.read_output(_RULES, spec, result)
    halts = result.ended is Ended.EXITED and result.code == HALTS and verdict.permission is Permission.DENY
    return replace(verdict, stop=True) if halts else verdict
