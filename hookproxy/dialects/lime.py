"""Lime's hooks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings, with_claude_names
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
from ..model.settings import ToolNames
from .agent_documents import DocumentSigns
from .agent_side import AgentSide, Can, DocumentForm, result_outcome
from .dialect import Dialect, Effect, HookFile, UserFiles, for_names
from .shared import claude_agent_side
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from .shared.events import AFTER_CALL, BEFORE_CALL, COMPACTION_UNSEEN, PROMPTS_UNSEEN, by_name
from .shared.hook_file import Table
from .shared.output import BLOCKS

TOOLS: Final[ToolSpellings] = {"Bash": (ToolSpelling("bash"),)}

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "Write": (ToolSpelling("write_file"),)})
"""The page names both, "e.g. bash, write_file", and no arguments: these are Claude Code's."""


_TIMEOUTS: Final = {
    Event.SESSION_START: 10.0,  # `initialize` waits for these hooks, and some agents wait no longer for a server
    Event.SESSION_END: shared_hook_file.SESSION_END_TIMEOUT,  # the agent has disconnected
    Event.PERMISSION_DENIED: 10.0,  # these three decide nothing, but the events that they observe wait for them
    Event.STOP: 10.0,
    Event.NOTIFICATION: 10.0,
}

TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool events: their hooks get the tool and its input."""


def _finish(file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    background = hook.event in AFTER_CALL and file.options.get("await_post") is not True
    return replace(hook, timeout=_TIMEOUTS.get(hook.event, hook.timeout), background=background)


FORMAT: Final = CommandFile(
    dialect="lime",
    events=by_name(*TOOL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.STOP, Event.NOTIFICATION),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "PreCompact": COMPACTION_UNSEEN,
        "PostCompact": COMPACTION_UNSEEN,
    },
    # The document has a timeout for each event, and gives no numbers. This is as long as MCP agents commonly wait for a
    # call: a hook that times out lets the call go on, so a shorter one would let calls pass whose guard is only slow.
    timeouts=Timeouts(default=60.0, keys=()),
    entries=Entries(
        keys=("command",),
        only_strings='write ["./hook.sh"]; a hook for some tools only can check HOOK_TOOL_NAME',
        strict=True,
        finish=_finish,
    ),
    matchers=Matchers(read=lambda _name, _entry: Matcher(), key=""),
    comments=False,
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values."""
    event, session = context.event.value, context.session
    document: dict[str, object] = {
        "event": event,
        "hook_event_name": event,
        "session_id": shared_input.utf8(session.id),
    }
    if context.request_id:
        document["request_id"] = shared_input.utf8(context.request_id)
    document["cwd"] = shared_input.utf8(session.cwd)
    env, cut = {"HOOK_EVENT": event}, False
    if context.event in TOOL_EVENTS:
        document |= shared_input.call_members(context)
        variable, cut = shared_input.tool_input_variable(context.arguments)
        env |= {"HOOK_TOOL_NAME": context.tool_name, shared_input.TOOL_INPUT: variable}
    if context.event in AFTER_CALL:
        failed = context.event is Event.POST_TOOL_USE_FAILURE
        output = _tool_output(context.outcome or Outcome(), failed)
        document |= {"tool_output": msgspec.Raw(output), "is_error": failed}
        env |= {"HOOK_TOOL_OUTPUT": output.decode(errors="replace"), "HOOK_TOOL_IS_ERROR": "1" if failed else "0"}
    document |= _event_details(context)
    return Document(stdin=shared_input.json_line(document), env=env, cut=cut)


def _tool_output(outcome: Outcome, failed: bool) -> bytes:
    """The tool's output as JSON: its content blocks, the whole result if it has more, or the error message."""
    if failed and not outcome.has_result:
        return raw_json.encode(shared_input.utf8(outcome.error))
    return shared_input.tool_response(outcome)


def _event_details(context: EventContext) -> dict[str, object]:
    """The members that are not about the call. Lime's document does not name them, so they have Claude Code's names."""
    trigger, message = shared_input.utf8(context.trigger), shared_input.utf8(context.message)
    match context.event:
        case Event.SESSION_START:
            return {"source": trigger}
        case Event.SESSION_END:
            return {"reason": trigger}
        case Event.PERMISSION_REQUEST | Event.PERMISSION_DENIED:
            return {"reason": message}
        case Event.NOTIFICATION:
            return {"notification_type": trigger, "message": message}
        case _:
            return {}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null counts as absent, other members (`hookEventName`) are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    additionalContext: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON
    updatedPermissions: tuple[str, ...] | None = None
    interrupt: bool | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    hookSpecificOutput: _Specific | None = None
    interrupt: bool | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    decision: Literal["block"] | None = None
    systemMessage: str | None = None
    reason: str | None = None

    @property
    def specific(self) -> _Specific:
        return self.hookSpecificOutput or _NO_SPECIFIC


FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision",
    Effect.REASON: "hookSpecificOutput.permissionDecisionReason reason",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.REWRITES: "hookSpecificOutput.updatedInput",
    Effect.ALLOWS_FOR_SESSION: "hookSpecificOutput.updatedPermissions",
    Effect.DENIES_AND_STOPS: "hookSpecificOutput.interrupt interrupt continue",
    Effect.TELLS_PERSON: "systemMessage",
})  # fmt: skip

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_NO_SPECIFIC: Final = _Specific()
_DECIDING_MEMBERS: Final = shared_output.deciding_members(
    FIELDS, {"hookSpecificOutput.permissionDecision": ("allow", "deny", "ask"), "decision": ("block",)}
)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    denies = result.code == BLOCKS and spec.event in BEFORE_CALL
    if result.code and not denies:
        return Verdict(
            failure=shared_output.exit_failure(result.code, stderr),
            messages=("printed JSON, which is ignored with this exit status, as documented",) * _is_object(stdout),
        )
    try:
        output = shared_output.parse_output(result, _DECODER)
    except shared_output.InvalidOutput as error:
        verdict = shared_output.invalid_output_verdict(
            _verdict(spec, shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)), str(error)
        )
        return replace(verdict, reason=shared_output.truncate(stdout)) if denies and not verdict.reason else verdict
    if output is None:
        return _plain_text(stdout, stderr, denies)
    verdict = (
        _on_deciding_event(spec.event, output) if spec.event in BEFORE_CALL else _on_other_event(spec.event, output)
    )
    return _denied(output, verdict, stderr) if denies else verdict


def _plain_text(stdout: str, stderr: str, denies: bool) -> Verdict:
    """The verdict of a hook that prints plain text: it is the reason with exit code 2, and has no effect otherwise."""
    if denies:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(stderr or stdout))
    if '"hookSpecificOutput"' in stdout:
        return Verdict(messages=(shared_output.JSON_IN_TEXT,))
    return Verdict()


def _denied(output: _JsonOutput, verdict: Verdict, stderr: str) -> Verdict:
    """The verdict with exit code 2: nothing that would let the call pass counts."""
    decision = output.specific.permissionDecision
    reason = verdict.reason if decision in (None, "deny") else output.reason
    return replace(
        verdict,
        permission=Permission.DENY,
        reason=shared_output.truncate(reason or stderr),
        arguments=None,
        allows=(),
        failure="",
    )


def _on_deciding_event(event: Event, output: _JsonOutput) -> Verdict:
    specific = output.specific
    permission, reason = _permission(output)
    arguments = b"" if permission is Permission.DENY else shared_output.given(specific.updatedInput)
    failure = _rewrite_error(event, arguments)
    if permission is Permission.ASK and event is Event.PERMISSION_REQUEST:
        permission = None  # a person is asked anyway
    if permission is Permission.ALLOW and failure:
        permission = None  # it allows a call with other arguments than those that would run
    rules, invalid_rules = _rules(() if failure else specific.updatedPermissions or ())
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments if arguments and not failure else None,
        feedback=shared_output.nonempty(specific.additionalContext or ""),
        messages=shared_output.nonempty(output.systemMessage or "", output.reason or "", *invalid_rules),
        stop=_stops(output),
        allows=rules,
        failure=failure,
    )


def _permission(output: _JsonOutput) -> tuple[Permission | None, str]:
    """What the JSON output wants for the call, and the reason that belongs to it."""
    specific = output.specific
    permission = shared_output.PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    general_reason = output.reason or ""
    specific_reason = specific.permissionDecisionReason or general_reason
    denied = _stops(output) or output.decision == "block"
    if permission is Permission.DENY or not denied:
        return permission, specific_reason
    return Permission.DENY, specific_reason if permission is None else general_reason


def _rewrite_error(event: Event, arguments: bytes) -> str:
    """What is wrong with the hook's updatedInput; empty: it is valid."""
    if arguments[:1] not in (b"", b"{"):
        return "gave an updatedInput that is not an object"
    if arguments and event is not Event.PRE_TOOL_USE:
        return f"gave an updatedInput on {event}, where it cannot change the arguments"
    return ""


def _rules(texts: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """The valid permission rules, and a message on each invalid one.

    A rule also counts for its tool's name in lower case: `Bash(git push:*)` is about the tool `bash`, too.
    """
    rules: dict[str, None] = {}
    invalid = []
    for rule in texts:
        if error := shared_output.rule_error(rule):
            invalid.append(error)
            continue
        name, bracket, rest = rule.partition("(")
        rules |= dict.fromkeys((rule, name.lower() + bracket + rest))
    return tuple(rules), invalid


def _on_other_event(event: Event, output: _JsonOutput) -> Verdict:
    permission, _ = _permission(output)
    note = f"wants to deny a call, but on {event} there is no call to deny" if permission is Permission.DENY else ""
    context = output.specific.additionalContext or ""
    return Verdict(
        feedback=() if event is Event.SESSION_END else shared_output.nonempty(context),
        messages=shared_output.nonempty(output.systemMessage or "", output.reason or "", note),
        stop=_stops(output),
    )


def _stops(output: _JsonOutput) -> bool:
    return bool(output.interrupt or output.specific.interrupt or output.continues is False)


def _is_object(stdout: str) -> bool:
    return stdout.startswith("{") and stdout.endswith("}")


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Lime's hooks page, lime-docs.pages.dev/config/hooks, as of 2026",
    output_fields=FIELDS,
    order=Order.SERIAL,
    tool_names=ToolNames.BARE,
    write_input=write_input,
    read_output=read_output,
    tool_spellings=TOOL_SPELLINGS,
    options=("await_post",),
    folders=(".lime",),
    suffixes=(".json", ".toml"),
    agents=("lime",),
    variables=("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
    user_files=(UserFiles(".lime", "settings.json"),),
    project_files=(".lime/settings.local.json",),
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("event", "hook_event_name")),
    form=DocumentForm(outcome=lambda members, failed: result_outcome(members.raw("tool_output", b'""'), failed=failed)),
    file=".lime/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE,
    write_output=partial(claude_agent_side.write_output, replacement=""),
    has_matchers=False,
    own_tools=TOOLS,
)
