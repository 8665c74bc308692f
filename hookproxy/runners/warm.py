"""Runs a command hook in a process that was started in advance and waits for its standard input: a *spare* process.

Law: a spare process serves one event. It has received nothing before, and all its output belongs to that event. A spare
process that may differ from a new one, because it is old or its script has changed, is ended unused.

If hookproxy is killed, a spare process reads the end of its input and ends by itself.
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
from .command import PreparedHook
from .event_watch import EventWatch, get_watch
from .run_process import HookProcess
from .runner import Report, StatefulRunner

_START_DELAY: Final = 0.001  # seconds from the end of a run to the start of the next spare: the call continues first
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)

_Fingerprint = tuple[tuple[str, int, int, int, int], ...]
"""The files that a hook consists of, each with its times, size and inode number.

The times include that of the inode's last change (ctime), which cannot be set back.
"""


def open_runner(_hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. A hook's first run starts a new process; spares end after `warm_max_age` seconds."""
    hooks: dict[int, _WarmHook] = {}

    async def run_warm_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        hook = hooks.get(id(spec)) or hooks.setdefault(id(spec), _WarmHook(spec, report))
        return await hook.run_hook(document, env)

    async def aclose() -> None:
        for hook in hooks.values():
            hook.close()
        with anyio.move_on_after(process.REAP_LIMIT, shield=True):
            for reaped in [reaped for hook in hooks.values() for reaped in hook.ending]:
                await asyncio.wait([reaped])

    def invalidate(spec: HookSpec) -> None:
        if hook := hooks.get(id(spec)):
            hook.invalidate()

    return StatefulRunner(run_warm_hook, aclose, invalidate)


class _WarmHook:
    """One hook and its spare processes."""

    def __init__(self, spec: HookSpec, report: Report) -> None:
        self._spec = spec
        self._report = report
        self._spares: list[_SpareProcess] = []
        self._running = 0
        self._peak = 1  # the most runs at a time since a spare was last left over
        self._unsuitable = False
        self._closed = False
        self.ending: set[asyncio.Future[None]] = set()
        """One future for each spare that was killed and is not reaped yet."""

    async def run_hook(self, document: Document, env: Mapping[str, str]) -> HookResult:
        """As `command.run_command`, in a spare process if there is one."""
        if self._unsuitable:
            return await command.run_command(self._spec, document, env)
        self._running += 1
        self._peak = max(self._peak, self._running)
        try:
            hook = command.prepare(self._spec, document, env)
            spare = self._take_spare(hook)
            if spare is None:
                return await command.run_command(self._spec, document, env)
            return await spare.serve(document.stdin)
        finally:
            self._running -= 1
            if not self._closed:
                asyncio.get_running_loop().call_later(_START_DELAY, self._replenish, document, env)

    def _take_spare(self, hook: PreparedHook) -> _SpareProcess | None:
        fingerprint = _fingerprint(hook) if self._spares else ()
        while self._spares:
            spare = self._spares.pop()
            if spare.fingerprint == fingerprint and spare.env == hook.env and not spare.has_ended():
                spare.take()
                return spare
            spare.end()
        return None

    def _replenish(self, document: Document, env: Mapping[str, str]) -> None:
        target = min(self._peak, self._spec.warm_spares)
        while len(self._spares) < target and not self._unsuitable and not self._closed:
            hook = command.prepare(self._spec, Document(b"", document.env), env)
            fingerprint = _fingerprint(hook)  # taken before the start: later changes count as changes
            try:
                pid, fds, _ = command.start(hook)
            except (OSError, ValueError):  # the next call starts a new process, and reports the error if it persists
                return
            self._spares.append(_SpareProcess(self, hook, fingerprint, get_watch(asyncio.get_running_loop()), pid, fds))

    def on_spare_exit(self, spare: _SpareProcess, code: int) -> None:
        """A spare has ended by itself. If it exited (no signal), this hook cannot be warm."""
        if spare in self._spares:
            self._spares.remove(spare)
            if code >= 0 and not self._unsuitable:
                self._unsuitable = True
                self._report(
                    self._spec, "cannot be warm: it ends without reading its input, and is started when needed"
                )
                self.close()
                self._closed = False

    def on_spare_expired(self, spare: _SpareProcess) -> None:
        """A spare has waited too long: it is ended, and the next call starts a new process."""
        if spare in self._spares and not spare.has_ended():  # else `on_spare_exit` follows
            self._spares.remove(spare)
            self._peak = max(self._running, 1)
            spare.end()

    def invalidate(self) -> None:
        """End the spares: the next call starts a new process."""
        for spare in self._spares:
            spare.end()
        self._spares.clear()

    def close(self) -> None:
        """End the spares, and start no more."""
        self._closed = True
        self.invalidate()


class _SpareProcess:
    """A process that waits for its standard input. The event loop watches only for its exit."""

    def __init__(
        self,
        owner: _WarmHook,
        hook: PreparedHook,
        fingerprint: _Fingerprint,
        watch: EventWatch,
        pid: int,
        fds: list[int],
    ) -> None:
        self.env = hook.env
        self.fingerprint = fingerprint
        self._owner = owner
        self._timeout = hook.spec.timeout
        self._watch = watch
        self._pid = pid
        self._fds = fds
        self._reaped: asyncio.Future[None] = watch.loop.create_future()
        self._ended = False
        watch.add_fd(fds[3], self._on_exit)
        self._expiry = watch.loop.call_later(hook.spec.warm_max_age, owner.on_spare_expired, self)

    def has_ended(self) -> bool:
        """True if it has ended, even if the event loop has not noticed yet."""
        return self._ended or process.has_ended(self._pid)

    def take(self) -> None:
        """Use it: it is no longer a spare."""
        self._expiry.cancel()
        self._watch.remove_fd(self._fds[3])

    async def serve(self, document: bytes | bytearray) -> HookResult:
        """Write the document to it and wait for its end, as `command.run_command`."""
        begun = monotonic()
        written = 0
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # HookProcess meets them again and handles them
            written = os.write(self._fds[0], document)
        hook_process = HookProcess(self._watch, (self._pid, self._fds, written), document, self._timeout, begun)
        await hook_process.wait()
        return hook_process.result()

    def end(self) -> None:
        """Kill it unused, with its whole process group; the event loop reaps it."""
        if self._ended:
            return
        self._expiry.cancel()
        self._owner.ending.add(self._reaped)
        self._reaped.add_done_callback(self._owner.ending.discard)
        process.signal_group(self._pid, signal.SIGKILL)

    def _on_exit(self) -> None:
        self._ended = True
        self._expiry.cancel()
        self._watch.close_fd(self._fds[3])
        process.signal_group(self._pid, signal.SIGKILL)  # what is left of its group
        code = process.reap(self._pid)
        process.close_all(self._fds[:3])
        self._reaped.set_result(None)
        self._owner.on_spare_exit(self, code)


def _fingerprint(hook: PreparedHook) -> _Fingerprint:
    """The state of the files that the hook's command names, and of the configuration file that has the hook."""
    spec = hook.spec
    files = []
    for file in (spec.source.partition(": ")[0], *_possible_files(hook)):
        try:
            state = os.stat(os.path.join(spec.cwd, file))
        except (OSError, ValueError):
            continue
        files.append((file, state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino))
    return tuple(files)


def _possible_files(hook: PreparedHook) -> Iterator[str]:
    """The words of the command that may be files, with variables expanded."""
    if not hook.spec.shell:
        yield from hook.spec.argv
        return
    try:
        words = shlex.split(hook.spec.shell)
    except ValueError:  # an unclosed quotation mark, as in a here-document
        words = hook.spec.shell.split()
    for word in words:
        yield _VARIABLE.sub(lambda name: hook.variables.get(name[1] or name[2], ""), word).rstrip(";&|)")
