"""code-assist's hooks.

Its page has events for a server's questions to the person, but no output member that answers them: such hooks only
observe.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ..jsonrpc import normalize, raw_json
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
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    json_output,
    result_outcome,
    text_outcome,
)
from .dialect import Dialect, Effect, HookFile, for_names
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from .shared.events import AFTER_CALL, BEFORE_CALL, COMPACTION_UNSEEN, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN, by_name
from .shared.hook_file import Table
from .shared.output import BLOCKS

TOOLS: Final[ToolSpellings] = {
    **{
        name: (ToolSpelling(f"{name}Tool"),)
        for name in ("Bash", "Glob", "Grep", "WebFetch", "WebSearch", "NotebookEdit")
    },
    **{name: (ToolSpelling(f"File{name}Tool"),) for name in ("Read", "Write", "Edit")},
}
"""As the page has them (`BashTool`). The program calls them as Claude Code does."""

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "MultiEdit": TOOLS["Edit"]})


_MAX_RETRIES: Final = 1
"""Enough for chance failures; a hook that always prints `retry` costs one more call."""

TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool-related events."""


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook; each entry runs, as documented, even if another has the same command."""
    retries = file.options.get("max_retries")
    max_retries = retries if isinstance(retries, int) else _MAX_RETRIES
    return replace(hook, traits=frozenset({entry.path}), max_retries=max_retries)


FORMAT: Final = CommandFile(
    dialect="code-assist",
    events=by_name(*TOOL_EVENTS, Event.SESSION_START, Event.NOTIFICATION, Event.ELICITATION, Event.ELICITATION_RESULT),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "Stop": "an MCP server does not see when the agent's loop completes",
        "SubagentStart": SUBAGENTS_UNSEEN,
        "FileChanged": "the agent watches files, not the server",
        "CwdChanged": "the agent's working directory is its own, and an MCP server does not see it",
        "PreCompact": COMPACTION_UNSEEN,
        "PostCompact": COMPACTION_UNSEEN,
    },
    timeouts=Timeouts(30.0, milliseconds=True),  # the document has no default, and this is the program's
    entries=Entries(
        keys=("command", "timeout", "name"),
        strict=True,
        foreign_keys=frozenset({"type", "hooks", "bash", "powershell", "matcher"}),
        label_key="name",
        finish=_finish,
        key_hints={"matcher": "the hook runs for all tools, and can read the tool's name from tool_name"},
        null_is_absent=False,
    ),
    matchers=Matchers(read=lambda _name, _entry: Matcher(), key=""),
    comments=False,
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The nine members that every hook gets, in the document's order; null where one does not apply.

    The document's table has tool_input for calls that will run or have succeeded, so PostToolUseFailure has none.
    Hooks about a call's permission get the call's tool and input: a hook that does not know the tool would approve any.
    """
    event, session = context.event, context.session
    about_call, has_run = event in TOOL_EVENTS, event in AFTER_CALL
    has_input = about_call and event is not Event.POST_TOOL_USE_FAILURE
    document: dict[str, object] = {
        "hook_event": event.value,
        "tool_name": shared_input.utf8(context.tool_name) if about_call else None,
        "tool_input": msgspec.Raw(context.arguments) if has_input else None,
        "tool_use_id": shared_input.utf8(context.tool_use_id) if about_call else None,
        "tool_output": shared_input.utf8_result(context) if has_run else None,
        "user_prompt": None,
        "session_id": shared_input.utf8(session.id),
        "agent_id": None,
        "cwd": shared_input.utf8(session.cwd),
    }
    return Document(stdin=shared_input.json_line(document), env={})


_MAX_UPDATE_BYTES: Final = 100_000  # very many updates must not delay all calls


class _Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`{}`, which the document's own lint example prints instead of an absent text."""


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    updated_input: msgspec.Raw = shared_output.NO_JSON
    suppress_output: bool | None = None
    updated_output: str | None = None
    status_message: str | None = None
    additional_context: str | _Empty | None = None
    permission_updates: msgspec.Raw = shared_output.NO_JSON  # a list; the document does not describe its items
    retry: bool | None = None
    updated_prompt: str | None = None
    prevent_continuation: bool | None = None
    stop_reason: str | None = None


FIELDS: Final = for_names({
    Effect.DECIDES: "decision",
    Effect.REASON: "reason",
    Effect.REWRITES: "updated_input",
    Effect.TELLS_MODEL: "additional_context",
    Effect.REPLACES: "updated_output",
    Effect.HIDES: "suppress_output",
    Effect.TELLS_PERSON: "status_message",
    Effect.ALLOWS_FOR_SESSION: "permission_updates",
    Effect.REPEATS_CALL: "retry",
    Effect.NONE: "updated_prompt prevent_continuation stop_reason",
})  # fmt: skip
"""What each member of the JSON output does here; the last three are about prompts, which no server sees."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_UPDATE: Final = msgspec.json.Decoder(str | _Update)
_DENYING: Final = ("deny", "block")
_DECIDING_MEMBERS: Final = shared_output.deciding_members(FIELDS, {"decision": _DENYING})


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
    if event in BEFORE_CALL and output.decision == "approve":
        verdict = replace(verdict, permission=Permission.ALLOW, reason=reason)
    return replace(
        verdict,
        arguments=arguments,
        retry=event in AFTER_CALL and output.retry is True,
        allows=allows,
    )


def _without_decision(event: Event, output: _JsonOutput) -> Verdict:
    """What counts whether or not the hook denies: texts, and what the model must not see."""
    context = output.additional_context if isinstance(output.additional_context, str) else ""
    tool_output = output.updated_output if event in AFTER_CALL else None
    return Verdict(
        feedback=shared_output.nonempty(context),
        messages=shared_output.nonempty(output.status_message or "", _no_effect(event, output)),
        replacement=None if tool_output is None else msgspec.json.encode(tool_output),
        hides=event in AFTER_CALL and output.suppress_output is True,
    )


def _denial(event: Event, verdict: Verdict, reason: str, error: str) -> Verdict:
    """A blocking error: before a call it denies; after a call the result counts as failed and the model reads why."""
    if event in (*BEFORE_CALL, *AFTER_CALL):
        feedback = (reason,) if reason and event in AFTER_CALL else ()  # before the call, the refusal has the reason
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
        "updated_input": bool(shared_output.given(output.updated_input)) and event is not Event.PRE_TOOL_USE,
        "suppress_output": output.suppress_output and event not in AFTER_CALL,
        "updated_output": output.updated_output is not None and event not in AFTER_CALL,
        "retry": output.retry and event not in AFTER_CALL,
        "updated_prompt": output.updated_prompt is not None,
        "prevent_continuation": output.prevent_continuation,
    }
    names = ", ".join(name for name, ineffective in members.items() if ineffective)
    return f"gave members without effect on {event}: {names}" if names else ""


def _rewrite(output: _JsonOutput) -> tuple[bytes | None, str]:
    """`updated_input` as the hook spelled it, if it is there, and what is wrong with it."""
    spelled = shared_output.given(output.updated_input)
    if not spelled:
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
    text = shared_output.given(updates)
    if not text:
        return (), "", ""
    if not text.startswith(b"["):
        return (), "gave permission_updates that are not a list", ""
    if len(text) > _MAX_UPDATE_BYTES:
        return (), f"gave {len(text)} bytes of permission_updates, more than {_MAX_UPDATE_BYTES}", ""
    read = [(item, _rules_of(item)) for item in raw_json.items(updates)]
    rules = [rule for _, of_item in read for rule in of_item]
    if error := shared_output.rules_error(rules):
        return (), error, ""
    return tuple(rules), "", _ignored([item for item, of_item in read if not of_item])


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


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="code-assist's hooks page, abhinaavramesh.github.io/code-assist/guide/hooks, as of April 2026",
    output_fields=FIELDS,
    order=Order.SERIAL,
    tool_names=ToolNames.BARE,
    write_input=write_input,
    read_output=read_output,
    tool_spellings=TOOL_SPELLINGS,
    recognises=lambda members: "version" not in members and FORMAT.fits(members),
    options=("max_retries",),
    folders=(".claude",),  # its page on configuration has .claude/settings.json, also in the home folder
    agents=("code-assist",),
    constant_environment=True,
)


_DECISIONS: Final = {Permission.ALLOW: "approve", Permission.DENY: "deny"}


def _arguments(members: Members) -> bytes:
    """The arguments, which are not shown after a failure."""
    raw = members.raw("tool_input")
    return b"{}" if raw == b"null" and members.text("hook_event") == "PostToolUseFailure" else raw


def _outcome(members: Members, failed: bool) -> Outcome:
    if failed:
        return text_outcome(members.text("tool_output") or "the tool failed", failed=True)
    output = members.raw("tool_output", b'""')
    return result_outcome(b'""' if output == b"null" else output)


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {}
    if decision.permission in _DECISIONS:
        output["decision"] = _DECISIONS[decision.permission]
    if decision.permission is Permission.DENY:
        output["reason"] = decision.reason or "denied by a hook"
    elif decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    if decision.replacement is not None:
        output["updated_output"] = raw_json.text_or_json(decision.replacement)
    if decision.feedback:
        output["additional_context"] = decision.feedback
    if decision.message:
        output["status_message"] = decision.message
    return json_output(output)


def _refuse(reason: str) -> HookOutput:
    """Its page names no exit status that denies, and its program has none."""
    return json_output({"decision": "deny", "reason": reason})


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("hook_event",)),
    form=DocumentForm(
        event=("hook_event",), triggers={Event.SESSION_START: "startup"}, arguments=_arguments, outcome=_outcome
    ),
    file=".claude/settings.json",
    can=Can.ALLOW | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.REPLACE,
    write_output=_write_output,
    refuse=_refuse,
    has_matchers=False,
    own_tools={known: (*of_tool, ToolSpelling(known)) for known, of_tool in TOOLS.items()},
)
