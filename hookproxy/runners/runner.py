"""The shape of a runner: one way in which a hook runs; dialects never know which."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from msgspec import Struct

from ..model.hooks import Document, HookResult, HookSpec

Runner = Callable[[HookSpec, Document, Mapping[str, str]], Coroutine[None, None, HookResult]]
"""Runs `spec` once: `document.stdin` on its standard input, `document.env` over the given environment.

Never raises for what a hook does: every end is a HookResult. On cancel the hook's whole process group is ended and
waited for before the cancellation goes on.
"""

Say = Callable[[HookSpec, str], None]
"""Tells people something about a hook, in one sentence without a full stop. Never blocks."""


CallTool = Callable[[str, str, bytes], Coroutine[None, None, bytes]]
"""Calls a tool of a server with these arguments, a JSON object, and gives the text of its answer. Raises NoAnswer.

On cancel the server is told that nobody waits any more.
"""


class NoAnswer(Exception):
    """A hook that was asked gave no answer; the message says why, to stand as `Verdict.trouble`."""


async def no_server(_server: str, _tool: str, _arguments: bytes) -> bytes:
    """The CallTool of whom no server stands behind. Raises NoAnswer."""
    raise NoAnswer("cannot be asked: no server is connected")


class Kept(Struct, frozen=True):
    """A runner that keeps something from one occasion to the next: processes, connections, threads."""

    run: Runner
    aclose: Callable[[], Coroutine[None, None, None]]
    """Ends all that is kept; afterwards nothing runs any more. Takes a second at most."""
    renew: Callable[[HookSpec], None] = lambda _spec: None
    """What is kept for this hook is not used any more: its files have been written since."""


Keep = Callable[[list[HookSpec], Say], Kept]
"""What a module of such a runner offers as `keep`, once for each run of the proxy: `list` are its type's hooks.

Raises ConfigError for a hook that cannot run. Starts no process and no thread: the first occasion does.
"""
