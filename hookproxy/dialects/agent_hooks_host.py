"""What AGENT-HOOKS-0.1 demands of a host beyond running hooks: identities, a resolver of approvals, and records.

The *identity* of a context is a digest of its required members (section 10.2). The *resolver* is a program that may
lift a denial with `approval` in a person's place: it reads an ApprovalRequest, and prints an ApprovalResolution, which
counts only for the identity that it was asked about (section 9). The *record* of each event of a call says which hooks
decided what, and what followed from it, without the content of the call (section 10.3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ..jsonrpc import canonical, raw_json
from ..model.hooks import Document, Ended, EventContext, HookResult, HookRun, HookSpec, Verdict
from ..model.settings import OnFailure
from . import agent_hooks_verdicts as verdicts
from .agent_hooks_record import CONTEXT_INVALID, interception_record, verdict_of
from .agent_hooks_verdicts import EVALUATE_ONLY, RESERVED, RESOLVER, Composition
from .dialect import Dialect, Emitted
from .shared import output as shared_output

JCS: Final = "jcs-sha256"
"""The identity provider of the standard: SHA-256 of the canonical JSON (RFC 8785)."""

_RESOLVER_FAILED: Final = f"{RESERVED}approval_resolver_failed"
_UNRESOLVED: Final = f"{RESERVED}approval_unresolved"
_MISMATCH: Final = f"{RESERVED}approval_identity_mismatch"
_INVALID: Final = f"{RESERVED}verdict_invalid"

_IDENTIFYING: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("spec", "interception_point", "timestamp", "sequence", "target"), ()),
    "agent": ("id", "framework"),
    "session": ("id",),
    "tool_call": ("id", "name", "args"),
    "tool_result": ("value", "is_error"),
    "agent_init": ("tools_registered",),
    "summary": ("reason",),
}
"""The members of a context that its identity is about, each with those of its own members; empty: the whole value."""

_REDACTED: Final = b'"[redacted]"'


class _Resolution(Struct, frozen=True, forbid_unknown_fields=True):
    """An ApprovalResolution (section 9)."""

    outcome: Literal["approve", "reject", "unresolved"]
    context_identity: str | None
    verdict: msgspec.Raw | UnsetType = UNSET


class _Echo(Struct, frozen=True):
    context_identity: str | UnsetType | None = UNSET


def identity(document: bytes | bytearray) -> str:
    """The identity of a context by `jcs-sha256`. Raises ValueError for what no reader of JSON has exactly."""
    import hashlib  # only for identities

    try:
        context = json.loads(document)
        chosen = {name: context[name] for name in _IDENTIFYING if name in context}
        for name, members in _IDENTIFYING.items():
            if members and name in chosen:
                chosen[name] = {member: chosen[name][member] for member in members if member in chosen[name]}
        return f"sha256:{hashlib.sha256(canonical.canonical(chosen)).hexdigest()}"
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class AgentHooksHost(Struct, frozen=True, kw_only=True):
    """The host of the hooks of one file."""

    composition: Composition = Composition()
    provider: str | None = None
    """`jcs-sha256`; None: approvals are bound to the very request, and records have no identities."""
    redact: tuple[str, ...] = ()
    """The paths of values that the resolver does not get (section 5.2)."""

    def identity(self, document: bytes | bytearray) -> str | None:
        """As `Host.identity`."""
        return None if self.provider is None else identity(document)

    def denial(self, run: HookRun) -> bytes:
        """As `Host.denial`."""
        wire = verdict_of(run)
        if "approval" not in wire:  # a denial of the host's own
            wire = {"decision": "deny", "reason": run.verdict.reason, "approval": {}}
        return raw_json.encode(wire)

    def write_input(self, spec: HookSpec, context: EventContext) -> Document:
        """The context; for the resolver, the ApprovalRequest about it."""
        document = verdicts.write_input(spec, context)
        if RESOLVER not in spec.traits or not context.denial:
            return document
        shown = bytes(document.stdin)
        redacted: list[str] = []
        for path in self.redact:
            if hidden := _redacted(shown, path):
                shown = hidden
                redacted.append(path)
        if redacted:
            members = raw_json.fields(shown)
            extensions = json.loads(bytes(members["extensions"]))
            extensions["hookproxy"]["redacted"] = redacted
            shown = raw_json.with_member(shown, "extensions", raw_json.encode(extensions))
        request = {
            "context_identity": self.identity(shown),
            "interception_point": verdicts.POINTS[context.event],
            "verdict": msgspec.Raw(context.denial),
            "context": msgspec.Raw(shown.strip()),
        }
        return replace(document, stdin=raw_json.encode(request) + b"\n")

    def identity_asked(self, request: bytes | bytearray) -> str | None:
        """As `Host.identity_asked`."""
        echo = msgspec.json.decode(request, type=_Echo)
        return None if isinstance(echo.context_identity, UnsetType) else echo.context_identity

    def checked(self, run: HookRun, identity: str | None) -> HookRun:
        """As `Host.checked`: the echo rule comes before all else that a resolution must fulfil."""
        try:
            echo = msgspec.json.decode(verdicts.printed(run.result), type=_Echo)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return run
        if echo.context_identity == identity or echo.context_identity is UNSET or _did_not_end(run.result):
            return run
        what = "its context_identity is not that of the request"
        return replace(run, verdict=_rejected(run.spec, _MISMATCH, what))

    def refused(self, spec: HookSpec, problem: str) -> Verdict:
        """As `Host.refused`."""
        verdict = verdicts.of_host(spec, f"{CONTEXT_INVALID}: {problem}")
        if EVALUATE_ONLY in spec.traits:
            return Verdict(messages=(f"{EVALUATE_ONLY}: it would have been denied: {verdict.reason}",))
        return verdict

    def record(self, event: Emitted) -> Mapping[str, object]:
        """As `Host.record`: an InterceptionRecord."""
        return interception_record(event, self.composition, self.provider)

    def read_output(
        self, read: Callable[[HookSpec, HookResult], Verdict], spec: HookSpec, result: HookResult
    ) -> Verdict:
        """The verdict of a hook, as `read` has it; of the resolver, what follows from its resolution."""
        return _read_resolution(spec, result) if RESOLVER in spec.traits else read(spec, result)


def hosted(dialect: Dialect, host: AgentHooksHost, resolvers: Sequence[HookSpec] = ()) -> Dialect:
    """The system with a host; `resolvers` are those of `Dialect.resolvers`."""
    marked = tuple(replace(spec, traits=spec.traits | {RESOLVER}, on_failure=OnFailure.DENY) for spec in resolvers)
    return replace(
        dialect,
        host=host,
        resolvers=marked,
        write_input=host.write_input,
        read_output=partial(host.read_output, dialect.read_output),
    )


def _did_not_end(result: HookResult) -> bool:
    return result.ended is not Ended.EXITED or bool(result.code)


def _read_resolution(spec: HookSpec, result: HookResult) -> Verdict:
    """What follows from a resolution, whose parts are checked in the order of section 9."""
    if _did_not_end(result):
        code = shared_output.exit_failure(result.code, shared_output.decode(result.stderr))
        return _failed(code if result.ended is Ended.EXITED else shared_output.describe_end(spec, result))
    try:
        resolution = msgspec.json.decode(verdicts.printed(result), type=_Resolution)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        why = str(error) if result.stdout.strip() else "it printed nothing"
        return _failed("gave no valid resolution" + shared_output.explanation(why))
    if isinstance(resolution.verdict, UnsetType) is not (resolution.outcome == "unresolved"):
        return _failed(f"gave no valid resolution: {resolution.outcome} with or without a verdict")
    if isinstance(resolution.verdict, UnsetType):
        return _rejected(spec, _UNRESOLVED, "nobody could decide")
    verdict = verdicts.read_verdict(spec, HookResult(Ended.EXITED, stdout=bytes(resolution.verdict)))
    denies = verdict.permission is not None
    if verdict.failure or denies is not (resolution.outcome == "reject"):
        return _rejected(spec, _INVALID, f"{resolution.outcome} came with another verdict")
    if denies:
        text = verdict.reason or "rejected by the resolver"
        return replace(verdicts.of_host(spec, text), messages=verdict.messages, answer="rejection")
    return replace(verdict, answer="approval")


def _failed(what: str) -> Verdict:
    return Verdict(failure=f"{what} ({_RESOLVER_FAILED})", answer="rejection")


def _rejected(spec: HookSpec, reason: str, what: str) -> Verdict:
    return replace(verdicts.of_host(spec, f"{reason}: {what}"), answer="rejection")


def _redacted(document: bytes, path: str) -> bytes:
    """The context with another value at this path wherever it has it: in its target, in the arguments of the call, and
    in the result. Empty: no such path."""
    places = [("target",), ("tool_call", "args"), ("tool_result", "value")]
    redacted = document
    for place in places:
        with suppress(ValueError, KeyError):
            redacted = _with_redacted(redacted, place, path)
    return b"" if redacted == document else redacted


def _with_redacted(raw: bytes, place: Sequence[str], path: str) -> bytes:
    """The JSON with another value at a path of what is at this place. Raises KeyError, ValueError: it is not there."""
    if not place:
        return verdicts.with_value_at(raw, path, _REDACTED)
    return raw_json.with_member(raw, place[0], _with_redacted(bytes(raw_json.fields(raw)[place[0]]), place[1:], path))
