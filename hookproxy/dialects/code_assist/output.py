"""What a code-assist hook says by its exit code, standard output and standard error, as a verdict.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
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
"""The exit code that denies. The document has blocking errors and names no code for them: this is everybody's."""

_CALLED: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ASKED: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_MOST_RULES: Final = 1000  # each is compiled: a hook that prints nothing but rules must not hold up all calls
_MOST_BYTES: Final = 100_000  # the same goes for changes that are none

_NOTHING: Final = msgspec.Raw(b"")
_ABSENT: Final = (b"", b"null")


class _Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`{}`, which the document's own lint example prints for a text that is not there."""


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A permission rule in two parts, as the program's own type of that name has it."""

    tool_name: str
    rule_content: str | None = None

    @property
    def text(self) -> str:
        """The rule as settings files have it, `Tool` or `Tool(what)`."""
        return f"{self.tool_name}({self.rule_content})" if self.rule_content else self.tool_name


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of permission rules that allows. Unknown members are refused: one may say that it forbids."""

    type: Literal["addRules"] = "addRules"
    behavior: Literal["allow"] = "allow"
    destination: str = ""  # wherever it would be kept: here it holds for the session
    rule: str | None = None
    rules: tuple[str | _Rule, ...] = ()


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON. Types are strict, null is where the document has it; others are ignored."""

    decision: Literal["approve", "deny", "block"] | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None
    updated_input: msgspec.Raw = _NOTHING
    suppress_output: bool | None = None
    updated_output: str | None = None
    status_message: str | None = None
    additional_context: str | _Empty | None = None
    permission_updates: msgspec.Raw = _NOTHING  # a list, of which the document says no more
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
"""What each member of an answer does here; the last three are about prompts, which no server sees."""

_DECODER: Final = msgspec.json.Decoder(_Answer)
_UPDATE: Final = msgspec.json.Decoder(str | _Change)
_DENYING: Final = ("deny", "block")
_PARTS: Final[shared_output.DecidingMembers] = {"decision": _DENYING, "reason": shared_output.ANY_TEXT}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said."""
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    said, complaint = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if result.code not in (0, BLOCKS):  # the document's non-blocking error: what was printed does not count
        return Verdict(failure=f"exited with status {result.code}" + shared_output.explanation(complaint or said))
    answer, problem = _answer(result, said)
    if result.code == BLOCKS:
        if not said.startswith("{"):
            problem = ""  # who denies by the exit code need not print JSON
        reason = complaint or ("" if answer else said)
        return _judgement(spec.event, answer or _Answer(), reason, blocks=True, problem=problem)
    if answer is None:
        return Verdict(failure=problem)
    return _judgement(spec.event, answer, "", blocks=False, problem=problem)


def _answer(result: HookResult, said: str) -> tuple[_Answer | None, str]:
    """The JSON that was printed, or none; and what is wrong with it."""
    # Of two outputs the longer one has reached the limit.
    cut = "printed more than is kept" if result.cut and len(result.stdout) >= len(result.stderr) else ""
    try:
        answer = shared_output.parse_json_object(result.stdout, _DECODER)
    except shared_output.InvalidOutput as nonsense:
        part = shared_output.parse_json_object(shared_output.keep_deciding_members(result, _PARTS).stdout, _DECODER)
        return part if part and part.decision in _DENYING else None, str(nonsense)
    if answer or not said:
        return answer or _Answer(), cut
    return None, cut or "printed what is no JSON object" + shared_output.explanation(said)


def _judgement(event: Event, answer: _Answer, complaint: str, *, blocks: bool, problem: str) -> Verdict:
    """The verdict on an answer: a denial stands whatever else is wrong; beside trouble no consent does."""
    arguments, no_rewrite = _rewritten(answer) if event is Event.PRE_TOOL_USE else (None, "")
    allows, no_rules, ignored = _allowed(answer.permission_updates)
    problem = problem or no_rewrite or no_rules
    reason = shared_output.truncate(answer.reason or complaint)
    heard = _heard(event, answer)
    heard = replace(heard, messages=heard.messages + shared_output.nonempty(ignored))
    if blocks or answer.decision in _DENYING:
        return _denial(event, heard, reason, problem)
    if problem:
        return replace(heard, failure=problem)
    if event in _ASKED and answer.decision == "approve":
        heard = replace(heard, permission=Permission.ALLOW, reason=reason)
    return replace(
        heard,
        arguments=arguments,
        retry=event in _CALLED and answer.retry is True,
        allows=allows,
    )


def _heard(event: Event, answer: _Answer) -> Verdict:
    """What holds whether or not the hook denies: texts, and what the model must not see."""
    context = answer.additional_context if isinstance(answer.additional_context, str) else ""
    output = answer.updated_output if event in _CALLED else None
    return Verdict(
        feedback=shared_output.nonempty(context),
        messages=shared_output.nonempty(answer.status_message or "", _idle(event, answer)),
        replacement=None if output is None else msgspec.json.encode(output),
        hides=event in _CALLED and answer.suppress_output is True,
    )


def _denial(event: Event, heard: Verdict, reason: str, problem: str) -> Verdict:
    """A blocking error: before a call it denies, after it the result counts as failed and the model reads why."""
    if event in (*_ASKED, *_CALLED):
        told = (reason,) if reason and event in _CALLED else ()  # before the call, the refusal gives the reason
        return replace(
            heard,
            permission=Permission.DENY,
            reason=reason,
            feedback=told + heard.feedback,
            messages=heard.messages + shared_output.nonempty(problem),
        )
    return replace(
        heard, failure=f"wants to block, and {event} leaves nothing to block" + shared_output.explanation(reason)
    )


def _idle(event: Event, answer: _Answer) -> str:
    """The sentence about members that ask for something which this event cannot give; empty: there are none."""
    asked = {
        "updated_input": bytes(answer.updated_input) not in _ABSENT and event is not Event.PRE_TOOL_USE,
        "suppress_output": answer.suppress_output and event not in _CALLED,
        "updated_output": answer.updated_output is not None and event not in _CALLED,
        "retry": answer.retry and event not in _CALLED,
        "updated_prompt": answer.updated_prompt is not None,
        "prevent_continuation": answer.prevent_continuation,
    }
    names = ", ".join(name for name, idle in asked.items() if idle)
    return f"without effect on {event}: {names}" if names else ""


def _rewritten(answer: _Answer) -> tuple[bytes | None, str]:
    """`updated_input` as the hook spelled it, if it is there; and what is wrong with it."""
    spelled = shared_output.one_line(answer.updated_input)
    if spelled in _ABSENT:
        return None, ""
    if not spelled.startswith(b"{"):
        return None, "gave an updated_input that is no object"
    try:
        normalize.normalise(spelled)  # later hooks are to read it, and the server
    except ValueError as problem:
        return None, "gave an updated_input that cannot be read" + shared_output.explanation(str(problem))
    return spelled, ""


def _allowed(updates: msgspec.Raw) -> tuple[tuple[str, ...], str, str]:
    """The rules of `permission_updates`, or none and what is wrong with them; and a sentence on what is ignored."""
    if bytes(updates) in _ABSENT:
        return (), "", ""
    if bytes(updates)[:1] != b"[":
        return (), "gave permission_updates that are no list", ""
    size = len(bytes(updates))
    if size > _MOST_BYTES:
        return (), f"gave {size} bytes of permission_updates, more than {_MOST_BYTES}", ""
    read = [(item, _rules_of(item)) for item in raw_json.items(updates)]
    rules = [rule for _, found in read for rule in found]
    if len(rules) > _MOST_RULES:
        return (), f"gave {len(rules)} permission rules, more than {_MOST_RULES}", ""
    for rule in rules:
        try:
            matchers.allow_rule(rule)
        except (re.error, ValueError, OverflowError, RecursionError):
            quoted = shared_output.truncate(repr(rule), shared_output.MAX_EXPLANATION)
            return ((), f"gave a permission rule that is none: {quoted}", "")
    return tuple(rules), "", _ignored([item for item, found in read if not found])


def _rules_of(update: msgspec.Raw) -> list[str]:
    """What one of `permission_updates` allows; nothing: it is of a shape that nobody here knows, or forbids."""
    try:
        change = _UPDATE.decode(update)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return []
    if isinstance(change, str):
        return [change]
    own = [] if change.rule is None else [change.rule]
    return own + [rule if isinstance(rule, str) else rule.text for rule in change.rules]


def _ignored(updates: list[msgspec.Raw]) -> str:
    """The sentence about changes that are none here; empty: there are none."""
    if not updates:
        return ""
    shown = shared_output.truncate(shared_output.one_line(updates[0]).decode(), shared_output.MAX_EXPLANATION)
    more = f" and {len(updates) - 1} more" if len(updates) > 1 else ""
    return f"without effect, as only rules that allow count: permission_updates {shown}{more}"
