"""What a policy that is only watched would have changed, in words: the same for lines, readers and messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..model.hooks import Event, HookRun
from .call_record import Record, WatchedCall

NOBODY_ASKED: Final = "nobody: the policy is only watched"
"""`Record.answered_by` of a call about which a person would be asked: it goes on as if the person had said yes."""

_WORDS: Final = {"deny": "refused", "ask": "asked about", "allow": "allowed"}
_STRICTNESS: Final = ("", "allow", "ask", "deny")
_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


def decision_of(record: Record) -> str:
    """What was decided about a call: `allow`, `ask` (a person is asked), `deny`; empty: it ended before."""
    if record.decision == "asked" or record.answered_by == NOBODY_ASKED:
        return "ask"
    return {"allow": "allow", "asked-allow": "allow", "deny": "deny", "asked-deny": "deny"}.get(record.decision, "")


def would_be(record: Record, watched: WatchedCall) -> list[str]:
    """What the watched policy would have changed of a call, in words that follow "would have been"; none: nothing."""
    if watched.record is None or not (decided := decision_of(watched.record)):
        return []
    asked = record.decision.startswith("asked")
    in_force = "deny" if record.decision in ("deny", "asked-deny") else "ask" if asked else "allow"
    if not watched.replaces:  # whatever is stricter counts
        decided = max(decided, in_force, key=_STRICTNESS.index)
    if decided != in_force and not (decided == "ask" and asked):
        return [_WORDS[decided]]
    return [] if decided == "deny" or in_force == "deny" else _edits(watched.record)


def _edits(record: Record) -> list[str]:
    """What would have been done to a call that passes, and to its result."""
    words = ["rewritten"] if record.final else []
    after = [run for run in record.hook_runs if run.spec.event in _AFTER_CALL and not run.spec.background]
    if any(run.verdict.hides or run.consequence == "the result is withheld" for run in after):
        words.append("withheld")
    elif any(run.verdict.replacement is not None and not run.verdict.failure for run in after):
        words.append("replaced")
    elif record.result_changed or _has_feedback(record.hook_runs):
        words.append("commented on")
    if any(run.verdict.retry for run in after):
        words.append("repeated")
    return words


def _has_feedback(hook_runs: Sequence[HookRun]) -> bool:
    return any(run.verdict.feedback and not run.spec.background for run in hook_runs)
