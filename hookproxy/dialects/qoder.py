"""The hooks of Qoder's CLI: Claude Code's, in settings and with variables of its own."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from ..model.aliases import ToolSpelling
from ..model.hooks import Document, Event, EventContext, HookSpec, Order
from ..policy import matchers
from .agent_side import AgentSide, Can, DocumentForm, session_of
from .dialect import Dialect, HookFile, UserFiles
from .shared import claude_agent_side, claude_document, claude_matchers, command_file, handler_types
from .shared import claude_envelope as envelope
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table

_FOLDERS: Final = (".qoder", ".qoder-cn")
_TOOLS: Final = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "WebFetch", "WebSearch")


def _read_handler(_file: HookFile, name: str, entry: Table) -> Handler | str:
    kind = entry.choice("type", ("command", "http", "prompt", "agent"), "command")
    if kind in ("prompt", "agent"):
        return f"type {kind!r} is not supported: hookproxy has no model to ask"
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell":
        return "PowerShell is not supported"
    if "if" in entry.members and FORMAT.events[name] not in _CALL_EVENTS:
        return "`if` is only for tool events"
    return handler_types.read_http(entry, "allowedEnvVars") if kind == "http" else command_file.read_command(entry)


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    if "if" in entry.members:
        shared_hook_file.compile_member(entry, "if", matchers.permission_rule)
    background = entry.flag("async") or entry.flag("asyncRewake")
    env = tuple(entry.pairs("env")) if hook.type == "command" else ()
    return replace(hook, background=background, env=env, only_if=entry.text("if"))


_CALL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
FORMAT: Final = CommandFile(
    dialect="qoder",
    events=by_name(*_CALL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    unavailable=claude_document.UNAVAILABLE,
    timeouts=Timeouts(600.0),
    entries=Entries(
        keys=(
            "type", "command", "timeout", "shell", "env", "if", "async", "asyncRewake", "rewakeMessage",
            "rewakeSummary", "once", "statusMessage", "url", "headers", "allowedEnvVars",
        ),
        group_keys=("async",),
        grouped=True,
        read_handler=_read_handler,
        finish=_finish,
        typed=True,
        condition="if",
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(matchers.claude_matcher(pattern)),
        triggers=(Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
        notes=claude_matchers.never_matches,
        write="|".join,
    ),
)  # fmt: skip


def write_input(_spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    variables = dict.fromkeys(("QODER_PROJECT_DIR", "CLAUDE_PROJECT_DIR"), context.session.project_dir)
    return Document(shared_input.json_line(claude_document.members(context)), variables)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Qoder's pages on hooks, docs.qoder.com/cli/hooks and /cli/hooks-reference, as of autumn 2026",
    output_fields=envelope.FIELDS,
    order=Order.PIPELINE,  # the pages do not say whether hooks run at once: none may judge what is replaced later
    read_hook_file=FORMAT.read,
    write_input=write_input,
    read_output=partial(envelope.read_output, envelope.Rules()),
    tool_spellings={name: (ToolSpelling(name),) for name in _TOOLS},
    recognises=FORMAT.fits_unversioned,
    recognises_at_home=FORMAT.fits_at_home,
    shape_of="claude",
    folders=_FOLDERS,
    constant_environment=True,
    variables=("QODER_PROJECT_DIR",),
    user_files=tuple(UserFiles(folder, "settings.json") for folder in _FOLDERS),
    project_files=(".qoder/settings.json", ".qoder/settings.local.json"),
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    form=DocumentForm(session=partial(session_of, project_variable="QODER_PROJECT_DIR")),
    file=".qoder/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=partial(claude_agent_side.write_output, replacement=""),
)
