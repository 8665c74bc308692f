"""Runs a hook as a worker: a command that stays alive, reads one JSON document per line and prints one line for each.

Law: a worker prints exactly one line for each document, or it is killed. After an unexpected line, a second line or
half a line, its next line might belong to another event.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Final

import anyio
import msgspec

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes.loop_callbacks import WRITABLE
from ..processes.process import OUTPUT_LIMIT, PIPE_SIZE, REAP_LIMIT, has_ended, output_limit, reap, signal_group
from . import command
from .event_watch import EventWatch, TimeLimit, get_watch
from .runner import HookFailed, OutputTooLong, Report, StatefulRunner

_CLOSE_GRACE: Final = 0.3  # seconds from the end of its input until it is killed: enough to save its state
_RESTART_DELAY: Final = 0.1  # seconds before the start after a second failure, doubled after each further failure
_LONGEST_RESTART_DELAY: Final = 5.0  # seconds
_MOST_CANCELLED: Final = 1000  # cancelled documents of a worker for which output is still to come
_STDERR_LIMIT: Final = 65_536  # bytes of standard error that are kept: the last ones
_EXIT_DELAY: Final = 0.1  # seconds that a process may take to exit after it closed its output
_SHOWN_BYTES: Final = 100  # bytes of invalid output that a message quotes


def open_runner(_hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. A worker starts with its first document, and again with the first one after its death."""
    workers: dict[int | str, _Worker] = {}

    async def run_worker_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        key = spec.process or id(spec)
        worker = workers.get(key) or workers.setdefault(key, _Worker(spec, report))
        return await worker.run_hook(document, env)

    async def aclose() -> None:
        async with anyio.create_task_group() as tasks:
            for worker in workers.values():
                tasks.start_soon(worker.aclose)

    def invalidate(spec: HookSpec) -> None:
        if worker := workers.get(spec.process or id(spec)):
            worker.invalidate()

    return StatefulRunner(run_worker_hook, aclose, invalidate)


class _Worker:
    """A hook's process while it lives, and the documents for which its output is still to come."""

    def __init__(self, spec: HookSpec, report: Report) -> None:
        self._spec = spec
        self._report = partial(report, spec)
        self._process: LongLivedProcess | None = None
        self._processes: list[LongLivedProcess] = []  # those that are possibly not reaped yet
        self._pending: dict[str, asyncio.Future[bytes]] = {}  # outputs to come, by document id
        self._cancelled: set[str] = set()  # ids of documents whose output nobody waits for any more
        self._next_id = count(1)
        self._loop = asyncio.get_running_loop()
        self._watch = get_watch(self._loop)
        self._lock = asyncio.Lock()
        self._failed_starts = 0  # times in a row that it ended without any valid output
        self._earliest_start = 0.0  # on the loop's clock
        self._closed = False

    async def run_hook(self, document: Document, env: Mapping[str, str]) -> HookResult:
        """Run the hook once. The timeout includes the wait for other documents and for the worker's restart.

        A timeout ends the worker; so does a cancel, unless the worker is concurrent.
        """
        begun = self._loop.time()
        try:
            with TimeLimit(self._watch, self._spec.timeout):
                if self._spec.concurrent:
                    return await self._exchange(document, env, begun)
                async with self._lock:
                    return await self._exchange(document, env, begun)
        except TimeoutError:
            if self._spec.concurrent:  # else it has been ended already, or was busy with another document
                await self._kill_and_wait("was ended because another document took too long")
            return HookResult(Ended.TIMED_OUT, ms=self._since(begun))

    async def _exchange(self, document: Document, env: Mapping[str, str], begun: float) -> HookResult:
        try:
            process = self._process or await self._get_process(document, env)
        except (OSError, ValueError) as error:
            return command.not_started(self._spec, error, self._since(begun))
        document_id = str(next(self._next_id))
        self._pending[document_id] = output = self._loop.create_future()
        try:
            process.output_limit = max(process.output_limit, output_limit(len(document.stdin)))
            process.write(self._line(document_id, document.stdin))
            line: bytes = await output
        except HookFailed as failure:
            cut, ms = isinstance(failure, OutputTooLong), self._since(begun)
            return HookResult(Ended.FAILED, 0, b"", process.take_stderr(), ms, cut, str(failure))
        except asyncio.CancelledError:
            if not output.cancelled():  # it is done; asyncio complains if its exception is never retrieved
                output.exception()
            elif document_id in self._pending:  # else the output has arrived since
                await self._give_up(process, document_id)
            raise
        finally:
            self._pending.pop(document_id, None)
        return HookResult(Ended.EXITED, 0, line, process.take_stderr(), self._since(begun))

    def _since(self, begun: float) -> float:
        """Milliseconds since `begun`."""
        return (self._loop.time() - begun) * 1000

    async def _give_up(self, process: LongLivedProcess, document_id: str) -> None:
        """Nobody waits for this output any more; it must not be taken for that of the next document."""
        self._pending.pop(document_id, None)
        if process is not self._process:
            return
        self._cancelled.add(document_id)
        if not self._spec.concurrent or len(self._cancelled) > _MOST_CANCELLED:
            await self._kill_and_wait("was ended because it had not answered when its call was cancelled")

    async def _get_process(self, document: Document, env: Mapping[str, str]) -> LongLivedProcess:
        """The process, which is started if there is none. Raises OSError or ValueError."""
        while self._process is None:
            if (delay := self._earliest_start - self._loop.time()) > 0:
                await asyncio.sleep(delay)
                continue
            if self._closed:
                raise ValueError("the session has ended")
            self._cancelled.clear()
            hook = command.prepare(self._spec, document, env)
            pid, fds, _ = command.start(hook)
            self._process = LongLivedProcess(self._watch, pid, fds, self._on_output, self._on_death)
            self._processes = [process for process in self._processes if not process.reaped.done()] + [self._process]
        return self._process

    def _line(self, document_id: str, document: bytes | bytearray) -> bytes:
        """The document on one line, also for readers that split lines at other characters than line feeds."""
        line = raw_json.one_line(bytes(document).strip().replace(b"\n", b" "))
        if self._spec.concurrent:
            line = b'{"id":"%b"%b%b' % (document_id.encode(), b"" if line[1:].strip() == b"}" else b",", line[1:])
        return line + b"\n"

    @property
    def _expects_output(self) -> bool:
        """Output is still to come, whether somebody waits for it or not."""
        return bool(self._cancelled) or any(not waiting.done() for waiting in self._pending.values())

    # --- callbacks of the process ---

    def _on_output(self, process: LongLivedProcess) -> None:
        """The process has printed something."""
        *lines, rest = bytes(process.output).split(b"\n")
        try:
            if not self._spec.concurrent and len(lines) + bool(rest) > 1:
                raise HookFailed("printed more than one line for a document")
            if rest and not self._expects_output:
                raise HookFailed("printed a line that belongs to no document")
            for line in lines:
                self._on_line(line)
        except HookFailed as failure:
            self._kill(process, str(failure))
            return
        if lines:
            process.output[:] = rest

    def _on_line(self, line: bytes) -> None:
        """Handle one line of output. Raises HookFailed if it belongs to no document."""
        if self._process is not None and self._process.unwritten:
            raise HookFailed("answered before it had read the whole document")
        try:
            members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            shown = line[:_SHOWN_BYTES].decode(errors="replace").strip()
            raise HookFailed(f"printed a line that is not a JSON object: {shown!r}") from None
        document_id = self._document_id(members)
        if document_id in self._cancelled:
            self._cancelled.discard(document_id)
            return
        waiting = self._pending.get(document_id)
        if waiting is not None and waiting.cancelled():  # its `_exchange` is about to see the cancellation
            del self._pending[document_id]
            return
        if waiting is None or waiting.done():
            raise HookFailed("printed a line that belongs to no document")
        if self._spec.concurrent:
            line = msgspec.json.encode(members)
        self._failed_starts, self._earliest_start = 0, 0.0
        waiting.set_result(line)

    def _document_id(self, members: dict[str, msgspec.Raw]) -> str:
        """The id of the document that the output belongs to; without ids there is only one document."""
        if not self._spec.concurrent:
            return next(iter(self._pending), "")
        try:
            return str(msgspec.json.decode(members.pop("id"), type=str | int))
        except (KeyError, ValueError):
            raise HookFailed("printed a line without the id of its document") from None

    async def _kill_and_wait(self, why: str) -> None:
        """Kill the process, and wait until it is reaped. All pending documents fail."""
        if self._process is not None:
            process = self._kill(self._process, why)
            await process.wait_reaped()

    def _kill(self, process: LongLivedProcess, why: str) -> LongLivedProcess:
        """Kill a process that cannot be used any more. All pending documents fail."""
        process.kill()
        self._on_death(process, why)
        return process

    def _on_death(self, process: LongLivedProcess, why: str) -> None:
        """The process is dead: all pending documents fail. After repeated failures the next start is delayed."""
        if process is not self._process:
            return
        self._process = None
        if self._failed_starts:
            self._earliest_start = self._loop.time() + min(
                _RESTART_DELAY * 2 ** (self._failed_starts - 1), _LONGEST_RESTART_DELAY
            )
        self._failed_starts = min(self._failed_starts + 1, 10)
        if not self._expects_output and not self._closed:
            self._report(f"the worker {why}; it is started again when it is needed")
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_exception(OutputTooLong(why) if process.overflowed else HookFailed(why))

    def invalidate(self) -> None:
        """End the process: the next document starts another one."""
        if self._process is not None:
            self._kill(self._process, "was ended because its script has changed since it started")

    async def aclose(self) -> None:
        """Close the worker's input, wait a little, kill it."""
        self._closed = True
        for process in self._processes:  # only the last one may still live
            await process.aclose(_CLOSE_GRACE)


class LongLivedProcess:
    """One process, to which the event loop writes and from which it reads; it is reaped when it ends.

    It calls its owner when there is output and when it has died, but not after `kill`. However it ends, its whole
    process group is killed, it is reaped, and its descriptors are closed.
    """

    def __init__(
        self,
        watch: EventWatch,
        pid: int,
        fds: list[int],
        on_output: Callable[[LongLivedProcess], None],
        on_death: Callable[[LongLivedProcess, str], None],
    ) -> None:
        """`on_output` is called when `output` has grown, `on_death` once, with what happened. Neither may raise."""
        self.output = bytearray()
        """Its standard output so far; the owner removes what it has read."""
        self.unwritten = b""
        """Bytes for its standard input that it has not taken yet."""
        self.output_limit = OUTPUT_LIMIT
        """How many bytes of output are kept for one line."""
        self.overflowed = False
        """It printed more than that."""
        self.reaped: asyncio.Future[None] = watch.loop.create_future()
        """Done when it is reaped."""
        self._watch = watch
        self._pid = pid
        self._stdin_fd, self._stdout_fd, self._stderr_fd, self._exit_fd = fds
        self._call_on_output, self._call_on_death = on_output, on_death
        self._detached = False  # the owner gets no more calls
        self._stderr = bytearray()
        watch.add_fd(self._exit_fd, self._on_exit)
        watch.add_fd(self._stdout_fd, self._on_output)
        watch.add_fd(self._stderr_fd, self._on_stderr)

    def write(self, line: bytes) -> None:
        """Write a line to its standard input, now or when it reads."""
        if self.unwritten:
            self.unwritten += line
            return
        self.unwritten = line
        self._write_pending()
        if self.unwritten and self._stdin_fd >= 0:
            self._watch.add_fd(self._stdin_fd, self._on_writable, WRITABLE)

    def take_stderr(self) -> bytes:
        """What it has printed on standard error since the last call of this method, or the end of it."""
        if self._stderr_fd >= 0:
            self._on_stderr()
        stderr = bytes(self._stderr)
        self._stderr.clear()
        return stderr

    def kill(self) -> None:
        """Kill its whole process group; the event loop reaps it."""
        self._detached = True
        for fd in (self._stdin_fd, self._stdout_fd, self._stderr_fd):
            if fd >= 0:
                self._watch.close_fd(fd)
        self._stdin_fd = self._stdout_fd = self._stderr_fd = -1
        if not self.reaped.done():
            signal_group(self._pid, signal.SIGKILL)

    async def aclose(self, seconds: float) -> None:
        """Close its input, and kill it if it has not ended after so many seconds; it is reaped when this returns."""
        self._detached = True
        if self._stdin_fd >= 0:
            self._watch.close_fd(self._stdin_fd)
            self._stdin_fd = -1
        with anyio.move_on_after(seconds):
            await asyncio.wait([self.reaped])
        self.kill()
        await self.wait_reaped()

    async def wait_reaped(self) -> None:
        """Wait until the killed process is reaped, also while this task is being cancelled."""
        with anyio.move_on_after(REAP_LIMIT, shield=True):
            await asyncio.wait([self.reaped])

    # --- callbacks of the event loop ---

    def _on_writable(self) -> None:
        self._write_pending()
        if not self.unwritten and self._stdin_fd >= 0:
            self._watch.remove_fd(self._stdin_fd)

    def _write_pending(self) -> None:
        try:
            self.unwritten = self.unwritten[os.write(self._stdin_fd, self.unwritten) :]
        except BlockingIOError:
            pass
        except OSError:  # it has closed its input or has ended; `_on_exit` finds out which
            self.unwritten = b""
            self._watch.loop.call_later(_EXIT_DELAY, self._end_running, "has closed its input")

    def _on_output(self) -> None:
        try:
            piece = os.read(self._stdout_fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close_fd(self._stdout_fd)
            self._stdout_fd = -1
            self._watch.loop.call_later(_EXIT_DELAY, self._end_running, "has closed its output")
        elif not self._detached:
            self.output += piece
            self._call_on_output(self)
            if len(self.output) > self.output_limit:
                self.overflowed = True
                self._end(f"printed more than {self.output_limit} bytes on one line")

    def _on_stderr(self) -> None:
        try:
            piece = os.read(self._stderr_fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close_fd(self._stderr_fd)
            self._stderr_fd = -1
        self._stderr += piece
        del self._stderr[:-_STDERR_LIMIT]

    def _on_exit(self) -> None:
        self._watch.close_fd(self._exit_fd)
        if self._stdout_fd >= 0 and not self._detached:  # what it printed last
            self._on_output()
        if self._stderr_fd >= 0:
            self._on_stderr()
        signal_group(self._pid, signal.SIGKILL)  # not reaped yet, so the group's id is not reused
        code = reap(self._pid)
        self.reaped.set_result(None)
        self._end(f"exited with status {code}" if code >= 0 else f"was ended by signal {-code}")

    def _end_running(self, what_happened: str) -> None:
        """End it, unless it has exited: then `_on_exit` says how."""
        if self.reaped.done() or not has_ended(self._pid):
            self._end(what_happened)

    def _end(self, what_happened: str) -> None:
        """It cannot be used any more."""
        if not self._detached:
            self.kill()
            self._call_on_death(self, what_happened)
        elif self.reaped.done():
            self.kill()
