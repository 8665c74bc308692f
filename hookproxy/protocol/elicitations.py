"""The table of pending elicitations, and how they and their responses are recognised as they pass.

An ambiguous message passes unnoticed (law 2). If hooks may answer elicitations, the table is guarded: an ambiguous
message does not pass, so that no elicitation and no response bypasses the hooks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.hooks import Elicitation
from . import calls, elicitation_messages
from .actions import (
    Dropped,
    ElicitationAnswered,
    ElicitationCompleted,
    ElicitationRequested,
    ElicitationSeen,
    ElicitationWithdrawn,
    Refused,
)
from .calls import id_key, method
from .elicitation_messages import ElicitationStage, PendingElicitation
from .responses import Members

if TYPE_CHECKING:
    import msgspec

METHOD: Final = b'"elicitation/create"'
COMPLETED: Final = b'"notifications/elicitation/complete"'
MAX_PENDING: Final = 256  # pending elicitations: the server creates them, so the size of the table is limited
_MAY_BE_ELICITATION: Final = re.compile(rb"(?i:elicitation)|\\")
"""It is found in every line that some reader may take for an elicitation."""


class Elicitations:
    """The pending elicitations of the handshake era, where each is a request of its own, by the server's ids."""

    def __init__(self, guarded: bool = False) -> None:
        self.guarded = guarded
        """Hooks may answer them."""
        self._pending: dict[bytes, PendingElicitation] = {}

    # --- lines of the server ---

    def read_from_server(
        self, line: bytes | msgspec.Raw
    ) -> ElicitationRequested | ElicitationWithdrawn | ElicitationCompleted | Dropped | None:
        """Read a line from the server: an elicitation, or its cancellation or completion; None: it is none of these."""
        try:
            members = raw_json.fields(line)
            if self.guarded:
                calls.check_spelling(members)
            if method(members) == calls.CANCELLED:
                return self._withdrawn(members)
            if method(members) == COMPLETED and "id" not in members:
                return ElicitationCompleted()
            elicitation = _elicitation(members) if "id" in members else None
        except raw_json.AMBIGUOUS:
            unclear = self.guarded and _MAY_BE_ELICITATION.search(bytes(line))
            return Dropped("a message that some readers take for an elicitation") if unclear else None
        return None if elicitation is None else self._note(members, elicitation)

    def _note(self, members: Members, elicitation: Elicitation) -> ElicitationRequested | Dropped:
        raw_id = bytes(members["id"])
        is_task = "task" in raw_json.fields(members.get("params", b"{}"))
        pending = PendingElicitation(id_key(raw_id), raw_id, elicitation, is_task)
        if self.guarded and pending.key in self._pending:
            return Dropped("an elicitation with the id of one that is still pending")
        if len(self._pending) >= MAX_PENDING and not self._forget_one():
            pending.stage = ElicitationStage.REFUSED
            return ElicitationRequested(pending)
        self._pending[pending.key] = pending
        return ElicitationRequested(pending)

    def _forget_one(self) -> bool:
        """Forget the oldest elicitation. If guarded, forget only one that the server has cancelled."""
        for key, pending in self._pending.items():
            if not self.guarded or pending.stage is ElicitationStage.WITHDRAWN:
                del self._pending[key]
                return True
        return False

    def _withdrawn(self, members: Members) -> ElicitationWithdrawn | None:
        params = raw_json.fields(members.get("params", b"{}"))
        pending = self._pending.get(id_key(bytes(params.get("requestId", b""))))
        if pending is None or pending.stage is ElicitationStage.ANSWERED:
            return None
        if pending.stage is ElicitationStage.HELD:
            self.close(pending)
            return ElicitationWithdrawn(pending)
        pending.stage = ElicitationStage.WITHDRAWN  # its response may be on its way already
        return None

    def may_be_in_batch(self, batch: bytes) -> bool:
        """True if a batch from the server may hold an elicitation that hooks judge."""
        try:
            return self.guarded and any(method(raw_json.fields(item)) == METHOD for item in raw_json.items(batch))
        except raw_json.AMBIGUOUS:
            return True

    # --- lines of the agent ---

    def read_response(self, members: Members) -> ElicitationAnswered | Refused | None:
        """Read a response of the agent; None: it answers no pending elicitation."""
        key = id_key(bytes(members.get("id", b"")))
        pending = self._pending.get(key)
        if pending is None:
            return None
        if pending.stage in (ElicitationStage.HELD, ElicitationStage.ANSWERED):
            return Refused("It answers an elicitation that hooks are still judging, or that has a response already.")
        try:
            elicitation = elicitation_messages.with_agent_response(pending.elicitation, members)
        except raw_json.AMBIGUOUS as problem:
            if self.guarded:
                return Refused(f"The response to the server's elicitation cannot be judged: {problem}.")
            elicitation = pending.elicitation
        pending.stage = ElicitationStage.ANSWERED
        if not self.guarded:
            self.close(pending)
        return ElicitationAnswered(pending, elicitation)

    def is_awaited(self, members: Members) -> bool:
        """True if this is a response that hooks judge."""
        return self.guarded and id_key(bytes(members.get("id", b""))) in self._pending

    def close(self, pending: PendingElicitation) -> None:
        """Remove an elicitation that is answered."""
        self._pending.pop(pending.key, None)


def in_result(members: Members) -> list[ElicitationSeen]:
    """Return the elicitations in an `input_required` result of the stateless era."""
    requested = _requests(members).values()
    return [ElicitationSeen(request.message, elicitation=request) for request in requested if request is not None]


def all_in_result(members: Members) -> dict[str, Elicitation] | None:
    """Return the elicitations by name if an `input_required` result requests nothing else; else None."""
    requests = _requests(members)
    elicitations = {name: elicitation for name, elicitation in requests.items() if elicitation is not None}
    return elicitations if elicitations and len(elicitations) == len(requests) else None


def in_responses(raw: bytes) -> list[ElicitationSeen]:
    """Return the responses in `inputResponses` of a call that continues; they do not repeat the messages."""
    responded = [_responded(response) for response in _members(raw).values()]
    return [ElicitationSeen("", elicitation.action, elicitation) for elicitation in responded if elicitation.action]


def _requests(result: Members) -> dict[str, Elicitation | None]:
    """Return what a result requests by name, None for what is not a readable elicitation."""
    return {name: _requested(request) for name, request in _members(result.get("inputRequests", b"{}")).items()}


def _members(raw: bytes | msgspec.Raw) -> Members:
    try:
        return raw_json.fields(raw or b"{}")
    except raw_json.AMBIGUOUS:
        return {}


def _requested(request: msgspec.Raw) -> Elicitation | None:
    try:
        return _elicitation(raw_json.fields(request))
    except raw_json.AMBIGUOUS:
        return None


def _responded(response: msgspec.Raw) -> Elicitation:
    try:
        return elicitation_messages.with_agent_response(Elicitation(""), {"result": response})
    except raw_json.AMBIGUOUS:
        return Elicitation("")


def _elicitation(request: Members) -> Elicitation | None:
    """Read an `elicitation/create`; None: it is another request. Raises Unreadable, DuplicateKeys."""
    if method(request) != METHOD:
        return None
    return elicitation_messages.read(raw_json.fields(request.get("params", b"{}")))
