"""iFlow CLI's hooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order
from ..policy import matchers
from ..processes import environment
from .agent_side import AgentEvent, AgentSide, Can, DocumentForm, output_by_status, read_document, session_of
from .dialect import Dialect, HookFile, UserFiles
from .shared import claude_matchers, exit_status
from .shared import input as shared_input
from .shared.command_file import NO_TIMEOUT, CommandFile, Entries, Matchers, Timeouts
from .shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.hook_file import Table

ALIASES: Final = {
    "run_shell_command": ("shell", "Shell", "bash", "Bash"),
    "replace": ("Edit", "edit", "Write", "write"),
    "multi_edit": ("MultiEdit", "multiEdit"),
    "write_file": ("write", "create", "save", "Write"),
    "read_file": ("read", "Read"),
    "search_file_content": ("grep", "search", "Grep"),
    "list_directory": ("ls", "list", "LS"),
}
"""iFlow CLI's own tools with their aliases, on which matchers are tried, too: the page's, and Claude Code's names."""


def _named(*tools: str) -> tuple[ToolSpelling, ...]:
    return tuple(ToolSpelling(name) for tool in tools for name in (tool, *ALIASES[tool]))


TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": _named("run_shell_command"),
    "Edit": _named("replace"),
    "MultiEdit": _named("multi_edit", "replace"),
    "Write": _named("write_file"),
    "Read": _named("read_file"),
    "Grep": _named("search_file_content"),
    "LS": _named("list_directory"),
}
_REGEX: Final = re.compile(r"[|\\^$.*+?()\[\]{}]")


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """All, a regular expression if it has a character of one, else a name; an invalid expression is a name."""
    if pattern in ("", "*"):
        return lambda _name: True
    if not _REGEX.search(pattern):
        return lambda name: name == pattern
    try:
        return matchers.javascript_regex(pattern)
    except re.error as error:
        if not matchers.is_no_expression(error):
            raise
        return lambda name: name == pattern


def _finish(_file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    """A hook before a call that has no exit status, because it was killed or took too long, refuses the call.

    Any status but 0 does, and the page does not say what happens without one.
    """
    return replace(hook, fails_closed=hook.event is Event.PRE_TOOL_USE)


FORMAT: Final = CommandFile(
    dialect="iflow",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "SetUpEnvironment": "the agent describes its environment to the model itself",
        "Stop": TURNS_UNSEEN,
        "SubagentStop": TURNS_UNSEEN,
    },
    timeouts=Timeouts(NO_TIMEOUT),
    entries=Entries(
        keys=("type", "command", "timeout"), grouped=True, also_on_failure=("PostToolUse",), finish=_finish, typed=True
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(compile_matcher(pattern)),
        triggers=(Event.SESSION_START,),
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values. A tool of iFlow CLI's own has its real name, not an alias."""
    session = context.session
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": spec.event_name,
    }
    env = {"IFLOW_SESSION_ID": session.id, "IFLOW_CWD": session.cwd, "IFLOW_HOOK_EVENT_NAME": spec.event_name}
    if context.tool:
        seen = context.tool_name
        own = next((tool for tool, names in ALIASES.items() if seen in names), seen) if context.alias else seen
        members |= {"tool_name": shared_input.utf8(own), "tool_input": msgspec.Raw(context.arguments)}
        aliases = msgspec.json.encode(ALIASES.get(own, ()) if context.alias else ()).decode()
        env |= {"IFLOW_TOOL_NAME": own, "IFLOW_TOOL_ALIASES": aliases}
        env["IFLOW_TOOL_ARGS"] = context.arguments.decode(errors="replace")
    if context.outcome is not None:
        members["tool_response"] = shared_input.utf8_result(context)
    if context.event is Event.SESSION_START:
        env["IFLOW_SESSION_SOURCE"] = context.trigger
    if context.event is Event.NOTIFICATION:
        members["message"] = shared_input.utf8(context.message)
        env["IFLOW_NOTIFICATION_MESSAGE"] = context.message
    return Document(stdin=shared_input.json_line(members), env=env, cut=environment.cuts(env))


_RULES: Final = exit_status.ExitStatusRules(
    denies=lambda code: code != 0,  # "Non-zero return code blocks tool execution"
    shows=lambda _spec: True,  # "Standard output is displayed to user"
)

DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="iFlow CLI's page on hooks, platform.iflow.cn/en/cli/examples/hooks, as of 2026",
    order=Order.TOGETHER,
    write_input=write_input,
    read_output=partial(exit_status.read_output, _RULES),
    closed_by_field=False,
    tool_spellings=TOOL_SPELLINGS,
    shape_of="claude",
    folders=(".iflow",),
    variables=(
        "IFLOW_CWD",
        "IFLOW_HOOK_EVENT_NAME",
        "IFLOW_NOTIFICATION_MESSAGE",
        "IFLOW_SESSION_ID",
        "IFLOW_SESSION_SOURCE",
        "IFLOW_TOOL_ALIASES",
        "IFLOW_TOOL_ARGS",
        "IFLOW_TOOL_NAME",
        "IFLOW_TRANSCRIPT_PATH",
        "IFLOW_USER_PROMPT",
    ),
    user_files=(UserFiles(".iflow", "settings.json"),),
    project_files=(".iflow/settings.json",),
)


_VARIABLES: Final = {
    "session_id": "IFLOW_SESSION_ID",
    "cwd": "IFLOW_CWD",
    "hook_event_name": "IFLOW_HOOK_EVENT_NAME",
    "tool_name": "IFLOW_TOOL_NAME",
    "tool_input": "IFLOW_TOOL_ARGS",
    "source": "IFLOW_SESSION_SOURCE",
    "message": "IFLOW_NOTIFICATION_MESSAGE",
}
"""Members of Claude Code's document, and the variables with their values: of the document, the page shows only
`tool_input`."""


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of iFlow CLI and in its variables. Raises ValueError."""
    from_variables = {member: environ[name] for member, name in _VARIABLES.items() if name in environ}
    members = {**from_variables, **raw_json.fields(raw.strip() or b"{}")}
    event = read_document(AGENT_SIDE, raw_json.encode(members), environ)
    if event.context.tool and "tool_input" not in members:
        raise ValueError("neither the document nor IFLOW_TOOL_ARGS has the arguments of the call")
    return event


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    form=DocumentForm(session=partial(session_of, project_variable="IFLOW_CWD")),
    file=".iflow/settings.json",
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
)
