"""What the result of a policy means: true allows the call, false refuses it, anything else is a failure, which refuses.

Law 3: a policy that raises, gives no boolean or takes too long is a HookFailed, and never counts as an approval.
"""

from __future__ import annotations

from typing import Final

from ..jsonrpc import raw_json
from ..model.hooks import HookSpec
from .runner import HookFailed

_SHOWN: Final = 300  # characters of an engine's message that people get: the beginning says what is wrong


def output(spec: HookSpec, *, allowed: bool, reason: str = "", because: str = "") -> bytes:
    """The output of a hook that decides so.

    `reason` is the engine's own reason, in place of the configured one. `because` says which part of the policy has
    decided, and follows it.
    """
    text = reason
    if not allowed:
        text = reason or spec.deny_reason or f"the policy {spec.label!r} refuses this call"
    if because:
        text = f"{text} ({because})" if text else because
    decision: dict[str, object] = {
        "hookEventName": spec.event,
        "permissionDecision": "allow" if allowed else "deny",
    }
    if text:
        decision["permissionDecisionReason"] = text
    return raw_json.encode({"hookSpecificOutput": decision})


GROUPS_IN_DOUBT: Final = "cannot decide by the user's groups, which cannot be looked up now"
"""The failure of a policy that gets `groups` as null."""


def failed(problem: str) -> HookFailed:
    """The failure of a policy, for the caller to raise; `problem` follows the hook's name."""
    text = " ".join(problem.split())
    return HookFailed(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
