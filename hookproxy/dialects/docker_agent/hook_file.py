"""Reads Docker Agent's files into hook specs: `agents.NAME.hooks` of an agent file, or a file with only `hooks`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os.path import join
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names
from ...model.errors import ConfigError
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList, for_names
from ..shared import command_file, re2_regex
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matcher, Timeouts
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN
from ..shared.handler_types import Handler
from ..shared.hook_file import CANNOT_FIRE, Table
from . import output

AGENT: Final = "agent="
"""The beginning of the trait `agent=NAME`, which contains the name of the hook's agent."""

_PATH: Final = {"file_path": "path"}

TOOLS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("shell", {"command": "cmd"}),),
    "Read": (ToolSpelling("read_file", _PATH), ToolSpelling("read_multiple_files", {"file_path": "paths"})),
    "Write": (ToolSpelling("write_file", _PATH),),
    "Edit": (ToolSpelling("edit_file", _PATH),),
    "MultiEdit": (ToolSpelling("edit_file", _PATH),),
    "LS": (ToolSpelling("list_directory"), ToolSpelling("directory_tree")),
    "Grep": (ToolSpelling("search_files_content", {"pattern": "query"}),),
    "WebFetch": (ToolSpelling("fetch"),),
}

TOOL_SPELLINGS: Final = with_claude_names(TOOLS)

_UNSUPPORTED_TYPES: Final = {
    "builtin": "is not supported: it is a function inside Docker Agent",
    "model": "is not supported: hookproxy has no model to ask",
}
_NEWER_KEYS: Final = ("name", "env", "working_dir", "on_error", "strict_output")
_NEWER: Final = "only the dialect docker-agent@current has it"
_TRANSFORM: Final = "tool_response_transform"
_VARIABLE: Final = re.compile(r"\$(?:\{(?:env\.)?(\w+)\}|(\w+))")
_ENV_VARIABLE: Final = re.compile(r"\$\{env\.(\w+)\}")

_MCP: Final = "mcp:"
"""The beginning of the document's matcher for all MCP tools. Here every tool is an MCP tool."""

_BEFORE_CALL: Final = ("tool_input_transform", "pre_tool_use", "tool_guard")
"""In this order. Docker Agent runs guards before pre_tool_use, and again if that rewrites. Here they run last, on what
will run."""
LISTS: Final = {
    "session_start": Event.SESSION_START,
    "session_end": Event.SESSION_END,
    "on_user_input": Event.USER_INPUT,
}
"""The events whose hooks are in a plain list. Those of all others are in groups with a matcher."""

_UNAVAILABLE_EVENTS: Final = for_names({
    PROMPTS_UNSEEN: "user_prompt_submit user_steering_messages_submit user_followup_submit",
    "an MCP server does not see turns, subagents and model calls": (
        "turn_start turn_end before_llm_call after_llm_call stop subagent_stop"
    ),
    INSIDE_AGENT: (
        "pre_compact before_compaction after_compaction on_max_iterations on_agent_switch on_session_resume"
        " worktree_create"
    ),
    "it is about errors and warnings inside the agent, which an MCP server does not see": "notification",
    "it is about errors inside the agent, which an MCP server does not see": "on_error",
    "hookproxy runs no hooks on calls that it allows; its audit log has every decision": "on_tool_approval_decision",
})  # fmt: skip
"""The newer page's other events."""


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has agents of which one has hooks, or only hooks under Docker Agent's event names."""
    agents = members.get("agents")
    if isinstance(agents, dict):
        return any(isinstance(agent, dict) and isinstance(agent.get("hooks"), dict) for agent in agents.values())
    hooks = members.get("hooks")
    return isinstance(hooks, dict) and any(name in hooks for name in DOCUMENTED.events)


def read_hook_file(form: CommandFile, file: HookFile) -> HookList:
    """The hooks of one agent, or of a file that contains only hooks. Raises ConfigError."""
    table, remarks = _hooks_table(form, file)
    if table is None:
        return remarks
    found = shared_hook_file.merge((remarks, *(_read_event(form, file, table, name) for name in table.members)))
    order = [name for name in form.events if name not in LISTS]
    places = {name: place for place, name in enumerate(order)}

    def place_of(hook: HookSpec) -> tuple[int, bool]:
        return places.get(hook.event_name, len(order)), output.PREEMPTS not in hook.traits

    hooks, notes = sorted(found.hooks, key=place_of), list(found.notes)
    transforms = {hook.source for hook in hooks if hook.event_name == _TRANSFORM}
    if len(transforms) > 1 or (transforms and any(hook.event_name == "post_tool_use" for hook in hooks)):
        counts = f"here all hooks after a call get the tool's own output, and the last {_TRANSFORM} counts"
        notes.append(f"{file.path}: {counts}")
    return HookList(tuple(hooks), tuple(notes), found.remarks)


# --- where the hooks are ---


def _agent_of(file: HookFile) -> str:
    agent = file.options.get("agent")
    return "root" if agent is None else str(agent)  # Docker Agent starts with that one


def _hooks_table(form: CommandFile, file: HookFile) -> tuple[Table | None, HookList]:
    """The table of events, if there is one, and sentences about the rest of the file."""
    whole = shared_hook_file.read_document(file.path, file.text)
    if "agents" in whole.members:
        return _hooks_of_agent(file, whole)
    if (agent := file.options.get("agent")) is not None:
        raise ConfigError(file.path, f"there is no agent {agent!r} in it", "it has no agents")
    if "hooks" in whole.members:
        return whole.table("hooks"), HookList(())
    if form is CURRENT:
        settings = whole.table("settings")  # the user's own config.yaml
        if "hooks" in settings.members:
            return settings.table("hooks"), HookList(())
        if not whole.members.keys().isdisjoint(form.events.keys() | form.unavailable.keys()):  # a file of hooks.d
            return whole, HookList(())
    return None, HookList((), remarks=(f"{file.path}: {shared_hook_file.NO_HOOKS}",))


def _hooks_of_agent(file: HookFile, whole: Table) -> tuple[Table | None, HookList]:
    if "hooks" in whole.members:
        raise whole.error("hooks", "is next to agents, where Docker Agent does not read it", "move it into an agent")
    name, agents = _agent_of(file), whole.table("agents")
    if name not in agents.members:
        hint = "it has no agents"
        if known := ", ".join(agents.members):
            hint = f'write agent = "…" in [[use]] with one of {known}'
        near = shared_hook_file.suggestion(name, agents.members)
        raise ConfigError(file.path, f"there is no agent {name!r} in it", near or hint)
    notes = tuple(
        f'{file.path}: agents.{other}.hooks do not run: for them, write agent = "{other}" in [[use]]'
        for other, members in agents.members.items()
        if other != name and isinstance(members, dict) and members.get("hooks")
    )
    agent = agents.table(name)
    if "hooks" not in agent.members:
        return None, HookList((), notes, (f"{file.path}: {agent.path} {shared_hook_file.NO_HOOKS}",))
    return agent.table("hooks"), HookList((), notes)


# --- events, groups and hooks ---


def _read_event(form: CommandFile, file: HookFile, table: Table, name: str) -> HookList:
    if name not in form.events and name not in form.unavailable:
        names = (*form.events, *form.unavailable)
        hint = shared_hook_file.suggestion(name, names) or f"the events are {', '.join(names)}"
        is_newer = name in CURRENT.events or name in CURRENT.unavailable
        raise table.error(name, "is not an event", _NEWER if is_newer else hint)
    entries = _entries(form, table, name)
    if name in form.unavailable:
        reason = f"{file.path}: {table.place(name)} {CANNOT_FIRE}: {form.unavailable[name]}"
        return HookList((), remarks=(reason,) if entries else ())
    if name not in LISTS:
        return shared_hook_file.merge(_read_group(form, file, name, group) for group in entries)
    for entry in entries:
        if "type" not in entry.members and "hooks" in entry.members:
            what = f"is not allowed here: {name} takes a plain list of hooks, without matchers"
            raise entry.error("hooks", what, "write the hooks directly below the event")
    return shared_hook_file.merge(form.read_entry(file, name, entry, entry, Matcher()) for entry in entries)


def _entries(form: CommandFile, table: Table, name: str) -> list[Table]:
    if form is CURRENT and isinstance(table.members[name], dict):
        return [table.table(name)]  # a single entry, without a list
    return table.tables(name)


def _read_group(form: CommandFile, file: HookFile, name: str, group: Table) -> HookList:
    group.require("hooks", 'write {matcher: "…", hooks: [{type: command, command: …}]}')
    matches = shared_hook_file.compile_member(group, "matcher", compile_matcher)
    matcher = Matcher(matches, group.text("matcher"))
    notes = HookList((), tuple(form.unknown_keys(group, ("matcher", "hooks", *form.entries.group_keys), of_group=True)))
    preempts = form is CURRENT and group.flag("preempt_yolo")
    if preempts and name != "pre_tool_use":
        raise group.error("preempt_yolo", "is only for pre_tool_use", "remove it")
    entries = _entries(form, group, "hooks")
    found = shared_hook_file.merge((notes, *(form.read_entry(file, name, group, entry, matcher) for entry in entries)))
    if not preempts:
        return found
    return replace(found, hooks=tuple(replace(hook, traits=hook.traits | {output.PREEMPTS}) for hook in found.hooks))


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """A test of tool names: `*` and an empty pattern match all, any other is a regular expression for the whole name.

    A pattern that contains `mcp:` is tried on `mcp:NAME` as well. Raises ValueError, re.error or OverflowError.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    expression = re2_regex.compile_pattern(pattern)
    if _MCP not in pattern:
        return lambda name: expression.fullmatch(name) is not None
    return lambda name: any(map(expression.fullmatch, (name, _MCP + name)))


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    entry.require("type", "write type: command")
    handler = entry.choice("type", ("command", *_UNSUPPORTED_TYPES), "")
    if handler in _UNSUPPORTED_TYPES:
        return f"type {handler!r} {_UNSUPPORTED_TYPES[handler]}"
    return command_file.read_command(entry)


def _notes_on(_file: HookFile, name: str, entry: Table) -> list[str]:
    limit = shared_hook_file.SESSION_END_TIMEOUT
    if name != "session_end" or entry.seconds("timeout", 0.1) <= limit:
        return []
    return [f"session_end hooks get {limit:g} seconds: the agent has disconnected"]


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with the options of the newer page; hooks with different names are different hooks."""
    on_error, name = entry.choice("on_error", ("warn", "ignore", "block"), "warn"), entry.text("name")
    if on_error == "block" and hook.event_name not in output.CURRENT.blocking:
        error = f"cannot be block: {hook.event_name} hooks cannot block"
        raise entry.error("on_error", error, "write warn or ignore")
    traits = {f"{AGENT}{_agent_of(file)}", f"name={name}" if name else "", output.STRICT * entry.flag("strict_output")}
    return replace(
        hook,
        cwd=_folder(entry.text("working_dir"), file) or hook.cwd,
        env=tuple(
            (key, _ENV_VARIABLE.sub(lambda variable: file.environ.get(variable[1], ""), value))
            for key, value in entry.pairs("env")
        ),
        fails_closed=on_error == "block",
        traits=frozenset(filter(None, traits)),
    )


def _folder(working_dir: str, file: HookFile) -> str:
    """`working_dir` with its variables replaced; a relative path starts in the project."""
    path = _VARIABLE.sub(lambda found: file.environ.get(found[1] or found[2], ""), working_dir)
    if path == "~" or path.startswith("~/"):
        path = file.environ.get("HOME", "~") + path[1:]
    return join(file.project_dir, path) if path else ""


DOCUMENTED: Final = CommandFile(
    dialect="docker-agent",
    events={"pre_tool_use": Event.PRE_TOOL_USE, "post_tool_use": Event.POST_TOOL_USE, **LISTS},
    timeouts=Timeouts(default=60.0, short_session_end=False),
    entries=Entries(
        keys=("type", "command", "timeout"),
        read_handler=_read_handler,
        notes_on=_notes_on,
        key_hints=dict.fromkeys((*_NEWER_KEYS, "preempt_yolo"), _NEWER),
        null_is_absent=False,
    ),
)
"""The hooks page of March 2026."""

CURRENT: Final = replace(
    DOCUMENTED,
    dialect="docker-agent@current",
    events={
        **dict.fromkeys(_BEFORE_CALL, Event.PRE_TOOL_USE),
        "permission_request": Event.PERMISSION_REQUEST,
        _TRANSFORM: Event.POST_TOOL_USE,
        "post_tool_use": Event.POST_TOOL_USE,
        **LISTS,
    },
    unavailable=_UNAVAILABLE_EVENTS,
    entries=replace(
        DOCUMENTED.entries,
        keys=(*DOCUMENTED.entries.keys, *_NEWER_KEYS),
        group_keys=("preempt_yolo",),
        label_key="name",
        also_on_failure=(_TRANSFORM, "post_tool_use"),
        finish=_finish,
        key_hints={},
    ),
)
"""The newer page. A single hook needs no list, and a file may contain only hooks."""
