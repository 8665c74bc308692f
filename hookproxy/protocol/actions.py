"""What the switchboard can decide about a frame: a closed sum for each direction, performed by `proxy`."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.hooks import Elicitation
from .calls import Call
from .elicitation_messages import PendingElicitation
from .responses import Response


class Pass(Enum):
    """The effect of most frames."""

    PASS = auto()  # to the other side, as it came


PASS: Final = Pass.PASS


class Send(Struct, frozen=True):
    """To the other side, in this spelling."""

    line: bytes


class StartCall(Struct, frozen=True):
    """A call to be judged, or a message about the task of one; nothing is forwarded yet."""

    call: Call


class CancelCall(Struct, frozen=True):
    """The agent cancelled a judged call. `forward`: the server has it, and must hear of it."""

    call: Call
    forward: bool


class Refused(Struct, frozen=True):
    """Not forwarded. `unreadable` and `id` choose the JSON-RPC error; `why` is a sentence for people and the model."""

    why: str
    id: bytes = b"null"
    unreadable: bool = False


class SessionOpened(Struct, frozen=True):
    """The session has begun. Comes beside the effect of the frame that began it."""


class CallAnswered(Struct, frozen=True):
    """The answer to a judged call; nothing is forwarded yet."""

    call: Call


class ElicitationSeen(Struct, frozen=True):
    """The server asks the person, or the agent has the person's answer, in the stateless era."""

    message: str
    """What is asked."""
    action: str = ""
    """The answer: `accept`, `decline`, `cancel` or `error`; empty: this is the question."""
    elicitation: Elicitation | None = None


class ElicitationRequested(Struct, frozen=True):
    """The server asks the person; nothing is forwarded yet."""

    pending: PendingElicitation


class ElicitationAnswered(Struct, frozen=True):
    """The agent answers a question of the server; nothing is forwarded yet."""

    pending: PendingElicitation
    elicitation: Elicitation
    """The question with the answer."""


class ElicitationWithdrawn(Struct, frozen=True):
    """The server cancels a question that the agent does not know yet; it need not hear of either."""

    pending: PendingElicitation


class ApprovalAnswered(Struct, frozen=True):
    """The answer to a question of ours; it is not forwarded."""

    key: bytes
    """Of our question's id."""
    result: bytes
    """As spelled; empty: there is none."""


class HookToolCallAnswered(Struct, frozen=True):
    """The answer to a tool call of ours; it is not forwarded."""

    key: bytes
    """Of our call's id."""
    response: Response | None
    """What it says; None: it can be read in two ways."""


class InitializeAnswered(Struct, frozen=True):
    """The result of `initialize`: SessionStart hooks may add to its instructions."""


class ToolsListed(Struct, frozen=True):
    """A tools/list result; the table of tools has learned from it."""


class NotJson(Struct, frozen=True):
    """Output of the server that is no JSON."""


class Dropped(Struct, frozen=True):
    """Not forwarded: an answer that nobody waits for."""

    why: str


AgentAction = Pass | Send | StartCall | CancelCall | Refused | SessionOpened | ElicitationAnswered | ApprovalAnswered
ServerAction = (
    Pass
    | StartCall
    | CallAnswered
    | InitializeAnswered
    | ToolsListed
    | ElicitationRequested
    | ElicitationWithdrawn
    | HookToolCallAnswered
    | NotJson
    | Dropped
)


def as_one_line(line: bytes) -> Pass | Send:
    """PASS, or the same message without what some readers take for a line end."""
    clean = raw_json.one_line(line)
    return PASS if clean == line else Send(clean)
