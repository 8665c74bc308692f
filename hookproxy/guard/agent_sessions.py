"""The sessions of agents, and to which one an event or a run of the proxy belongs (law 1).

How it works: an event names its session, and comes from a process of its agent; a run comes from a process of its agent
alone. A run belongs to the session that its agent's process has reported last; before any event, all runs of a process
have one, which becomes the session of its first event. An agent that goes on with a session in another process finds
it again by its id. Only an event makes a process the agent of what stands further below it: a server that detaches
itself, and pretends to be a run, is a child of the process that adopts orphans, below which all agents may stand.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from ..processes.ancestry import Process
from .native_session import NativeSession
from .projects import Projects

if TYPE_CHECKING:
    import anyio.abc

    from ..config.load import Loaded

_MOST: Final = 256  # sessions of all agents of one person: the one that was silent longest is forgotten


class AgentSessions:
    """All sessions under one configuration."""

    def __init__(self, loaded: Loaded, tasks: anyio.abc.TaskGroup, folder: str = "") -> None:
        """`tasks` runs the background hooks of the sessions; `folder` is for what outlasts the guard, or empty."""
        self.projects, self._tasks = Projects(loaded), tasks
        self._label_folder = os.path.join(folder, "labels") if folder else ""
        self._by_id: OrderedDict[tuple[str, str, Process | None], NativeSession] = OrderedDict()  # as of_event has it
        self._of_process: OrderedDict[Process, NativeSession] = OrderedDict()

    @property
    def ids(self) -> Sequence[tuple[str, str]]:
        """The agent and its id of each session that an event has reported; the one used last at the end."""
        return tuple((agent, name) for agent, name, _ in self._by_id)

    @property
    def all(self) -> Collection[NativeSession]:
        """The sessions that an event has reported."""
        return self._by_id.values()

    def take_over(self, former: AgentSessions) -> None:
        """Go on with the sessions that were known under another configuration, as `NativeSession.under` says.

        Those whose project has no configuration that can be read begin anew, when it has one.
        """
        renewed: dict[NativeSession, NativeSession] = {}
        for session in {*former._by_id.values(), *former._of_process.values()}:
            with suppress(UserError):
                renewed[session] = session.under(self.projects.loaded_for(session.project, session.environ))
        self._by_id.update((key, renewed[old]) for key, old in former._by_id.items() if old in renewed)
        self._of_process.update(
            (process, renewed[old]) for process, old in former._of_process.items() if old in renewed
        )

    def of_event(
        self,
        agent: str,
        name: str,
        environ: Mapping[str, str],
        process: Process | None,
        run: Process | None = None,
        project: str = "",
    ) -> NativeSession:
        """The session with this id at the agent, which this process has reported; None: it is not known which process.

        What stands below a run of the proxy has sessions of its own: its server may know what its agent's is called.
        `project` is the folder in which the agent works. Raises UserError if there is no configuration for it.
        """
        key = agent, name, run if name or run is not None else process  # not all agents give their sessions ids
        session = self._by_id.get(key)
        if session is None:
            loaded = self.projects.loaded_for(project, environ)
            session = self._without_events(process)
            if session is None:
                session = self._new(name, environ, loaded)
            else:
                session.begin_events(name, environ, loaded)
            session.project = project
            if len(self._by_id) >= _MOST:
                _, oldest = self._by_id.popitem(last=False)
                self._tasks.start_soon(oldest.aclose)
        self._by_id[key] = session
        self._by_id.move_to_end(key)  # the one used last is the last one
        if process is not None:
            self._note_process(process, session)
        return session

    def of_run(self, processes: Sequence[Process], own_id: str) -> NativeSession:
        """The session of a run that one of these processes has started, the likeliest first; `own_id` is the run's.

        There is at least one process: if nobody can say which, the run itself.
        """
        agent = self.agent_of(processes)
        if agent not in self._of_process:
            self._note_process(agent, self._new(own_id, {}, self.projects.loaded))
        return self._of_process[agent]

    def agent_of(self, processes: Sequence[Process]) -> Process:
        """The agent among these processes, the likeliest of which is the first, as in `of_run`."""
        if processes[0] in self._of_process:
            return processes[0]
        return next((process for process in processes if self._has_reported(process)), processes[0])

    async def aclose(self) -> None:
        """End the programs that hooks of the sessions keep running."""
        for session in self._by_id.values():
            await session.aclose()

    def _without_events(self, process: Process | None) -> NativeSession | None:
        """The session of the runs of this process, if no event has reported one; None: there is none."""
        return None if process is None or self._has_reported(process) else self._of_process.get(process)

    def _has_reported(self, process: Process) -> bool:
        """Whether an event of this process has reported its session."""
        session = self._of_process.get(process)
        return session is not None and session in self._by_id.values()

    def _new(self, name: str, environ: Mapping[str, str], loaded: Loaded) -> NativeSession:
        session = NativeSession(loaded, environ, self._tasks, name)
        session.label_folder = self._label_folder
        return session

    def _note_process(self, process: Process, session: NativeSession) -> None:
        self._of_process[process] = session
        self._of_process.move_to_end(process)
        if len(self._of_process) > _MOST:
            self._of_process.popitem(last=False)
