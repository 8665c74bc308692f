"""The table of the server's pending requests that concern hooks, and how they and their responses are recognised.

These are elicitations, and whatever other requests rules and hooks name (`judged`). If elicitations are only observed,
an ambiguous message passes unnoticed (law 2). If hooks may answer them, or a request is judged, the table is guarded:
an ambiguous message does not pass, so that no request and no response bypasses hooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.hooks import Elicitation
from ..model.late_pattern import late_pattern
from . import calls, elicitation_messages, fast_scan, input_rounds, server_requests
from .actions import (
    Dropped,
    ElicitationAnswered,
    ElicitationCompleted,
    ElicitationRequested,
    ElicitationSeen,
    ElicitationWithdrawn,
    Refused,
    SendBack,
)
from .calls import id_key, method
from .elicitation_messages import ElicitationStage, PendingElicitation
from .responses import Members

if TYPE_CHECKING:
    import msgspec

METHOD: Final = b'"elicitation/create"'
COMPLETED: Final = b'"notifications/elicitation/complete"'
MAX_PENDING: Final = 256  # pending elicitations: the server creates them, so the size of the table is limited
_MAX_OPEN: Final = 4096  # requests that nothing judges and the agent has not answered: a server has a few
_MAY_BE_REQUEST: Final = late_pattern(rb"(?i:elicitation|sampling|roots)|\\")
"""It is found in every line that some reader may take for a request that can be judged."""

_CONCERNING: Final = (b"elicitation", b"sampling", b"roots", b"cancelled", b'"result"', b'"error"', b"\\")
"""One of them is found, in any case, in each notification about a request of the server, and in what some reader takes
for anything else. Looking for each takes a tenth of the time of one pattern."""


class Elicitations:
    """The pending requests of the handshake era, where each is a request of its own, by the server's ids."""

    def __init__(self, guarded: bool = False) -> None:
        self.observed = True
        """Hooks of the events of elicitations are configured."""
        self.answered = guarded
        """Such hooks may answer them."""
        self.judged: frozenset[str] = frozenset()
        """The methods that rules and hooks of calls are about."""
        self.judged_in_results = self.judged
        """Those of them that are also judged where the result of a call asks for them (2026-07-28)."""
        self._pending: dict[bytes, PendingElicitation] = {}
        self._open: dict[bytes, None] = {}  # all other requests of the server, if some are judged
        self._earlier: set[bytes] | None = None  # the keys of answers to requests from before some were judged

    @property
    def guarded(self) -> bool:
        """What is ambiguous does not pass."""
        return self.answered or bool(self.judged)

    def judge(self, names: frozenset[str]) -> None:
        """Judge requests of these methods from now on; the agent may still answer once what it was asked before."""
        if names and not self.judged:
            self._earlier = set()
        self.judged = names

    def _answers_earlier(self, key: bytes) -> bool:
        """True for the first answer to a request that may be from before some were judged."""
        if self._earlier is None or key in self._earlier or len(self._earlier) >= MAX_PENDING:
            return False
        self._earlier.add(key)
        return True

    def _concerns(self, name: str) -> bool:
        return name in self.judged or (self.observed and name == server_requests.ELICITATION)

    # --- lines of the server ---

    def read_from_server(
        self, line: bytes | msgspec.Raw
    ) -> ElicitationRequested | ElicitationWithdrawn | ElicitationCompleted | Dropped | SendBack | None:
        """Read a line from the server: an elicitation, or its cancellation or completion; None: it is none of these."""
        try:
            members = raw_json.fields(line)
            if self.guarded:
                calls.check_spelling(members)
            if method(members) == calls.CANCELLED:
                return self._withdrawn(members)
            if method(members) == COMPLETED and "id" not in members:
                return ElicitationCompleted() if self.observed else None
            name = server_requests.METHODS.get(method(members), "")
            if not self._concerns(name):
                return self._note_other(members)
            if name in self.judged and calls.response_id(members) == b"null":
                return Dropped(f"a {name} of the server whose id is neither a string nor an integer")
            if "id" not in members:
                return None
            return self._note(members, name)
        except raw_json.AMBIGUOUS as problem:
            unclear = self.guarded and _MAY_BE_REQUEST.search(bytes(line))
            return self._refuse_unclear(bytes(line), problem) if unclear else None

    def _refuse_unclear(self, line: bytes, problem: ValueError) -> Dropped | SendBack:
        """The server gets an error for what it may take for a request, if that has an id of its own."""
        raw_id = fast_scan.request_id(line[: fast_scan.END_BYTES], line[-fast_scan.END_BYTES :])
        if raw_id is None or id_key(raw_id) in self._pending or id_key(raw_id) in self._open:
            return Dropped("a message that some readers take for a request that hooks judge")
        note = f"refused a request of the server, which cannot be judged: {problem}"
        return SendBack(server_requests.unreadable(raw_id, str(problem)), note, reported=True)

    def are_others(self, block: bytes) -> bool:
        """The fast path: True if all these lines are notifications of the server, and none is about its requests."""
        lowered = block.lower()
        if any(word in lowered for word in _CONCERNING):
            return False
        heads = fast_scan.heads(block)
        return heads is not None and all(head.method and not head.id for head in heads)

    def is_unclear(self, line: bytes) -> bool:
        """True for a response that some readers take for a request."""
        try:
            return self.guarded and any(raw_json.folded_key(key) == "method" for key in raw_json.fields(line))
        except raw_json.AMBIGUOUS:
            return True

    def _note_other(self, members: Members) -> Dropped | None:
        """Note a request that nothing judges: then the agent may answer it."""
        if not (self.judged and "id" in members and "method" in members):
            return None
        key = id_key(bytes(members["id"]))
        if key in self._pending:
            return Dropped("a request with the id of one that hooks judge")
        if len(self._open) >= _MAX_OPEN:
            del self._open[next(iter(self._open))]
        self._open[key] = None
        return None

    def _note(self, members: Members, name: str) -> ElicitationRequested | Dropped:
        raw_id, elicitation, is_task = bytes(members["id"]), Elicitation(""), False
        try:
            is_task = "task" in raw_json.fields(members.get("params", b"{}"))
            elicitation = _elicitation(members) or elicitation
        except raw_json.AMBIGUOUS:
            if name not in self.judged:  # whoever judges it finds the same, and refuses it
                raise
        pending = PendingElicitation(id_key(raw_id), raw_id, elicitation, is_task, name, judged=name in self.judged)
        if self.guarded and (pending.key in self._pending or pending.key in self._open):
            return Dropped("a request with the id of one that is still pending")
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
        return ElicitationWithdrawn(pending) if pending.judged else None

    def may_ask_in_result(self, line: bytes) -> bool:
        """True if the result or error in a response may ask the agent for something that is judged."""
        if not self.judged_in_results or not input_rounds.may_ask(line):
            return False
        try:
            members = raw_json.fields(line)
            if "error" in members and input_rounds.asks_in_error(members["error"], self.judged_in_results):
                return True
            result = members.get("result", b"")
            return bytes(memoryview(result)[:1]) == b"{" and input_rounds.asks(
                raw_json.fields(result), self.judged_in_results
            )
        except raw_json.AMBIGUOUS:
            return True

    def may_be_in_batch(self, batch: bytes) -> bool:
        """True if a batch from the server may hold a request that hooks judge, or one that the agent must answer."""
        try:
            named = [method(raw_json.fields(item)) for item in raw_json.items(batch)]
            return self.guarded and any(
                self._concerns(server_requests.METHODS.get(name, "")) or (name and self.judged) for name in named
            )
        except raw_json.AMBIGUOUS:
            return True

    # --- lines of the agent ---

    def check_is_clear(self, members: Members) -> None:
        """Raise Unreadable for a message of the agent that some server takes for an answer, and others do not."""
        if self.judged and "method" in members and not members.keys().isdisjoint(("result", "error")):
            raise raw_json.Unreadable("some readers find a request, and others a response")

    def read_response(self, members: Members) -> ElicitationAnswered | Refused | Dropped | None:
        """Read a response of the agent; None: it answers no pending elicitation."""
        key = id_key(bytes(members.get("id", b"")))
        pending = self._pending.get(key)
        if pending is None:
            if self.judged and key not in self._open and not self._answers_earlier(key):
                return Refused("It answers no request of the server.")
            self._open.pop(key, None)
            return None
        if pending.judged and pending.stage is ElicitationStage.WITHDRAWN:
            self.close(pending)
            return Dropped("the answer to a request that the server has withdrawn")
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
        return bool(self.judged) or (self.guarded and id_key(bytes(members.get("id", b""))) in self._pending)

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
