"""The request state that a call carries from one round to the next (2026-07-28).

Only a state that this process has made, or a gateway with the same key, comes back: unchanged, in time, and only once.
Law 1: a call without a valid request state is a new call, and its hooks run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic, time
from typing import Final, Protocol

from msgspec import DecodeError, Struct, msgpack
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.decision import ApprovalRequest
from ..model.flow import Chain
from .calls import OWN_STATE_PREFIX, STATE_FORMAT, is_of_this_process

LIFETIME: Final = 3600.0
"""Seconds within which the next round must come: longer than people think about a form. Later, the state is invalid."""

_MAX_ROUNDS: Final = 1024  # calls that wait for their next round: agents may never come back, and memory is limited
_MAX_BYTES: Final = 64 * 1024 * 1024  # of memory for them: as much as one line may take
_KEY_BYTES: Final = 32  # the output size of HMAC-SHA256
_NONCE_BYTES: Final = 16  # enough that nobody guesses a nonce, and none occurs twice
_CIPHER_NONCE_BYTES: Final = 12  # of AES-GCM; at random, they suffice for 2 ** 32 states of one key
_LABEL: Final = b"hookproxy request state 1\n"  # so that a secret that is used elsewhere, too, is another key here
_PREFIX_LABEL: Final = b"hookproxy request state prefix\n"
_PREFIX_DIGITS: Final = 8  # hexadecimal, as many as for a process: few enough to say nothing about the secret
_MAX_USED: Final = 100_000  # texts of 100 bytes: more approvals than people give in two hours

USED_SECONDS: Final = 2 * LIFETIME
"""How long a used state is remembered: longer than its life, even if the clocks of two gateways differ by an hour."""


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
    requested: bytes = b""
    """If answers are judged: the server's `inputRequests` as the agent got them."""
    refused: bytes = b""
    """Our answers to the requests that the agent did not get, an object by their names; empty: there are none."""
    chains: tuple[Chain, ...] = ()
    """What it may carry to sinks."""

    @property
    def size(self) -> int:
        """The number of bytes or characters that it keeps."""
        kept = (self.arguments, self.rewritten or b"", self.state, self.requested, self.refused, *self.feedback)
        return sum(map(len, kept))


class RequestStates(Protocol):
    """Makes request states, and takes them back."""

    @property
    def failure(self) -> str:
        """Why no state can be taken back now, in a few words; empty if it can."""

    def is_own(self, text: str) -> bool:
        """Whether a state looks like one of these: no server may see it."""

    def to_request_state(self, waiting: CallRound) -> str:
        """Return the requestState that brings this round back, once, within LIFETIME."""

    async def take(self, text: str, tool: str, arguments: bytes) -> CallRound | None:
        """Return the round, without arguments, that a call of this tool with these continues; None: there is none.

        The state is used up by it. Raises StoreUnavailable if nobody can say whether it was used before.
        """


class StateSealer:
    """The calls that wait for their next round in this process, which keeps them by their request states.

    A state has a nonce that nobody can guess: only what was made here, unchanged, is found.
    """

    failure = ""
    """As in RequestStates."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._rounds: dict[bytes, tuple[CallRound, float]] = {}  # and when each is out of date; the oldest first
        self._bytes = 0

    def to_request_state(self, waiting: CallRound) -> str:
        """As in RequestStates."""
        kept = replace(waiting, arguments=_digest(waiting.arguments))
        self._bytes += kept.size
        while len(self._rounds) >= _MAX_ROUNDS or (self._bytes > _MAX_BYTES and self._rounds):
            self._forget(next(iter(self._rounds)))
        expiry = self._clock() + LIFETIME
        text = f"{OWN_STATE_PREFIX}{_payload(waiting, expiry)}"
        self._rounds[_key(text)] = (kept, expiry)
        return text

    def is_own(self, text: str) -> bool:
        """As in RequestStates."""
        return is_of_this_process(text)

    async def take(self, text: str, tool: str, arguments: bytes) -> CallRound | None:
        """As in RequestStates."""
        key = _key(text)
        waiting, expiry = self._rounds.get(key, (None, 0.0))
        if waiting is None or (waiting.tool, waiting.arguments) != (tool, _digest(arguments)):
            return None
        self._forget(key)
        return replace(waiting, arguments=b"") if self._clock() < expiry else None

    def _forget(self, key: bytes) -> None:
        self._bytes -= self._rounds.pop(key)[0].size


class SealKey:
    """A key of request states that several gateways share."""

    def __init__(self, secret: bytes) -> None:
        """`secret` is at least 32 random bytes, in whatever form a file has them."""
        import hashlib

        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # with the extension 8 ms

        self._cipher = AESGCM(hashlib.sha256(_LABEL + secret).digest())
        self.prefix = f"{STATE_FORMAT}{hashlib.sha256(_PREFIX_LABEL + secret).hexdigest()[:_PREFIX_DIGITS]}."
        """The beginning of the states that it seals: another hookproxy may be the server behind these gateways."""

    def seal(self, text: bytes, bound: bytes) -> bytes:
        """Encrypt a text so that it opens only together with `bound`."""
        nonce = os.urandom(_CIPHER_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text, bound)

    def open(self, sealed: bytes, bound: bytes) -> bytes | None:
        """Return the text; None: it was not sealed with this key, or not for this."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_CIPHER_NONCE_BYTES], sealed[_CIPHER_NONCE_BYTES:], bound)
        except (InvalidTag, ValueError):  # the latter: too short for a nonce
            return None


class UsedTexts(Protocol):
    """The texts that were used, of all that use them."""

    @property
    def failure(self) -> str:
        """As in RequestStates."""

    async def use_once(self, text: str, made: float) -> bool:
        """Note that a text of this age is used. False: it was before, or nobody knows. Raises StoreUnavailable."""


class SharedStates:
    """The calls of one user at one server that wait for their next round: each one is inside of its request state.

    Every gateway with the same keys continues them. They are encrypted, because hooks may put secrets into arguments.
    """

    def __init__(
        self,
        keys: Callable[[], Sequence[SealKey]],
        owner: Sequence[str],
        used: UsedTexts,
        now: Callable[[], float] = time,
    ) -> None:
        """`keys` returns those in force: the first one seals, all of them open. `owner` is who may use the states."""
        self._keys = keys
        self._owner = [part.encode(errors="surrogatepass") for part in owner]
        self._used = used
        self._now = now

    @property
    def failure(self) -> str:
        """As in RequestStates."""
        return self._used.failure

    def is_own(self, text: str) -> bool:
        """As in RequestStates."""
        return any(text.startswith(key.prefix) for key in self._keys())

    def to_request_state(self, waiting: CallRound) -> str:
        """As in RequestStates."""
        payload = _payload(waiting, self._now() + LIFETIME)
        kept = msgpack.encode(_without_halves(replace(waiting, tool="", arguments=b"", state=b"")))
        key = self._keys()[0]
        sealed = key.seal(kept, self._bound(payload, waiting.tool, waiting.arguments))
        return f"{key.prefix}{payload}.{_encoded(sealed)}"

    async def take(self, text: str, tool: str, arguments: bytes) -> CallRound | None:
        """As in RequestStates."""
        if not self.is_own(text):
            return None
        payload, encoded = _parts(text)
        try:
            sealed = _decoded(encoded)
        except ValueError:
            return None
        bound = self._bound(payload, tool, arguments)
        opened = next((kept for key in self._keys() if (kept := key.open(sealed, bound)) is not None), None)
        if opened is None or self._now() >= (expiry := float(_member(payload, "e"))):
            return None
        try:
            waiting = msgpack.decode(opened, type=CallRound)
        except DecodeError:  # of another version of hookproxy
            return None
        if not await self._used.use_once(_member(payload, "n"), expiry - LIFETIME):
            return None
        return replace(waiting, tool=tool, state=_member(payload, "s").encode())

    def _bound(self, payload: str, tool: str, arguments: bytes) -> bytes:
        """What a state is for, as one text that nothing else gives: no other user, server or call opens it."""
        texts = (text.encode(errors="surrogatepass") for text in (payload, tool))
        return b"".join(b"%d:%b" % (len(part), part) for part in (*self._owner, *texts, _digest(arguments)))


class UsedHere:
    """The texts that were used in this process."""

    failure = ""
    """As in RequestStates."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._used: dict[str, float] = {}  # and until when each is kept; the oldest first

    async def use_once(self, text: str, made: float) -> bool:
        """As in UsedTexts. With too many texts none is new: nothing may pass twice."""
        now = self._clock()
        while self._used and next(iter(self._used.values())) <= now:
            del self._used[next(iter(self._used))]
        if text in self._used or len(self._used) >= _MAX_USED:
            return False
        self._used[text] = now + USED_SECONDS
        return True


def embedded_server_state(text: str) -> bytes:
    """Return the server's requestState in one of ours, valid or not: after a restart the server may still know it."""
    state = _member(_parts(text)[0], "s")
    raw = state.encode(errors="replace").strip(b" \t\r\n")  # the agent may have put line ends there
    return raw if raw_json.text(raw) is not None else b""


def _member(payload: str, name: str) -> str:
    """Return a text in a payload; empty if there is none, because the agent may have invented the payload."""
    try:
        return raw_json.text(bytes(raw_json.fields(_decoded(payload))[name])) or ""
    except (ValueError, KeyError):
        return ""


def _parts(text: str) -> tuple[str, str]:
    payload, _, sealed = text.removeprefix(STATE_FORMAT).partition(".")[2].partition(".")
    return payload, sealed


def _without_halves(waiting: CallRound) -> CallRound:
    """The round with `?` for halves of surrogate pairs, which hooks in Python may write and UTF-8 cannot express."""

    def whole(*texts: str) -> tuple[str, ...]:
        return tuple(text.encode(errors="replace").decode() for text in texts)

    request = waiting.approval_request
    if request is not None:
        by, reason, rule = whole(request.by, request.reason, request.rule)
        request = replace(request, by=by, reason=reason, rule=rule)
    return replace(waiting, feedback=whole(*waiting.feedback), approval_request=request)


def _payload(waiting: CallRound, expiry: float) -> str:
    header = {"n": os.urandom(_NONCE_BYTES).hex(), "e": str(expiry), "s": waiting.state.decode()}
    return _encoded(raw_json.encode(header))


def _key(text: str) -> bytes:
    """A request state as a key: the state itself may be as long as the server likes."""
    return _digest(text.encode(errors="surrogatepass"))


def _digest(arguments: bytes) -> bytes:
    import hashlib  # for calls of several rounds only

    return hashlib.sha256(arguments).digest()


def _encoded(raw: bytes) -> str:
    import base64

    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(text.encode(errors="replace") + b"=" * (-len(text) % 4))
