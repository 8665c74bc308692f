"""The actions that the router chooses for a line: one closed union for each direction. `session` performs them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ..model.hooks import Elicitation, Tool
from .calls import Call
from .elicitation_messages import PendingElicitation
from .responses import Response


class Pass(Enum):
    """The action for most lines."""

    PASS = auto()  # to the other side, as it came


PASS: Final = Pass.PASS


class Send(Struct, frozen=True):
    """Send this line to the other side instead of the one that came."""

    line: bytes


class SendBack(Struct, frozen=True):
    """Send this line back to the side that the other line came from, which goes no further."""

    line: bytes
    note: str = ""
    """What the audit says of it."""
    reported: bool = False
    """People learn it, too."""


class StartCall(Struct, frozen=True):
    """A call that hooks must judge, or a message about such a call's task. Nothing is forwarded yet."""

    call: Call


class CancelCall(Struct, frozen=True):
    """The agent cancelled a judged call. `forward`: the server has the call, so it gets the cancellation."""

    call: Call
    forward: bool


class Edited(Struct, frozen=True):
    """What is done with this line, which stands in place of the one that came."""

    action: AgentAction
    line: bytes
    note: str = ""
    """What the audit says of it."""


class Refused(Struct, frozen=True):
    """Do not forward. `unreadable` and `id` select the JSON-RPC error; `why` is a sentence for people and the model."""

    why: str
    id: bytes = b"null"
    unreadable: bool = False
    code: int = 0
    """The code of the error, whose message is `why` alone; 0: as `unreadable` says."""


class SessionOpened(Struct, frozen=True):
    """The session has begun. It comes in addition to the action for the line that began it."""


class CallAnswered(Struct, frozen=True):
    """The response to a judged call. Nothing is forwarded yet."""

    call: Call


class ElicitationSeen(Struct, frozen=True):
    """An elicitation in a result, or the response to one in a call (stateless era)."""

    message: str
    """The message that the server shows to the person."""
    action: str = ""
    """The response: `accept`, `decline`, `cancel` or `error`; empty: this is the elicitation."""
    elicitation: Elicitation | None = None


class ElicitationRequested(Struct, frozen=True):
    """The server sends an elicitation. Nothing is forwarded yet."""

    pending: PendingElicitation


class ElicitationAnswered(Struct, frozen=True):
    """The agent answers an elicitation. Nothing is forwarded yet."""

    pending: PendingElicitation
    elicitation: Elicitation
    """The elicitation with the response."""


class ElicitationWithdrawn(Struct, frozen=True):
    """The server cancels an elicitation that the agent does not know yet. The agent gets neither."""

    pending: PendingElicitation


class ElicitationCompleted(Struct, frozen=True):
    """The server says that an elicitation on a page is complete. Nothing is forwarded yet."""


class ApprovalAnswered(Struct, frozen=True):
    """The response to an approval request of hookproxy. It is not forwarded."""

    key: bytes
    """The key of the request's id."""
    result: bytes
    """The result as spelled; empty: there is none."""


class HookToolCallAnswered(Struct, frozen=True):
    """The response to a hook's tool call. It is not forwarded."""

    key: bytes
    """The key of the call's id."""
    response: Response | None
    """The response's content; None: it is ambiguous."""


class InitializeAnswered(Struct, frozen=True):
    """The result of `initialize`: SessionStart hooks may add to its instructions."""


class ToolsListed(Struct, frozen=True):
    """A tools/list result. The router has noted its tools."""

    tools: Sequence[Tool]
    """The tools on this page that can be read."""
    cursor: bytes = b""
    """As in `Announced`."""


class Announced(Struct, frozen=True):
    """The response to another request about what the server is or has, if lists are guarded or nothing is judged."""

    method: bytes
    """The method of the request, as compact JSON."""
    cursor: bytes = b""
    """The cursor with which the page was asked for, as spelled; empty: it is the first page."""


class NotificationHeld(Struct, frozen=True):
    """A notification that waits until a call's output is judged. The router keeps it."""


class NotificationEdited(Struct, frozen=True):
    """A notification passes as this line instead, without what may repeat a call's output before it is judged."""

    line: bytes


class NotJson(Struct, frozen=True):
    """Output of the server that is not JSON."""


class Dropped(Struct, frozen=True):
    """Do not forward, and report it."""

    why: str
    """What the message is, in a few words for people; empty: they know it."""
    id: bytes = b""
    """The id of the agent's request that gets an error instead, as spelled; empty: no request of the agent does."""


AgentAction = (
    Pass
    | Send
    | StartCall
    | CancelCall
    | Refused
    | SessionOpened
    | ElicitationAnswered
    | ApprovalAnswered
    | Dropped
    | Edited
)
ServerAction = (
    Pass
    | SendBack
    | StartCall
    | CallAnswered
    | InitializeAnswered
    | ToolsListed
    | Announced
    | ElicitationRequested
    | ElicitationWithdrawn
    | ElicitationCompleted
    | HookToolCallAnswered
    | NotificationHeld
    | NotificationEdited
    | NotJson
    | Dropped
)


def pass_as(clean: bytes, line: bytes) -> Pass | Send:
    """Return PASS, or the message as it is clean of the bytes that some readers take for a line end."""
    return PASS if clean == line else Send(clean)
