"""Several messages in one line, as in versions before 2025-06-18: no tool call passes in one, and no call's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..jsonrpc import raw_json
from . import actions, calls, responses
from .actions import PASS, FromAgent, FromServer, as_one_line
from .calls import Call, id_key
from .elicitations import Elicitations
from .inflight import InFlight
from .responses import Members
from .tasks import Tasks


class Board(Protocol):
    """What is asked of the switchboard."""

    @property
    def calls(self) -> Mapping[bytes, Call]:
        """Judged calls in flight."""

    @property
    def requests(self) -> InFlight:
        """The agent's other requests in flight."""

    @property
    def elicitations(self) -> Elicitations | None:
        """The server's questions, where hooks hear of them."""

    @property
    def tasks(self) -> Tasks:
        """The tasks of judged calls."""

    @property
    def judges(self) -> bool:
        """Some calls are judged."""

    @property
    def withholds(self) -> bool:
        """Some answer that may come is not to reach the agent, or not yet."""

    def is_taken(self, key: bytes) -> bool:
        """A judged call has this id, or may still be answered under it."""

    def is_reserved(self, key: bytes) -> bool:
        """The same, or a call has it that was judged and goes on as any other request."""

    def cancelled(self, members: Members) -> FromAgent:
        """The agent's cancellation."""

    def note(self, members: Members, method: bytes) -> None:
        """A request of the agent goes out."""


def from_agent(board: Board, line: bytes, problem: raw_json.Unreadable) -> FromAgent:
    """A line that holds no object: blank ones pass, and batches without any tool call; the rest cannot be read."""
    body = line.strip(b" \t\r\n")  # what JSON takes for blank, and no more
    if body[:1] != b"[":
        return actions.Refused(f"The line is {problem}.", unreadable=True) if body else PASS
    try:
        batch = calls.read_batch(body)
    except (raw_json.TwinKeys, raw_json.Unreadable) as in_batch:
        return actions.Refused(f"In a batch, {in_batch}.", unreadable=not isinstance(in_batch, raw_json.TwinKeys))
    if why := _forbidden(board, batch):
        return actions.Refused(why)
    for members, method in batch:
        if method == calls.CANCELLED and (effect := board.cancelled(members)) is not PASS:
            return effect
        if method and "id" in members:
            board.note(members, method)
    return as_one_line(line)


def _forbidden(board: Board, batch: list[tuple[Members, bytes]]) -> str:
    """Why a batch that can be read may not pass all the same; empty: it may."""
    requests = [members for members, method in batch if method and "id" in members]
    answers = [members for members, method in batch if not method]
    if any(board.is_reserved(id_key(bytes(members["id"]))) for members in requests):
        return "A request in a batch has the id of a tool call that may still be answered."
    if any(id_key(bytes(members.get("id", b""))).startswith(calls.OURS) for members in answers):
        return "In a batch, an answer to a question of hookproxy: send it as a message of its own."
    if board.elicitations and any(map(board.elicitations.waits, answers)):
        return "In a batch, an answer to a question that hooks judge: send it as a message of its own."
    return ""


def from_server(board: Board, line: bytes) -> FromServer:
    """A line that holds no object: blank ones pass, and batches that answer no judged call; the rest is noise."""
    if line.isspace():
        return PASS
    try:
        found = [responses.read(bytes(item), closely=board.withholds) for item in raw_json.items(line)]
    except (raw_json.Unreadable, raw_json.TwinKeys):
        return actions.Noise()
    if board.tasks.told_in_batch(line, board.calls):
        return actions.Dropped("a batch that tells of a judged call's task")
    hides = board.elicitations is not None and board.elicitations.hidden(line)
    keys = [id_key(reply.id) for reply in found if reply is not None]
    if any(reply is not None and not reply.sure for reply in found) or any(map(board.is_reserved, keys)) or hides:
        return actions.Dropped("a batch that holds the answer to a judged call, or a question that hooks judge")
    welcome = [board.requests.settle(key) is not None or board.requests.late(key) or key == b"null" for key in keys]
    if board.judges and not all(welcome):
        return actions.Dropped("a batch with an answer that nobody asked for")
    return PASS
