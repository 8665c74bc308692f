"""Questions of the server to the person, and their answers, seen as they pass; the unclear is not seen (law 2).

Where hooks may answer, they are guarded: the unclear does not pass, so that no question and no answer slips by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.hooks import Elicitation
from . import calls, elicitation_messages
from .actions import Dropped, ElicitationAnswered, ElicitationRequested, ElicitationSeen, ElicitationWithdrawn, Refused
from .calls import id_key, method
from .elicitation_messages import ElicitationStage, PendingElicitation
from .responses import Members

if TYPE_CHECKING:
    import msgspec

METHOD: Final = b'"elicitation/create"'
MAX_PENDING: Final = 256  # questions in flight: the server asks them, and a table must not grow for ever
_AMBIGUOUS: Final = (raw_json.Unreadable, raw_json.DuplicateKeys)
_MAY_BE_ELICITATION: Final = re.compile(rb"(?i:elicitation)|\\")
"""Found in every line that some reader may take for a question."""


class Elicitations:
    """The questions of the handshake era in flight, by the server's ids: these are requests of their own."""

    def __init__(self, guarded: bool = False) -> None:
        self._guarded = guarded
        self._pending: dict[bytes, PendingElicitation] = {}

    # --- lines of the server ---

    def read_from_server(
        self, line: bytes | msgspec.Raw
    ) -> ElicitationRequested | ElicitationWithdrawn | Dropped | None:
        """The question in a line from the server, if it is one, or the end of one."""
        try:
            members = raw_json.fields(line)
            if self._guarded:
                calls.check_spelling(members)
            if method(members) == calls.CANCELLED:
                return self._withdrawn(members)
            elicitation = _elicitation(members) if "id" in members else None
        except _AMBIGUOUS:
            unclear = self._guarded and _MAY_BE_ELICITATION.search(bytes(line))
            return Dropped("a message that may be a question to the person or not") if unclear else None
        return None if elicitation is None else self._note(members, elicitation)

    def _note(self, members: Members, elicitation: Elicitation) -> ElicitationRequested | Dropped:
        raw_id = bytes(members["id"])
        question = PendingElicitation(id_key(raw_id), raw_id, elicitation, task=b"task" in _names(members))
        if self._guarded and question.key in self._pending:
            return Dropped("a question to the person with the id of one that waits for its answer")
        if len(self._pending) >= MAX_PENDING and not self._forget_one():
            question.stage = ElicitationStage.REFUSED
            return ElicitationRequested(question)
        self._pending[question.key] = question
        return ElicitationRequested(question)

    def _forget_one(self) -> bool:
        """Make room; where they are guarded, only one that the server has cancelled may be forgotten."""
        for key, question in self._pending.items():
            if not self._guarded or question.stage is ElicitationStage.WITHDRAWN:
                del self._pending[key]
                return True
        return False

    def _withdrawn(self, members: Members) -> ElicitationWithdrawn | None:
        params = raw_json.fields(members.get("params", b"{}"))
        question = self._pending.get(id_key(bytes(params.get("requestId", b""))))
        if question is None or question.stage is ElicitationStage.ANSWERED:
            return None
        if question.stage is ElicitationStage.HELD:
            self.close(question)
            return ElicitationWithdrawn(question)
        question.stage = ElicitationStage.WITHDRAWN  # its answer may be under way already
        return None

    def may_be_in_batch(self, batch: bytes) -> bool:
        """A batch from the server holds a question that hooks are to judge."""
        try:
            return self._guarded and any(method(raw_json.fields(item)) == METHOD for item in raw_json.items(batch))
        except _AMBIGUOUS:
            return True

    # --- lines of the agent ---

    def read_response(self, members: Members) -> ElicitationAnswered | Refused | None:
        """The answer in a response of the agent, if it is one to a question."""
        key = id_key(bytes(members.get("id", b"")))
        question = self._pending.get(key)
        if question is None:
            return None
        if question.stage in (ElicitationStage.HELD, ElicitationStage.ANSWERED):
            return Refused("It answers a question of the server that hooks have not let go on, or have an answer to.")
        try:
            elicitation = elicitation_messages.with_agent_response(question.elicitation, members)
        except _AMBIGUOUS as problem:
            if self._guarded:
                return Refused(f"The answer to the server's question cannot be judged: {problem}.")
            elicitation = question.elicitation
        question.stage = ElicitationStage.ANSWERED
        if not self._guarded:
            self.close(question)
        return ElicitationAnswered(question, elicitation)

    def is_awaited(self, members: Members) -> bool:
        """This would be an answer that hooks are to judge."""
        return self._guarded and id_key(bytes(members.get("id", b""))) in self._pending

    def close(self, question: PendingElicitation) -> None:
        """It has been answered."""
        self._pending.pop(question.key, None)


def in_result(members: Members) -> list[ElicitationSeen]:
    """The questions in an `input_required` result of the stateless era."""
    found = [_requested(request) for _, request in _members(members.get("inputRequests"))]
    return [
        ElicitationSeen(elicitation.message, elicitation=elicitation)
        for elicitation in found
        if elicitation is not None
    ]


def all_in_result(members: Members) -> dict[str, Elicitation] | None:
    """The questions by their names, if they are all that an `input_required` result wants; else None."""
    found = {name: _requested(request) for name, request in _members(members.get("inputRequests"))}
    questions = {name: elicitation for name, elicitation in found.items() if elicitation is not None}
    return questions if questions and len(questions) == len(found) else None


def in_responses(raw: bytes) -> list[ElicitationSeen]:
    """The answers in `inputResponses` of a call that goes on after such a result; what was asked the server knows."""
    found = [_responded(answer) for _, answer in _members(raw)]
    return [ElicitationSeen("", elicitation.action, elicitation) for elicitation in found if elicitation.action]


def _members(raw: bytes | msgspec.Raw | None) -> Iterator[tuple[str, msgspec.Raw]]:
    try:
        yield from raw_json.fields(raw or b"{}").items()
    except _AMBIGUOUS:
        return


def _requested(request: msgspec.Raw) -> Elicitation | None:
    try:
        return _elicitation(raw_json.fields(request))
    except _AMBIGUOUS:
        return None


def _responded(answer: msgspec.Raw) -> Elicitation:
    try:
        return elicitation_messages.with_agent_response(Elicitation(""), {"result": answer})
    except _AMBIGUOUS:
        return Elicitation("")


def _elicitation(request: Members) -> Elicitation | None:
    """What an `elicitation/create` asks; None: the request is another. Raises Unreadable, TwinKeys."""
    if method(request) != METHOD:
        return None
    return elicitation_messages.read(raw_json.fields(request.get("params", b"{}")))


def _names(request: Members) -> set[bytes]:
    return {name.encode(errors="replace") for name in raw_json.fields(request.get("params", b"{}"))}
