"""The ways in which a hook can run, by the `type` of its entry. A new one is a file here and a line below."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final, Self

import anyio

from ..model.hooks import HookSpec
from . import command
from .runner import CallTool, Keep, Kept, Runner, Say, no_server

RUNNERS: Final[dict[str, Runner]] = {"command": command.run}
"""What needs no more than an occasion."""

_KEEPING: Final = ("warm", "worker", "python", "http")
"""What keeps something between occasions: modules, each imported where a hook has its type."""

_END: Final = 2.0  # seconds for the end of all that is kept


class Runners:
    """The runners that these hooks need, for one run of the proxy."""

    def __init__(self, hooks: Iterable[HookSpec], say: Say, call_tool: CallTool = no_server) -> None:
        """Raises ConfigError for a hook that cannot run. `call_tool` calls tools of the server behind us."""
        hooks = list(hooks)
        self.by_type = dict(RUNNERS)
        self._kept: list[Kept] = []
        for kind in _KEEPING:
            if of_kind := [spec for spec in hooks if spec.type == kind]:
                keep: Keep = import_module(f".{kind}", __package__).keep
                kept = keep(of_kind, say)
                self._kept.append(kept)
                self.by_type[kind] = kept.run
        if any(spec.type == "mcp_tool" for spec in hooks):
            self.by_type["mcp_tool"] = import_module(".mcp_tool", __package__).through(call_tool)

    def renew(self, spec: HookSpec) -> None:
        """The hook's files have been written: what was started from them before is not used any more."""
        for kept in self._kept:
            kept.renew(spec)

    async def __aenter__(self) -> Self:
        """What is kept ends with the block, however that ends."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all that is kept, also where we are being cancelled."""
        with anyio.move_on_after(_END, shield=True):
            async with anyio.create_task_group() as tasks:
                for kept in self._kept:
                    tasks.start_soon(kept.aclose)
