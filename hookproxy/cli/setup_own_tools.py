"""The guard in `setup`: the agents that it sets up ask it about their own tools.

It is `guard install` for each of these agents whose hook file has no entries of the guard yet. The guard judges by the
person's own hookproxy.toml, so that it is left out where that has none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from ..dialects.agent_side import AgentSide, agent_side
from ..guard.place import socket_of
from ..model.errors import UserError
from ..wrapping.agent_files import AgentFile, short
from . import guard_entries, guard_install, wrap
from .guard_entries import Unjudged
from .layout import Rows
from .own_file import CONFIG, user_config_folder


class OwnTools(Struct, frozen=True):
    """An agent whose own tools the guard is to judge."""

    side: AgentSide
    title: str
    line: str
    """The command line of its entries."""
    paths: tuple[str, ...]
    """The files that get them."""
    unjudged: Unjudged


def plan(found: Sequence[AgentFile], config: str, folder: str, unjudged: Unjudged) -> tuple[list[OwnTools], bool]:
    """What is to be written for the agents of these configurations, and whether that of some agent cannot be.

    `config` is the path of the hookproxy.toml that will be there, `folder` is that of the guard's socket.
    """
    if config != os.path.join(user_config_folder(), CONFIG):
        return [], False
    titles = {agent.dialect: agent.title for file in found if file.has_servers for agent in file.config_file.agents}
    planned: list[OwnTools] = []
    failed = False
    for name, title in titles.items():
        side = agent_side(name)
        if side is None or side.user_folder is None:
            continue
        try:
            if guard_entries.found_in(guard_entries.paths(side)):
                continue
            line = guard_install.command_line(side, socket_of(folder), unjudged)
            paths = tuple(change.path for change in guard_install.changes(side, line))
            planned.append(OwnTools(side, title, line, paths, unjudged))
        except UserError as error:
            failed = True
            wrap.report_error(error)
    return planned, failed


def rows(planned: Sequence[OwnTools]) -> Rows:
    """What is to be written, what happens without a guard, and what these agents cannot do."""
    home = os.path.expanduser("~")
    for tools in planned:
        for path in tools.paths:
            yield "guard", f"{tools.title}: an entry for each event in {short(path, home)}"
    for tools in planned:
        yield "note", f"{tools.side.name}: {guard_entries.if_none_judges(tools.side.name, tools.unjudged)}"
        yield from (("note", sentence) for sentence in guard_entries.limits(tools.side))


def write(planned: Sequence[OwnTools]) -> bool:
    """Write the entries into the files as they are now. Returns whether all of them are there."""
    complete = True
    for tools in planned:
        try:
            for change in guard_install.changes(tools.side, tools.line):
                guard_install.write(change)
        except UserError as error:
            complete = False
            wrap.report_error(error)
    return complete
