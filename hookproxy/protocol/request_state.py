"""The request state that a call carries from one round to the next (2026-07-28).

The state is signed. So only a state that this process has made comes back, unchanged, in time, and only once.
Law 1: a call without a valid request state is a new call, and its hooks run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.decision import ApprovalRequest
from .calls import OWN_STATE_PREFIX

LIFETIME: Final = 3600.0
"""Seconds within which the next round must come: longer than people think about a form. Later, the state is invalid."""

_MAX_ROUNDS: Final = 1024  # calls that wait for their next round: agents may never come back, and memory is limited
_MAX_BYTES: Final = 64 * 1024 * 1024  # of memory for them: as much as one line may take
_KEY_BYTES: Final = 32  # the output size of HMAC-SHA256
_NONCE_BYTES: Final = 16  # enough that nobody guesses a nonce, and none occurs twice


class CallRound(Struct, frozen=True):
    """A call between two rounds: what has been decided, and what it waits for."""

    tool: str
    arguments: bytes
    """As the agent sent them, normalised: the next round must bring the same."""
    rewritten: bytes | None = None
    """The arguments that run instead; None: the agent's arguments."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, delivered with the result."""
    approval_request: ApprovalRequest | None = None
    """The approval that hookproxy requests; None: the server requests input."""
    asked: bool = False
    """A person was asked in an earlier round, or a hook or a rule answered for the person."""
    state: bytes = b""
    """The server's own requestState as spelled; empty: the server gave none."""

    @property
    def size(self) -> int:
        """The number of bytes or characters that it keeps."""
        return len(self.arguments) + len(self.rewritten or b"") + len(self.state) + sum(map(len, self.feedback))


class StateSealer:
    """The calls that wait for their next round. Only this process can make the request states that bring them back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._key = os.urandom(_KEY_BYTES)
        self._rounds: dict[str, tuple[CallRound, float]] = {}
        self._bytes = 0

    def to_request_state(self, waiting: CallRound) -> str:
        """Return the requestState that brings this round back, once, within LIFETIME."""
        kept = replace(waiting, arguments=b"")  # the signature covers them
        self._bytes += kept.size
        while len(self._rounds) >= _MAX_ROUNDS or (self._bytes > _MAX_BYTES and self._rounds):
            self._take(next(iter(self._rounds)))
        nonce = os.urandom(_NONCE_BYTES).hex()
        expiry = self._clock() + LIFETIME
        self._rounds[nonce] = (kept, expiry)
        payload = _encoded(raw_json.encode({"n": nonce, "e": expiry, "s": waiting.state.decode()}))
        return f"{OWN_STATE_PREFIX}{payload}.{self._mac(payload, waiting.tool, waiting.arguments)}"

    def from_request_state(self, text: str, tool: str, arguments: bytes) -> CallRound | None:
        """Return the round that a call of this tool with these arguments continues; None: there is none."""
        if not text.startswith(OWN_STATE_PREFIX):
            return None
        payload, mac = _parts(text)
        import hmac

        if not hmac.compare_digest(mac.encode(errors="replace"), self._mac(payload, tool, arguments).encode()):
            return None
        waiting, expiry = self._take(_member(payload, "n"))
        return waiting if self._clock() < expiry else None

    def _take(self, nonce: str) -> tuple[CallRound | None, float]:
        waiting, expiry = self._rounds.pop(nonce, (None, 0.0))
        self._bytes -= waiting.size if waiting else 0
        return waiting, expiry

    def _mac(self, payload: str, tool: str, arguments: bytes) -> str:
        import hashlib  # with hmac 3 ms, for calls of several rounds only
        import hmac

        bound = [payload.encode(errors="replace"), tool.encode(errors="replace"), hashlib.sha256(arguments).digest()]
        parts = b"".join(b"%d:%b" % (len(part), part) for part in bound)
        return _encoded(hmac.digest(self._key, parts, "sha256"))


def embedded_server_state(text: str) -> bytes:
    """Return the server's own requestState that a request state of ours contains, valid or not; empty: there is none.

    It is used for a new call with such a state: after a restart of hookproxy, the server may still know its own state.
    """
    payload, _ = _parts(text)
    raw = _member(payload, "s").encode(errors="replace").strip(b" \t\r\n")  # the agent may have put line ends there
    return raw if raw_json.text(raw) is not None else b""


def _member(payload: str, name: str) -> str:
    """Return a text in a payload; empty if there is none, because the agent may have invented the payload."""
    try:
        return raw_json.text(bytes(raw_json.fields(_decoded(payload))[name])) or ""
    except (ValueError, KeyError):
        return ""


def _parts(text: str) -> tuple[str, str]:
    payload, _, mac = text.removeprefix(OWN_STATE_PREFIX).partition(".")
    return payload, mac


def _encoded(raw: bytes) -> str:
    import base64

    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(text.encode(errors="replace") + b"=" * (-len(text) % 4))
