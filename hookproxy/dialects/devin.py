"""The hooks of Devin's CLI: Claude Code's events at the top of a file of its own, or in its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Order, Outcome, Permission, Verdict
from ..policy import matchers
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    json_output,
    session_of,
    text_outcome,
)
from .dialect import Dialect, HookFile, UserFiles, WrittenEntry
from .shared import claude_envelope as envelope
from .shared import claude_matchers
from .shared import input as shared_input
from .shared.command_file import MATCHES_ALL, CommandFile, Entries, Matchers, Timeouts, json_file
from .shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("exec"), ToolSpelling("Bash")),
    "Read": (ToolSpelling("read"), ToolSpelling("Read")),
    "Write": (ToolSpelling("write"), ToolSpelling("Write")),
    "Edit": (ToolSpelling("edit"), ToolSpelling("Edit")),
    "MultiEdit": (ToolSpelling("edit"), ToolSpelling("MultiEdit")),
    "Glob": (ToolSpelling("glob"), ToolSpelling("Glob")),
    "Grep": (ToolSpelling("grep", {"glob": "glob_pattern"}), ToolSpelling("Grep")),
    "WebFetch": (ToolSpelling("webfetch"), ToolSpelling("WebFetch")),
}
"""Devin's own tools; hooks for Claude Code's names of them "will work with Devin CLI automatically"."""


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Devin's event names and no others, in `hooks` or at the top."""
    return FORMAT.fits({"hooks": members.get("hooks", members)})


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in Devin's own folder, where another name is a mistake, or another setting."""
    return FORMAT.fits({"hooks": members.get("hooks", members)}, or_none=True, and_others=True)


def _matcher(pattern: str) -> Callable[[str], bool]:
    return (lambda _name: True) if pattern in MATCHES_ALL else matchers.javascript_regex(pattern)


def _finish(_file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    """Devin's pages differ in what an exit status other than 0 and 2 does: the one that refuses."""
    return replace(hook, fails_closed=hook.event is Event.PRE_TOOL_USE)


FORMAT: Final = CommandFile(
    dialect="devin",
    events=by_name(
        Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST, Event.SESSION_START, Event.SESSION_END
    ),
    unavailable={"UserPromptSubmit": PROMPTS_UNSEEN, "Stop": TURNS_UNSEEN, "PostCompaction": COMPACTION_UNSEEN},
    timeouts=Timeouts(60.0),
    entries=Entries(
        keys=("type", "command", "timeout"),
        grouped=True,
        also_on_failure=("PostToolUse",),
        finish=_finish,
        typed=True,
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(_matcher(pattern)), notes=claude_matchers.never_matches
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, as Devin CLI 3000.6.14 was seen to write it: it has no working directory."""
    session, outcome = context.session, context.outcome
    members: dict[str, object] = {
        "hook_event_name": spec.event_name,
        "session_id": shared_input.utf8(session.id),
    }
    if context.tool:
        members |= {"prompt_id": "", **shared_input.call_members(context)}
        members["tool_use_id"] = shared_input.utf8(context.tool_use_id)
    elif context.trigger:
        members["source" if context.event is Event.SESSION_START else "reason"] = context.trigger
    if outcome is not None:
        output = "" if outcome.error and not outcome.has_result else shared_input.utf8_result(context)
        error = shared_input.utf8(outcome.error) or None
        members["tool_response"] = {"success": not outcome.error, "output": output, "error": error}
    return Document(shared_input.json_line(members), {"DEVIN_PROJECT_DIR": session.project_dir})


_RULES: Final = envelope.Rules(merges=True)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. A hook for PermissionRequest decides with `decision`, as one before a call does."""
    verdict = envelope.read_output(_RULES, spec, result)
    if spec.event is not Event.PERMISSION_REQUEST or verdict.permission is not None or verdict.failure:
        return verdict
    decided = envelope.read_output(_RULES, replace(spec, event=Event.PRE_TOOL_USE), result)
    return replace(verdict, permission=decided.permission, reason=decided.reason, failure=decided.failure)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Devin's pages on hooks, docs.devin.ai/cli/extensibility/hooks, as of autumn 2026, and documents of "
    "its CLI 3000.6.14",
    output_fields=envelope.FIELDS,
    order=Order.PIPELINE,  # the pages do not say whether hooks run at once: none may judge what is replaced later
    read_hook_file=FORMAT.read_hooks_or_events,
    write_input=write_input,
    read_output=read_output,
    closed_by_field=False,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    shape_of="claude",
    folders=(".devin", ".config/devin"),
    own_files=("hooks.v1.json",),
    constant_environment=True,
    variables=("DEVIN_PROJECT_DIR",),
    user_files=(UserFiles(".config/devin", "config.json"),),
    project_files=(".devin/hooks.v1.json", ".devin/config.json", ".devin/config.local.json"),
)


def _outcome(members: Members, failed: bool) -> Outcome:
    response = members.object("tool_response")
    return text_outcome((failed and response.text("error")) or response.text("output"), failed=failed)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    words = {Permission.ALLOW: "approve", Permission.DENY: "block"}
    output: dict[str, object] = {}
    if decision.permission in words:
        output["decision"] = words[decision.permission]
    if decision.permission is Permission.DENY:
        output["reason"] = decision.reason or "denied by a hook"
    elif decision.arguments is not None:
        specific = {"hookEventName": event.name, "updatedInput": msgspec.Raw(decision.arguments)}
        output["hookSpecificOutput"] = specific
    return replace(json_output(output), stderr=decision.message)


_FILE: Final = ".devin/hooks.v1.json"


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    return json_file(_FILE, FORMAT.written_events(entries))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(
        has=("hook_event_name", "session_id"),
        lacks=("cwd", "transcript_path", "permission_mode", "timestamp", "conversation_id", "tool_input_json"),
    ),
    form=DocumentForm(
        session=partial(session_of, project_variable="DEVIN_PROJECT_DIR"),
        failed=lambda members: members.object("tool_response").raw("success") == b"false",
        outcome=_outcome,
    ),
    also_reads=("claude",),
    file=_FILE,
    can=Can.ALLOW | Can.REWRITE,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    merges=True,
    user_folder=None,
)
