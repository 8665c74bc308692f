"""Makes a command ready to be started confined, by what this machine has: words, descriptors, and a thread for it.

Law: a command that should run in a sandbox is never started without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial

from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import UserError
from ..processes.confined import Confinement, Starter, Starts, landlock_abi, start_once
from . import modes
from .available import Landlock, find_sandbox
from .bubblewrap import TEMPORARY, Tools, arguments
from .cgroups import waiting
from .installation import check_layout
from .landlock import HANDLED, OLDEST_ABI, SCOPES, rights, without
from .limits import limited
from .places import close_all, open_all, open_rules, rule
from .system_calls import names_of, namespaced
from .table import Layout, Sandbox

mechanism = cache(find_sandbox)
"""What confines servers, by what is wanted. It is looked for once. Raises UserError that says why there is none."""


class Task(Struct, frozen=True):
    """What is to be started confined."""

    sandbox: Sandbox
    layout: Layout
    command: tuple[str, ...]
    env: Mapping[str, str]
    protected: Sequence[str]
    """Real paths that it must not see, whatever lies around them."""
    uid: int
    own: Sequence[str] = ()
    """Real paths of folders of its own, which may lie in what is protected."""
    is_other: bool = False
    """It runs as an account that is not ours."""
    in_group: bool = False
    """It waits until it is in a cgroup that limits it."""


class Prepared(Struct, frozen=True):
    """A command that is confined if it is started so."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    inherited: tuple[int, ...]
    start: Starts
    """Calls a function that starts a process, where what it starts is confined."""


@contextmanager
def prepared(task: Task, wanted: str) -> Iterator[Prepared]:
    """The command, ready to be started within the context. Raises UserError."""
    layout = task.layout
    check_layout((*layout.readable, *layout.writable), task.protected, task.own)
    tools = mechanism(wanted)
    way = _for_landlock(task, tools) if isinstance(tools, Landlock) else _for_bubblewrap(task, tools)
    with way as ready:
        yield replace(ready, command=waiting(ready.command)) if task.in_group else ready


@cache
def _starter() -> Starter:
    """The thread that starts bubblewrap. What that keeps apart by names is kept apart by rules, too, where there are.

    A process that dies with its parent dies with the thread that has started it, so there is one for all.
    """
    scopes = SCOPES if landlock_abi() >= OLDEST_ABI else 0
    return Starter(Confinement(scoped=scopes, filter=namespaced(os.uname().machine), drops_capabilities=False))


@contextmanager
def _for_bubblewrap(task: Task, tools: Tools) -> Iterator[Prepared]:
    layout = task.layout
    # Another account opens what it sees by itself: through a link it would reach nothing that it may not read anyway.
    descriptors = {} if task.is_other else open_all((*layout.readable, *layout.writable))
    try:
        for path, real in tools.system_files.items():
            if os.path.isfile(real):
                descriptors[path] = os.open(real, os.O_RDONLY | os.O_CLOEXEC)
        if task.uid == 0:
            tools = replace(tools, read_only_proc=True)
        words = arguments(tools, layout, task.sandbox, descriptors, task.command, in_group=task.in_group)
        yield Prepared(words, task.env, "/", tuple(descriptors.values()), _starter().start)
    finally:
        close_all(descriptors.values())


@contextmanager
def _for_landlock(task: Task, landlock: Landlock) -> Iterator[Prepared]:
    layout, env = task.layout, dict(task.env)
    if layout.cwd == TEMPORARY:
        problem = "there is no folder in which it could work, and Landlock gives it no /tmp of its own"
        raise UserError(problem, "its administrator must name one that it may write: cwd")
    if env["HOME"] == TEMPORARY:
        env["HOME"] = layout.cwd
    env.setdefault("TMPDIR", os.path.join(env["HOME"], ".tmp"))
    allowed = rights(layout)
    descriptors = {} if task.is_other else open_all({*layout.readable, *layout.writable})
    rules = [rule(descriptor, allowed[path]) for path, descriptor in descriptors.items()]
    try:
        shown = {path: bits for path, bits in allowed.items() if path not in descriptors}
        rules += open_rules(without(shown, task.protected))
        network = task.sandbox.network
        confinement = Confinement(HANDLED, SCOPES, rules, landlock.filters[network])
        if not task.is_other:  # whose files we cannot change
            names, folders = names_of(os.uname().machine), layout.writable
            confinement = replace(
                confinement,
                asking=landlock.asking[network],
                answer=lambda asked: modes.answer(asked, names, folders),
            )
        words = limited(task.sandbox, task.command, makes_temporary=True, in_group=task.in_group)
        yield Prepared(words, env, layout.cwd, (), partial(start_once, confinement))
    except OSError as error:
        raise UserError(f"its sandbox cannot be made: {error.strerror}", "the log may say more") from None
    finally:
        close_all(descriptor for descriptor, _ in rules)
