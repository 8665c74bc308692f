"""Reads the exit status and output of a Cursor hook into a verdict. Output before a call that cannot be read blocks.

It never raises: invalid output is a failure or a denial that names what is wrong, and never an approval (law 3).
"""

from __future__ import annotations

import json
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ...processes.environment import VARIABLE_LIMIT
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.output import BLOCKS

LONGEST_CONTEXT: Final = 10_000
"""UTF-16 units: Cursor drops a longer `additional_context`."""

_MOST_STARTS: Final = 64
"""How many `{` are tried as the beginning of the JSON after other text. With more, the output is invalid: finding it
must not take long."""

_NOT_JSON: Final = "printed text that is not JSON"
_CLAUDE_NAMES: Final = {"preToolUse": "PreToolUse", "postToolUse": "PostToolUse", "sessionStart": "SessionStart"}
"""The events at which Claude Code's `hookSpecificOutput` counts, with its names for them."""


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    hookEventName: str | None = None
    permissionDecision: Literal["allow", "ask", "deny"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON
    additionalContext: str | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints. Types are strict, null counts as absent, other members are ignored."""

    permission: Literal["allow", "ask", "deny"] | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    user_message: str | None = None
    agent_message: str | None = None
    userMessage: str | None = None
    agentMessage: str | None = None
    updated_input: msgspec.Raw = shared_output.NO_JSON
    updated_mcp_tool_output: msgspec.Raw = shared_output.NO_JSON
    additional_context: str | None = None
    env: msgspec.Raw = shared_output.NO_JSON
    decision: Literal["allow", "approve", "ask", "deny", "block"] | None = None
    reason: str | None = None
    hookSpecificOutput: _Specific | None = None

    @property
    def for_person(self) -> str:
        return self.user_message or self.userMessage or ""

    @property
    def for_model(self) -> str:
        return self.agent_message or self.agentMessage or ""


FIELDS: Final = for_names({
    Effect.DECIDES: "permission decision continue hookSpecificOutput.permissionDecision",
    Effect.REASON: "agent_message agentMessage reason hookSpecificOutput.permissionDecisionReason",
    Effect.TELLS_PERSON: "user_message userMessage",
    Effect.REWRITES: "updated_input hookSpecificOutput.updatedInput",
    Effect.REPLACES: "updated_mcp_tool_output",
    Effect.TELLS_MODEL: "additional_context hookSpecificOutput.additionalContext",
    Effect.SETS_VARIABLES: "env",
    # `followup_message`: of stop and subagentStop, which cannot occur behind MCP
    Effect.NONE: "followup_message",
})  # fmt: skip

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_DECIDING_MEMBERS: Final = shared_output.deciding_members(
    FIELDS,
    {
        "permission": ("allow", "ask", "deny"),
        "continue": (True, False),
        "decision": tuple(shared_output.PERMISSIONS),
        "hookSpecificOutput.permissionDecision": ("allow", "ask", "deny"),
        "hookSpecificOutput.hookEventName": shared_output.ANY_TEXT,
        "user_message": shared_output.ANY_TEXT,
        "userMessage": shared_output.ANY_TEXT,
    },
)
_NO_OUTPUT: Final = _JsonOutput()
_NO_SPECIFIC: Final = _Specific()


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if result.code == BLOCKS and spec.event is Event.PRE_TOOL_USE:
        return _refused(result)
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, shared_output.decode(result.stderr)))
    text = shared_output.decode(result.stdout)
    if not text:
        must_decide = spec.fails_closed and spec.event is Event.PRE_TOOL_USE
        return Verdict(failure="printed nothing") if must_decide else NO_VERDICT
    if not _is_read(spec):
        return NO_VERDICT
    found = _json_object(text)
    if found is None:
        return _unreadable(spec, result, shared_output.CUT_JSON if result.cut else _NOT_JSON)
    printed = replace(result, stdout=found.encode(errors="replace"))
    try:
        return _of_output(spec, shared_output.parse_json_object(printed.stdout, _DECODER) or _NO_OUTPUT)
    except shared_output.InvalidOutput as error:
        return _unreadable(spec, printed, str(error))


def _is_read(spec: HookSpec) -> bool:
    """Whether Cursor reads what the hooks of this event print. The other events have no output."""
    return spec.event is Event.PRE_TOOL_USE or spec.event_name in ("postToolUse", "sessionStart")


def _json_object(text: str) -> str | None:
    """The text if it is a JSON object, else the object with which it ends; None: there is none."""
    if not text.endswith("}"):
        return None
    at = -1
    for _ in range(_MOST_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return None
        try:
            json.loads(text[at:])
        except (ValueError, RecursionError):
            continue
        return text[at:]
    return None


def _unreadable(spec: HookSpec, result: HookResult, error: str) -> Verdict:
    """The verdict on output that is not as documented: before a call, it blocks as a failure."""
    verdict = shared_output.invalid_output_verdict(_of_output(spec, _leniently(result)), error)
    return replace(verdict, fails_closed=bool(verdict.failure) and spec.event is Event.PRE_TOOL_USE)


def _leniently(result: HookResult) -> _JsonOutput:
    """The members of the output that decide, as far as they are as documented."""
    kept = shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)
    return shared_output.parse_json_object(kept.stdout, _DECODER) or _NO_OUTPUT


def _refused(result: HookResult) -> Verdict:
    """A denial by exit status, with its reason from JSON, else from standard output, else from standard error."""
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    found = _json_object(stdout)
    output = _leniently(replace(result, stdout=found.encode(errors="replace"))) if found else _NO_OUTPUT
    verdict = _denial(output, _reason(output) or ("" if found else stdout) or stderr)
    return replace(verdict, permission=Permission.DENY)


def _of_output(spec: HookSpec, output: _JsonOutput) -> Verdict:
    specific = output.hookSpecificOutput
    if specific is not None and not _is_claude_output(spec, specific):
        rest = _of_output(spec, replace(output, hookSpecificOutput=None))
        dropped = f"printed a hookSpecificOutput that Cursor does not read at {spec.event_name}"
        if rest.permission is Permission.DENY:
            return replace(rest, messages=(*rest.messages, dropped))
        permission = None if rest.permission is Permission.ALLOW else rest.permission
        return replace(rest, permission=permission, arguments=None, failure=rest.failure or dropped)
    if spec.event is Event.PRE_TOOL_USE:
        return _before_call(spec, output)
    return _after_call(spec, output)


def _is_claude_output(spec: HookSpec, specific: _Specific) -> bool:
    """Whether Cursor accepts Claude Code's nested output here: at some events, under their name there or no name."""
    name = _CLAUDE_NAMES.get(spec.event_name)
    return name is not None and specific.hookEventName in (None, "", name)


def _permission(output: _JsonOutput) -> Permission | None:
    """The strictest of the decisions in the output."""
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    words = [word for word in (output.permission, output.decision, specific.permissionDecision) if word]
    found = [shared_output.PERMISSIONS[word] for word in words]
    if output.continues is False:
        found.append(Permission.DENY)
    return max(found, default=None)


def _reason(output: _JsonOutput) -> str:
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    return output.for_model or specific.permissionDecisionReason or output.reason or output.for_person


def _denial(output: _JsonOutput, reason: str) -> Verdict:
    messages = (output.for_person,) if output.for_person and output.for_person != reason else ()
    return Verdict(
        permission=Permission.DENY,
        reason=shared_output.truncate(reason),
        messages=tuple(map(shared_output.truncate, messages)),
    )


def _before_call(spec: HookSpec, output: _JsonOutput) -> Verdict:
    permission = _permission(output)
    if permission is Permission.DENY:
        return _denial(output, _reason(output))
    messages = [output.for_person] if permission is not Permission.ASK else []
    reason = (output.for_person or _reason(output)) if permission is Permission.ASK else ""
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    arguments = next(
        (raw for raw in map(shared_output.given, (output.updated_input, specific.updatedInput)) if raw), b""
    )
    if arguments and spec.event_name != "preToolUse":
        messages.append(f"printed an updated_input, which has no effect at {spec.event_name}")
        arguments = b""
    if arguments and not arguments.startswith(b"{"):
        return Verdict(failure="gave an updated_input that is not an object", fails_closed=True)
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments or None,
        messages=shared_output.nonempty(*messages),
    )


def _after_call(spec: HookSpec, output: _JsonOutput) -> Verdict:
    messages = [output.for_person]
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    context = output.additional_context or specific.additionalContext or ""
    if len(context.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_CONTEXT:
        messages.append(f"printed an additional_context of more than {LONGEST_CONTEXT} characters, which is dropped")
        context = ""
    blocked = _permission(output) is Permission.DENY
    replacement = b"" if spec.event is Event.SESSION_START else shared_output.given(output.updated_mcp_tool_output)
    if replacement.startswith(b'"'):
        text = {"type": "text", "text": raw_json.text(replacement)}
        replacement = raw_json.encode({"content": [text]})
    if replacement and not replacement.startswith(b"{"):
        return Verdict(failure="gave an updated_mcp_tool_output that is neither an object nor a text")
    variables, unusable = _variables(output.env) if spec.event is Event.SESSION_START else ((), "")
    messages.append(unusable)
    return Verdict(
        variables=variables,
        feedback=shared_output.nonempty(context, _reason(output) if blocked else ""),
        replacement=replacement or None,
        messages=shared_output.nonempty(*messages),
    )


def _variables(raw: msgspec.Raw) -> tuple[tuple[tuple[str, str], ...], str]:
    """The variables of the member `env` that can be set, and a sentence about it if some cannot."""
    given = shared_output.given(raw)
    try:
        texts = {name: raw_json.text(bytes(value)) for name, value in raw_json.fields(given or b"{}").items()}
    except ValueError:
        return (), "printed an env that is not an object"
    usable = {name: text for name, text in texts.items() if text is not None and _is_variable(name, text)}
    odd = [name for name in texts if name not in usable]
    named = shared_output.truncate(", ".join(map(repr, odd)), shared_output.MAX_EXPLANATION)
    return tuple(usable.items()), f"printed variables (env) that cannot be set: {named}" if odd else ""


def _is_variable(name: str, value: str) -> bool:
    """Whether an environment can have such a variable. With a longer one, no later hook could be started."""
    long = len(f"{name}={value}\0".encode(errors="replace")) > VARIABLE_LIMIT
    return bool(name) and not long and "=" not in name and "\0" not in name + value
