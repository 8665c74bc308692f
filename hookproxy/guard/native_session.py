"""One session of an agent: what its events share, whichever tool or server they are about.

Limits are counted and approvals hold for the whole session. The hooks and rules for one server are an object of their
own, because names of tools belong to a server; the agent's own tools are those of the server "".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..config.load import Loaded
from ..convert.run_hook import knowing_own_tools
from ..dialects.dialect import Group
from ..hooks.evaluate import Hooks
from ..model.limits import Limit
from ..model.settings import ToolNames
from ..policy.rate_limits import Window
from ..policy.shared_state import Approved, Shared, SharedLabels

if TYPE_CHECKING:
    import anyio.abc

_MOST_SERVERS: Final = 64  # servers of one agent: the names come from it, and each takes some kilobytes
_MOST_APPROVED: Final = 256  # as many as are kept for a session of `hookproxy run`


class NativeSession:
    """What is known of one session. `SharedApprovals` of its hooks, whatever their server."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        labels: SharedLabels | None = None,
    ) -> None:
        """`environ` is that of the agent, as of the session's first event: hooks get it.

        `tasks` runs background hooks, and `labels` keeps what the session has read; None: nobody needs it.
        """
        self._tasks = tasks
        self._loaded = loaded
        self._environ = environ
        self._windows: dict[Limit, Window] = {}
        self._approved: list[Approved] = []
        self._labels = labels
        self._hooks: dict[str, Hooks] = {}

    def hooks_for(self, server: str) -> Hooks:
        """The hooks and rules for the tools of this server; "": the agent's own tools."""
        if server not in self._hooks and len(self._hooks) >= _MOST_SERVERS:
            self._tasks.start_soon(self._hooks.pop(next(iter(self._hooks))).runners.aclose)
        if server not in self._hooks:
            shared = Shared(window_of=self._window, approvals=self, labels=self._labels)
            loaded = self._loaded
            groups = loaded.groups if server else tuple(map(_about_own_tools, loaded.groups))
            hooks = Hooks(groups, loaded.settings, server, self._environ, loaded.trust, shared=shared)
            hooks.open(self._tasks, lambda _run: None, lambda: None)
            self._hooks[server] = hooks
        return self._hooks[server]

    def all_hooks(self) -> Sequence[Hooks]:
        """Those of all servers so far."""
        return tuple(self._hooks.values())

    async def aclose(self) -> None:
        """End the programs that its hooks keep running."""
        for hooks in self._hooks.values():
            await hooks.runners.aclose()

    def _window(self, limit: Limit) -> Window:
        if limit not in self._windows:
            self._windows[limit] = Window(limit)
        return self._windows[limit]

    async def approved(self) -> Sequence[Approved]:
        """As in SharedApprovals."""
        return self._approved

    async def allow(self, calls: Approved) -> None:
        """As in SharedApprovals."""
        if calls not in self._approved and len(self._approved) < _MOST_APPROVED:
            self._approved.append(calls)


def _about_own_tools(group: Group) -> Group:
    """The group, whose hooks see the agent's own tools as those of their own system's agent."""
    return replace(group, dialect=knowing_own_tools(group.dialect), tool_names=ToolNames.BARE)
