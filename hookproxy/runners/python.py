"""Runs a hook that is a Python function, in this process: plain functions in threads, coroutines in the event loop.

The function is trusted as a command of the same configuration is. Its module is searched in the folder of the
configuration file, then among installed packages, never in the working directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from math import inf
from queue import SimpleQueue
from typing import Final, get_type_hints

import msgspec
from msgspec import Struct

from ..model.errors import ConfigError
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes import platforms
from .event_watch import TimeLimit, get_watch
from .runner import Report, StatefulRunner

_MOST_STUCK: Final = 32  # threads that nobody waits for any more: a function that always hangs must not fill memory
_JOIN_LIMIT: Final = 0.2  # seconds that idle threads get to end
_IMPORTERS: Final = (
    __file__,
    importlib.__file__,
    "<frozen importlib._bootstrap>",
    "<frozen importlib._bootstrap_external>",
)
"""Files whose code imports a module: an error in one of them is the module's."""
_OWN_FRAMES: Final = 1  # at the top of a traceback: the one that calls the function
_WAKE: Final = (1).to_bytes(8, sys.byteorder)  # what an eventfd adds; a pipe takes it as well
_WAKE_BYTES: Final = 4096  # read at once: all that many threads have written into a pipe; an eventfd has 8
_CANCEL_GRACE: Final = 0.1  # seconds that a coroutine gets to end when it is cancelled

PythonFunction = Callable[[object], object]


class _Function(Struct, frozen=True):
    """A hook's function, and the type of document that it takes."""

    function: PythonFunction
    decoder: msgspec.json.Decoder[object]
    is_async: bool
    parameter: str
    """The name of its first parameter."""
    is_typed: bool
    """It takes a struct, such as HookInput, and not a dict."""


def open_runner(hooks: list[HookSpec], _report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. Imports the hooks' modules once: changed files need a new start of the proxy."""
    functions = {(spec.cwd, spec.call): _find_function(spec) for spec in hooks}
    threads = Threads()
    coroutines = _Coroutines()

    async def run_python_hook(spec: HookSpec, document: Document, _env: Mapping[str, str]) -> HookResult:
        function = functions[spec.cwd, spec.call]
        loop = asyncio.get_running_loop()
        begun = loop.time()
        executor = coroutines if function.is_async else threads
        stdin = bytes(document.stdin)
        if document.calls is not None and function.is_typed:
            stdin = b'%b,"session":{"calls":%b}}' % (stdin.rstrip()[:-1], document.calls())
        try:
            stdout = await executor.run_function(lambda: _call(function, stdin), spec.timeout)
            result = HookResult(Ended.EXITED, 0, stdout, ms=(loop.time() - begun) * 1000)
        except TimeoutError:
            calls = "call runs" if executor.stuck == 1 else "calls run"
            stuck = f"; it cannot be ended, and {executor.stuck} such {calls} on" if executor.stuck else ""
            detail = f"timed out after {spec.timeout:g} s{stuck}"
            result = HookResult(Ended.FAILED, detail=detail, ms=(loop.time() - begun) * 1000)
        except (_FunctionFailed, TooManyStuck) as failure:
            stderr = failure.traceback.encode(errors="replace") if isinstance(failure, _FunctionFailed) else b""
            result = HookResult(Ended.FAILED, stderr=stderr, detail=str(failure), ms=(loop.time() - begun) * 1000)
        return result

    async def aclose() -> None:
        threads.close()

    return StatefulRunner(run_python_hook, aclose)


# --- finding functions ---


def _find_function(spec: HookSpec) -> _Function:
    """The function that the hook's `call` names. Raises ConfigError."""
    name, _, path = spec.call.partition(":")
    _add_to_path(spec.cwd)
    module = _import(spec, name)
    function = module
    for part in path.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise ConfigError(spec.source, f"{name} has no function {path!r}", f"it was found in {_file(module)}")
    called: PythonFunction = function
    parameter, document = _parameter(called)
    decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(document)
    return _Function(called, decoder, inspect.iscoroutinefunction(called), parameter, is_typed=document is not dict)


def _add_to_path(folder: str) -> None:
    """Have modules found in the folder, after Python's own modules, and not in the working directory."""
    here = os.path.realpath(os.curdir)
    sys.path[:] = [
        entry for entry in sys.path if entry not in ("", ".") and (entry == folder or os.path.realpath(entry) != here)
    ]
    if folder not in sys.path:
        installed = (at for at, entry in enumerate(sys.path) if entry.endswith(("site-packages", "dist-packages")))
        sys.path.insert(next(installed, len(sys.path)), folder)


def _import(spec: HookSpec, name: str) -> object:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        hint = f"it is looked for in {spec.cwd}, then among installed packages"
        raise ConfigError(spec.source, f"cannot import {name}: there is no module {missing.name!r}", hint) from None
    except (Exception, SystemExit) as error:
        raise ConfigError(
            spec.source, f"cannot import {name}: {_describe(error)}", _place(error) or f"it is in {spec.cwd}"
        ) from None
    top = name.partition(".")[0]
    expected = PathFinder.find_spec(top, [spec.cwd])
    if expected and expected.origin and _file(sys.modules[top]) != expected.origin:
        hint = f"{expected.origin} is expected, and {_file(sys.modules[top])} is loaded: choose another name"
        raise ConfigError(spec.source, f"there are two modules {top!r}", hint)
    return module


def forget_modules(folder: str) -> None:
    """Import modules of this folder anew from now on, or those of the same names from another one.

    For a process that tries one version of a hook after another.
    """
    inside = os.path.join(os.path.realpath(folder), "")
    for name, module in list(sys.modules.items()):
        if os.path.realpath(_file(module)).startswith(inside):
            del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    importlib.invalidate_caches()


def _place(error: BaseException) -> str:
    """Where an import failed, as FILE:LINE with the code that stands there; empty: nobody knows."""
    if isinstance(error, SyntaxError):
        file, line, code = error.filename, error.lineno, error.text
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in _IMPORTERS]
        if not frames:
            return ""
        file, line, code = frames[-1].filename, frames[-1].lineno, frames[-1].line
    place = ":".join(str(part) for part in (file, line) if part)
    return ": ".join(part for part in (place, (code or "").strip()) if part)


def _file(module: object) -> str:
    return str(getattr(module, "__file__", None) or module)


def _parameter(function: PythonFunction) -> tuple[str, type]:
    """The name of the function's first parameter, and its type if that is a msgspec.Struct, else dict."""
    first = ""
    try:
        first = next(iter(inspect.signature(function).parameters), "")
        hint: object = get_type_hints(function).get(first)
    except (NameError, TypeError, ValueError):
        return first, dict
    return first, hint if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else dict


# --- calling functions ---


class _FunctionFailed(Exception):
    """The function gave no valid output; the message says why, and becomes `Verdict.failure`."""

    def __init__(self, why: str, error: BaseException | None = None) -> None:
        super().__init__(why)
        self.traceback = "".join(_traceback(error)) if error else ""


def _traceback(error: BaseException) -> list[str]:
    inner = error.__traceback__
    for _ in range(_OWN_FRAMES):
        inner = inner.tb_next if inner else None
    return traceback.format_exception(type(error), error, inner)


def _describe(error: BaseException) -> str:
    message = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _raised(error: BaseException, call: _Function, document: object) -> str:
    """What the function raised, with what to write if it takes its input for the other kind of value."""
    text, name = f"raised {_describe(error)}", call.parameter or "the parameter"
    if isinstance(error, AttributeError) and error.obj is document and isinstance(document, dict):
        typed = f"write {name}: HookInput, and import HookInput from hookproxy.hooks.api"
        return f"{text} ({name} is a dict, because no type is written for it, or one that cannot be found: {typed})"
    kind = type(document).__name__
    takes_dict = isinstance(error, TypeError) and f"'{kind}' object is not subscriptable" in str(error)
    takes_dict = takes_dict or (
        isinstance(error, AttributeError) and error.obj is document and hasattr(dict, error.name or "")
    )
    if takes_dict and not isinstance(document, dict):
        return f"{text} ({name} is a {kind}: write {name}.tool_input and so on, or {name}: dict to get a dict)"
    return text


def _call(call: _Function, document: bytes) -> object:
    """The function's output, or a coroutine that returns it. Raises nothing but _FunctionFailed."""
    try:
        document_value = call.decoder.decode(document)
    except ValueError as error:
        raise _FunctionFailed(f"cannot read its input: {error}") from None
    if call.is_async:
        return _call_async(call, document_value)
    try:
        output = call.function(document_value)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt: only the hook ends
        raise _FunctionFailed(_raised(error, call, document_value), error) from None
    return _output(output)


async def _call_async(call: _Function, document_value: object) -> bytes:
    try:
        coroutine = call.function(document_value)
        assert inspect.isawaitable(coroutine)
        output: object = await coroutine
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise _FunctionFailed(_raised(error, call, document_value), error) from None
    return _output(output)


def _output(output: object) -> bytes:
    """What the function returned, as a command would print it."""
    if output is None:
        return b""
    if not isinstance(output, dict | msgspec.Struct):
        raise _FunctionFailed(f"returned {type(output).__name__}, not a dict or None")
    try:
        return msgspec.json.encode(output)
    except (TypeError, ValueError, RecursionError) as error:
        raise _FunctionFailed(f"returned something that is not JSON: {error}") from None


# --- running plain functions in threads ---


class TooManyStuck(Exception):
    """No further function is run; the message says why, and becomes `Verdict.failure`."""


class Threads:
    """Threads that run functions for one event loop; a new one starts when none is idle."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._finished: deque[_Run] = deque()
        # Threads write to the second when a function has returned: half the cost of asyncio's own way.
        self._wake_fds: tuple[int, int] | None = None
        self._running = 0
        self._closed = False
        self.stuck = 0
        """How many threads run a function whose result nobody waits for any more."""

    async def run_function(self, function: Callable[[], object], seconds: float) -> bytes:
        """Run the function in a thread, and return its result. Raises TimeoutError, TooManyStuck, and what it raises.

        After a timeout or a cancel the function runs on, and counts as stuck until it returns.
        """
        if self.stuck >= _MOST_STUCK:
            raise TooManyStuck(f"cannot be called: {self.stuck} calls that took too long have not returned yet")
        watch = get_watch(asyncio.get_running_loop())
        if self._wake_fds is None:
            self._wake_fds = _open_wake_fds()
            watch.add_fd(self._wake_fds[0], self._collect)
        run = _Run(self, function, watch.loop.create_future(), watch.loop.time() + seconds)
        thread = self._idle.pop() if self._idle else _Thread(self._finished, self._wake_fds[1])
        watch.add_run(run)
        self._running += 1
        run.thread = thread
        thread.runs.put(run)
        try:
            return await run.result
        except asyncio.CancelledError:
            self.stuck += run.result.cancelled()
            raise
        finally:
            watch.remove_run(run)

    def _collect(self) -> None:
        """Functions have returned, and their threads are idle; runs in the event loop."""
        if self._wake_fds is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_fds[0], _WAKE_BYTES)
        while self._finished:
            run = self._finished.popleft()
            self._running -= 1
            if self._closed:
                run.thread.runs.put(None)
            else:
                self._idle.append(run.thread)
            if run.result.done():
                self.stuck -= 1
            elif run.error is not None:
                run.result.set_exception(run.error)
            else:
                run.result.set_result(run.output)

    def close(self) -> None:
        """End the idle threads; others end when their functions return, or with the process."""
        self._closed = True
        for thread in self._idle:
            thread.runs.put(None)
        for thread in self._idle:
            thread.join(_JOIN_LIMIT)
        self._idle.clear()
        if self._wake_fds is not None and not self._running:  # a running thread still writes to it
            for fd in dict.fromkeys(self._wake_fds):
                get_watch(asyncio.get_running_loop()).close_fd(fd)
            self._wake_fds = None


def _open_wake_fds() -> tuple[int, int]:
    """A descriptor that becomes readable when _WAKE is written to the other one: an eventfd on Linux, else a pipe."""
    if sys.platform == "linux" and platforms.linux:
        eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return eventfd, eventfd
    wake_fds = os.pipe()
    os.set_blocking(wake_fds[0], False)
    return wake_fds


class _Run:
    """One run of a function, with its deadline."""

    __slots__ = ("_threads", "due", "error", "function", "output", "result", "thread")

    def __init__(
        self, owner: Threads, function: Callable[[], object], result: asyncio.Future[bytes], due: float
    ) -> None:
        self._threads = owner
        self.function = function
        self.result = result
        self.due = due
        self.thread: _Thread
        self.output = b""
        self.error: Exception | None = None

    def call(self) -> None:
        """Run the function, in a thread."""
        try:
            document_value = self.function()
            assert isinstance(document_value, bytes)
            self.output = document_value
        except Exception as raised:  # raised again where the result is awaited
            self.error = raised

    def on_due(self, _now: float) -> None:
        """The time is up: nobody waits for the result any more."""
        self.due = inf
        if not self.result.done():
            self._threads.stuck += 1
            self.result.set_exception(TimeoutError())


class _Thread(threading.Thread):
    """A thread that executes one run after another; None ends it."""

    def __init__(self, finished: deque[_Run], wake_fd: int) -> None:
        super().__init__(name="runs a Python hook", daemon=True)
        self.runs: SimpleQueue[_Run | None] = SimpleQueue()
        self._finished = finished
        self._wake_fd = wake_fd
        self.start()

    def run(self) -> None:
        while (run := self.runs.get()) is not None:
            run.call()
            self._finished.append(run)
            del run  # it refers to a document
            os.write(self._wake_fd, _WAKE)


# --- running coroutines ---


class _Coroutines:
    """Coroutines in the event loop, each in its own task: one that ignores its cancellation delays nobody."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[bytes]] = set()

    @property
    def stuck(self) -> int:
        """How many still run although nobody waits for them."""
        return len(self._tasks)

    async def run_function(self, function: Callable[[], object], seconds: float) -> bytes:
        """Run the coroutine, and return its result. Raises TimeoutError, and what it raises. A cancel cancels it."""
        coroutine = function()
        assert inspect.iscoroutine(coroutine)
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task: asyncio.Task[bytes] = loop.create_task(coroutine)
        task.add_done_callback(lambda _task: None if over.done() else over.set_result(None))
        try:
            with TimeLimit(get_watch(loop), seconds):
                await over
        except asyncio.CancelledError:
            self._cancel(task)
            raise
        except TimeoutError:
            if self._cancel(task):
                await asyncio.wait({task}, timeout=_CANCEL_GRACE)
            raise
        if task.cancelled():  # by itself: raising CancelledError here would look like a cancelled call
            raise _FunctionFailed("raised CancelledError")
        return task.result()

    def _cancel(self, task: asyncio.Task[bytes]) -> bool:
        """Cancel a task that nobody waits for any more; False: it has just ended."""
        if task.done():
            self._on_done(task)
            return False
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task.cancel()

    def _on_done(self, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio complains if it is never retrieved
