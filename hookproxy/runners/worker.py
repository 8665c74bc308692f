"""Runs a hook as a worker: a command that is kept alive, reads a JSON document per line and answers each with a line.

Law: what a worker prints is the answer to the document that it was given, or the worker is ended. A line that nobody
asked for, a second line, half a line: after any of these its next line might be the answer to another occasion.
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
from . import command
from .event_watch import Limit, watch_of
from .long_lived_process import Child
from .runner import Kept, Say

_FAREWELL: Final = 0.3  # seconds from the end of its input until it is killed: enough to write down what it knows
_PAUSE: Final = 0.1  # seconds before a second start in vain, doubled for each one after that
_LONGEST_PAUSE: Final = 5.0  # seconds
_GIVEN_UP: Final = 1000  # answers that are still to come and nobody waits for
_SHOWN: Final = 100  # bytes of an answer that is none


def keep(_hooks: list[HookSpec], say: Say) -> Kept:
    """As `base.Keep`; a worker starts with its first document, and again with the first after its death."""
    workers: dict[int, _Worker] = {}

    async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        worker = workers.get(id(spec)) or workers.setdefault(id(spec), _Worker(spec, say))
        return await worker.run(document, env)

    async def aclose() -> None:
        async with anyio.create_task_group() as tasks:
            for worker in workers.values():
                tasks.start_soon(worker.aclose)

    def renew(spec: HookSpec) -> None:
        if worker := workers.get(id(spec)):
            worker.renew()

    return Kept(run, aclose, renew)


class _Worker:
    """A hook's process while it lives, and the documents that it has not answered."""

    def __init__(self, spec: HookSpec, say: Say) -> None:
        self._spec = spec
        self._say = partial(say, spec)
        self._child: Child | None = None
        self._children: list[Child] = []  # those that may not be reaped yet
        self._asked: dict[str, asyncio.Future[bytes]] = {}
        self._given_up: set[str] = set()  # ids of a concurrent worker whose answers nobody waits for any more
        self._ids = count(1)
        self._loop = asyncio.get_running_loop()
        self._watch = watch_of(self._loop)
        self._turn = asyncio.Lock()
        self._vain = 0  # times in a row that it ended before it had answered anything
        self._not_before = 0.0  # on the loop's clock
        self._closed = False

    async def run(self, document: Document, env: Mapping[str, str]) -> HookResult:
        """Ask it. The timeout holds for all, also for waiting until it has answered others or may start again.

        A timeout ends the worker; so does a cancel, unless it tells its answers apart.
        """
        begun = self._loop.time()
        try:
            with Limit(self._watch, self._spec.timeout):
                if self._spec.concurrent:
                    return await self._ask(document, env, begun)
                async with self._turn:
                    return await self._ask(document, env, begun)
        except TimeoutError:
            if self._spec.concurrent:  # else it has been ended, unless another's document kept it busy
                await self._drop("was ended, for it took too long with another document")
            return HookResult(Ended.TIMED_OUT, ms=self._since(begun))

    async def _ask(self, document: Document, env: Mapping[str, str], begun: float) -> HookResult:
        try:
            child = self._child or await self._living(document, env)
        except (OSError, ValueError) as error:
            return command.not_started(self._spec, error, self._since(begun))
        number = str(next(self._ids))
        self._asked[number] = answer = self._loop.create_future()
        try:
            child.write(self._line(number, document.stdin))
            said: bytes = await answer
        except _Failed as failure:
            return HookResult(Ended.FAILED, 0, b"", child.said(), self._since(begun), detail=str(failure))
        except asyncio.CancelledError:
            if not answer.cancelled():  # it has come just now; an exception in it must be looked at
                answer.exception()
            elif number in self._asked:  # else it has come since
                await self._abandon(child, number)
            raise
        finally:
            self._asked.pop(number, None)
        return HookResult(Ended.EXITED, 0, said, child.said(), self._since(begun))

    def _since(self, begun: float) -> float:
        """Milliseconds."""
        return (self._loop.time() - begun) * 1000

    async def _abandon(self, child: Child, number: str) -> None:
        """Nobody waits for this answer any more; it must not be taken for the next."""
        self._asked.pop(number, None)
        if child is not self._child:
            return
        self._given_up.add(number)
        if not self._spec.concurrent or len(self._given_up) > _GIVEN_UP:
            await self._drop("was ended, for it had not answered when its call was over")

    async def _living(self, document: Document, env: Mapping[str, str]) -> Child:
        """The process, started where there is none. Raises OSError or ValueError."""
        while self._child is None:
            if (pause := self._not_before - self._loop.time()) > 0:
                await asyncio.sleep(pause)
                continue
            if self._closed:
                raise ValueError("the session has ended")
            self._given_up.clear()
            hook = command.prepared(self._spec, document, env)
            pid, fds, _ = command.start(hook)
            self._child = Child(self._watch, pid, fds, self._read, self._fail)
            self._children = [one for one in self._children if not one.gone.done()] + [self._child]
        return self._child

    def _line(self, number: str, document: bytes | bytearray) -> bytes:
        """The document on one line, whatever its reader takes for the end of one."""
        line = raw_json.one_line(bytes(document).strip().replace(b"\n", b" "))
        if self._spec.concurrent:
            line = b'{"id":"%b"%b%b' % (number.encode(), b"" if line[1:].strip() == b"}" else b",", line[1:])
        return line + b"\n"

    @property
    def _awaited(self) -> bool:
        """Somebody waits for an answer, or one that nobody waits for any more is still to come."""
        return bool(self._given_up) or any(not waiting.done() for waiting in self._asked.values())

    # --- what it does ---

    def _read(self, child: Child) -> None:
        """It has printed something."""
        *lines, rest = bytes(child.printed).split(b"\n")
        try:
            if not self._spec.concurrent and len(lines) + bool(rest) > 1:
                raise _Failed("printed more than one line for a document")
            if rest and not self._awaited:
                raise _Failed("printed something that nobody had asked for")
            for line in lines:
                self._answered(line)
        except _Failed as failure:
            self._distrust(child, str(failure))
            return
        if lines:
            child.printed[:] = rest

    def _answered(self, line: bytes) -> None:
        """One line of its output. Raises _Failed where it is the answer to nothing."""
        if self._child is not None and self._child.unwritten:
            raise _Failed("answered before it had read its document")
        try:
            members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            shown = line[:_SHOWN].decode(errors="replace").strip()
            raise _Failed(f"answered with what is no JSON object: {shown!r}") from None
        number = self._number(members)
        if number in self._given_up:
            self._given_up.discard(number)
            return
        waiting = self._asked.get(number)
        if waiting is not None and waiting.cancelled():  # whoever asked is about to learn that
            del self._asked[number]
            return
        if waiting is None or waiting.done():
            raise _Failed("printed something that nobody had asked for")
        if self._spec.concurrent:
            line = msgspec.json.encode(members)
        self._vain, self._not_before = 0, 0.0
        waiting.set_result(line)

    def _number(self, members: dict[str, msgspec.Raw]) -> str:
        """The id of the document that is answered; of a worker without ids, the only one."""
        if not self._spec.concurrent:
            return next(iter(self._asked), "")
        try:
            return str(msgspec.json.decode(members.pop("id"), type=str | int))
        except (KeyError, ValueError):
            raise _Failed("answered without the id of its document") from None

    async def _drop(self, why: str) -> None:
        """End it, and wait for it: nobody waits for its answer any more, and others have trouble."""
        if self._child is not None:
            child = self._distrust(self._child, why)
            await child.reaped()

    def _distrust(self, child: Child, why: str) -> Child:
        """End it, for it cannot be trusted any more: whoever waits for it has trouble."""
        child.kill()
        self._fail(child, why)
        return child

    def _fail(self, child: Child, why: str) -> None:
        """It is dead: who waits for it has trouble, and it may be some time until it is started again."""
        if child is not self._child:
            return
        self._child = None
        if self._vain:
            self._not_before = self._loop.time() + min(_PAUSE * 2 ** (self._vain - 1), _LONGEST_PAUSE)
        self._vain = min(self._vain + 1, 10)
        if not self._awaited and not self._closed:
            self._say(f"the worker {why}; it is started again when it is needed")
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(_Failed(why))

    def renew(self) -> None:
        """End it: the next document starts another one."""
        if self._child is not None:
            self._distrust(self._child, "was ended, for its script has been written since it started")

    async def aclose(self) -> None:
        """End its input, wait a little, kill it."""
        self._closed = True
        for child in self._children:  # none but the last still lives
            await child.aclose(_FAREWELL)


class _Failed(Exception):
    """It gave no answer; the message says why, to stand as `Verdict.trouble`."""
