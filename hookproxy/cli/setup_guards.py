"""What is to guard the servers that `setup` wraps: hook files that it finds, and the hookproxy.toml that names them.

A person's own hook files become `[[use]]` tables of that person's hookproxy.toml, so that every verb knows the policy
in force. Those of a project are named by `--hooks`, in front of that project's servers only. An agent that runs such
hooks itself is not given them alone: they would run twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from ..config.load import Loaded
from ..dialects.dialect import Group
from ..dialects.own import OWN
from ..model.settings import OnFailure
from ..wrapping import edit_plan, files
from ..wrapping.agent_files import AgentFile
from ..wrapping.diff import unified
from ..wrapping.files import Snapshot
from ..wrapping.find_servers import Entry
from ..wrapping.known_agents import ConfigFile
from ..wrapping.known_hook_files import FoundHookFile
from ..wrapping.syntax_tree import Edit
from ..wrapping.use_tables import UseTable, inserted_text
from ..wrapping.written import Written
from . import wrap
from .common import create, working_directory
from .init import STARTERS, write_starter
from .own_file import CONFIG, schema_directive, user_config_folder

STARTER: Final = STARTERS["guard"]
"""What is offered to a person who has no hooks at all."""


class Guards(Struct, frozen=True):
    """What is to guard the servers."""

    loaded: Loaded
    """The configuration without the hook files that were found."""
    own: tuple[FoundHookFile, ...] = ()
    """The person's own hook files that are not in the configuration yet."""
    added: tuple[FoundHookFile, ...] = ()
    """Those of them that the configuration is to name: an agent with servers does not run them itself."""
    project: tuple[FoundHookFile, ...] = ()
    """Those of the project."""
    starter_folder: str = ""
    """The folder into which the starter is to be written; empty: it is not."""
    broken: bool = False
    """True if one of the person's own hook files cannot be used."""
    fails_closed: bool = False
    """A hook of another system that fails refuses the call."""

    @property
    def config_path(self) -> str:
        """The hookproxy.toml that wrapped servers read; empty if there is none."""
        if self.loaded.path or not (self.added or self.starter_folder):
            return self.loaded.path
        return os.path.join(user_config_folder(), CONFIG)

    @property
    def has_any(self) -> bool:
        """True if anything guards any server."""
        return bool(self.own or self.project or self.starter_folder or wrap.has_hooks(self.loaded))

    @property
    def follows_documents(self) -> bool:
        """True if hooks of other systems could let a call pass when they fail, because their documents say so."""
        return bool(self.added or self.project or any(map(self._is_open, self.loaded.groups)))

    def _is_open(self, group: Group) -> bool:
        """True if the group has another system's hooks, and no configuration says what their failures mean."""
        settings = self.loaded.settings
        return group.dialect is not OWN and group.on_failure is None and settings.on_failure is OnFailure.DIALECT

    def needs_option(self, hooks: Sequence[str]) -> bool:
        """True if `--fail-closed` is needed beside these `--hooks`: a `[[use]]` table says it itself."""
        return self.fails_closed and bool(hooks or any(map(self._is_open, self.loaded.groups)))


def hooks_for(file: ConfigFile, guards: Guards, shared: bool) -> tuple[list[str], list[str], bool]:
    """The `--hooks` for a configuration, sentences about it, and whether anything would guard its servers.

    In a file that git shares, the project's hook files are named relative to the project, where agents start a
    project's servers.
    """
    hooks, notes = [], []
    for hook_file in guards.project if file.in_project else ():
        if runs_it := _runs_itself(file, hook_file.dialect):
            notes.append(f"{runs_it} runs the hooks of {hook_file.path} itself: they are left out here")
        elif shared:
            hooks.append(f"{hook_file.dialect}={os.path.relpath(hook_file.path, working_directory())}")
        else:
            hooks.append(hook_file.option)
    configured = [(hook_file.path, hook_file.dialect) for hook_file in guards.own]
    configured += [(group.source, group.dialect.name) for group in guards.loaded.groups]
    repeated = {path: agent for path, dialect in configured if (agent := _runs_itself(file, dialect))}
    has_others = len(repeated) < len({path for path, _ in configured})
    guarded = bool(hooks or guards.starter_folder or guards.loaded.settings.has_rules or has_others)
    for path, agent in repeated.items():
        if guarded:
            notes.append(f"{agent} also runs its own hooks itself: those of {path} may run twice")
        else:
            notes.append(f"{agent} runs the hooks of {path} itself: they are left out here")
    return hooks, notes, guarded


def _runs_itself(file: ConfigFile, dialect: str) -> str:
    """The agents of this configuration that run such hooks themselves; empty: none does."""
    return " and ".join(agent.title for agent in file.agents if agent.dialect == dialect.partition("@")[0])


def needed(own: Iterable[FoundHookFile], found: Sequence[AgentFile]) -> tuple[FoundHookFile, ...]:
    """Those of the hook files that at least one of these agents does not run itself.

    If all servers are wrapped, those are left out that an entry names itself: they would run twice.
    """
    with_servers = [file for file in found if file.has_servers]
    is_done = not any(map(open_entries, found))
    present = [edit_plan.wrapping(entry) for file in found for entry in wrapped_entries(file)] if is_done else []
    named = {option for wrapping in present if wrapping for option in wrapping.options.hooks}
    return tuple(
        hook_file
        for hook_file in own
        if not all(_runs_itself(file.config_file, hook_file.dialect) for file in with_servers)
        and hook_file.option not in named
    )


def open_entries(file: AgentFile) -> list[Entry]:
    """The servers that can be wrapped, and are not wrapped yet."""
    if (configuration := file.configuration) is None:
        return []
    why_not = edit_plan.why_not(configuration)
    return [entry for entry in configuration.entries if not (edit_plan.wrapping(entry) or entry.key_path in why_not)]


def wrapped_entries(file: AgentFile) -> list[Entry]:
    """The servers that are wrapped already."""
    entries = file.configuration.entries if file.configuration is not None else ()
    return [entry for entry in entries if edit_plan.wrapping(entry)]


class PlannedConfig(Struct, frozen=True):
    """A hookproxy.toml with the `[[use]]` tables that are to be added to it."""

    path: str
    inserted: str
    snapshot: Snapshot | None = None
    """The file as it was read; None: it is to be created."""

    @property
    def text(self) -> str:
        """Its text before."""
        return self.snapshot.text if self.snapshot else schema_directive()


def plan_config(guards: Guards) -> PlannedConfig | None:
    """Plan the `[[use]]` tables for the person's own hook files; None: there are none. Raises UserError."""
    if not guards.added:
        return None
    tables = [UseTable(hook_file.path, hook_file.dialect, guards.fails_closed) for hook_file in guards.added]
    path = guards.config_path
    snapshot = files.read(path) if os.path.lexists(path) else None
    planned = PlannedConfig(path, "", snapshot)
    return PlannedConfig(path, inserted_text(path, planned.text, tables), snapshot)


def diff(planned: PlannedConfig) -> list[str]:
    """The lines that show what is to be added."""
    if planned.snapshot is None:
        return unified(planned.path, "", [Edit(0, 0, planned.text + planned.inserted)])
    return unified(planned.path, planned.text, [Edit(len(planned.text), len(planned.text), planned.inserted)])


def write_config(planned: PlannedConfig) -> None:
    """Write the tables, and record them. Raises UserError; then the file is unchanged."""
    whole, folders = planned.text + planned.inserted, []
    undo = ["rm", planned.path]
    if planned.snapshot is None:
        folders = create({planned.path: whole}, "try again")  # it was not there a moment ago
        wrap.report(f"wrote {planned.path}")
    else:
        backup = files.replace(planned.snapshot, whole)
        undo = ["mv", backup, planned.path]
        wrap.report(f"{planned.path}: [[use]] added; backup: {backup}")

    def record(written: Written) -> Written:
        if planned.snapshot is None:
            written = written.with_created({planned.path: planned.text}, folders)
        return written.with_inserted(planned.path, planned.inserted)

    wrap.remember(record, *undo)


def write_first_guard(folder: str) -> None:
    """Write the starter, and record it. Raises UserError; then nothing was written."""
    texts, folders = write_starter(STARTER, folder)
    wrap.report(f"wrote {os.path.join(folder, CONFIG)}")
    wrap.remember(lambda written: written.with_created(texts, folders), "rm", *texts)
