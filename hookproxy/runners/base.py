"""The shape of a runner: one way in which a hook runs; dialects never know which."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from msgspec import Struct

from ..model import Document, HookResult, HookSpec

Runner = Callable[[HookSpec, Document, Mapping[str, str]], Coroutine[None, None, HookResult]]
"""Runs `spec` once: `document.stdin` on its standard input, `document.env` over the given environment.

Never raises for what a hook does: every end is a HookResult. On cancel the hook's whole process group is ended and
waited for before the cancellation goes on.
"""

Say = Callable[[HookSpec, str], None]
"""Tells people something about a hook, in one sentence without a full stop. Never blocks."""


class Kept(Struct, frozen=True):
    """A runner that keeps something from one occasion to the next: processes, connections, threads."""

    run: Runner
    aclose: Callable[[], Coroutine[None, None, None]]
    """Ends all that is kept; afterwards nothing runs any more. Takes a second at most."""


Keep = Callable[[list[HookSpec], Say], Kept]
"""What a module of such a runner offers as `keep`, once for each run of the proxy: `list` are its type's hooks.

Raises ConfigError for a hook that cannot run. Starts no process and no thread: the first occasion does.
"""
