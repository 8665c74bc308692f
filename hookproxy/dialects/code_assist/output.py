"""Reads the exit code, standard output and standard error of a code-assist hook into a verdict.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...jsonrpc import normalize, raw_json
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ...policy import matchers
from ..dialect import Effect
from ..shared import output as shared_output

BLOCKS: Final = 2
"""The exit code that denies. The document has blocking errors but names no code: all other systems have this one."""

_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_BEFORE_CALL: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_MAX_RULES: Final = 1000  # each is compiled: a hook that prints very many must not delay all calls
_MAX_UPDATE_BYTES: Final = 100_000  # the same for updates without a rule

_NO_JSON: Final = msgspec.Raw(b"")
_ABSENT: Final = (b"", b"null")


class _Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`{}`, which the document's own lint example prints instead of an absent text."""


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A permission rule in two parts, like the program's type of this name."""

    tool_name: str
    rule_content: str | None = None

    @property
    def text(self) -> str:
        """The rule as settings files have it: `Tool` or `Tool(specifier)`."""
        return f"{self.tool_name}({self.rule_content})" if self.rule_content else self.tool_name


class _Update(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `permission_updates` that allows. Unknown members are refused, because one may mean that it forbids."""

    type: Literal["addRules"] = "addRules"
    behavior: Literal["allow"] = "allow"
    destination: str = ""  # where code-assist would store it; here it is valid for the session
    rule: str | None = None
    rules: tuple[str | _Rule, ...] = ()


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON. Types are strict, null is allowed where documented; unknown members are ignored."""

    decision: Literal["approve", "deny", "block"] | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None
    updated_input: msgspec.Raw = _NO_JSON
    suppress_output: bool | None = None
    updated_output: str | None = None
    status_message: str | None = None
    additional_context: str | _Empty | None = None
    permission_updates: msgspec.Raw = _NO_JSON  # a list; the document does not describe its items
    retry: bool | None = None
    updated_prompt: str | None = None
    prevent_continuation: bool | None = None
    stop_reason: str | None = None


FIELDS: Final = {
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "updated_input": Effect.REWRITES,
    "additional_context": Effect.TELLS_MODEL,
    "updated_output": Effect.REPLACES,
    "suppress_output": Effect.HIDES,
    "status_message": Effect.TELLS_PERSON,
    "permission_updates": Effect.ALLOWS_FOR_SESSION,
    "retry": Effect.REPEATS_CALL,
    "updated_prompt": Effect.NONE,
    "prevent_continuation": Effect.NONE,
    "stop_reason": Effect.NONE,
}
"""What each member of the JSON output does here; the last three are about prompts, which no server sees."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_UPDATE: Final = msgspec.json.Decoder(str | _Update)
_DENYING: Final = ("deny", "block")
_DECIDING_MEMBERS: Final[shared_output.DecidingMembers] = {"decision": _DENYING, "reason": shared_output.ANY_TEXT}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if result.code not in (0, BLOCKS):  # the document's non-blocking error: standard output does not count
        return Verdict(failure=shared_output.exit_failure(result.code, stderr or stdout))
    output, error = _parse(result, stdout)
    if result.code == BLOCKS:
        if not stdout.startswith("{"):
            error = ""  # a hook that denies by its exit code need not print JSON
        reason = stderr or ("" if output else stdout)
        return _verdict_of(spec.event, output or _JsonOutput(), reason, blocks=True, error=error)
    if output is None:
        return Verdict(failure=error)
    return _verdict_of(spec.event, output, "", blocks=False, error=error)


def _parse(result: HookResult, stdout: str) -> tuple[_JsonOutput | None, str]:
    """The JSON that was printed, if any, and what is wrong with it."""
    cut = "printed more than hookproxy keeps" if result.cut else ""
    try:
        output = shared_output.parse_json_object(result.stdout, _DECODER)
    except shared_output.InvalidOutput as error:
        deciding = shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)
        part = shared_output.parse_json_object(deciding.stdout, _DECODER)
        return part if part and part.decision in _DENYING else None, str(error)
    if output or not stdout:
        return output or _JsonOutput(), cut
    return None, cut or "printed something other than a JSON object" + shared_output.explanation(stdout)


def _verdict_of(event: Event, output: _JsonOutput, other_reason: str, *, blocks: bool, error: str) -> Verdict:
    """The verdict of JSON output: a denial always counts; an approval does not count if there is an error."""
    arguments, rewrite_error = _rewrite(output) if event is Event.PRE_TOOL_USE else (None, "")
    allows, rules_error, ignored = _allowed(output.permission_updates)
    error = error or rewrite_error or rules_error
    reason = shared_output.truncate(output.reason or other_reason)
    verdict = _without_decision(event, output)
    verdict = replace(verdict, messages=verdict.messages + shared_output.nonempty(ignored))
    if blocks or output.decision in _DENYING:
        return _denial(event, verdict, reason, error)
    if error:
        return replace(verdict, failure=error)
    if event in _BEFORE_CALL and output.decision == "approve":
        verdict = replace(verdict, permission=Permission.ALLOW, reason=reason)
    return replace(
        verdict,
        arguments=arguments,
        retry=event in _AFTER_CALL and output.retry is True,
        allows=allows,
    )


def _without_decision(event: Event, output: _JsonOutput) -> Verdict:
    """What counts whether or not the hook denies: texts, and what the model must not see."""
    context = output.additional_context if isinstance(output.additional_context, str) else ""
    tool_output = output.updated_output if event in _AFTER_CALL else None
    return Verdict(
        feedback=shared_output.nonempty(context),
        messages=shared_output.nonempty(output.status_message or "", _no_effect(event, output)),
        replacement=None if tool_output is None else msgspec.json.encode(tool_output),
        hides=event in _AFTER_CALL and output.suppress_output is True,
    )


def _denial(event: Event, verdict: Verdict, reason: str, error: str) -> Verdict:
    """A blocking error: before a call it denies; after a call the result counts as failed and the model reads why."""
    if event in (*_BEFORE_CALL, *_AFTER_CALL):
        feedback = (reason,) if reason and event in _AFTER_CALL else ()  # before the call, the refusal has the reason
        return replace(
            verdict,
            permission=Permission.DENY,
            reason=reason,
            feedback=feedback + verdict.feedback,
            messages=verdict.messages + shared_output.nonempty(error),
        )
    return replace(
        verdict, failure=f"wants to block, but there is nothing to block on {event}" + shared_output.explanation(reason)
    )


def _no_effect(event: Event, output: _JsonOutput) -> str:
    """The message on members that have no effect on this event; empty: there are none."""
    members = {
        "updated_input": bytes(output.updated_input) not in _ABSENT and event is not Event.PRE_TOOL_USE,
        "suppress_output": output.suppress_output and event not in _AFTER_CALL,
        "updated_output": output.updated_output is not None and event not in _AFTER_CALL,
        "retry": output.retry and event not in _AFTER_CALL,
        "updated_prompt": output.updated_prompt is not None,
        "prevent_continuation": output.prevent_continuation,
    }
    names = ", ".join(name for name, ineffective in members.items() if ineffective)
    return f"gave members without effect on {event}: {names}" if names else ""


def _rewrite(output: _JsonOutput) -> tuple[bytes | None, str]:
    """`updated_input` as the hook spelled it, if it is there, and what is wrong with it."""
    spelled = shared_output.one_line(output.updated_input)
    if spelled in _ABSENT:
        return None, ""
    if not spelled.startswith(b"{"):
        return None, "gave an updated_input that is not an object"
    try:
        normalize.normalize(spelled)  # later hooks and the server must be able to read it
    except ValueError as error:
        return None, "gave an updated_input that cannot be read" + shared_output.explanation(str(error))
    return spelled, ""


def _allowed(updates: msgspec.Raw) -> tuple[tuple[str, ...], str, str]:
    """The rules of `permission_updates`, what is wrong with them (then no rules), and a message on ignored ones."""
    if bytes(updates) in _ABSENT:
        return (), "", ""
    if bytes(updates)[:1] != b"[":
        return (), "gave permission_updates that are not a list", ""
    size = len(bytes(updates))
    if size > _MAX_UPDATE_BYTES:
        return (), f"gave {size} bytes of permission_updates, more than {_MAX_UPDATE_BYTES}", ""
    read = [(item, _rules_of(item)) for item in raw_json.items(updates)]
    rules = [rule for _, found in read for rule in found]
    if len(rules) > _MAX_RULES:
        return (), f"gave {len(rules)} permission rules, more than {_MAX_RULES}", ""
    for rule in rules:
        try:
            matchers.allow_rule(rule)
        except (re.error, ValueError, OverflowError, RecursionError):
            return (
                (),
                f"gave an invalid permission rule: {shared_output.truncate(repr(rule), shared_output.MAX_EXPLANATION)}",
                "",
            )
    return tuple(rules), "", _ignored([item for item, found in read if not found])


def _rules_of(update: msgspec.Raw) -> list[str]:
    """The rules that one of `permission_updates` allows; none if it forbids, or has an unknown shape."""
    try:
        decoded = _UPDATE.decode(update)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return []
    if isinstance(decoded, str):
        return [decoded]
    single = [] if decoded.rule is None else [decoded.rule]
    return single + [rule if isinstance(rule, str) else rule.text for rule in decoded.rules]


def _ignored(updates: list[msgspec.Raw]) -> str:
    """The message on updates without a rule that allows; empty: there are none."""
    if not updates:
        return ""
    shown = shared_output.truncate(shared_output.one_line(updates[0]).decode(), shared_output.MAX_EXPLANATION)
    more = f" and {len(updates) - 1} more" if len(updates) > 1 else ""
    return f"ignored permission_updates other than rules that allow: {shown}{more}"
