"""Runs a command hook whose process was started before it was needed and waits at its standard input: a *spare*.

Law: a spare is for one occasion. It has been given nothing before, and whatever it does after is its answer to this
one. What is not certain to be as good as a new process, because it is old, or its script has changed, is ended unused.

If we are killed, a spare finds the end of its input, as any process does whose writer is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Final

import anyio

from ..model.hooks import Document, HookResult, HookSpec
from ..processes import process
from . import command
from .command import Prepared
from .event_watch import Watch, watch_of
from .run_process import Running
from .runner import Kept, Say

_SOON: Final = 0.001  # seconds from the end of a run to the start of the next process: the call goes on first
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)

_Stamp = tuple[tuple[str, int, int, int, int], ...]
"""The files that make a hook what it is, each with its times, size and number.

The time at which its entry changed is one of them: whoever writes a file and puts the old text back cannot hide that.
"""


def keep(_hooks: list[HookSpec], say: Say) -> Kept:
    """As `base.Keep`. The first call of a hook runs cold; what waits is ended after `warm_max_age` seconds."""
    warmed: dict[int, _Warmed] = {}

    async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        hook = warmed.get(id(spec)) or warmed.setdefault(id(spec), _Warmed(spec, say))
        return await hook.run(document, env)

    async def aclose() -> None:
        for hook in warmed.values():
            hook.close()
        with anyio.move_on_after(process.REAP_LIMIT, shield=True):
            for gone in [gone for hook in warmed.values() for gone in hook.ending]:
                await asyncio.wait([gone])

    def renew(spec: HookSpec) -> None:
        if hook := warmed.get(id(spec)):
            hook.renew()

    return Kept(run, aclose, renew)


class _Warmed:
    """One hook, and its processes that wait."""

    def __init__(self, spec: HookSpec, say: Say) -> None:
        self._spec = spec
        self._say = say
        self._spares: list[_Spare] = []
        self._running = 0
        self._at_once = 1  # the most that ran at a time since a spare was last left over
        self._unfit = False
        self._closed = False
        self.ending: set[asyncio.Future[None]] = set()
        """Spares that have been ended and are not reaped yet."""

    async def run(self, document: Document, env: Mapping[str, str]) -> HookResult:
        """As `command.run`, by a spare if there is one."""
        if self._unfit:
            return await command.run(self._spec, document, env)
        self._running += 1
        self._at_once = max(self._at_once, self._running)
        try:
            hook = command.prepared(self._spec, document, env)
            spare = self._fit_spare(hook)
            if spare is None:
                return await command.run(self._spec, document, env)
            return await spare.run(document.stdin)
        finally:
            self._running -= 1
            if not self._closed:
                asyncio.get_running_loop().call_later(_SOON, self._replenish, document, env)

    def _fit_spare(self, hook: Prepared) -> _Spare | None:
        stamp = _stamp(hook) if self._spares else ()
        while self._spares:
            spare = self._spares.pop()
            if spare.stamp == stamp and spare.env == hook.env and not spare.has_ended():
                spare.take()
                return spare
            spare.end()
        return None

    def _replenish(self, document: Document, env: Mapping[str, str]) -> None:
        wanted = min(self._at_once, self._spec.warm_spares)
        while len(self._spares) < wanted and not self._unfit and not self._closed:
            hook = command.prepared(self._spec, Document(b"", document.env), env)
            stamp = _stamp(hook)  # before it starts: what changes from now on is not what it has read
            try:
                pid, fds, _ = command.start(hook)
            except (OSError, ValueError):  # it may be a passing lack; the next call runs cold, and says what is wrong
                return
            self._spares.append(_Spare(self, hook, stamp, watch_of(asyncio.get_running_loop()), pid, fds))

    def lost(self, spare: _Spare, code: int) -> None:
        """A spare has ended by itself. One that a signal ended may have had bad luck."""
        if spare in self._spares:
            self._spares.remove(spare)
            if code >= 0 and not self._unfit:
                self._unfit = True
                self._say(self._spec, "is not fit to be warm: it ends without its input, and is started when needed")
                self.close()
                self._closed = False

    def aged(self, spare: _Spare) -> None:
        """Nobody has needed it for a long time: it ends, and the next call runs cold."""
        if spare in self._spares:
            self._spares.remove(spare)
            self._at_once = max(self._running, 1)
            spare.end()

    def renew(self) -> None:
        """End what waits: the next call runs cold."""
        for spare in self._spares:
            spare.end()
        self._spares.clear()

    def close(self) -> None:
        """End what waits; nothing is started any more."""
        self._closed = True
        self.renew()


class _Spare:
    """A process that waits at its standard input. The loop watches nothing of it but its end."""

    def __init__(self, owner: _Warmed, hook: Prepared, stamp: _Stamp, watch: Watch, pid: int, fds: list[int]) -> None:
        self.env = hook.env
        self.stamp = stamp
        self._owner = owner
        self._timeout = hook.spec.timeout
        self._watch = watch
        self._pid = pid
        self._fds = fds
        self._gone: asyncio.Future[None] = watch.loop.create_future()
        self._ended = False
        watch.add(fds[3], self._exited)
        self._age = watch.loop.call_later(hook.spec.warm_max_age, owner.aged, self)

    def has_ended(self) -> bool:
        """It has ended, although the loop may not have been told yet."""
        return self._ended or os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def take(self) -> None:
        """From now on it is no spare any more."""
        self._age.cancel()
        self._watch.forget(self._fds[3])

    async def run(self, document: bytes | bytearray) -> HookResult:
        """Give it the document, and see it through as any hook. On cancel as `command.run`."""
        begun = monotonic()
        written = 0
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # which come again where the rest is written
            written = os.write(self._fds[0], document)
        running = Running(self._watch, (self._pid, self._fds, written), document, self._timeout, begun)
        await running.end()
        return running.result()

    def end(self) -> None:
        """End it unused, with its whole group; the loop reaps it."""
        if self._ended:
            return
        self._age.cancel()
        self._owner.ending.add(self._gone)
        self._gone.add_done_callback(self._owner.ending.discard)
        process.end_tree(self._pid, signal.SIGKILL)

    def _exited(self) -> None:
        self._ended = True
        self._age.cancel()
        self._watch.close(self._fds[3])
        process.end_tree(self._pid, signal.SIGKILL)  # whoever of its group is left
        code = process.reap(self._pid)
        process.close_all(self._fds[:3])
        self._gone.set_result(None)
        self._owner.lost(self, code)


def _stamp(hook: Prepared) -> _Stamp:
    """The hook's script as far as its command names it, and the configuration that names the hook."""
    spec = hook.spec
    found = []
    for file in (spec.source.partition(": ")[0], *_words(hook)):
        try:
            state = os.stat(os.path.join(spec.cwd, file))
        except (OSError, ValueError):
            continue
        found.append((file, state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino))
    return tuple(found)


def _words(hook: Prepared) -> Iterator[str]:
    """The words of its command that may be files; of a command line also those with variables."""
    if not hook.spec.shell:
        yield from hook.spec.argv
        return
    try:
        words = shlex.split(hook.spec.shell)
    except ValueError:  # an open quotation mark, as in a here-document
        words = hook.spec.shell.split()
    for word in words:
        yield _VARIABLE.sub(lambda name: hook.variables.get(name[1] or name[2], ""), word).rstrip(";&|)")
