"""Questions of the server to the person, and their answers, seen as they pass; the unclear is not seen (law 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from . import wire
from .calls import id_key, method
from .effects import Elicited
from .replies import Members

if TYPE_CHECKING:
    import msgspec

METHOD: Final = b'"elicitation/create"'
_MOST: Final = 256  # questions remembered: the server asks them, and a table must not grow for ever
_UNCLEAR: Final = (wire.Unreadable, wire.TwinKeys)


class Elicitations:
    """The questions of the handshake era in flight, by the server's ids: these are requests of their own."""

    def __init__(self) -> None:
        self._asked: dict[bytes, str] = {}

    def asked(self, line: bytes | msgspec.Raw) -> Elicited | None:
        """The question in a line from the server, if it is one."""
        try:
            members = wire.fields(line)
            message = _message(members) if "id" in members else None
        except _UNCLEAR:
            return None
        if message is None:
            return None
        if len(self._asked) >= _MOST:
            del self._asked[next(iter(self._asked))]
        self._asked[id_key(bytes(members["id"]))] = message
        return Elicited(message)

    def answered(self, members: Members) -> Elicited | None:
        """The answer in a response of the agent, if it is one to a question."""
        message = self._asked.pop(id_key(bytes(members.get("id", b""))), None)
        return None if message is None else Elicited(message, _action(members.get("result")))


def in_result(members: Members) -> list[Elicited]:
    """The questions in an `input_required` result of the stateless era."""
    questions = [_question(request) for _, request in _members(members.get("inputRequests"))]
    return [Elicited(message) for message in questions if message is not None]


def in_responses(raw: bytes) -> list[Elicited]:
    """The answers in `inputResponses` of a call that goes on after such a result; what was asked the server knows."""
    answers = [_action(answer) for _, answer in _members(raw)]
    return [Elicited("", action) for action in answers if action]


def _members(raw: bytes | msgspec.Raw | None) -> Iterator[tuple[str, msgspec.Raw]]:
    try:
        yield from wire.fields(raw or b"{}").items()
    except _UNCLEAR:
        return


def _question(request: msgspec.Raw) -> str | None:
    try:
        return _message(wire.fields(request))
    except _UNCLEAR:
        return None


def _message(request: Members) -> str | None:
    """What an `elicitation/create` asks; None: the request is another. Raises Unreadable, TwinKeys."""
    if method(request) != METHOD:
        return None
    params = wire.fields(request.get("params", b"{}"))
    return wire.text(bytes(params.get("message", b""))) or ""


def _action(result: msgspec.Raw | None) -> str:
    """`accept`, `decline`, `cancel`; `error` where there is no result; empty where the result is no such answer."""
    if result is None:
        return "error"
    try:
        return wire.text(bytes(wire.fields(result).get("action", b""))) or ""
    except _UNCLEAR:
        return ""
