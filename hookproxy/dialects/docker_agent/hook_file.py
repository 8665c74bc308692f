"""Reads Docker Agent's files into hook specs: `agents.NAME.hooks` of an agent file, or a file with only `hooks`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os.path import join
from typing import Final

from msgspec import Struct, field

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names
from ...model.errors import ConfigError
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels, re2_regex
from ..shared.events import AFTER_CALL, INSIDE_AGENT, PROMPTS_UNSEEN, because
from ..shared.hook_file import CANNOT_FIRE, Table
from . import output

TIMEOUT: Final = 60.0
"""Seconds for an entry without a timeout, as documented."""

AGENT: Final = "agent="
"""The beginning of the trait `agent=NAME`, which contains the name of the hook's agent."""

_ROOT: Final = "root"
"""The agent that Docker Agent starts with."""

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
"""Handler types that hookproxy cannot run, each with the reason."""

_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = ("type", "command", "timeout")
_NEWER_GROUP_KEYS: Final = ("preempt_yolo",)
_NEWER_HOOK_KEYS: Final = ("name", "env", "working_dir", "on_error", "strict_output")
_NEWER: Final = "only the dialect docker-agent@current has it"
_GROUP_HINT: Final = 'write {matcher: "…", hooks: [{type: command, command: …}]}'
_TRANSFORM: Final = "tool_response_transform"
_VARIABLE: Final = re.compile(r"\$(?:\{(?:env\.)?(\w+)\}|(\w+))")
_ENV_VARIABLE: Final = re.compile(r"\$\{env\.(\w+)\}")


_MCP: Final = "mcp:"
"""The beginning of the document's matcher for all MCP tools. Here every tool is an MCP tool."""


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


class FileFormat(Struct, frozen=True):
    """What a file of one of the two dialects may contain."""

    dialect: str
    groups: Mapping[str, tuple[Event, ...]]
    """The events whose hooks are in groups with a matcher. Hooks on the same `Event` run in this order."""
    lists: Mapping[str, tuple[Event, ...]]
    """The events whose hooks are in a plain list."""
    unavailable: Mapping[str, str]
    blocking: frozenset[str]
    """The events that a hook may block."""
    only_in_other: frozenset[str] = frozenset()
    """The events that only the other dialect has."""
    newer: bool = False
    """It has the newer page's options. A single hook needs no list, and a file may contain only hooks."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all events that a file may contain."""
        return (*self.groups, *self.lists, *self.unavailable)


_BEFORE_CALL: Final = (Event.PRE_TOOL_USE,)
_LISTS: Final = {
    "session_start": (Event.SESSION_START,),
    "session_end": (Event.SESSION_END,),
    "on_user_input": (Event.USER_INPUT,),
}
_CURRENT_GROUPS: Final = {
    "tool_input_transform": _BEFORE_CALL,
    "pre_tool_use": _BEFORE_CALL,
    # Docker Agent runs guards before pre_tool_use, and again if that rewrites. Here they run last, on what will run.
    "tool_guard": _BEFORE_CALL,
    "permission_request": (Event.PERMISSION_REQUEST,),
    _TRANSFORM: AFTER_CALL,
    "post_tool_use": AFTER_CALL,
}

_UNAVAILABLE_EVENTS: Final = because({
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

DOCUMENTED: Final = FileFormat(
    dialect="docker-agent",
    groups={"pre_tool_use": _BEFORE_CALL, "post_tool_use": (Event.POST_TOOL_USE,)},
    lists=_LISTS,
    unavailable={},
    blocking=output.DOCUMENTED.blocking,
    only_in_other=frozenset({*_CURRENT_GROUPS, *_UNAVAILABLE_EVENTS}),
)
"""The hooks page of March 2026."""

CURRENT: Final = FileFormat(
    dialect="docker-agent@current",
    groups=_CURRENT_GROUPS,
    lists=_LISTS,
    unavailable=_UNAVAILABLE_EVENTS,
    blocking=output.CURRENT.blocking,
    newer=True,
)
"""The newer page."""


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has agents of which one has hooks, or only hooks under Docker Agent's event names."""
    agents = members.get("agents")
    if isinstance(agents, dict):
        return any(isinstance(agent, dict) and isinstance(agent.get("hooks"), dict) for agent in agents.values())
    hooks = members.get("hooks")
    return isinstance(hooks, dict) and any(name in hooks for name in (*DOCUMENTED.groups, *DOCUMENTED.lists))


def read_hook_file(file_format: FileFormat, file: HookFile) -> HookList:
    """The hooks of one agent, or of a file that contains only hooks. Raises ConfigError."""
    reader = _Reader(file_format, file)
    reader.read()
    order = list(file_format.groups)
    hooks = sorted(reader.hooks, key=lambda hook: (_index(order, hook.event_name), output.PREEMPTS not in hook.traits))
    return HookList(tuple(hooks), tuple(reader.notes), tuple(reader.remarks))


def _index(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


class _Reader(Struct):
    """Reads one file."""

    file_format: FileFormat
    file: HookFile
    agent: str = _ROOT
    hooks: list[HookSpec] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(f"{self.file.path}: {text}")

    def remark(self, text: str) -> None:
        self.remarks.append(f"{self.file.path}: {text}")

    def read(self) -> None:
        if (table := self._hooks_table()) is not None:
            for name in table.members:
                self._read_event(table, name)
        transforms = {hook.source for hook in self.hooks if hook.event_name == _TRANSFORM}
        if len(transforms) > 1 or (transforms and any(hook.event_name == "post_tool_use" for hook in self.hooks)):
            self.note(f"here all hooks after a call get the tool's own output, and the last {_TRANSFORM} counts")

    # --- where the hooks are ---

    def _hooks_table(self) -> Table | None:
        whole = shared_hook_file.read_document(self.file.path, self.file.text)
        agent = self.file.options.get("agent")
        if "agents" in whole.members:
            return self._hooks_of_agent(whole, _ROOT if agent is None else str(agent))
        if agent is not None:
            raise ConfigError(self.file.path, f"there is no agent {agent!r} in it", "it has no agents")
        found = self._hooks_of_file(whole)
        if found is None:
            self.remark("contains no hooks")
        return found

    def _hooks_of_agent(self, whole: Table, name: str) -> Table | None:
        if "hooks" in whole.members:
            raise whole.error(
                "hooks", "is next to agents, where Docker Agent does not read it", "move it into an agent"
            )
        agents = whole.table("agents")
        if name not in agents.members:
            hint = "it has no agents"
            if known := ", ".join(agents.members):
                hint = f'write agent = "…" in [[use]] with one of {known}'
            near = shared_hook_file.suggestion(name, agents.members)
            raise ConfigError(self.file.path, f"there is no agent {name!r} in it", near or hint)
        self.agent = name
        for other, members in agents.members.items():
            if other != name and isinstance(members, dict) and members.get("hooks"):
                self.note(f'agents.{other}.hooks do not run: for them, write agent = "{other}" in [[use]]')
        agent = agents.table(name)
        if "hooks" not in agent.members:
            self.remark(f"{agent.path} contains no hooks")
            return None
        return agent.table("hooks")

    def _hooks_of_file(self, whole: Table) -> Table | None:
        if "hooks" in whole.members:
            return whole.table("hooks")
        if not self.file_format.newer:
            return None
        settings = whole.table("settings")  # the user's own config.yaml
        if "hooks" in settings.members:
            return settings.table("hooks")
        return whole if any(name in whole.members for name in self.file_format.names) else None  # a file of hooks.d

    # --- events and groups ---

    def _read_event(self, table: Table, name: str) -> None:
        file_format = self.file_format
        if name in file_format.groups:
            for group in self._entries(table, name):
                self._read_group(name, group)
        elif name in file_format.lists:
            for entry in self._entries(table, name):
                if "type" not in entry.members and "hooks" in entry.members:
                    raise entry.error(
                        "hooks",
                        f"is not allowed here: {name} takes a plain list of hooks, without matchers",
                        "write the hooks directly below the event",
                    )
                self._read_hook(name, entry, lambda _tool: True, frozenset())
        elif name in file_format.unavailable:
            if self._entries(table, name):
                self.remark(f"{table.place(name)} {CANNOT_FIRE}: {file_format.unavailable[name]}")
        else:
            hint = (
                shared_hook_file.suggestion(name, file_format.names) or f"the events are {', '.join(file_format.names)}"
            )
            raise table.error(name, "is not an event", _NEWER if name in file_format.only_in_other else hint)

    def _entries(self, table: Table, name: str) -> list[Table]:
        if self.file_format.newer and isinstance(table.members[name], dict):
            return [table.table(name)]  # a single entry, without a list
        return table.tables(name)

    def _read_group(self, name: str, group: Table) -> None:
        group.require("hooks", _GROUP_HINT)
        matches = shared_hook_file.compile_member(group, "matcher", compile_matcher)
        self._note_unknown_keys(group, _GROUP_KEYS, _NEWER_GROUP_KEYS)
        preempts = self.file_format.newer and group.flag("preempt_yolo")
        if preempts and name != "pre_tool_use":
            raise group.error("preempt_yolo", "is only for pre_tool_use", "remove it")
        traits = frozenset({output.PREEMPTS} if preempts else ())
        for entry in self._entries(group, "hooks"):
            self._read_hook(name, entry, matches, traits, group.text("matcher"))

    # --- hooks ---

    def _read_hook(
        self, name: str, entry: Table, matches: Callable[[str], bool], traits: frozenset[str], matcher: str = ""
    ) -> None:
        entry.require("type", "write type: command")
        handler = entry.choice("type", ("command", *_UNSUPPORTED_TYPES), "")
        if handler in _UNSUPPORTED_TYPES:
            self.note(f"{entry.path} does not run: type {handler!r} {_UNSUPPORTED_TYPES[handler]}")
            return
        entry.require("command")
        command, timeout = entry.text("command"), entry.seconds("timeout", TIMEOUT)
        if not command.strip():
            raise entry.error("command", "is empty", "write a command, or remove the entry")
        self._note_unknown_keys(entry, _HOOK_KEYS, _NEWER_HOOK_KEYS)
        self._note_timeout(name, entry, timeout)
        options = self._options(name, entry) if self.file_format.newer else _Options()
        self.hooks += [
            HookSpec(
                dialect=self.file_format.dialect,
                source=f"{self.file.path}: {entry.path}",
                event=event,
                label=options.name or labels.command_label(command),
                matcher=matcher,
                matches=matches,
                shell=command,
                cwd=options.folder or self.file.project_dir,
                env=options.env,
                timeout=timeout,
                fails_closed=options.blocks,
                event_name=name,
                traits=traits | options.traits | ({AGENT + self.agent} if self.file_format.newer else frozenset()),
            )
            for event in (*self.file_format.groups.get(name, ()), *self.file_format.lists.get(name, ()))
        ]

    def _options(self, name: str, entry: Table) -> _Options:
        on_error = entry.choice("on_error", ("warn", "ignore", "block"), "warn")
        if on_error == "block" and name not in self.file_format.blocking:
            raise entry.error("on_error", f"cannot be block: {name} hooks cannot block", "write warn or ignore")
        hook_name = entry.text("name")
        env, environ = entry.table("env"), self.file.environ
        traits = {f"name={hook_name}"} if hook_name else set()  # hooks with different names are different hooks
        return _Options(
            name=hook_name,
            folder=_folder(entry.text("working_dir"), self.file),
            env=tuple(
                (key, _ENV_VARIABLE.sub(lambda found: environ.get(found[1], ""), env.text(key))) for key in env.members
            ),
            blocks=on_error == "block",
            traits=frozenset(traits | ({output.STRICT} if entry.flag("strict_output") else set())),
        )

    def _note_timeout(self, name: str, entry: Table, timeout: float) -> None:
        """Note a timeout that does not work as its author may expect."""
        if name == "session_end" and "timeout" in entry.members and timeout > shared_hook_file.SESSION_END_TIMEOUT:
            limit = shared_hook_file.SESSION_END_TIMEOUT
            self.note(f"{entry.place('timeout')}: session_end hooks get {limit:g} seconds: the agent has disconnected")
            return
        for note in shared_hook_file.long_timeout_notes(timeout):
            self.note(f"{entry.path}: {note}")

    def _note_unknown_keys(self, table: Table, known: tuple[str, ...], newer: tuple[str, ...]) -> None:
        """Note the keys that have no effect here. Docker Agent itself refuses unknown keys."""
        for key, hint in table.unknown((*known, *newer) if self.file_format.newer else known).items():
            explanation = _NEWER if key in newer else hint
            self.note(f"{table.place(key)} is unknown and ignored" + (f": {explanation}" if explanation else ""))


class _Options(Struct, frozen=True):
    """The options of a hook that only the newer page has."""

    name: str = ""
    folder: str = ""
    env: tuple[tuple[str, str], ...] = ()
    blocks: bool = False
    traits: frozenset[str] = frozenset()


def _folder(working_dir: str, file: HookFile) -> str:
    """`working_dir` with its variables replaced; a relative path starts in the project."""
    path = _VARIABLE.sub(lambda found: file.environ.get(found[1] or found[2], ""), working_dir)
    if path == "~" or path.startswith("~/"):
        path = file.environ.get("HOME", "~") + path[1:]
    return join(file.project_dir, path) if path else ""
