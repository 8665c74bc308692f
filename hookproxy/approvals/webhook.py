"""The webhook's messages: what is posted about an approval, and what an answer says. Pure.

    POST url            {"id", "server", "tool", "arguments", "reason", "agent", "answer_url", "expires"}
                        Hookproxy-Timestamp: seconds since 1970
                        Hookproxy-Signature: v1=HEX, the HMAC-SHA256 of `TIMESTAMP.BODY` with the secret
    POST answer_url     {"decision": "allow" or "deny", "reason", "arguments"}

The answer has no signature: whoever knows its URL may answer, once. So the URL has a random part of 256 bits, which
stands in nothing but the signed message (law 1).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

from ..jsonrpc import normalize, raw_json
from ..live.messages import LONGEST_EDIT, LONGEST_REASON, NOTHING, Answer, WaitingApproval

TIMESTAMP: Final = "Hookproxy-Timestamp"
SIGNATURE: Final = "Hookproxy-Signature"

SHORTEST_SECRET: Final = 16
"""Bytes of the shortest secret that is taken: who has one signed message can try shorter ones."""

LONGEST_ANSWER: Final = 2 * LONGEST_EDIT
"""Bytes of the longest answer: its arguments with their escapes."""


class WebhookAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer says. Another member is an error: a misspelled `arguments` would allow the call as it is."""

    decision: Literal["allow", "deny"]
    reason: str = ""
    arguments: Raw = NOTHING
    """With `allow`: all arguments, as they were changed."""


_ANSWER: Final = msgspec.json.Decoder(WebhookAnswer)


def body(approval: WaitingApproval, answer_url: str) -> bytes:
    """What is posted. Its arguments and reason are those that a console shows, without secrets."""
    expires = datetime.fromtimestamp(approval.until, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return raw_json.encode(
        {
            "id": approval.id,
            "server": approval.server,
            "tool": approval.tool,
            "arguments": approval.arguments,
            "reason": approval.reason or approval.asked_by,
            "agent": approval.agent,
            "answer_url": answer_url,
            "expires": expires,
        }
    )


def headers(secret: bytes, posted: bytes, now: float) -> Mapping[str, str]:
    """The headers of a message that is posted now, in seconds since 1970."""
    timestamp = str(int(now))
    signature = hmac.digest(secret, b"%b.%b" % (timestamp.encode(), posted), "sha256").hex()
    return {
        "Content-Type": "application/json",
        "User-Agent": "hookproxy",
        TIMESTAMP: timestamp,
        SIGNATURE: f"v1={signature}",
    }


def read_answer(posted: bytes, approval: str, token: str) -> Answer:
    """An answer to this approval. Raises ValueError with a sentence without a full stop."""
    try:
        read = _ANSWER.decode(normalize.normalize(posted))  # which refuses twin keys
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise ValueError(f"it cannot be read: {problem}") from None
    if len(read.reason) > LONGEST_REASON:
        raise ValueError(f"its reason has more than {LONGEST_REASON} characters")
    edited = "" if read.arguments == NOTHING else bytes(read.arguments).decode()
    if len(edited) > LONGEST_EDIT:
        raise ValueError(f"its arguments have more than {LONGEST_EDIT} characters")
    if edited and read.decision == "deny":
        raise ValueError("it denies, and has arguments")
    return Answer(approval, read.decision, read.reason, "", edited, token)
