"""What is decided about a call and about its result, as frozen values."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from .hooks import Event, HookRun


class RefusalCause(Enum):
    """Why a call is refused; `feedback` has a sentence for each."""

    DENIED = "denied"  # a hook said so
    FAILURE = "trouble"  # a hook failed, and the configuration denies then
    FAILED_CLOSED = "failed closed"  # a hook failed, and its own field or its dialect's document denies then
    ASK_DENIED = "ask denied"  # a person must confirm, and the configuration denies then
    ASK_UNAVAILABLE = "ask unavailable"  # a person must confirm, and cannot be asked
    DECLINED = "declined"  # a person was asked, and did not say yes
    RULE = "rule"  # a permission rule says so
    LIMIT = "limit"  # there were as many such calls as are allowed


class ApprovalRequest(Struct, frozen=True):
    """Somebody wants a person to be asked about a call."""

    by: str
    """Who, in words: `the PreToolUse hook guard.sh`."""
    reason: str
    managed: bool = False
    """A managed hook or rule wants it: no hook, rule or setting of the user's answers for the person."""


class Proceed(Struct, frozen=True):
    """The decision to forward a call."""

    arguments: bytes | None = None
    """The rewritten arguments; None: as the agent sent them."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, to go with the result."""
    approval_request: ApprovalRequest | None = None
    """It may be forwarded only if this is answered with yes."""
    asked: bool = False
    """A hook wanted a person to be asked, and a hook, a rule or the configuration said yes in the person's place."""


class Refuse(Struct, frozen=True):
    """The decision to block a call."""

    by: str
    """The hook's label; the permission rule as written; the limit's key; for questions, who asks, in words."""
    reason: str
    """What the hook gave as its reason; for the grounds of trouble, what went wrong with it."""
    asked: bool = False
    """It was refused because a person could not be asked."""
    stop: bool = False
    cause: RefusalCause = RefusalCause.DENIED
    feedback: tuple[str, ...] = ()
    """Texts for the model from all hooks that spoke, to go with the refusal."""
    event: Event = Event.PRE_TOOL_USE
    """The occasion at which the hook refused."""
    retry_after: int = 0
    """With the ground LIMIT: seconds after which it may be tried again; 0: not in this session."""
    where: str = "hookproxy.toml"
    """With the grounds RULE and LIMIT: what has it, for people."""


Decision = Proceed | Refuse


class Comments(Struct, frozen=True):
    """What PostToolUse or PostToolUseFailure hooks do to a result."""

    feedback: tuple[str, ...] = ()
    replacement: bytes | None = None
    """JSON in place of the tool's output: an array of content blocks, a string, or a result object."""
    withheld: tuple[HookRun, ...] = ()
    """Hooks whose trouble keeps the tool's output from the agent: sentences about it stand in its place."""
    noted: tuple[HookRun, ...] = ()
    """Hooks of whose trouble the model is told beside the unchanged output."""
    failed: bool = False
    """The result is marked as an error."""
    hidden_by: str = ""
    """The label of a hook that keeps the tool's output from the model: a sentence about it stands in its place."""
