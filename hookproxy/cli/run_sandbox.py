"""`hookproxy run --sandbox`: starts the server in a sandbox, as a gateway does. Imported only for that.

`hookproxy lock` asks a server in the same sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ..config.load import MANAGED_FOLDER
from ..live.registry import folder_of_runs
from ..model.errors import EXIT_NOT_FOUND, UserError
from ..processes import inherited_state, process, spawn
from ..sandbox.bubblewrap import TEMPORARY
from ..sandbox.folders import SYSTEM, is_common, overlaps, within_any
from ..sandbox.installation import Surroundings, find_installation
from ..sandbox.places import own_folder
from ..sandbox.prepare import Prepared, Task, prepared
from ..sandbox.table import Layout, Sandbox
from ..trust.sources import state_folder
from .common import working_directory

if TYPE_CHECKING:
    import argparse

    from ..processes.process import Server

PASSES: Final = ("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR")
"""Variables that no secret is in; those whose names begin with LC_ pass, too."""


def start(options: argparse.Namespace, command: list[str], started: Callable[[int], None]) -> Server:
    """Start the server. `started` is called as by `start_server`. Raises UserError."""
    with _ready(options, command, os.environ, working_directory()) as ready:
        return process.start_server(ready.command, started, confined=(ready.env, ready.start))


def start_asked(
    options: argparse.Namespace,
    command: list[str],
    environ: Mapping[str, str],
    cwd: str,
    std_fds: tuple[int, int, int],
) -> int:
    """Start a server that is only asked what it offers, as `run` would in this folder with these variables.

    Returns its process id; it has a session of its own. Raises UserError, OSError, ValueError.
    """
    with _ready(options, command, environ, cwd) as ready:
        return spawn.start_confined(ready.command, ready.env, ready.start, std_fds)


@contextmanager
def _ready(options: argparse.Namespace, command: list[str], environ: Mapping[str, str], cwd: str) -> Iterator[Prepared]:
    """The command, ready to be started in its sandbox within the context. Raises UserError."""
    cwd, user = os.path.realpath(cwd), environ.get("HOME") or os.path.expanduser("~")
    home = os.path.realpath(user)
    protected = sorted(set(map(os.path.realpath, (*own_files(environ), *own_files(os.environ)))))
    read, write = (
        tuple(_real(path, user, cwd) for path in paths) for paths in (options.sandbox_read, options.sandbox_write)
    )
    own = TEMPORARY
    with suppress(OSError):
        own = own_folder(state_folder(environ, home), "run", cwd)
    of_its_own = [own] if own != TEMPORARY else []
    writable = (*write, *of_its_own, *_working_folder(cwd, home))
    _check((*read, *write, *_working_folder(cwd, home)), protected)
    env = {name: value for name, value in environ.items() if name in PASSES or name.startswith("LC_")}
    env |= {name: environ[name] for name in options.sandbox_env if name in environ} | {"HOME": own}
    try:
        around = Surroundings((home,), protected, writable, (*read, *writable))
        installed = find_installation(command, env.get("PATH"), cwd, around)
    except UserError as problem:
        raise UserError(f"cannot start the server: {problem.message}", problem.hint, EXIT_NOT_FOUND) from None
    layout = Layout(cwd, (*installed.paths, *read), writable, {}, installed.links)
    sandbox = Sandbox(read, write, options.sandbox_network == "all")
    task = Task(sandbox, layout, installed.command, env, protected, os.geteuid(), of_its_own)
    with prepared(task, "auto") as ready:
        inherited_state.keep_descriptors()  # an agent may have left some open for whatever it starts
        for descriptor in ready.inherited:
            os.set_inheritable(descriptor, True)
        yield ready


def _real(path: str, home: str, cwd: str) -> str:
    """The real path of one that an option names."""
    expanded = home + path[1:] if path.partition("/")[0] == "~" else os.path.expanduser(path)
    return os.path.realpath(os.path.join(cwd, expanded))


def own_files(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What is hookproxy's own: whoever can write it is rid of its hooks."""
    home = environ.get("HOME") or os.path.expanduser("~")
    state = state_folder(environ, home)
    yield MANAGED_FOLDER
    yield os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "hookproxy")
    yield from (folder for folder in (state, folder_of_runs(environ, state)) if folder)


def _working_folder(cwd: str, home: str) -> Iterator[str]:
    """The working folder, if the server may write it. Raises UserError if it would show too much."""
    if cwd in ("/", TEMPORARY) or within_any(cwd, SYSTEM):
        return
    if is_common(cwd, [home]):
        problem = f"--sandbox would show the server the whole of {cwd}, the working folder"
        raise UserError(problem, "start it in the folder of a project")
    yield cwd


def _check(paths: tuple[str, ...], protected: list[str]) -> None:
    for path in paths:
        for own in protected:
            if overlaps(path, own):
                problem = f"the sandbox of the server would contain {path}, and hookproxy's own files are in {own}"
                raise UserError(problem, "name another folder")
