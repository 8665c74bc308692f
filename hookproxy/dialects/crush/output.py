"""Reads the exit status and the JSON of a Crush hook into a verdict."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..dialect import Effect
from ..shared import decision_json, exit_status
from ..shared.output import BLOCKS

HALTS: Final = 49
"""The exit status that ends the agent's turn."""

FIELDS: Final = {
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "halt": Effect.DENIES_AND_STOPS,
    "context": Effect.TELLS_MODEL,
    "updated_input": Effect.REWRITES,
    **decision_json.SPECIFIC_FIELDS,
    "version": Effect.NONE,
}
"""What each member of the JSON output does here: Crush's own, and Claude Code's that it reads, too."""

_WORDS: Final = decision_json.DecisionWords(
    denies=("deny", "block"), allows=("allow", "approve"), asks=("ask",), merges=True, any_case=True
)
"""`internal/hooks/input.go` compares the word in lower case, and Go reads the names of members in any case."""
_RULES: Final = exit_status.ExitStatusRules(
    denies=lambda code: code in (BLOCKS, HALTS),
    stops=lambda code: code == HALTS,
    read_json=lambda spec, result: None if result.code else decision_json.read(_WORDS, spec, result),
)
read_output: Final = partial(exit_status.read_output, _RULES)
"""The verdict of a hook run. Never raises."""
