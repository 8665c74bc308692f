"""Claude Code as an agent that runs a hook of another system."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..agent_documents import DocumentSigns
from ..agent_side import AgentSide, Can, DocumentForm, session_of
from ..shared import claude_agent_side
from .hook_file import FORMAT

AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(
        lacks=("turn_id", "timestamp"),
        values={"permission_mode": ("default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions")},
    ),
    file=".claude/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.REPLACE | Can.BLOCK_AFTER,
    form=DocumentForm(session=partial(session_of, project_variable="CLAUDE_PROJECT_DIR")),
    write_output=partial(claude_agent_side.write_output, rewrites_undecided=True),
    user_variable="CLAUDE_CONFIG_DIR",
)
