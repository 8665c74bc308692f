"""Runs a hook that is a command: finds its program, starts it, and waits until the process itself has ended.

Law: however a run ends (by itself, by timeout, by cancel), its process is reaped and its descriptors are closed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final

from msgspec import Struct

from ..model.errors import resource_shortage
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes import environment, process, spawn
from ..processes.process import LARGEST_PIPE, PIPE_SIZE, SHELL, find_program
from .event_watch import get_watch
from .plain_commands import plain_words
from .run_process import HookProcess


def start_candidates(spec: HookSpec, env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Programs with their arguments, to be tried in order until one starts; none if no program is found.

    For a command string the shell comes last: it prints the usual message about what is wrong with the program.
    """
    words = plain_words(spec.shell) if spec.shell else spec.argv
    if words:
        for program in _programs(words[0], env.get("PATH"), spec.cwd):
            yield program, words
    if spec.shell:
        yield SHELL, (SHELL, "-c", spec.shell)


# Searching PATH costs some 20 us. This grows with the configuration only.
_found_programs: dict[tuple[str, str | None, str], str] = {}


def _programs(word: str, path: str | None, cwd: str) -> Iterator[str]:
    if "/" in word:
        yield word  # the system knows best whether it can be executed
        return
    key = (word, path, cwd)
    cached = _found_programs.get(key)
    if cached is not None:
        yield cached  # if the caller goes on, it could not be started
        del _found_programs[key]
    now = find_program(word, path, cwd)
    if now is not None and now != cached:
        _found_programs[key] = now
        yield now


_SMALLEST_PIPE: Final = select.PIPE_BUF  # bytes that fit into any new pipe, however small
_MOST_PREPARED: Final = 256  # hooks; a configuration has a few


class PreparedHook(Struct):
    """What is the same for each run of a hook as long as its variables are the same: making it anew costs 3 %."""

    spec: HookSpec
    inherited: Mapping[str, str]
    own: Mapping[str, str]
    variables: Mapping[str, str]
    env: Sequence[bytes]
    """`variables` as the system takes them."""
    failure: str = ""
    """Why no process can get these variables; empty if one can."""
    last_start: tuple[bytes, tuple[str, ...]] | None = None
    """The program and the arguments that started last time; None: nothing has started yet."""


_prepared: dict[int, PreparedHook] = {}  # by the hook's identity


async def run_command(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
    """Run a command hook, as `runner.Runner` describes.

    Raises OSError if the system has no descriptor, process or memory left: that is not the hook's fault.
    After the timeout its process group gets TERM, and `process.GRACE` seconds later KILL.
    On cancel the group gets KILL at once, and the cancellation continues when the hook is reaped.
    A hook that asks for the background (`HookSpec.detaches`) has a result at once, and its `rest` later.
    """
    watch = get_watch(asyncio.get_running_loop())
    begun = monotonic()
    try:
        started = start(prepare(spec, document, env), document.stdin)
    except (OSError, ValueError) as error:
        return not_started(spec, error, (monotonic() - begun) * 1000)
    hook_process = HookProcess(watch, started, document.stdin, spec.timeout, begun, spec.detaches)
    await hook_process.wait()
    if hook_process.detached:
        ms = (monotonic() - begun) * 1000
        return HookResult(Ended.DETACHED, ms=ms, rest=partial(_wait_for_rest, hook_process))
    return hook_process.result()


async def _wait_for_rest(hook_process: HookProcess) -> HookResult:
    await hook_process.wait()
    return hook_process.result()


def not_started(spec: HookSpec, error: OSError | ValueError, ms: float = 0.0) -> HookResult:
    """The result of a hook that `start` could not start. Raises the error if it is not the hook's fault."""
    if resource_shortage(error):
        raise error
    word = spec.argv[0] if spec.argv else process.SHELL
    return HookResult(Ended.NOT_STARTED, ms=ms, detail=process.why_not_started(error, word, spec.cwd))


def prepare(spec: HookSpec, document: Document, inherited: Mapping[str, str]) -> PreparedHook:
    """The hook with its variables over the inherited ones, made anew only when the variables change."""
    hook = _prepared.get(id(spec))
    if hook is not None and hook.spec is spec and hook.inherited is inherited and hook.own == document.env:
        return hook
    env = {**inherited, **environment.fit({**document.env, **dict(spec.env)})}
    if spec.cwd:
        env["PWD"] = spec.cwd  # a shell would set it, and not every hook is started by one
    if len(_prepared) >= _MOST_PREPARED:
        _prepared.clear()
    hook = PreparedHook(spec, inherited, document.env, env, ())
    try:
        hook.env = environment.entries(env)
    except ValueError as error:
        hook.failure = str(error)
    _prepared[id(spec)] = hook
    return hook


def start(hook: PreparedHook, document: bytes | bytearray = b"") -> tuple[int, list[int], int]:
    """Start the hook. Returns its process id, four descriptors, and how many bytes of the document were written.

    The descriptors are our ends of its standard input, output and error, and one that is readable when it has ended.
    As much of the document as fits the pipe is written before the start, so that it is there when the hook reads.
    Raises OSError or ValueError if the hook cannot be started; nothing is left open then.
    """
    if hook.failure:
        raise ValueError(hook.failure)
    fds: list[int] = []
    try:
        fds += os.pipe()
        fds += os.pipe()
        fds += os.pipe()
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = fds
        os.set_blocking(from_stdout, False)
        os.set_blocking(from_stderr, False)
        if not document or len(document) > _SMALLEST_PIPE:  # the rest is written later
            os.set_blocking(to_stdin, False)
            if len(document) > PIPE_SIZE:
                process.widen_pipe(to_stdin, LARGEST_PIPE)
        written = os.write(to_stdin, document) if document else 0
        pid = _spawn(hook, (stdin, stdout, stderr))
    except (OSError, ValueError):
        process.close_all(fds)
        raise
    os.close(stdin)
    os.close(stdout)
    os.close(stderr)
    fds = [to_stdin, from_stdout, from_stderr]
    try:
        fds.append(process.open_exit_fd(pid))
    except OSError:
        process.signal_group(pid, signal.SIGKILL)
        process.reap(pid)
        process.close_all(fds)
        raise
    return pid, fds, written


def _spawn(hook: PreparedHook, std_fds: tuple[int, int, int]) -> int:
    if hook.last_start is not None:
        try:
            return spawn.start_hook(*hook.last_start, hook.env, hook.spec.cwd, std_fds)
        except OSError:
            hook.last_start = None
    failure: OSError = FileNotFoundError(errno.ENOENT, "no such command")
    for program, argv in start_candidates(hook.spec, hook.variables):
        candidate = os.fsencode(program), argv
        try:
            pid = spawn.start_hook(*candidate, hook.env, hook.spec.cwd, std_fds)
        except OSError as error:
            failure = error
        else:
            hook.last_start = candidate
            return pid
    raise failure
