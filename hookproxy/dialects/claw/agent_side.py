"""claw-code as an agent that runs a hook of another system, by what both of its editions do.

A hook before a call may refuse it, one after a call may reject the result, and each may tell the model something.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Event, Permission
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, DocumentForm, HookDecision, HookOutput, text_outcome
from ..shared.output import BLOCKS
from .hook_file import CURRENT, DOCUMENTED, FAILURE_EVENT, TOOLS


def _failed(members: Members) -> bool:
    return members.text("hook_event_name") == FAILURE_EVENT or members.raw("tool_result_is_error") == b"true"


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Standard output is the text for the model, and with exit status 2 the reason of a denial."""
    denies = decision.permission is Permission.DENY
    texts = (decision.reason or "denied by a hook" if denies else "", decision.feedback)
    text = "\n\n".join(filter(None, texts))
    if text.lstrip().startswith(("{", "[")):
        text = f"The hook said: {text}"  # the current edition would read JSON as a decision
    return HookOutput(f"{text}\n".encode() if text else b"", decision.message, BLOCKS if denies else 0)


def _refuse(reason: str) -> HookOutput:
    return HookOutput(f"{reason}\n".encode(), status=BLOCKS)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=DOCUMENTED,
    documents=DocumentSigns(has=("tool_input_json",)),
    form=DocumentForm(
        event_name=lambda name: "PostToolUse" if name == FAILURE_EVENT else name,
        failed=_failed,
        outcome=lambda members, failed: text_outcome(members.text("tool_error", "tool_output"), failed=failed),
    ),
    file=".claw/settings.json",
    can=Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=_write_output,
    write_hook_file=lambda entries: CURRENT.write(".claw/settings.json", entries),
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    refuse=_refuse,
    own_tools=TOOLS,
    user_variable="CLAW_CONFIG_HOME",
)
