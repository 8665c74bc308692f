"""VS Code's local agent ("Local" harness). Its Copilot harness runs the hooks of the dialect `copilot`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import (
    NO_VERDICT,
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Permission,
    Verdict,
)
from ..model.settings import ServerNamed
from .agent_documents import DocumentSigns
from .agent_side import AgentSide, Can, DocumentForm, session_of, split_underscored_name
from .copilot.hook_file import forgets_version
from .dialect import Dialect, Effect, HookFile, HookList, for_names
from .shared import claude_agent_side as envelope
from .shared import command_file
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from .shared.events import AFTER_CALL, COMPACTION_UNSEEN, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table
from .shared.output import BLOCKS

_BOTH_SPELLINGS: Final = {
    "SessionStart": "sessionStart",
    "PreToolUse": "preToolUse",
    "PostToolUse": "postToolUse",
    "UserPromptSubmit": "userPromptSubmitted",
    "PreCompact": "preCompact",
    "SubagentStart": "subagentStart",
    "SubagentStop": "subagentStop",
    "Stop": "agentStop",
}
"""VS Code's names, and Copilot CLI's, which it reads as well."""

_AVAILABLE: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START)
EVENTS: Final = {name: event for event in _AVAILABLE for name in (event.value, _BOTH_SPELLINGS[event.value])}
"""PostToolUse also occurs after a result with isError, which VS Code's `mcpLanguageModelToolContribution.ts` returns as
any other."""

_REASONS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "PreCompact": COMPACTION_UNSEEN,
    "SubagentStart": SUBAGENTS_UNSEEN,
    "SubagentStop": SUBAGENTS_UNSEEN,
    "Stop": TURNS_UNSEEN,
}
_OTHER_TARGET: Final = "VS Code leaves this event to its Copilot agent: the dialect copilot has it"
_UNAVAILABLE: Final = {
    **{name: reason for known, reason in _REASONS.items() for name in (known, _BOTH_SPELLINGS[known])},
    **dict.fromkeys(("SessionEnd", "sessionEnd", "ErrorOccurred", "errorOccurred"), _OTHER_TARGET),
}

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("run_in_terminal"),),
    "Read": (ToolSpelling("read_file", {"file_path": "filePath"}),),
    "Write": (ToolSpelling("create_file", {"file_path": "filePath"}),),
    "Edit": (
        ToolSpelling(
            "replace_string_in_file",
            {"file_path": "filePath", "old_string": "oldString", "new_string": "newString"},
        ),
    ),
    "MultiEdit": (ToolSpelling("multi_replace_string_in_file", {"file_path": "filePath"}),),
    "LS": (ToolSpelling("list_dir"),),
    "Glob": (ToolSpelling("file_search", {"pattern": "query"}),),
    "Grep": (ToolSpelling("grep_search", {"pattern": "query"}),),
    "WebFetch": (ToolSpelling("fetch_webpage"),),
}
"""The tools of VS Code's own (extensions/copilot, `toolNames.ts`)."""

_COMMANDS: Final = ("linux", "bash", "command")
"""The keys of a command for Linux, the most specific first: `bash` stands for linux and osx."""
_ELSEWHERE: Final = ("windows", "powershell", "osx")

_NOT_IN_A_LABEL: Final = re.compile(r"[^a-z0-9_.-]+")
_LONGEST_LABEL: Final = 13  # with `mcp_` and `_` the prefix has 18 characters
_LONGEST_NAME: Final = 64


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp_SERVER_TOOL`, as VS Code's `McpPrefixGenerator` makes it."""
    label = _NOT_IN_A_LABEL.sub("_", server.lower())[:_LONGEST_LABEL]
    return f"mcp_{label}_{tool}".replace(".", "_")[:_LONGEST_NAME]


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if document.members.get("disableAllHooks") is True:
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    return FORMAT.read_hooks(file, document)


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under VS Code's event names, and no version, which Copilot's files have."""
    events = members.get("hooks")
    if not _recognises_at_home(members) or not isinstance(events, dict):
        return False
    lists = list(events.values())
    return any(lists) and all(
        isinstance(entries, list) and all(isinstance(entry, dict) and _has_command(entry) for entry in entries)
        for entries in lists
    )


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in its own folders, where files with Claude Code's groups are VS Code's, too."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members or forgets_version(events):
        return False
    return events.keys() <= {*EVENTS, *_UNAVAILABLE}


def _has_command(entry: dict[str, object]) -> bool:
    """An entry of this system alone: code-assist's have `name` or nothing beside the command, and no such keys."""
    return not entry.keys().isdisjoint((*_COMMANDS[:2], *_ELSEWHERE)) or ("command" in entry and "type" in entry)


def _read_matcher(name: str, matched: Table) -> Matcher:
    """Matchers are read and dropped, as in VS Code."""
    pattern = matched.text("matcher")
    if EVENTS[name] is Event.SESSION_START or pattern in command_file.MATCHES_ALL:
        return Matcher()
    return Matcher(notes=(f"the matcher {pattern!r} is ignored, as in VS Code: the hook runs for every tool",))


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    key = next((key for key in _COMMANDS if entry.text(key).strip()), "command")
    if not entry.text(key) and any(entry.text(other) for other in _ELSEWHERE):
        return "it has no command for Linux"
    return command_file.read_command(entry, key)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    return replace(hook, cwd=_folder(file, entry.text("cwd")), env=entry.pairs("env"))


def _folder(file: HookFile, cwd: str) -> str:
    """The folder in which a hook runs: relative to the project, and `~` is the home folder (`untildify`)."""
    if cwd == "~" or cwd.startswith("~/"):
        cwd = file.environ.get("HOME", "~") + cwd[1:]
    return os.path.normpath(os.path.join(file.project_dir, cwd))


FORMAT: Final = CommandFile(
    dialect="vscode",
    events=EVENTS,
    unavailable=_UNAVAILABLE,
    timeouts=Timeouts(default=30.0, keys=("timeout", "timeoutSec"), skips_odd="VS Code"),
    entries=Entries(
        keys=(*_COMMANDS, *_ELSEWHERE, "type", "cwd", "env", "timeout", "timeoutSec", "matcher"),
        grouped=True,
        flat_too=True,
        also_on_failure=(Event.POST_TOOL_USE.value, _BOTH_SPELLINGS[Event.POST_TOOL_USE.value]),
        read_handler=_read_handler,
        finish=_finish,
        only_misspelt_keys=True,
        typed=True,
    ),
    matchers=Matchers(read=_read_matcher, key=""),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with members in snake_case as in VS Code's source. There are no variables.

    `hook_event_name` is VS Code's own name, whichever spelling the file has.
    """
    session = context.session
    document: dict[str, object] = {
        "timestamp": shared_input.iso_8601(context.at),
        "hook_event_name": (Event.POST_TOOL_USE if context.event in AFTER_CALL else context.event).value,
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required by the documentation, and an MCP server has none
        "cwd": shared_input.utf8(spec.cwd or session.cwd),
    }
    if context.event is Event.SESSION_START:
        return Document(shared_input.json_line(document | {"source": "new"}), {})
    document |= shared_input.call_members(context)
    if context.event in AFTER_CALL:
        document["tool_response"] = shared_input.utf8_result(context)
    return Document(shared_input.json_line(document | {"tool_use_id": context.tool_use_id}), {})


_NO_REASON: Final = "an unexpected error occurred"
_NO_BLOCK_REASON: Final = "Hook blocked tool result"
"""VS Code's own reasons where a hook gives none: with the exit status, and as JSON."""

_BLOCKED: Final = "The PostToolUse hook blocked this tool result. Reason: "
"""What VS Code puts before the reason of a hook that blocks a result. The result itself stays (`appendHookContext`)."""


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null counts as absent, other members are ignored."""

    hookEventName: str | None = None
    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON
    additionalContext: str | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    hookEventName: str | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    systemMessage: str | None = None
    decision: Literal["block"] | None = None
    reason: str | None = None
    additionalContext: str | None = None
    hookSpecificOutput: _Specific | None = None


FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision",
    Effect.REASON: "hookSpecificOutput.permissionDecisionReason reason stopReason",
    Effect.REWRITES: "hookSpecificOutput.updatedInput",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext additionalContext",
    Effect.TELLS_PERSON: "systemMessage",
    Effect.DENIES_AND_STOPS: "continue",
})  # fmt: skip
"""What each member of the JSON output does here. `decision` is read after a call only."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_NO_SPECIFIC: Final = _Specific()
_DECIDING_MEMBERS: Final = shared_output.deciding_members(
    FIELDS, {"decision": ("block",), "hookSpecificOutput.permissionDecision": ("allow", "ask", "deny")}
)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run: exit status 0 has JSON read, 2 denies, every other one is a failure."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stderr = shared_output.decode(result.stderr)
    if result.code == BLOCKS:
        return _rejected(spec, stderr)
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, stderr))
    verdict = shared_output.read_json(result, _DECODER, _DECIDING_MEMBERS, partial(_of_json, spec))
    if verdict is not None:
        return verdict
    has_text = shared_output.decode(result.stdout)
    return Verdict(messages=("printed plain text, which VS Code ignores",)) if has_text else NO_VERDICT


def _rejected(spec: HookSpec, stderr: str) -> Verdict:
    """The verdict on an exit status that denies the call, or objects to its result."""
    reason = shared_output.truncate(stderr or _NO_REASON)
    if spec.event is Event.SESSION_START:
        return Verdict(failure=f"exited with status {BLOCKS}: {reason.partition(chr(10))[0]}"[:300])
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(permission=Permission.DENY, reason=reason)
    return Verdict(feedback=(_BLOCKED + reason,))


def _of_json(spec: HookSpec, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output. Output that names another event is dropped, which is a failure."""
    if _is_for_another(spec, output.hookEventName):
        return Verdict(failure=_dropped("its output", output.hookEventName))
    specific, dropped = output.hookSpecificOutput or _NO_SPECIFIC, ""
    if _is_for_another(spec, specific.hookEventName):
        specific, dropped = _NO_SPECIFIC, _dropped("its hookSpecificOutput", specific.hookEventName)
    stop, reason = output.continues is False or output.stopReason is not None, output.stopReason or ""
    context = (specific.additionalContext or "", output.additionalContext or "")
    verdict = Verdict(
        stop=stop,
        reason=shared_output.truncate(reason),
        feedback=shared_output.nonempty(*dict.fromkeys(context)),
        messages=shared_output.nonempty(output.systemMessage or ""),
    )
    if spec.event is Event.PRE_TOOL_USE:
        verdict = _before_call(verdict, specific)
    elif spec.event is not Event.SESSION_START:
        objection = _objection(output, reason if stop else "")
        verdict = replace(verdict, feedback=shared_output.nonempty(objection, *verdict.feedback))
    return replace(verdict, failure=verdict.failure or dropped)


def _is_for_another(spec: HookSpec, event_name: str | None) -> bool:
    """Whether output is for another event than the hook ran on, by VS Code's own name for it."""
    own = Event.POST_TOOL_USE if spec.event is Event.POST_TOOL_USE_FAILURE else spec.event
    return event_name is not None and event_name != own.value


def _dropped(what: str, event_name: str | None) -> str:
    printed = shared_output.truncate(repr(event_name), shared_output.MAX_EXPLANATION)
    return f"answered for the event {printed}, so {what} is dropped"


def _objection(output: _JsonOutput, stop_reason: str) -> str:
    """What the model reads if a hook blocks a result, or stops the agent after it; empty: it does neither."""
    if output.decision:
        return _BLOCKED + shared_output.truncate(output.reason or stop_reason or _NO_BLOCK_REASON)
    return shared_output.truncate(stop_reason)


def _before_call(verdict: Verdict, specific: _Specific) -> Verdict:
    permission = shared_output.PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    reason = shared_output.truncate(specific.permissionDecisionReason or verdict.reason)
    arguments = shared_output.given(specific.updatedInput)
    if permission is Permission.DENY or not arguments:
        return replace(verdict, permission=permission, reason=reason)
    if not arguments.startswith(b"{"):
        return Verdict(failure="gave an updatedInput that is not an object")
    return replace(verdict, permission=permission, reason=reason, arguments=arguments)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="VS Code's source and its reference of local agent hooks, code.visualstudio.com, as of autumn 2026",
    output_fields=FIELDS,
    order=Order.UNTIL_STOPPED,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=read_output,
    hook_identity=lambda spec: (spec.source,),
    after_results_only=True,
    mcp_tool_name=mcp_tool_name,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".github/hooks", ".copilot/hooks"),
    agents=("Visual Studio Code",),
    constant_environment=True,
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("timestamp", "tool_use_id"), lacks=("permission_mode",)),
    form=DocumentForm(
        event=("hook_event_name", "hookEventName"),
        session=partial(session_of, ids=("session_id", "sessionId")),
        server_named=ServerNamed.IN_TOOL_NAME,
        server_tool=lambda _members, name: split_underscored_name(name),
    ),
    also_reads=("claude", "copilot"),
    file=".github/hooks/hookproxy.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=partial(envelope.write_output, replacement=""),
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START),
    has_matchers=False,
    user_folder=(".github/", ".copilot/"),
)
