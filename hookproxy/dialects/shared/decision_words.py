"""What hooks call a denial, an approval and a question, whatever their system's words are: data without patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

DENYING_WORDS: Final = frozenset(
    ["deny", "denied", "denies", "block", "blocked", "blocks", "reject", "rejected", "rejects", "refuse",
     "refused", "forbid", "forbidden", "disallow", "disallowed", "cancel", "cancelled", "canceled", "abort",
     "aborted", "veto", "stop", "halt", "prohibited", "unauthorized", "false", "no"]
)  # fmt: skip
ALLOWING_WORDS: Final = frozenset(
    ["allow", "allowed", "approve", "approved", "accept", "accepted", "permit", "permitted", "pass", "passed",
     "continue", "proceed", "ok", "okay", "yes", "true", "none", "undefined", "noop"]
)  # fmt: skip
ASKING_WORDS: Final = frozenset(("ask", "force_ask", "defer", "prompt", "confirm"))


def same_word(word: str, words: Sequence[str]) -> str:
    """Which of a system's words of decisions has the meaning of this one; empty: none."""
    kinds = (DENYING_WORDS, ALLOWING_WORDS, ASKING_WORDS)
    meant = next((kind for kind in kinds if word.lower() in kind), frozenset())
    return next((known for known in words if known in meant), "")
