"""Reads a Kimi Code hook's output into a verdict; it never raises."""

from __future__ import annotations

from functools import partial

from ..dialect import Effect
from ..shared import claude_envelope as envelope

FIELDS = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
}
read_output = partial(envelope.read_output, envelope.Rules(denies_only=True))
