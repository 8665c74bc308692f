"""Runs a hook as a worker: a command that stays alive, reads one JSON document per line and prints one line for each.

Law: a worker prints exactly one line for each document, or it is killed. After an unexpected line, a second line or
half a line, its next line might belong to another event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Final

import anyio
import msgspec

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes.process import output_limit
from . import command
from .event_watch import TimeLimit, get_watch
from .long_lived_process import LongLivedProcess, RestartedProcess
from .runner import HookFailed, OutputTooLong, Report, StatefulRunner

_RESTART_DELAY: Final = 0.1  # seconds before the start after a second failure, doubled after each further failure
_LONGEST_RESTART_DELAY: Final = 5.0  # seconds
_MOST_CANCELLED: Final = 1000  # cancelled documents of a worker for which output is still to come
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
        self._process: RestartedProcess[bytes] = RestartedProcess(spec, self._on_output, self._on_process_end)
        self._pending = self._process.pending  # outputs to come, by document id
        self._cancelled: set[str] = set()  # ids of documents whose output nobody waits for any more
        self._next_id = count(1)
        self._loop = asyncio.get_running_loop()
        self._watch = get_watch(self._loop)
        self._lock = asyncio.Lock()
        self._failed_starts = 0  # times in a row that it ended without any valid output
        self._earliest_start = 0.0  # on the loop's clock

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
            process = self._process.current or await self._get_process(document, env)
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
        if process is not self._process.current:
            return
        self._cancelled.add(document_id)
        if not self._spec.concurrent or len(self._cancelled) > _MOST_CANCELLED:
            await self._kill_and_wait("was ended because it had not answered when its call was cancelled")

    async def _get_process(self, document: Document, env: Mapping[str, str]) -> LongLivedProcess:
        """The process, which is started if there is none. Raises OSError or ValueError."""
        while self._process.current is None:
            if (delay := self._earliest_start - self._loop.time()) > 0:
                await asyncio.sleep(delay)
                continue
            if self._process.is_closed:
                raise ValueError("the session has ended")
            self._cancelled.clear()
            self._process.start(document, env)
        return self._process.current

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
            self._process.kill(str(failure))
            return
        if lines:
            process.output[:] = rest

    def _on_line(self, line: bytes) -> None:
        """Handle one line of output. Raises HookFailed if it belongs to no document."""
        if (process := self._process.current) is not None and process.unwritten:
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
        if (process := self._process.kill(why)) is not None:
            await process.wait_reaped()

    def _on_process_end(self, process: LongLivedProcess, why: str) -> type[HookFailed]:
        """The process is dead: what is pending fails with this. After repeated failures the next start is delayed."""
        if self._failed_starts:
            self._earliest_start = self._loop.time() + min(
                _RESTART_DELAY * 2 ** (self._failed_starts - 1), _LONGEST_RESTART_DELAY
            )
        self._failed_starts = min(self._failed_starts + 1, 10)
        if not self._expects_output and not self._process.is_closed:
            self._report(f"the worker {why}; it is started again when it is needed")
        return OutputTooLong if process.overflowed else HookFailed

    def invalidate(self) -> None:
        """End the process: the next document starts another one."""
        self._process.kill("was ended because its script has changed since it started")

    async def aclose(self) -> None:
        """Close the worker's input, wait a little, kill it."""
        await self._process.aclose()
