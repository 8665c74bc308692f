"""One session of an agent: what its events, and the runs of the proxy that it has started, have in common.

Limits count for the whole session. Approvals are about the tools of one server, wherever the call of one comes from;
the agent's own tools are those of the server "". So are hooks and rules, because names of tools belong to a server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..config.load import Loaded
from ..convert.run_hook import knowing_own_tools
from ..dialects.agent_side import agent_side
from ..dialects.dialect import Group
from ..hooks.evaluate import Hooks
from ..hooks.session_calls import SessionCalls
from ..model.hooks import EventContext, Tool
from ..model.settings import ServerNamed, ToolNames
from ..policy.shared_state import Approved, Shared
from ..protocol.tool_list import ListedTools
from .kept_secrets import KeptSecrets
from .limit_windows import LimitWindows

if TYPE_CHECKING:
    import anyio.abc

    from ..flow.session_labels import SessionLabels

_MOST_SERVERS: Final = 64  # servers of one agent: the names come from it, and each takes some kilobytes
_MOST_BYTES: Final = 4 * 1024 * 1024  # of the tools of one server: several hundred
_MOST_APPROVED: Final = 256  # of one server: people allow a few, and each is compared with each call


class ServerApprovals:
    """What a person has allowed for a session, of one server's tools. `SharedApprovals` of its hooks."""

    def __init__(self) -> None:
        self._approved: list[Approved] = []

    @property
    def all(self) -> Sequence[Approved]:
        """All calls that are allowed."""
        return self._approved

    def add_approved(self, calls: Approved) -> bool:
        """Allow these calls, too. False: they were allowed before, or too much is."""
        if calls in self._approved or len(self._approved) >= _MOST_APPROVED:
            return False
        self._approved.append(calls)
        return True

    def remove(self, calls: Approved) -> None:
        """Do not allow these calls any more."""
        self._approved = [other for other in self._approved if other != calls]

    async def approved(self) -> Sequence[Approved]:
        """As in SharedApprovals."""
        return self._approved

    async def allow(self, calls: Approved) -> None:
        """As in SharedApprovals."""
        self.add_approved(calls)


class _Server(Struct):
    """What is known of a server of the agent."""

    command: tuple[str, ...] = ()
    name: str = ""
    """As it calls itself."""
    tools: ListedTools = field(default_factory=lambda: ListedTools(_MOST_BYTES))


class NativeSession:
    """What is known of one session."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        name: str,
        labels: SessionLabels | None = None,
    ) -> None:
        """`environ` is that of the agent, as of the session's first event: hooks get it.

        `tasks` runs background hooks; `name` is its id; `labels` keeps what it has read already.
        """
        self._tasks = tasks
        self.loaded = loaded
        self.environ = environ
        self.project = ""
        """The folder in which the agent works; empty: it is not known yet."""
        self.id = name
        """As hooks get it: that of the agent's documents, or of its first run."""
        self.limits = LimitWindows()
        self.secrets = KeptSecrets()
        """What its runs have hidden."""
        self.label_folder = ""
        """Where files with what sessions have read are; empty: that is known here alone."""
        self.calls = SessionCalls()
        """The calls that have ended."""
        self._labels = labels
        """What it has read; None: nobody has asked for it."""
        self._approvals: dict[str | None, ServerApprovals] = {}
        self._servers: dict[str, _Server] = {}  # those whose runs have said what they are
        self._hooks: dict[str | None, Hooks] = {}

    def begin_events(self, name: str, environ: Mapping[str, str], loaded: Loaded) -> None:
        """The agent reports it by its own hooks from now on, under this id, in this environment."""
        self.id, self.environ, self.loaded = name, environ, loaded
        if self._labels is not None:
            self._keep(self._labels)

    def under(self, loaded: Loaded) -> NativeSession:
        """The session under another configuration: the same limits go on, and nothing that was allowed is."""
        session = NativeSession(loaded, self.environ, self._tasks, self.id, self._labels)
        session.project = self.project
        session._servers, session.limits = self._servers, self.limits
        session.limits.forget_all_but(loaded.settings.limits)
        session.secrets, session.calls = self.secrets, self.calls
        session.label_folder = self.label_folder
        return session

    @property
    def labels(self) -> SessionLabels:
        """What it has read: the agent's own tools, and the servers of its runs."""
        if self._labels is None:
            from ..flow.session_labels import SessionLabels  # only where something says where data may go

            self._labels = SessionLabels()
            self._keep(self._labels)
        return self._labels

    def _keep(self, labels: SessionLabels) -> None:
        if self.label_folder:
            from .label_files import LabelFile

            LabelFile(self.label_folder, self.id, labels.kept)

    def approvals(self, server: str | None) -> ServerApprovals:
        """What is allowed of the tools of this server, as in `hooks_of`."""
        if server not in self._approvals and len(self._approvals) >= _MOST_SERVERS:
            del self._approvals[next(iter(self._approvals))]
        return self._approvals.setdefault(server, ServerApprovals())

    def begin_run(self, server: str, command: Sequence[str]) -> None:
        """A run of the proxy serves this server, which has this command line."""
        if server in self._servers or len(self._servers) < _MOST_SERVERS:
            self._servers.setdefault(server, _Server()).command = tuple(command)

    def note_tools(self, server: str, tools: Sequence[Tool], server_name: str) -> None:
        """What the server has listed, as in `Hooks.note_tools`."""
        if (of_server := self._servers.get(server)) is not None:
            of_server.tools.note(tools)
            of_server.name = server_name
            if server in self._hooks:
                self._hooks[server].note_tools(tools, server_name)

    def listed(self, server: str, tool: str) -> Tool | None:
        """What the server says of a tool; None: nothing is known."""
        of_server = self._servers.get(server)
        return None if of_server is None else of_server.tools.get(tool)

    def hooks_for(self, context: EventContext, agent: str = "") -> Hooks:
        """The hooks and rules for the tool of this event, or for an event of this agent without a tool."""
        return self.hooks_of(None if context.own_tool or not context.tool else context.session.server, agent)

    def hooks_of(self, server: str | None, agent: str = "") -> Hooks:
        """Those for the tools of this server; "": of servers that this agent does not name; None: its own."""
        if server not in self._hooks and len(self._hooks) >= _MOST_SERVERS:
            self._tasks.start_soon(self._hooks.pop(next(iter(self._hooks))).runners.aclose)
        if server not in self._hooks:
            shared = Shared(
                window_of=self.limits.window,
                approvals=self.approvals(server),
                new_labels=lambda: self.labels,
                calls=self.calls,
            )
            loaded = self.loaded
            groups = loaded.groups
            if not server:
                groups = tuple(_about_own_tools(group) for group in groups if not self._runs_itself(agent, group))
            known = self._servers.get(server or "", _Server())
            side = agent_side(agent)
            hooks = Hooks(
                groups, loaded.settings, server, self.environ, loaded.trust, known.command, shared,
                ServerNamed.FOR_CERTAIN if side is None or server is None else side.form.server_named,
            )  # fmt: skip
            hooks.note_tools(known.tools.values(), known.name)
            hooks.open(self._tasks, lambda _run: None, lambda: None)
            self._hooks[server] = hooks
        return self._hooks[server]

    def _runs_itself(self, agent: str, group: Group) -> bool:
        """The agent runs these hooks itself, because they are in a file of its own in the home folder: once is enough.

        A variable that names another place may come from a project: with it, they rather run twice.
        """
        side, dialect = agent_side(agent), group.dialect.name.partition("@")[0]
        if side is None or dialect not in (side.name, *side.also_reads):
            return False
        home = os.path.expanduser("~")
        return any(
            fnmatchcase(group.source, os.path.join(escape(os.path.join(home, place.folder)), place.files))
            for place in group.dialect.user_files
            if place.folder and place.variable not in self.environ
        )

    def all_hooks(self) -> Sequence[Hooks]:
        """Those of all servers so far."""
        return tuple(self._hooks.values())

    async def aclose(self) -> None:
        """End the programs that its hooks keep running."""
        for hooks in self._hooks.values():
            await hooks.runners.aclose()


def _about_own_tools(group: Group) -> Group:
    """The group, whose hooks see the agent's own tools as those of their own system's agent."""
    return replace(group, dialect=knowing_own_tools(group.dialect), tool_names=ToolNames.BARE)
