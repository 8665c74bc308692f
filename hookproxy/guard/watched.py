"""A policy that is only watched, for agents' own tools: what it would decide is recorded, and changes nothing (law 2).

How it works: beside the sessions there are others, with the hooks, rules and limits that are only watched. They judge
each call in the background, and what they decide becomes a part of the call's audit line, which is written when both
are known. Calls of servers' tools are watched by the runs of the proxy.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..audit.call_record import Record, WatchedCall
from ..audit.would_be import NOBODY_ASKED
from ..config.load import Loaded
from ..hooks.evaluate import Hooks
from ..model.aliases import Alias
from ..model.call_end import Refused
from ..model.decision import Refuse
from ..model.hooks import EventContext
from .native_session import NativeSession

if TYPE_CHECKING:
    import anyio.abc

_MOST: Final = 256  # sessions, as many as are judged: the one that was silent longest is forgotten


class WatchedOwnTools:
    """What is only watched under one configuration."""

    def __init__(self, loaded: Loaded, tasks: anyio.abc.TaskGroup) -> None:
        """Its hooks run in `tasks`."""
        self._tasks = tasks
        self._file = loaded.watched.files[-1] if loaded.watched is not None and loaded.watched.files else ""
        self._sessions: OrderedDict[tuple[str, str], NativeSession] = OrderedDict()

    def hooks_for(self, agent: str, context: EventContext, session: NativeSession) -> Hooks | None:
        """The hooks and rules that are only watched, if they are about this tool of the agent's own in its session."""
        loaded = None if context.session.server else session.loaded.of_watched
        if loaded is None:
            return None
        key = agent, context.session.id
        if key not in self._sessions:
            self._sessions[key] = NativeSession(loaded, session.environ, self._tasks, context.session.id)
            if len(self._sessions) > _MOST:
                _, oldest = self._sessions.popitem(last=False)
                self._tasks.start_soon(oldest.aclose)
        self._sessions.move_to_end(key)
        hooks = self._sessions[key].hooks_for(context, agent)
        if context.own_tool and isinstance(context.managed_alias, Alias):
            hooks.note_own_tool(context.managed_alias)
        return hooks if hooks.concerns(context.tool) else None

    def begin(self, hooks: Hooks, context: EventContext, record: Record) -> None:
        """Judge a call by these hooks in the background; its `record` gets what they decide."""
        record.watched = watched = WatchedCall(self._file)
        self._tasks.start_soon(_judge, hooks, context, watched)

    async def aclose(self) -> None:
        """End the programs that its hooks keep running."""
        for session in self._sessions.values():
            await session.aclose()


async def _judge(hooks: Hooks, context: EventContext, watched: WatchedCall) -> None:
    own = Record(context.session.id, "", context.tool, b"null", context.arguments)
    try:
        evaluation = await hooks.run_pre_hooks(context, None, own.hook_runs)
        decision = await hooks.apply_limits(evaluation.decision, evaluation.context_after(context))
        if isinstance(decision, Refuse):
            own.note_end(Refused(b"", decision.reason, decision.cause.value, decision.by, decision.place))
        else:
            own.note_allowed(decision)
            if decision.approval_request is not None:
                own.answered_by = NOBODY_ASKED
        watched.record = own
    finally:
        watched.end()
