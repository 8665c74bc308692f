"""The decision about a call and about its result, as frozen values."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from .flow import Chain
from .hooks import Event, HookRun


class RefusalCause(Enum):
    """Why a call is refused. `feedback` has a sentence for each cause; the audit records the value as `cause`."""

    DENIED = "denied"  # a hook denied it
    FAILURE = "hook failed"  # and the configuration says to deny then
    FAILED_CLOSED = "hook failed closed"  # and its own field or its dialect's document says to deny then
    UNJUDGED = "unjudged"  # its arguments, or the output of a hook, are too long for the hook's decision to count
    ASK_DENIED = "ask denied"  # it needs approval, and the configuration says to deny then
    ASK_UNAVAILABLE = "cannot ask"  # it needs approval, and the person cannot be asked
    DECLINED = "declined"  # a person was asked and said no
    NOT_ANSWERED = "not answered"  # a person was asked and gave no answer: in time, or at all
    RULE = "rule"  # a permission rule denies it
    LIMIT = "limit"  # a rate limit is reached
    ARGUMENTS = "arguments"  # one that hooks read is missing, or not of the type that the server lists
    FLOW = "flow"  # it would carry data to a sink that its labels may not reach
    CHANGED = "changed"  # the tool is not as it is recorded in hookproxy.lock
    STORE_AWAY = "store away"  # its limits or its approval are kept in a store that cannot be reached


class ApprovalRequest(Struct, frozen=True):
    """A person must approve a call."""

    by: str
    """Who requires it, in words: `the PreToolUse hook guard.sh`."""
    reason: str
    """Why, in the words of the hook; may be empty."""
    rule: str = ""
    """The permission rule that requires it; empty: a hook or a limit does."""
    limits: tuple[str, ...] = ()
    """The keys of the limits that the call exceeds, so that a person must be asked. What was allowed for the session
    before does not answer for that, unless it was allowed because of these limits."""
    else_asked: bool = False
    """With `limits`: something else than these requires it as well."""
    only_narrows: bool = False
    """Nothing but a hook of a pack requires it, which opens no default."""
    managed: bool = False
    """A managed hook or rule requires it: no hook, rule or setting of the user may answer for the person."""
    chains: tuple[Chain, ...] = ()
    """What the call would carry to sinks: nothing but a person may allow it. Empty: it is not about that."""

    @property
    def is_about_limits_alone(self) -> bool:
        """Nothing else requires it than the limits that the call exceeds."""
        return bool(self.limits) and not self.else_asked

    def joined(self, later: ApprovalRequest) -> ApprovalRequest:
        """The request that has both answered: this one, which is about the same call, also for the other's reasons."""
        limits = (*self.limits, *later.limits)
        return replace(
            self,
            reason="\n".join(filter(None, (self.reason, later.reason))),
            limits=limits,
            else_asked=bool(limits) and not (self.is_about_limits_alone and later.is_about_limits_alone),
            only_narrows=self.only_narrows and later.only_narrows,
        )


def first_request(first: ApprovalRequest | None, later: ApprovalRequest | None) -> ApprovalRequest | None:
    """The one of two requests that counts: the first one, but one of a pack's hook only adds its reason to the other.

    None: there is none.
    """
    if first is None or later is None:
        return first or later
    return later.joined(first) if first.only_narrows else first


class Proceed(Struct, frozen=True):
    """The decision to forward a call."""

    arguments: bytes | None = None
    """The rewritten arguments; None: as the agent sent them."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, delivered with the result."""
    approval_request: ApprovalRequest | None = None
    """The approval without which it must not be forwarded; None: it needs none."""
    asked: bool = False
    """It needed approval, and a person, a hook, a rule or the configuration has given it."""
    meta: bytes | None = None
    """The `_meta` to send, an object or `null`, as hooks have chosen it; None: as the agent sent it."""
    chains: tuple[Chain, ...] = ()
    """What it carries to sinks nevertheless, because a person allows it or the sink only comments on it."""
    exceeds: tuple[str, ...] = ()
    """The keys of the limits that it exceeds: a person must have been asked, or the model reads of it."""


class Refuse(Struct, frozen=True):
    """The decision to block a call."""

    by: str
    """The hook's label, the permission rule as written, the limit's key, or who requires approval, in words."""
    reason: str
    """The reason that the hook gave; if the cause is a failure, how the hook failed."""
    asked: bool = False
    """It needed approval and did not get it."""
    stop: bool = False
    """A hook stops the agent: the session's other held calls are denied as well."""
    cause: RefusalCause = RefusalCause.DENIED
    feedback: tuple[str, ...] = ()
    """Texts for the model from all hooks, delivered with the refusal."""
    event: Event = Event.PRE_TOOL_USE
    """The event at which the hook refused."""
    retry_after: int = 0
    """Cause LIMIT: seconds after which it may be tried again; 0: not in this session."""
    repeated: bool = False
    """Cause LIMIT: the same call was made too often; other calls may pass."""
    remedy: str = ""
    """Cause ASK_UNAVAILABLE: what people can do so that they are asked, in sentences; empty if not known."""
    approvers: str = ""
    """Who could have approved the call, in words, if it was not the user; empty: the user."""
    where: str = "hookproxy.toml"
    """Causes RULE, LIMIT and FLOW: the configuration with the rule, limit or sink, for the model."""
    place: str = ""
    """Causes RULE, LIMIT and FLOW: file, line and key of what refuses it, for people; empty if not known."""
    chains: tuple[Chain, ...] = ()
    """What the call would carry to sinks that its labels may not reach."""


Decision = Proceed | Refuse


class Comments(Struct, frozen=True):
    """What PostToolUse or PostToolUseFailure hooks do to a result."""

    feedback: tuple[str, ...] = ()
    replacement: bytes | None = None
    """JSON that replaces the tool's output: an array of content blocks, a string, or a result object."""
    withheld: tuple[HookRun, ...] = ()
    """Failed hooks because of which the output is withheld: sentences about them replace it."""
    noted: tuple[HookRun, ...] = ()
    """Failed hooks that are reported to the model beside the unchanged output."""
    failed: bool = False
    """The result is marked as an error."""
    added_labels: tuple[str, ...] = ()
    """Labels that the output gets where it reaches the agent."""
    removed_labels: tuple[str, ...] = ()
    """Labels that the session loses then."""
    hidden_by: str = ""
    """The label of a hook that hides the output from the model: a sentence about it replaces the output."""

    @property
    def takes_output(self) -> bool:
        """The output does not reach the agent as it was."""
        return bool(self.withheld or self.hidden_by or self.replacement is not None)
