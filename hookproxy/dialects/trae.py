"""Trae's hooks: Claude Code's documents and output, in a file of its own, with other names of a few tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order
from ..policy import matchers
from .agent_documents import DocumentSigns
from .agent_side import AgentSide, Can, DocumentForm, session_of
from .dialect import Dialect, HookFile, UserFiles
from .shared import claude_agent_side, claude_matchers, command_file, handler_types
from .shared import claude_envelope as envelope
from .shared import input as shared_input
from .shared.command_file import MATCHES_ALL, CommandFile, Entries, Matchers, Timeouts
from .shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("RunCommand"), ToolSpelling("Bash")),
    "MultiEdit": (ToolSpelling("Edit"), ToolSpelling("MultiEdit")),
    **{
        name: (ToolSpelling(name),) for name in ("Read", "Write", "Edit", "Glob", "Grep", "LS", "WebFetch", "WebSearch")
    },
}
"""Trae's own tools. It imports Claude Code's hooks, and people keep the names in them."""


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Trae's event names and no others."""
    return members.get("version", 1) == 1 and FORMAT.fits(members)


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in Trae's own folder, where people write the events at the top, too, and other names are mistakes."""
    return FORMAT.fits({"hooks": members.get("hooks", members)}, or_none=True, and_others=True)


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler:
    """A command; in Trae's edition for companies, an address."""
    if entry.text("type", "command") == "http":
        return handler_types.read_http(entry, "allowedEnvVars")
    return command_file.read_command(entry)


def _finish(_file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    """Sources differ in what an exit status other than 0 and 2 does: the one that refuses."""
    return replace(hook, fails_closed=hook.event is Event.PRE_TOOL_USE)


def _matcher(pattern: str) -> Callable[[str], bool]:
    return (lambda _name: True) if pattern in MATCHES_ALL else matchers.javascript_regex(pattern)


FORMAT: Final = CommandFile(
    dialect="trae",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.NOTIFICATION),
    unavailable={"UserPromptSubmit": PROMPTS_UNSEEN, "Stop": TURNS_UNSEEN},
    timeouts=Timeouts(30.0),
    entries=Entries(
        keys=("type", "command", "timeout", "url", "headers", "allowedEnvVars"),
        group_keys=("loop_limit",),
        grouped=True,
        also_on_failure=("PostToolUse",),
        read_handler=_read_handler,
        finish=_finish,
        typed=True,
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(_matcher(pattern)),
        triggers=(Event.NOTIFICATION,),
        notes=claude_matchers.never_matches,
    ),
    members={"version": 1},
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    session = context.session
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "hook_event_name": spec.event_name,
        "cwd": shared_input.utf8(session.cwd),
        "workspace_roots": [shared_input.utf8(session.project_dir)],
    }
    if context.tool:
        members |= {"agent_id": "", **shared_input.call_members(context)}
    if context.outcome is not None:
        members["tool_response"] = shared_input.utf8_result(context)
    if context.event is Event.SESSION_START:
        members["source"] = context.trigger
    if context.event is Event.NOTIFICATION:
        members |= {"message": shared_input.utf8(context.message), "notification_type": context.trigger}
    project = dict.fromkeys(("TRAE_PROJECT_DIR", "CLAUDE_PROJECT_DIR"), session.project_dir)
    return Document(shared_input.json_line(members), project)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Trae's hook reference, docs.trae.ai/ide/hook-configuration-reference, as others quote it in "
    "September 2026, and its page for companies, docs.trae.cn/enterprise_automate-actions-with-hooks",
    output_fields=envelope.FIELDS,
    order=Order.PIPELINE,  # the reference does not say whether hooks run at once: none may judge what is replaced later
    read_hook_file=FORMAT.read_hooks_or_events,
    write_input=write_input,
    read_output=partial(envelope.read_output, envelope.Rules()),
    closed_by_field=False,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    shape_of="claude",
    folders=(".trae", ".trae-cn"),
    constant_environment=True,
    variables=("TRAE_PROJECT_DIR",),
    user_files=(UserFiles(".trae", "hooks.json"), UserFiles(".trae-cn", "hooks.json")),
    project_files=(".trae/hooks.json",),
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("session_id", "workspace_roots"), lacks=("cursor_version", "conversation_id")),
    form=DocumentForm(session=partial(session_of, project_variable="TRAE_PROJECT_DIR")),
    file=".trae/hooks.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=partial(claude_agent_side.write_output, replacement=""),
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
)
