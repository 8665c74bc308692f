"""CodeBuddy's hooks, of its CLI and its IDE plugins: Claude Code's, in settings and with variables of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Order, Verdict
from ..policy import matchers
from .agent_side import AgentSide, Can, DocumentForm, session_of
from .dialect import Dialect, Effect, HookFile, UserFiles
from .shared import claude_agent_side, claude_document, claude_matchers, command_file, handler_types, model_hooks
from .shared import claude_envelope as envelope
from .shared import input as shared_input
from .shared.command_file import MATCHES_ALL, CommandFile, Entries, Matchers, Timeouts
from .shared.events import by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("Bash"), ToolSpelling("execute_command")),
    "Read": (ToolSpelling("Read"), ToolSpelling("read_file")),
    "Write": (ToolSpelling("Write"), ToolSpelling("write_to_file")),
    "Edit": (ToolSpelling("Edit"), ToolSpelling("replace_in_file")),
    "MultiEdit": (ToolSpelling("MultiEdit"), ToolSpelling("replace_in_file")),
    **{name: (ToolSpelling(name),) for name in ("Glob", "Grep", "WebFetch", "WebSearch")},
}
"""The own tools of the CLI, and of the IDE plugins. The arguments of the latter, but for commands, are not known."""


def _matcher(pattern: str) -> Callable[[str], bool]:
    return (lambda _name: True) if pattern in MATCHES_ALL else matchers.javascript_regex(pattern)


def _read_handler(file: HookFile, name: str, entry: Table) -> Handler | str:
    kind = entry.choice("type", ("command", "http", "prompt", "agent"), "command")
    if kind in model_hooks.TIMEOUTS:
        return model_hooks.read_model_hook(file, entry, FORMAT.events[name], kind)
    return handler_types.read_http(entry, "allowedEnvVars") if kind == "http" else command_file.read_command(entry)


FORMAT: Final = CommandFile(
    dialect="codebuddy",
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
    unavailable=claude_document.UNAVAILABLE,
    timeouts=Timeouts(60.0),
    entries=Entries(
        keys=(
            "type",
            "command",
            "timeout",
            "url",
            "headers",
            "allowedEnvVars",
            "async",
            "once",
            "statusMessage",
            *model_hooks.KEYS,
        ),
        grouped=True,
        read_handler=_read_handler,
        finish=lambda _file, entry, hook: replace(hook, background=entry.flag("async")),
        typed=True,
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(_matcher(pattern)),
        triggers=(Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
        notes=claude_matchers.never_matches,
    ),
)


def write_input(_spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    variables = dict.fromkeys(("CODEBUDDY_PROJECT_DIR", "CLAUDE_PROJECT_DIR"), context.session.project_dir)
    return Document(shared_input.json_line(claude_document.members(context)), variables)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. The IDE plugins call the arguments `modifiedInput`, the CLI `updatedInput`."""
    return envelope.read_output(envelope.Rules(), spec, replace(result, stdout=_as_of_cli(result.stdout)))


def _as_of_cli(stdout: bytes) -> bytes:
    if b'"modifiedInput"' not in stdout:
        return stdout
    try:
        output = raw_json.fields(stdout)
        specific = raw_json.fields(output["hookSpecificOutput"])
    except (ValueError, KeyError):  # read as it is: what is not JSON never counts as an approval
        return stdout
    if "modifiedInput" not in specific or "updatedInput" in specific:
        return stdout
    specific["updatedInput"] = specific.pop("modifiedInput")
    return raw_json.encode(output | {"hookSpecificOutput": specific})


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="CodeBuddy Code's reference of hooks, codebuddy.ai/docs/cli/hooks, as of August 2026, and Tencent "
    "Cloud's page on those of its IDE plugins, document 1256/77296, as of March 2026",
    output_fields={**envelope.FIELDS, "hookSpecificOutput.modifiedInput": Effect.REWRITES},
    order=Order.PARALLEL,
    read_hook_file=FORMAT.read,
    write_input=write_input,
    read_output=read_output,
    tool_spellings=TOOL_SPELLINGS,
    recognises=FORMAT.fits_unversioned,
    recognises_at_home=FORMAT.fits_at_home,
    shape_of="claude",
    folders=(".codebuddy",),
    constant_environment=True,
    variables=("CODEBUDDY_PROJECT_DIR",),
    user_files=(UserFiles(".codebuddy", "settings.json"),),
    project_files=(".codebuddy/settings.json", ".codebuddy/settings.local.json"),
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    form=DocumentForm(session=partial(session_of, project_variable="CODEBUDDY_PROJECT_DIR")),
    file=".codebuddy/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=partial(claude_agent_side.write_output, replacement=""),
)
