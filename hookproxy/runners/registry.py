"""The runners by handler type, which is the `type` of a hook's entry. A new one is a file here and a line below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Final, Self

import anyio

from ..model.hooks import Document, Ended, HookResult, HookSpec
from . import command
from .runner import CallTool, OpenRunner, Report, Runner, StatefulRunner, no_server


async def _run_nothing(_spec: HookSpec, _document: Document, _environment: Mapping[str, str]) -> HookResult:
    """The runner of what stands for hooks that are not there: its dialect says what follows."""
    return HookResult(Ended.NOT_STARTED, detail="there is no such hook")


RUNNERS: Final[dict[str, Runner]] = {"command": command.run_command, "absent": _run_nothing}
"""Runners that keep nothing between events."""

_STATEFUL: Final = ("warm", "worker", "python", "http", "cel", "cedar", "opa", "interceptor", "prompt", "agent")
"""Modules of stateful runners, named by handler type; each is imported only if a hook has its type."""

_CLOSE_LIMIT: Final = 2.0  # seconds for closing all stateful runners


class Runners:
    """The runners that these hooks need, for one run of the proxy."""

    def __init__(self, hooks: Iterable[HookSpec], report: Report, call_tool: CallTool = no_server) -> None:
        """Raises ConfigError for a hook that cannot run. `call_tool` calls tools of the server behind the proxy."""
        hooks = list(hooks)
        self.by_type = dict(RUNNERS)
        self._stateful: list[StatefulRunner] = []
        for type_name in _STATEFUL:
            if of_type := [spec for spec in hooks if spec.type == type_name]:
                open_runner: OpenRunner = import_module(f".{type_name}", __package__).open_runner
                runner = open_runner(of_type, report)
                self._stateful.append(runner)
                self.by_type[type_name] = runner.run
        if any(spec.type == "mcp_tool" for spec in hooks):
            self.by_type["mcp_tool"] = import_module(".mcp_tool", __package__).runner_for(call_tool)

    def invalidate(self, spec: HookSpec) -> None:
        """The hook's files have changed: stop using what was started from them."""
        for runner in self._stateful:
            runner.invalidate(spec)

    async def __aenter__(self) -> Self:
        """The block's end closes the runners, however it ends."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all stateful runners, also while this task is being cancelled."""
        with anyio.move_on_after(_CLOSE_LIMIT, shield=True):
            async with anyio.create_task_group() as tasks:
                for runner in self._stateful:
                    tasks.start_soon(runner.aclose)
