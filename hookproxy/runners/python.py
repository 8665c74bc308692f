"""Runs a hook that is a Python function, in this process: nothing is started, and nothing is handed through pipes.

What is imported is code of the configuration's author, as a command is. It is found in the folder of the configuration
file, then among installed packages, never in the working directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from math import inf
from queue import SimpleQueue
from typing import Final, get_type_hints

import msgspec
from msgspec import Struct

from ..model.errors import ConfigError
from ..model.hooks import Document, Ended, HookResult, HookSpec
from .event_watch import Limit, watch_of
from .runner import Kept, Say

_MOST_STUCK: Final = 32  # threads that nobody waits for any more: a function that always hangs must not fill memory
_FAREWELL: Final = 0.2  # seconds for threads that have nothing to do to end


class TooManyStuck(Exception):
    """No further function is run; the message says why, to stand as `Verdict.trouble`."""


class Threads:
    """Threads of one event loop, started when there is none to spare."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._returned: deque[_Run] = deque()
        self._bell = -1  # rung by threads when something has returned: half the price of asyncio's own way
        self._under_way = 0
        self._closed = False
        self.stuck = 0
        """How many threads run a function whose result nobody waits for any more."""

    async def run(self, function: Callable[[], object], seconds: float) -> bytes:
        """What the function gives. Raises TimeoutError, TooManyStuck, and what the function raises.

        After a timeout, and on cancel, the function runs on, and is counted as stuck until it returns.
        """
        if self.stuck >= _MOST_STUCK:
            raise TooManyStuck(f"is not called, for {self.stuck} calls that took too long have still not returned")
        watch = watch_of(asyncio.get_running_loop())
        if self._bell < 0:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            watch.add(self._bell, self._collect)
        run = _Run(self, function, watch.loop.create_future(), watch.loop.time() + seconds)
        thread = self._idle.pop() if self._idle else _Thread(self._returned, self._bell)
        watch.begin(run)
        self._under_way += 1
        thread.give(run)
        try:
            return await run.ended
        except asyncio.CancelledError:
            self.stuck += run.ended.cancelled()
            raise
        finally:
            watch.end(run)

    def _collect(self) -> None:
        """Functions have returned, and their threads are free; runs in the loop."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._returned:
            run = self._returned.popleft()
            self._under_way -= 1
            if self._closed:
                run.thread.end()
            else:
                self._idle.append(run.thread)
            if run.ended.done():
                self.stuck -= 1
            elif run.problem is not None:
                run.ended.set_exception(run.problem)
            else:
                run.ended.set_result(run.answer)

    def close(self) -> None:
        """End the threads that have nothing to do; others end when their functions return, or with the process."""
        self._closed = True
        for thread in self._idle:
            thread.end()
        for thread in self._idle:
            thread.join(_FAREWELL)
        self._idle.clear()
        if self._bell >= 0 and not self._under_way:  # else somebody may still ring, and its number be another's by then
            watch_of(asyncio.get_running_loop()).close(self._bell)
            self._bell = -1


class _Run:
    """One function's run, which is overdue at some time."""

    __slots__ = ("_owner", "answer", "due", "ended", "function", "problem", "thread")

    def __init__(
        self, owner: Threads, function: Callable[[], object], ended: asyncio.Future[bytes], due: float
    ) -> None:
        self._owner = owner
        self.function = function
        self.ended = ended
        self.due = due
        self.thread: _Thread
        self.answer = b""
        self.problem: Exception | None = None

    def call(self) -> None:
        """Run the function, in a thread."""
        try:
            given = self.function()
            assert isinstance(given, bytes)
            self.answer = given
        except Exception as raised:  # handed over: it is raised where the function is waited for
            self.problem = raised

    def overdue(self, _now: float) -> None:
        """Nobody waits any longer."""
        self.due = inf
        if not self.ended.done():
            self._owner.stuck += 1
            self.ended.set_exception(TimeoutError())


class _Thread:
    """A thread that does one run after another."""

    def __init__(self, returned: deque[_Run], bell: int) -> None:
        self._runs: SimpleQueue[_Run | None] = SimpleQueue()
        self._returned = returned
        self._bell = bell
        self._thread = threading.Thread(target=self._work, name="runs a Python hook", daemon=True)
        self._thread.start()

    def give(self, run: _Run) -> None:
        """Do this; only when it has nothing to do."""
        run.thread = self
        self._runs.put(run)

    def end(self) -> None:
        """End when there is nothing to do."""
        self._runs.put(None)

    def join(self, seconds: float) -> None:
        """Wait until it has ended, so long at most."""
        self._thread.join(seconds)

    def _work(self) -> None:
        while (run := self._runs.get()) is not None:
            run.call()
            self._returned.append(run)
            del run  # it holds a document
            os.eventfd_write(self._bell, 1)


Function = Callable[[object], object]

_FRAMES_OF_OURS: Final = 1  # at the top of a traceback: that of whoever calls the function
_GRACE: Final = 0.1  # seconds that a coroutine gets to end when it is cancelled


class _Call(Struct, frozen=True):
    """A hook's function, and what it is called with."""

    function: Function
    decoder: msgspec.json.Decoder[object]
    is_async: bool


def keep(hooks: list[HookSpec], _say: Say) -> Kept:
    """As `base.Keep`. Imports the hooks' modules, once: what has changed on disk needs another start."""
    found = {(spec.cwd, spec.call): _found(spec) for spec in hooks}
    threads = Threads()
    tasks = _Tasks()

    async def run(spec: HookSpec, document: Document, _env: Mapping[str, str]) -> HookResult:
        call = found[spec.cwd, spec.call]
        loop = asyncio.get_running_loop()
        begun = loop.time()
        place = tasks if call.is_async else threads
        try:
            stdout = await place.run(lambda: _called(call, document.stdin), spec.timeout)
            result = HookResult(Ended.EXITED, 0, stdout, ms=(loop.time() - begun) * 1000)
        except TimeoutError:
            stuck = (
                f"; it cannot be ended, and {place.stuck} such {'call runs' if place.stuck == 1 else 'calls run'} on"
            )
            detail = f"timed out after {spec.timeout:g} s{stuck if place.stuck else ''}"
            result = HookResult(Ended.FAILED, detail=detail, ms=(loop.time() - begun) * 1000)
        except (_Raised, TooManyStuck) as failure:
            said = failure.traceback.encode(errors="replace") if isinstance(failure, _Raised) else b""
            result = HookResult(Ended.FAILED, stderr=said, detail=str(failure), ms=(loop.time() - begun) * 1000)
        return result

    async def aclose() -> None:
        threads.close()

    return Kept(run, aclose)


# --- finding the function ---


def _found(spec: HookSpec) -> _Call:
    """Raises ConfigError."""
    name, _, path = spec.call.partition(":")
    _look_in(spec.cwd)
    module = _imported(spec, name)
    function = module
    for part in path.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise ConfigError(spec.source, f"{name} has no function {path!r}", f"it was found in {_file(module)}")
    called: Function = function
    return _Call(called, msgspec.json.Decoder(_wanted(called)), inspect.iscoroutinefunction(called))


def _look_in(folder: str) -> None:
    """Modules are found in the folder after those of Python itself, and not in the working directory."""
    here = os.path.realpath(os.curdir)
    sys.path[:] = [one for one in sys.path if one not in ("", ".") and (one == folder or os.path.realpath(one) != here)]
    if folder not in sys.path:
        installed = (at for at, one in enumerate(sys.path) if one.endswith(("site-packages", "dist-packages")))
        sys.path.insert(next(installed, len(sys.path)), folder)


def _imported(spec: HookSpec, name: str) -> object:
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        hint = f"it is looked for in {spec.cwd}, then among installed packages"
        raise ConfigError(spec.source, f"cannot import {name}: there is no module {missing.name!r}", hint) from None
    except (Exception, SystemExit) as problem:
        where = traceback.format_exception(problem)[-2].strip().partition("\n")[0]
        raise ConfigError(spec.source, f"cannot import {name}: {_sentence(problem)}", where) from None
    top = name.partition(".")[0]
    meant = PathFinder.find_spec(top, [spec.cwd])
    if meant and meant.origin and _file(sys.modules[top]) != meant.origin:
        hint = f"{meant.origin} is meant, and {_file(sys.modules[top])} is loaded: choose another name"
        raise ConfigError(spec.source, f"there are two modules {top!r}", hint)
    return module


def _file(module: object) -> str:
    return str(getattr(module, "__file__", None) or module)


def _wanted(function: Function) -> type:
    """What the document is read as: a msgspec.Struct, if the first parameter is said to be one, else a dict."""
    try:
        hints = get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters), "")
    except (NameError, TypeError, ValueError):
        return dict
    wanted: object = hints.get(first)
    return wanted if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct) else dict


# --- calling it ---


class _Raised(Exception):
    """The function gave no answer; the message says why, to stand as `Verdict.trouble`."""

    def __init__(self, why: str, problem: BaseException | None = None) -> None:
        super().__init__(why)
        self.traceback = "".join(_frames(problem)) if problem else ""


def _frames(problem: BaseException) -> list[str]:
    inner = problem.__traceback__
    for _ in range(_FRAMES_OF_OURS):
        inner = inner.tb_next if inner else None
    return traceback.format_exception(type(problem), problem, inner)


def _sentence(problem: BaseException) -> str:
    said = str(problem).partition("\n")[0]
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__


def _called(call: _Call, document: bytes | bytearray) -> object:
    """What the function prints, or a coroutine that gives it. Raises _Raised, whatever the function does."""
    try:
        given = call.decoder.decode(document)
    except ValueError as problem:
        raise _Raised(f"cannot be given its document: {problem}") from None
    if call.is_async:
        return _awaited(call, given)
    try:
        answer = call.function(given)
    except BaseException as problem:  # SystemExit and KeyboardInterrupt, too: it is a hook that ends, not we
        raise _Raised(f"raised {_sentence(problem)}", problem) from None
    return _printed(answer)


async def _awaited(call: _Call, given: object) -> bytes:
    try:
        coroutine = call.function(given)
        assert inspect.isawaitable(coroutine)
        answer: object = await coroutine
    except asyncio.CancelledError:
        raise
    except BaseException as problem:
        raise _Raised(f"raised {_sentence(problem)}", problem) from None
    return _printed(answer)


def _printed(answer: object) -> bytes:
    """The answer as a command would print it."""
    if answer is None:
        return b""
    if not isinstance(answer, dict | msgspec.Struct):
        raise _Raised(f"returned {type(answer).__name__}, where an answer is a dict, or None")
    try:
        return msgspec.json.encode(answer)
    except (TypeError, ValueError, RecursionError) as problem:
        raise _Raised(f"returned what is no JSON: {problem}") from None


class _Tasks:
    """Coroutines in the event loop, each in a task of its own: one that will not be cancelled holds up nobody."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[bytes]] = set()

    @property
    def stuck(self) -> int:
        """How many go on although nobody waits for them."""
        return len(self._tasks)

    async def run(self, function: Callable[[], object], seconds: float) -> bytes:
        """What the coroutine gives. Raises TimeoutError, and what it raises. On cancel it is cancelled."""
        coroutine = function()
        assert inspect.iscoroutine(coroutine)
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task: asyncio.Task[bytes] = loop.create_task(coroutine)
        task.add_done_callback(lambda _task: None if over.done() else over.set_result(None))
        try:
            with Limit(watch_of(loop), seconds):
                await over
        except asyncio.CancelledError:
            self._leave(task)
            raise
        except TimeoutError:
            if self._leave(task):
                await asyncio.wait({task}, timeout=_GRACE)
            raise
        if task.cancelled():  # not by us: to raise that here would look as if the call had been
            raise _Raised("raised CancelledError")
        return task.result()

    def _leave(self, task: asyncio.Task[bytes]) -> bool:
        """Cancel what nobody waits for any more; False: it has just ended."""
        if task.done():
            self._ended(task)
            return False
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task.cancel()

    def _ended(self, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains that it was not
