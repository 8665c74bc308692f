"""Reports to people, when the tools of the server are known, how many of them hooks see: without a pause for calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from time import perf_counter
from typing import Final

import anyio.lowlevel

from ..config.load import Loaded
from ..hooks.coverage import Coverage, coverage_in_steps
from ..model.errors import printable
from ..model.hooks import Tool
from ..protocol import tool_list

_SLICE_SECONDS: Final = 0.002  # of work between two turns of the event loop: calls do not notice it

_Spawn = Callable[[Callable[..., Coroutine[object, object, None]], object], None]
_Steps = Generator[None, None, Coverage]


class ToolCoverage:
    """Reports what hooks see of the tools of a session, and again only if a later list changes the counts."""

    def __init__(
        self,
        loaded: Loaded,
        server: str,
        command: Sequence[str],
        report: Callable[[str], None],
        spawn: _Spawn,
        shown_name: str,
    ) -> None:
        """`shown_name` is for people; `spawn` runs what takes longer than one slice as a coroutine."""
        self._loaded = loaded
        self._server = server
        self._command = command
        self._report = report
        self._spawn = spawn
        self._shown_name = shown_name
        self.slice_seconds = _SLICE_SECONDS
        """How long it works between two turns of the event loop."""
        self._pages: dict[str, Tool] = {}
        self._newest: _Steps | None = None
        self._last = ""

    def note(self, line: bytes, tools: Sequence[Tool], server_info: str) -> None:
        """Note a tools/list response, and the server's own name. The last page completes the list."""
        cursor = tool_list.next_cursor(line)
        self._pages.update((tool.name, tool) for tool in tools)
        if cursor is None or cursor:
            return
        groups, settings = self._loaded.groups, self._loaded.settings
        steps = coverage_in_steps(groups, settings, self._server, self._pages.values(), self._command, server_info)
        self._pages, self._newest = {}, steps
        if not self._work(steps):
            self._spawn(self._finish, steps)

    async def _finish(self, steps: _Steps) -> None:
        """Do the rest of the work in slices; a newer list makes it unnecessary."""
        while self._newest is steps:
            await anyio.lowlevel.checkpoint()
            if self._work(steps):
                return

    def _work(self, steps: _Steps) -> bool:
        """Work for one slice; report the result if there is one. Returns whether it is complete."""
        end = perf_counter() + self.slice_seconds
        try:
            next(steps)
            while perf_counter() < end:
                next(steps)
        except StopIteration as done:
            coverage: Coverage = done.value
            if (summary := coverage.summary()) != self._last:
                self._last = summary
                self._report(printable(f"{self._shown_name}: {summary}"))
            return True
        return False
