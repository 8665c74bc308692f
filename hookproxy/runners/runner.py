"""What a runner is: it runs hooks of one handler type. Dialects never know which runner ran a hook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping

from msgspec import Struct

from ..model.hooks import Document, Ended, HookResult, HookSpec
from .event_watch import TimeLimit, get_watch

Runner = Callable[[HookSpec, Document, Mapping[str, str]], Coroutine[None, None, HookResult]]
"""Runs `spec` once: `document.stdin` on its standard input, `document.env` over the given environment.

Never raises for what a hook does: every outcome is a HookResult. On cancel the hook's whole process group is killed and
waited for before the cancellation goes on.
"""

Report = Callable[[HookSpec, str], None]
"""Reports something about a hook to people, in one sentence without a full stop. Never blocks."""


CallTool = Callable[[str, str, bytes], Coroutine[None, None, bytes]]
"""Calls a tool of a server with these arguments, a JSON object, and returns the text of its result. Raises HookFailed.

On cancel the server gets a cancellation notification.
"""


class HookFailed(Exception):
    """A hook ran and gave no output that counts; the message says why, and becomes `Verdict.failure`."""


class OutputTooLong(HookFailed):
    """A hook gave more output than is kept: `HookResult.cut`."""


async def result_of(output: Coroutine[None, None, bytes], seconds: float) -> HookResult:
    """The result of a hook that gives this output, or raises HookFailed, within so many seconds."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    ended, stdout, detail, cut = Ended.FAILED, b"", "", False
    try:
        with TimeLimit(get_watch(loop), seconds):
            stdout = await output
        ended = Ended.EXITED
    except TimeoutError:
        ended = Ended.TIMED_OUT
    except HookFailed as failure:
        detail, cut = str(failure), isinstance(failure, OutputTooLong)
    return HookResult(ended, stdout=stdout, ms=(loop.time() - begun) * 1000, cut=cut, detail=detail)


async def no_server(_server: str, _tool: str, _arguments: bytes) -> bytes:
    """The CallTool of a run without a server. Raises HookFailed."""
    raise HookFailed("cannot be called: no server is connected")


class StatefulRunner(Struct, frozen=True):
    """A runner that keeps something from one event to the next: processes, connections, threads."""

    run: Runner
    aclose: Callable[[], Coroutine[None, None, None]]
    """Ends all that is kept; nothing runs afterwards. Takes a second at most."""
    invalidate: Callable[[HookSpec], None] = lambda _spec: None
    """Stops using what is kept for this hook, because its files have changed."""


OpenRunner = Callable[[list[HookSpec], Report], StatefulRunner]
"""The function `open_runner` of a stateful runner's module, called once per run of the proxy with its type's hooks.

Raises ConfigError for a hook that cannot run. Starts no process and no thread: the first event does.
"""
