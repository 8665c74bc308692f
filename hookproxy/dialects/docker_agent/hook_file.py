"""Docker Agent's files as lists of hooks: an agent file's `agents.NAME.hooks`, or a file with nothing but `hooks`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os.path import join
from typing import Final

from msgspec import Struct, field

from ...model.errors import ConfigError
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared.hook_file import Table
from . import go_regex
from .output import PREEMPTS, STRICT

TIMEOUT: Final = 60.0
"""Seconds that a hook has where its entry does not say, as documented."""

AGENT: Final = "agent="
"""The mark `agent=NAME` says whose hook it is."""

_ROOT: Final = "root"
"""The agent that Docker Agent starts with."""

_OTHER_TYPES: Final = {
    "builtin": "is impossible here: it is a function inside Docker Agent",
    "model": "is impossible here: there is no model to ask",
}
_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = ("type", "command", "timeout")
_NEWER_GROUP_KEYS: Final = ("preempt_yolo",)
_NEWER_HOOK_KEYS: Final = ("name", "env", "working_dir", "on_error", "strict_output")
_NEWER: Final = "only docker-agent@current has it"
_GROUP_SHAPE: Final = '{matcher: "…", hooks: [{type: command, command: …}]} is the shape'
_TRANSFORM: Final = "tool_response_transform"
_VARIABLE: Final = re.compile(r"\$(?:\{(?:env\.)?(\w+)\}|(\w+))")
_ENV_VARIABLE: Final = re.compile(r"\$\{env\.(\w+)\}")


class Edition(Struct, frozen=True):
    """What the hooks page of March 2026 and the newer one know differently about files."""

    dialect: str
    groups: Mapping[str, tuple[Event, ...]]
    """The events whose hooks stand in groups with a matcher; hooks of one occasion run in this order."""
    lists: Mapping[str, tuple[Event, ...]]
    """The events whose hooks stand in a plain list."""
    unavailable: Mapping[str, str]
    blocking: frozenset[str]
    """The events that a hook may block."""
    elsewhere: frozenset[str] = frozenset()
    """Events that only the other edition knows."""
    newer: bool = False
    """The newer page's options are known; a hook may stand without a list, and hooks in files of their own."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every event that may stand in a file."""
        return (*self.groups, *self.lists, *self.unavailable)


def read_hook_file(edition: Edition, file: HookFile) -> HookList:
    """The hooks of one agent, or of a file that holds only hooks. Raises ConfigError."""
    reading = _Reading(edition, file)
    reading.read()
    order = list(edition.groups)
    hooks = sorted(reading.hooks, key=lambda hook: (_place(order, hook.event_name), PREEMPTS not in hook.traits))
    return HookList(tuple(hooks), tuple(reading.notes))


def _place(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


class _Reading(Struct):
    """One file while it is read."""

    edition: Edition
    file: HookFile
    agent: str = _ROOT
    hooks: list[HookSpec] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(f"{self.file.path}: {text}")

    def read(self) -> None:
        if (table := self._find()) is not None:
            for name in table.members:
                self._event(table, name)
        transforms = {hook.source for hook in self.hooks if hook.event_name == _TRANSFORM}
        if len(transforms) > 1 or (transforms and any(hook.event_name == "post_tool_use" for hook in self.hooks)):
            self.note(f"here all hooks after a call are told the tool's own output, and the last {_TRANSFORM} counts")

    # --- where hooks stand ---

    def _find(self) -> Table | None:
        whole = shared_hook_file.read_document(self.file.path, self.file.text)
        wanted = self.file.options.get("agent")
        if "agents" in whole.members:
            return self._of_agent(whole, _ROOT if wanted is None else str(wanted))
        if wanted is not None:
            raise ConfigError(self.file.path, f"there is no agent {wanted!r} in it", "it has no agents at all")
        found = self._of_file(whole)
        if found is None:
            self.note("there are no hooks in it")
        return found

    def _of_agent(self, whole: Table, name: str) -> Table | None:
        if "hooks" in whole.members:
            raise whole.error("hooks", "stands beside agents, where Docker Agent reads none", "move it into an agent")
        agents = whole.table("agents")
        if name not in agents.members:
            known = ", ".join(agents.members)
            hint = shared_hook_file.suggestion(name, agents.members) or f'in [[use]], agent = "…" names one of {known}'
            raise ConfigError(self.file.path, f"there is no agent {name!r} in it", hint if known else "it has none")
        self.agent = name
        for other, members in agents.members.items():
            if other != name and isinstance(members, dict) and members.get("hooks"):
                self.note(f'agents.{other}.hooks do not run: in [[use]], agent = "{other}" would ask for them')
        agent = agents.table(name)
        if "hooks" not in agent.members:
            self.note(f"there are no hooks in {agent.path}")
            return None
        return agent.table("hooks")

    def _of_file(self, whole: Table) -> Table | None:
        if "hooks" in whole.members:
            return whole.table("hooks")
        if not self.edition.newer:
            return None
        settings = whole.table("settings")  # the user's own config.yaml
        if "hooks" in settings.members:
            return settings.table("hooks")
        return whole if any(name in whole.members for name in self.edition.names) else None  # a file of hooks.d

    # --- events and groups ---

    def _event(self, table: Table, name: str) -> None:
        edition = self.edition
        if name in edition.groups:
            for group in self._entries(table, name):
                self._group(name, group)
        elif name in edition.lists:
            for entry in self._entries(table, name):
                if "type" not in entry.members and "hooks" in entry.members:
                    raise entry.error(
                        "hooks",
                        f"has no place here: {name} takes hooks without matcher and group",
                        "write the hooks right below the event",
                    )
                self._hook(name, entry, lambda _tool: True, frozenset())
        elif name in edition.unavailable:
            if self._entries(table, name):
                self.note(f"{table.place(name)} cannot fire behind MCP: {edition.unavailable[name]}")
        else:
            newer = f"{_NEWER}" if name in edition.elsewhere else ""
            raise table.error(
                name,
                "is no event",
                newer or shared_hook_file.suggestion(name, edition.names) or f"known: {', '.join(edition.names)}",
            )

    def _entries(self, table: Table, name: str) -> list[Table]:
        if self.edition.newer and isinstance(table.members[name], dict):
            return [table.table(name)]  # one, written without the dash of a list
        return table.tables(name)

    def _group(self, name: str, group: Table) -> None:
        group.require("hooks", _GROUP_SHAPE)
        matches = shared_hook_file.compile_member(group, "matcher", go_regex.tools)
        self._strangers(group, _GROUP_KEYS, _NEWER_GROUP_KEYS)
        preempts = self.edition.newer and group.flag("preempt_yolo")
        if preempts and name != "pre_tool_use":
            raise group.error("preempt_yolo", "is for pre_tool_use only", "leave it out")
        for entry in self._entries(group, "hooks"):
            self._hook(name, entry, matches, frozenset({PREEMPTS} if preempts else ()), group.text("matcher"))

    # --- hooks ---

    def _hook(
        self, name: str, entry: Table, matches: Callable[[str], bool], traits: frozenset[str], matcher: str = ""
    ) -> None:
        entry.require("type", "write type: command")
        handler = entry.choice("type", ("command", *_OTHER_TYPES), "")
        if handler in _OTHER_TYPES:
            self.note(f"{entry.path} does not run: type {handler!r} {_OTHER_TYPES[handler]}")
            return
        entry.require("command")
        command, timeout = entry.text("command"), entry.seconds("timeout", TIMEOUT)
        if not command.strip():
            raise entry.error("command", "is empty", "name a command, or leave the entry out")
        self._strangers(entry, _HOOK_KEYS, _NEWER_HOOK_KEYS)
        self._remarks(name, entry, timeout)
        more = self._options(name, entry) if self.edition.newer else _Options()
        self.hooks += [
            HookSpec(
                dialect=self.edition.dialect,
                source=f"{self.file.path}: {entry.path}",
                event=event,
                label=more.name or shared_hook_file.command_label(command),
                matcher=matcher,
                matches=matches,
                shell=command,
                cwd=more.folder or self.file.project_dir,
                env=more.env,
                timeout=timeout,
                fails_closed=more.blocks,
                event_name=name,
                traits=traits | more.traits | ({AGENT + self.agent} if self.edition.newer else frozenset()),
            )
            for event in (*self.edition.groups.get(name, ()), *self.edition.lists.get(name, ()))
        ]

    def _options(self, name: str, entry: Table) -> _Options:
        on_error = entry.choice("on_error", ("warn", "ignore", "block"), "warn")
        if on_error == "block" and name not in self.edition.blocking:
            raise entry.error("on_error", f"cannot be block: {name} blocks nothing", "write warn or ignore")
        known_by = entry.text("name")
        env, environ = entry.table("env"), self.file.environ
        traits = {f"name={known_by}"} if known_by else set()  # hooks of different names are different hooks
        return _Options(
            name=known_by,
            folder=_folder(entry.text("working_dir"), self.file),
            env=tuple(
                (key, _ENV_VARIABLE.sub(lambda found: environ.get(found[1], ""), env.text(key))) for key in env.members
            ),
            blocks=on_error == "block",
            traits=frozenset(traits | ({STRICT} if entry.flag("strict_output") else set())),
        )

    def _remarks(self, name: str, entry: Table, timeout: float) -> None:
        """What about a hook that runs is not as its author may think."""
        if name == "session_end" and "timeout" in entry.members and timeout > shared_hook_file.SESSION_END_TIMEOUT:
            limit = shared_hook_file.SESSION_END_TIMEOUT
            self.note(f"{entry.place('timeout')}: the agent has gone by then, and session_end gets {limit:g} seconds")
        elif timeout > shared_hook_file.LONG_TIMEOUT:
            self.note(f"{entry.path}: a timeout of {timeout:g} seconds is longer than agents wait for a call")

    def _strangers(self, table: Table, known: tuple[str, ...], newer: tuple[str, ...]) -> None:
        """Keys that do nothing here; Docker Agent itself refuses what it does not know."""
        for key, hint in table.unknown((*known, *newer) if self.edition.newer else known).items():
            why = _NEWER if key in newer else hint
            self.note(f"{table.place(key)} is not known and ignored" + (f": {why}" if why else ""))


class _Options(Struct, frozen=True):
    """What only the newer page lets a hook have."""

    name: str = ""
    folder: str = ""
    env: tuple[tuple[str, str], ...] = ()
    blocks: bool = False
    traits: frozenset[str] = frozenset()


def _folder(written: str, file: HookFile) -> str:
    """`working_dir` with its variables filled in; a relative one starts from the project."""
    filled = _VARIABLE.sub(lambda found: file.environ.get(found[1] or found[2], ""), written)
    if filled == "~" or filled.startswith("~/"):
        filled = file.environ.get("HOME", "~") + filled[1:]
    return join(file.project_dir, filled) if filled else ""
