"""Reads the exit status and the JSON of an Augment hook into a verdict."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...model.hooks import Event
from ..dialect import Effect
from ..shared import decision_json, exit_status

FIELDS: Final = {
    **decision_json.SPECIFIC_FIELDS,
    "hookSpecificOutput.decision": Effect.DECIDES,
    "hookSpecificOutput.reason": Effect.REASON,
    "systemMessage": Effect.TELLS_PERSON,
    "continue": Effect.DENIES_AND_STOPS,
    "stopReason": Effect.REASON,
    "suppressOutput": Effect.NONE,
}
"""What each member of the JSON output does here."""

_WORDS: Final = decision_json.DecisionWords(
    denies=("deny", "block"), asks=("ask",), without_effect=("allow", "approve")
)
""""Currently only `deny` is supported": an `allow` approves nothing, and an `ask` asks, so that it is not lost."""

_RULES: Final = exit_status.ExitStatusRules(
    contexts=(Event.SESSION_START,),
    comments=True,
    shows=lambda spec: spec.event is not Event.SESSION_START,  # "Success message shown to user"
    read_json=lambda spec, result: None if result.code else decision_json.read(_WORDS, spec, result),
)
read_output: Final = partial(exit_status.read_output, _RULES)
"""The verdict of a hook run. Never raises."""
