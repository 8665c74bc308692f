"""Runs a hook that is a command: fed and drained by the event loop, over when the command itself has ended.

Law: however a run ends (by itself, by timeout, by cancel), its process is reaped and its descriptors closed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from time import monotonic
from typing import Final

from msgspec import Struct

from ..model.errors import resource_shortage
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes import environment, process, spawn
from ..processes.process import SHELL, find_program
from .event_watch import watch_of
from .run_process import Running

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./ \t-]+")  # means nothing to a shell inside a word

# First words that a shell takes for itself: reserved words, builtins of dash, bash, busybox, ksh, mksh, zsh.
_SHELLS_OWN: Final = frozenset(
    """
    case coproc do done elif else end esac fi for foreach function if in nocorrect repeat select then time
    until while . : alias autoload bg bind break builtin bye caller cat cd chdir command compgen complete
    compopt continue declare dirs disown echo emulate enable eval exec exit export false fc fg float
    functions getopts hash help hist history integer jobs kill let local log logout mapfile mknod nameref
    newgrp noglob popd print printf pushd pushln pwd r read readarray readonly realpath rehash rename return
    sched set setopt shift shopt sleep source stop suspend test times trap true ttyctl type typeset ulimit
    umask unalias unfunction unhash unset unsetopt vared wait whence where which zcompile zmodload
    """.split()  # noqa: SIM905 - for the eye
)


@lru_cache(maxsize=1024)
def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of a command that a shell would only split at blanks and execute; None: it takes a shell.

    Careful rather than complete: quotes, `~`, `$`, globs, assignments and the like are the shell's.
    """
    command = command.strip(" \t\n")
    if not _PLAIN.fullmatch(command):
        return None
    words = tuple(command.split())
    first = words[0]
    if "=" in first or first[0] in "-+%" or first in _SHELLS_OWN:
        return None
    return words


def ways(spec: HookSpec, env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Programs and their arguments, to be tried until one can be started; none where no command is found.

    For a command string the shell comes last: it finds the usual words for what is wrong with the program.
    """
    words = plain_words(spec.shell) if spec.shell else spec.argv
    if words:
        for program in _programs(words[0], env.get("PATH"), spec.cwd):
            yield program, words
    if spec.shell:
        yield SHELL, (SHELL, "-c", spec.shell)


_found: dict[
    tuple[str, str | None, str], str
] = {}  # searching PATH costs some 20 us; grows with the configuration only


def _programs(word: str, path: str | None, cwd: str) -> Iterator[str]:
    if "/" in word:
        yield word  # the system knows best whether it can be executed
        return
    key = (word, path, cwd)
    before = _found.get(key)
    if before is not None:
        yield before  # asked for more: it cannot be started any longer
        del _found[key]
    now = find_program(word, path, cwd)
    if now is not None and now != before:
        _found[key] = now
        yield now


_AT_ONCE: Final = 4096  # bytes that fit into any new pipe, however small the system makes it (PIPE_BUF)
_WIDE: Final = 65_536  # bytes: what a pipe holds as it is made
_WIDEST: Final = 1_048_576  # bytes: the most that the system gives to everybody; 10 MB then take a tenth of the turns
_KEPT: Final = 256  # hooks; a configuration has a handful


class Prepared(Struct):
    """What is the same for each run of a hook as long as its variables are: to make it anew would cost 3 %."""

    spec: HookSpec
    inherited: Mapping[str, str]
    own: Mapping[str, str]
    variables: Mapping[str, str]
    env: Sequence[bytes]
    """The same as the system takes them."""
    failure: str = ""
    """Why no process can be given these variables; empty: one can."""
    way: tuple[bytes, tuple[str, ...]] | None = None
    """The program and its arguments that could be started the last time, if there was one."""


_kept: dict[int, Prepared] = {}  # by the hook's identity


async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
    """Run a command hook, as `base.Runner` says.

    Raises OSError where the system gives us no descriptor, process or memory: that is no fault of the hook.
    After its timeout its group gets TERM, and `process.GRACE` seconds later KILL.
    On cancel the group gets KILL at once, and the cancellation goes on when the hook is reaped.
    """
    watch = watch_of(asyncio.get_running_loop())
    begun = monotonic()
    try:
        started = start(prepared(spec, document, env), document.stdin)
    except (OSError, ValueError) as error:
        return not_started(spec, error, (monotonic() - begun) * 1000)
    running = Running(watch, started, document.stdin, spec.timeout, begun)
    await running.end()
    return running.result()


def not_started(spec: HookSpec, error: OSError | ValueError, ms: float = 0.0) -> HookResult:
    """The result of a hook that `start` could not start. Raises the error where it is no fault of the hook."""
    if resource_shortage(error):
        raise error
    word = spec.argv[0] if spec.argv else process.SHELL
    return HookResult(Ended.NOT_STARTED, ms=ms, detail=process.why_not_started(error, word, spec.cwd))


def prepared(spec: HookSpec, document: Document, inherited: Mapping[str, str]) -> Prepared:
    """The hook with its variables over those inherited. Made once as a rule, for each run gets the same ones."""
    kept = _kept.get(id(spec))
    if kept is not None and kept.spec is spec and kept.inherited is inherited and kept.own == document.env:
        return kept
    env = {**inherited, **environment.fit({**document.env, **dict(spec.env)})}
    if spec.cwd:
        env["PWD"] = spec.cwd  # a shell would say so, and not every hook is started by one
    if len(_kept) >= _KEPT:
        _kept.clear()
    kept = Prepared(spec, inherited, document.env, env, ())
    try:
        kept.env = environment.entries(env)
    except ValueError as illegal:
        kept.failure = str(illegal)
    _kept[id(spec)] = kept
    return kept


def start(hook: Prepared, document: bytes | bytearray = b"") -> tuple[int, list[int], int]:
    """Start it: its id; our ends of its standard three, and what can be read when it has ended; bytes written.

    What of the document fits its standard input is written before it starts, and is all there when it reads.
    Raises OSError or ValueError where it cannot be started; nothing is left then.
    """
    if hook.failure:
        raise ValueError(hook.failure)
    fds: list[int] = []
    try:
        fds += os.pipe()
        fds += os.pipe()
        fds += os.pipe()
        stdin, feed, out, stdout, err, stderr = fds
        os.set_blocking(out, False)
        os.set_blocking(err, False)
        if not document or len(document) > _AT_ONCE:  # more is to be written later
            os.set_blocking(feed, False)
            if len(document) > _WIDE:
                process.widen(feed, _WIDEST)
        written = os.write(feed, document) if document else 0
        pid = _spawn(hook, (stdin, stdout, stderr))
    except (OSError, ValueError):
        process.close_all(fds)
        raise
    os.close(stdin)
    os.close(stdout)
    os.close(stderr)
    fds = [feed, out, err]
    try:
        fds.append(process.open_exit(pid))
    except OSError:
        process.end_tree(pid, signal.SIGKILL)
        process.reap(pid)
        process.close_all(fds)
        raise
    return pid, fds, written


def _spawn(hook: Prepared, standard: tuple[int, int, int]) -> int:
    if hook.way is not None:
        try:
            return spawn.start_hook(*hook.way, hook.env, hook.spec.cwd, standard)
        except OSError:
            hook.way = None
    failure: OSError = FileNotFoundError(errno.ENOENT, "no such command")
    for program, argv in ways(hook.spec, hook.variables):
        way = os.fsencode(program), argv
        try:
            pid = spawn.start_hook(*way, hook.env, hook.spec.cwd, standard)
        except OSError as error:
            failure = error
        else:
            hook.way = way
            return pid
    raise failure
