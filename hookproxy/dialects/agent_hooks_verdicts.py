"""What hooks of AGENT-HOOKS-0.1 get and print: the AgentContext, the Verdict, and what a transform makes of a target.

It fails closed (section 6.3): whatever is not one whole verdict is a failure, which refuses the call, or withholds the
result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import canonical, normalize, raw_json
from ..model.content_blocks import only_text
from ..model.hooks import (
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Outcome,
    Permission,
    Verdict,
)
from ..model.settings import OnFailure
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.events import AFTER_CALL

NAME: Final = "agent-hooks"

POINTS: Final = {
    Event.SESSION_START: "agent_startup",
    Event.PRE_TOOL_USE: "pre_tool_call",
    Event.POST_TOOL_USE: "post_tool_call",
    Event.POST_TOOL_USE_FAILURE: "post_tool_call",
    Event.SESSION_END: "agent_shutdown",
}
"""The interception points that occur behind MCP, by event. The other four are about the agent's model and its turns."""

EVALUATE_ONLY: Final = "evaluate_only"
"""In `HookSpec.traits`: the hook's verdicts are recorded, and change nothing."""
RESOLVER: Final = "resolver"
"""In `HookSpec.traits`: the program that may lift denials in a person's place."""
ABSENT: Final = "absent"
"""In `HookSpec.traits`: it stands for the hooks that a configuration does not have."""
_SPEC: Final = "agent-hooks/0.1"
RESERVED: Final = "host_error:"
"""Reasons that begin so are the host's own (section 11)."""
_MAX_EVIDENCE: Final = 10_240
"""Bytes of the canonical form of `evidence` (section 5.3)."""
_PATH: Final = re.compile(r"\$(?:target|policy_target)((?:\.[\w-]+|\[\d+\]|\[\"[\w-]+\"\])*)", re.ASCII)
"""The path of a transform (section 5.2). `$policy_target` is its older name."""
_SEGMENT: Final = re.compile(r"\.([\w-]+)|\[(\d+)\]|\[\"([\w-]+)\"\]", re.ASCII)


class _Warning(Struct, frozen=True, forbid_unknown_fields=True):
    reason: str | None = None
    message: str | None = None

    @property
    def text(self) -> str:
        return ": ".join(text for text in (self.reason, self.message) if text)


class _Transform(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    artefact: str | None = None
    verification_pointers: dict[str, str] | None = None


class _Output(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict (section 5). A member that the standard does not know makes it invalid."""

    decision: Literal["allow", "deny", "transform"]
    reason: str | None = None
    message: str | None = None
    warnings: tuple[_Warning, ...] | None = None
    approval: dict[str, msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    transform: _Transform | msgspec.UnsetType = msgspec.UNSET
    evidence: _Evidence | msgspec.UnsetType = msgspec.UNSET
    result_labels: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        """The reason and the message, for the model and for people."""
        return shared_output.truncate(": ".join(text for text in (self.reason, self.message) if text))


_DECODER: Final = msgspec.json.Decoder(_Output)


def write_input(_spec: HookSpec, context: EventContext) -> Document:
    """The AgentContext (section 4). There are no variables."""
    session, point, outcome = context.session, POINTS[context.event], context.outcome
    ended = outcome.duration_ms if outcome else 0
    members: dict[str, object] = {
        "spec": _SPEC,
        "interception_point": point,
        "timestamp": shared_input.iso_8601(context.at + ended / 1000),
        "sequence": _sequence(context, ended),
        "agent": {"id": shared_input.utf8(session.server), "framework": "hookproxy"},
        "session": {"id": shared_input.utf8(session.id)},
    }
    if session.principal is not None:
        members["actor"] = {"id": shared_input.utf8(session.principal.id)}
    target: object
    if context.event is Event.SESSION_START:
        members["agent_init"] = target = {"tools_registered": []}  # the server lists its tools after the handshake
    elif context.event is Event.SESSION_END:
        members["summary"] = target = {"reason": "completed"}
    else:
        target = msgspec.Raw(context.arguments)
        members["tool_call"] = {
            "id": shared_input.utf8(context.tool_use_id),
            "name": shared_input.utf8(context.tool_name),
            "args": target,
        }
        if outcome is not None:
            target = msgspec.Raw(_result(outcome))
            failed = context.event is Event.POST_TOOL_USE_FAILURE
            members["tool_result"] = {"value": target, "is_error": failed, "duration_ms": outcome.duration_ms}
    members["target"] = target
    members["extensions"] = {"hookproxy": {"cwd": shared_input.utf8(session.cwd)}}
    return Document(shared_input.json_line(members), env={})


def _sequence(context: EventContext, ended: int) -> int:
    """Microseconds since 1970: greater at each later event of a session, and the same for all hooks of one event."""
    return round(context.at * 1_000_000) + (ended * 1000 + 1 if context.outcome else 0)


def _result(outcome: Outcome) -> bytes:
    """The result as JSON, in the simplest form that has all of it.

    That is structuredContent if the text is the same, the text of a single text block, the content blocks, or else the
    whole result: no part of it may pass unseen.
    """
    if not outcome.has_result:
        return raw_json.encode(shared_input.utf8(outcome.error))
    if structured := _structured(outcome):
        return structured
    if outcome.whole:
        return outcome.whole
    text = _single_text(outcome)
    return outcome.content if text is None else raw_json.encode(text)


def _structured(outcome: Outcome) -> bytes:
    """The structuredContent if it is all of the result; else empty."""
    if outcome.more or not (outcome.structured and outcome.repeats_structured):
        return b""
    try:
        return normalize.normalize_output(outcome.structured)
    except ValueError:  # two members of one name: a hook would read one, and the model the other
        return b""


def _single_text(outcome: Outcome) -> str | None:
    blocks = raw_json.items(outcome.content)
    return only_text(raw_json.fields(blocks[0])) if len(blocks) == 1 else None


def evaluated_only(spec: HookSpec) -> HookSpec:
    """The hook in the mode `evaluate_only` (section 8): what it decides or fails to decide has no consequence."""
    traits = spec.traits | {EVALUATE_ONLY}
    return replace(spec, traits=traits, fails_closed=False, withholds=False, on_failure=OnFailure.ALLOW)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a run (sections 5, 6.3 and 8)."""
    verdict = read_verdict(spec, result)
    if EVALUATE_ONLY not in spec.traits:
        return verdict
    return Verdict(messages=(*verdict.messages, *shared_output.nonempty(_would(verdict))))


def _would(verdict: Verdict) -> str:
    """What would have happened without `evaluate_only`, in a sentence; empty: nothing."""
    if verdict.failure:
        return f"{EVALUATE_ONLY}: it {verdict.failure}"
    reason = f": {verdict.reason}" if verdict.reason else ""
    if verdict.permission is not None:
        what = "hidden the result" if verdict.hides else "asked" if verdict.permission is Permission.ASK else "denied"
        return f"{EVALUATE_ONLY}: it would have {what}{reason}"
    if verdict.arguments is not None or verdict.replacement is not None:
        return f"{EVALUATE_ONLY}: it would have rewritten {'the result' if verdict.arguments is None else 'arguments'}"
    return ""


def read_verdict(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a run in the mode `enforce`."""
    if ABSENT in spec.traits:
        return of_host(spec, f"{RESERVED}no_interceptor")
    if result.ended is Ended.TIMED_OUT:
        return _failed("interceptor_timeout", shared_output.describe_end(spec, result))
    if result.ended is not Ended.EXITED:
        return _failed("interceptor_failed", shared_output.describe_end(spec, result))
    if result.code:
        stderr = shared_output.decode(result.stderr)
        return _failed("interceptor_failed", shared_output.exit_failure(result.code, stderr))
    try:
        output = _DECODER.decode(printed(result))
        _check(output)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        why = str(error) if result.stdout.strip() else "it printed nothing"
        return _failed("verdict_invalid", "gave no valid verdict" + shared_output.explanation(why))
    messages = shared_output.nonempty(*(warning.text for warning in output.warnings or ()))
    if output.decision == "deny":
        return _denial(spec, output, messages)
    if isinstance(output.transform, _Transform):
        return _transform(spec, output.transform, messages)
    return Verdict(messages=messages)


def printed(result: HookResult) -> bytes:
    """What a program has printed, as every reader of it here takes it. Raises ValueError if that is not JSON."""
    return shared_output.normalise(bytes(result.stdout).strip())


def _failed(reason: str, what: str) -> Verdict:
    """A failure: what happened, and its reason in the standard's words (section 11)."""
    return Verdict(failure=f"{what} ({RESERVED}{reason})")


def _check(output: _Output) -> None:
    """Raise ValueError for what the shape of a verdict cannot say."""
    reasons = [output.reason, *(warning.reason for warning in output.warnings or ())]
    if any(reason is not None and reason.startswith(RESERVED) for reason in reasons):
        raise ValueError(f"a reason begins with {RESERVED}, which only hosts may give")
    if (output.decision == "transform") != isinstance(output.transform, _Transform):
        raise ValueError("transform is not there with the decision transform, and only with that")
    if output.approval is not msgspec.UNSET and output.decision != "deny":
        raise ValueError("approval is only for the decision deny")
    if isinstance(output.evidence, _Evidence):
        size = len(canonical.canonical(msgspec.to_builtins(output.evidence)))
        if size > _MAX_EVIDENCE:
            raise ValueError(f"evidence has {size} bytes, and {_MAX_EVIDENCE} are allowed")


def _denial(spec: HookSpec, output: _Output, messages: tuple[str, ...]) -> Verdict:
    if spec.event is Event.PRE_TOOL_USE:
        asks = output.approval is not msgspec.UNSET
        return Verdict(Permission.ASK if asks else Permission.DENY, output.text, messages=messages)
    if spec.event in AFTER_CALL:  # no person is asked about a result, but a resolver is, if there is one
        feedback, liftable = shared_output.nonempty(output.text), output.approval is not msgspec.UNSET
        return Verdict(
            Permission.DENY, output.text, feedback=feedback, messages=messages, hides=True, liftable=liftable
        )
    said = f"denied the session, which MCP cannot refuse: {output.text}"
    return Verdict(messages=(*messages, *shared_output.nonempty(said)))


def _transform(spec: HookSpec, transform: _Transform, messages: tuple[str, ...]) -> Verdict:
    """The verdict with the transform itself: `real_arguments` and `real_output` apply it to what the hook got."""
    encoded = msgspec.json.encode(transform)
    if not transform.path.startswith(("$target", "$policy_target")):
        return _failed("transform_target_forbidden", "rewrote something other than $target")
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(arguments=encoded, messages=messages)
    if spec.event in AFTER_CALL:
        return Verdict(replacement=encoded, messages=messages)
    return _failed("transform_target_forbidden", "rewrote what cannot be rewritten")


def real_arguments(_spec: HookSpec, context: EventContext, transform: bytes) -> bytes:
    """The arguments after a transform. Raises ValueError if its path leads to no value, or they are not an object."""
    arguments = _applied(context.arguments, transform)
    if not arguments.startswith(b"{"):
        raise ValueError(f"they are not an object then ({RESERVED}transform_invalid)")
    return arguments


def real_output(context: EventContext, transform: bytes) -> bytes:
    """The whole result after a transform. Raises ValueError as `real_arguments`."""
    assert context.outcome is not None
    result, outcome = _result(context.outcome), context.outcome
    raw = _applied(result, transform)
    if raw[:1] == result[:1] and result in (outcome.whole, outcome.content):
        return raw
    block = raw_json.encode({"type": "text", "text": raw_json.text_or_json(raw)})
    structured = b',"structuredContent":%b' % raw if _structured(outcome) and raw.startswith(b"{") else b""
    return b'{"content":[%b]%b}' % (block, structured)


def with_result(context: EventContext, replacement: bytes) -> EventContext:
    """The event as the next hook gets it: each hook transforms what those before it have left."""
    outcome = context.outcome
    assert outcome is not None
    members = raw_json.fields(replacement) if replacement.startswith(b"{") else {"content": msgspec.Raw(replacement)}
    content, structured = bytes(members.get("content", b"[]")), bytes(members.get("structuredContent", b""))
    if not outcome.has_result:
        text = shared_input.result_text(Outcome(content, has_result=True))
        return replace(context, outcome=replace(outcome, error=text))
    whole = replacement if outcome.whole else b""
    left = replace(outcome, content=content, structured=structured, repeats_structured=not whole, whole=whole)
    return replace(context, outcome=left)


def _applied(target: bytes, encoded: bytes) -> bytes:
    transform = msgspec.json.decode(encoded, type=_Transform)
    return with_value_at(target, transform.path, bytes(transform.value))


def leads_to_value(path: str, target: bytes) -> bool:
    """Whether a rewrite at this path could be applied."""
    try:
        with_value_at(target, path, b"null")
    except ValueError:
        return False
    return True


def is_path(written: str) -> bool:
    """Whether this is a path of section 5.2."""
    return _PATH.fullmatch(written) is not None


def absent(event: Event, where: str) -> HookSpec:
    """What stands for the hooks of an event in a configuration that has none: it denies, but is only evaluated."""
    label = "no hook of type agent-hooks"
    spec = HookSpec(NAME, where, event, label, type="absent", call=label, traits=frozenset({ABSENT}))
    return evaluated_only(spec)


def with_value_at(target: bytes, written: str, value: bytes) -> bytes:
    """A target with another value at a path of section 5.2. Raises ValueError if it leads to no value."""
    path = _PATH.fullmatch(written)
    segments = _SEGMENT.findall(path[1]) if path else None
    try:
        if segments is None:
            raise ValueError
        return _with_value(target, segments, value)
    except (ValueError, LookupError, RecursionError):
        shown = shared_output.truncate(written, shared_output.MAX_EXPLANATION)
        raise ValueError(f"{shown} does not lead to a value ({RESERVED}transform_invalid)") from None


def _with_value(raw: bytes, segments: list[tuple[str, str, str]], value: bytes) -> bytes:
    """The JSON with another value at a place that it has. Raises ValueError, LookupError."""
    if not segments:
        return value
    (dotted, index, quoted), rest = segments[0], segments[1:]
    if index:
        items = [bytes(item) for item in raw_json.items(raw)]
        items[int(index)] = _with_value(items[int(index)], rest, value)
        return b"[%b]" % b",".join(items)
    members = {name: bytes(member) for name, member in raw_json.fields(raw).items()}
    name = dotted or quoted
    members[name] = _with_value(members[name], rest, value)
    return b"{%b}" % b",".join(b"%b:%b" % (raw_json.encode(key), member) for key, member in members.items())


def of_host(spec: HookSpec, reason: str, *, asks: bool = False) -> Verdict:
    """A denial of the host's own."""
    if spec.event in AFTER_CALL:
        return Verdict(Permission.DENY, reason, feedback=(reason,), hides=True, liftable=asks)
    return Verdict(Permission.ASK if asks else Permission.DENY, reason)


KEY_OF_PROFILE: Final = {
    "sequential/first_deny": "on_approval",
    "parallel/unanimous": "on_disagreement",
    "parallel/strictest": "on_transform_conflict",
}
"""The key that each profile consults: with another one, the standard refuses it."""


class Composition(Struct, frozen=True, kw_only=True):
    """How the verdicts of several hooks become one (section 7): a profile, and what it leaves to the host."""

    profile: str = "sequential/run_all"
    on_approval: str = "stop"
    """`sequential/first_deny`: whether the hooks after one that has the person asked are left out."""
    on_disagreement: str = "deny"
    """`parallel/unanimous`: whether a person decides where a hook does not allow."""
    on_transform_conflict: str = "deny"
    """`parallel/strictest`: whether a person decides where several hooks rewrite. Then nothing is rewritten."""

    @property
    def is_parallel(self) -> bool:
        """All hooks get the same."""
        return self.profile.startswith("parallel/")

    @property
    def order(self) -> Order:
        """How the hooks run."""
        if self.profile == "sequential/first_deny":
            return Order.PIPELINE_UNTIL_ASKED if self.on_approval == "stop" else Order.PIPELINE_UNTIL_DENIED
        return Order.TOGETHER if self.is_parallel else Order.PIPELINE

    @property
    def in_effect(self) -> Mapping[str, str]:
        """The profile, and the values of the keys that it consults."""
        key = KEY_OF_PROFILE.get(self.profile)
        return {"profile": self.profile, **({key: getattr(self, key)} if key else {})}
