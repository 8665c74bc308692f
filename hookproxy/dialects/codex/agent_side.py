"""Codex as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.aliases import Alias
from ...model.hooks import Event, EventContext, Permission
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, HookDecision, HookOutput, read_document
from ..shared import claude_agent_side
from .hook_file import FORMAT, PATCH
from .patch import FileChange, changes

_REWRITTEN_PATCH: Final = "A hook wants other arguments for this edit, and they cannot be written as a patch."


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event. A patch becomes the writes and edits that it consists of, because no other system has patches."""
    event = read_document(AGENT_SIDE, raw, environ)
    if event.context.tool != PATCH or event.context.session.server:
        return event
    text = raw_json.text(Members(event.context.arguments).raw("command"))
    if text is None:
        raise ValueError("the patch is not a text")
    first, *others = (_context(event.context, change) for change in changes(text))
    return AgentEvent(event.name, first, tuple(others))


def _context(context: EventContext, change: FileChange) -> EventContext:
    return replace(context, alias=Alias(PATCH, change.tool), arguments=raw_json.encode(change.arguments))


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Codex takes "allow" only together with changed arguments: every other use makes the run fail."""
    if event.context.tool == PATCH and decision.arguments is not None and decision.permission is not Permission.DENY:
        decision = HookDecision(Permission.DENY, _REWRITTEN_PATCH, message=decision.message)
    if event.context.event is Event.PERMISSION_REQUEST:  # Codex discards a decision beside `continue`
        decision = replace(decision, stop=False)
    return claude_agent_side.write_output(event, decision, explicit_allow=False, replacement="")


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("turn_id",)),
    file=".codex/hooks.json",
    can=Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    user_variable="CODEX_HOME",
    harmless_arguments={
        "apply_patch": {"command": "*** Begin Patch\n*** Add File: hookproxy-dry-call.txt\n+harmless\n*** End Patch\n"}
    },
)
