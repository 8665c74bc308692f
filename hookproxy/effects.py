"""What the switchboard can decide about a frame: a closed sum for each direction, performed by `proxy`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from . import wire
from .calls import Call
from .inquiries import OpenQuestion
from .model import Inquiry
from .replies import Said


class Passing(Enum):
    """The effect of most frames."""

    PASS = auto()  # to the other side, as it came


PASS: Final = Passing.PASS


@dataclass(frozen=True, slots=True)
class Send:
    """To the other side, in this spelling."""

    line: bytes


@dataclass(frozen=True, slots=True)
class StartCall:
    """A call to be judged, or a message about the task of one; nothing is forwarded yet."""

    call: Call


@dataclass(frozen=True, slots=True)
class CancelCall:
    """The agent cancelled a judged call. `forward`: the server has it, and must hear of it."""

    call: Call
    forward: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """Not forwarded. `unreadable` and `id` choose the JSON-RPC error; `why` is a sentence for people and the model."""

    why: str
    id: bytes = b"null"
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """The session has begun. Comes beside the effect of the frame that began it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a judged call; nothing is forwarded yet."""

    call: Call


@dataclass(frozen=True, slots=True)
class Elicited:
    """The server asks the person, or the agent has the person's answer, in the stateless era."""

    message: str
    """What is asked."""
    action: str = ""
    """The answer: `accept`, `decline`, `cancel` or `error`; empty: this is the question."""
    inquiry: Inquiry | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The server asks the person; nothing is forwarded yet."""

    question: OpenQuestion


@dataclass(frozen=True, slots=True)
class Replied:
    """The agent answers a question of the server; nothing is forwarded yet."""

    question: OpenQuestion
    inquiry: Inquiry
    """The question with the answer."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The server cancels a question that the agent does not know yet; it need not hear of either."""

    question: OpenQuestion


@dataclass(frozen=True, slots=True)
class PersonAnswered:
    """The answer to a question of ours; it is not forwarded."""

    key: bytes
    """Of our question's id."""
    result: bytes
    """As spelled; empty: there is none."""


@dataclass(frozen=True, slots=True)
class ErrandAnswered:
    """The answer to a tool call of ours; it is not forwarded."""

    key: bytes
    """Of our call's id."""
    said: Said | None
    """What it says; None: it can be read in two ways."""


@dataclass(frozen=True, slots=True)
class InitializeAnswered:
    """The result of `initialize`: SessionStart hooks may add to its instructions."""


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """A tools/list result; the table of tools has learned from it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Output of the server that is no JSON."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Not forwarded: an answer that nobody waits for."""

    why: str


FromAgent = Passing | Send | StartCall | CancelCall | Refused | Opened | Replied | PersonAnswered
FromServer = (
    Passing
    | StartCall
    | Answered
    | InitializeAnswered
    | ToolsListed
    | Asked
    | Withdrawn
    | ErrandAnswered
    | Noise
    | Dropped
)


def as_one_line(line: bytes) -> Passing | Send:
    """PASS, or the same message without what some readers take for a line end."""
    clean = wire.one_line(line)
    return PASS if clean == line else Send(clean)
