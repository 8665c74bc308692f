"""`hookproxy guard`: judges the agents' own tools by one policy; their hooks are its clients.

Exit status: 0 it has ended, or another one runs already; 2 it cannot be started.
"""

from __future__ import annotations

import gc
import os
import signal
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from ..model.errors import UserError, not_written
from ..trust.sources import FileContext
from .common import has_terminal, tell, working_directory
from .options import HOOK_OPTIONS, Parser
from .own_file import CONFIG, user_config_folder

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..config.load import Loaded
    from ..guard.current_policy import Read
    from ..guard.server import Guard
    from ..session.live_feed import LiveFeed


def main(arguments: Sequence[str]) -> int:
    """Run the guard until nobody needs it. Returns the exit status."""
    import anyio

    from ..guard.server import AnotherRuns
    from ..processes import process
    from ..transports.event_loop import new_loop

    if arguments and arguments[0] in subverb_parsers():
        return _subverb(arguments[0], arguments[1:])
    options = build_parser().parse_args(list(arguments))
    process.prepare_for_children()
    try:
        anyio.run(_run, options, backend_options={"loop_factory": new_loop})
    except AnotherRuns:
        tell("a guard of this account runs already: hookproxy guard status shows it, and what is wrong with it")
    return 0


def _subverb(word: str, arguments: Sequence[str]) -> int:
    from ..guard.place import socket_of
    from . import guard_install, guard_status

    if word == "uninstall":
        return guard_install.uninstall(arguments)
    does = {"install": guard_install.install, "status": guard_status.show_status, "stop": guard_status.stop}[word]
    return does(arguments, socket_of(folder()))


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    from . import guard_install, guard_status

    return {
        "install": guard_install.install_parser(),
        "uninstall": guard_install.uninstall_parser(),
        "status": guard_status.status_parser(),
        "stop": guard_status.stop_parser(),
    }


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "guard",
        "Judge the agents' own tools by the hooks, rules and limits of hookproxy.toml. Agents start it when it is "
        "needed, and it ends when nobody has needed it for a while.",
        rest="[install|uninstall|status|stop]",
        subverbs=subverb_parsers,
    )
    parser.add_common(*HOOK_OPTIONS)
    parser.add_argument("--socket", metavar="PATH", help="listen there: a path that ends in /guard.sock")
    parser.add_argument("--foreground", action="store_true", help="do not end when nobody needs it")
    parser.add_common("--fail-closed")
    return parser


async def _run(options: Namespace) -> None:
    from ..guard.server import Guard
    from ..transports import unix_socket

    place = folder(options.socket)
    try:
        inherited = unix_socket.inherited_listeners(os.environ, os.getpid())
        for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # they are for us alone
            os.environ.pop(name, None)
        guard = Guard(place, tell, inherited[0] if inherited else None)
    except OSError as problem:
        raise not_written(place, problem, "cannot be the guard's folder") from None
    try:
        await _judge(guard, partial(_read, options), foreground=options.foreground)
    finally:
        guard.close()


def _read(options: Namespace) -> Read:
    """Read the configuration. Raises UserError."""
    from ..config.digest import digest_of
    from ..config.hook_files import absolute_option
    from ..config.load import MANAGED_FOLDER, failing_closed, find_project, load_by, make_data_folders
    from ..guard.current_policy import Read, seen
    from ..guard.projects import without_project

    started = working_directory()
    environ, project = without_project(os.environ), find_project(options.project, started)
    hooks = [absolute_option(item, started) for item in options.hooks]
    config = None if options.config is None else FileContext(environ, started).find(options.config, started)

    def read(context: FileContext) -> Loaded:
        loaded = load_by(context, config, hooks)
        return failing_closed(loaded) if options.fail_closed else loaded

    def read_project(folder: str, variables: Mapping[str, str]) -> Loaded:
        return read(FileContext({**environ, **variables}, folder, project=project))

    own = os.path.join(user_config_folder(), CONFIG)
    before = seen((own, MANAGED_FOLDER, os.path.join(MANAGED_FOLDER, "managed.toml")))
    context = FileContext(environ, started, project=project)
    loaded = read(context)
    tell(*loaded.notes, *loaded.remarks, *make_data_folders(loaded))
    files = {
        path: snapshot.signature
        for path, snapshot in context.files_read.items()
        if os.path.isfile(path) or not os.path.exists(path)  # a pipe can be read only once
    }
    return Read(loaded, {**before, **files}, digest_of(loaded), read_project)


def folder(path: str | None = None) -> str:
    """The folder of the guard's socket. Raises UserError."""
    from ..guard import place
    from ..guard.server import folder_of

    if path:
        return folder_of(path)
    if folder := place.folder(os.environ, os.path.expanduser("~")):
        return folder
    raise UserError("there is no folder for the guard's socket", "set HOME or XDG_STATE_HOME")


async def _judge(guard: Guard, read: Callable[[], Read], *, foreground: bool) -> None:
    import anyio

    from ..guard.current_policy import CurrentPolicy

    with closing(_open_feed()) as feed:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(feed.serve)
            try:
                policy = CurrentPolicy(read, tasks, tell, feed, guard.folder)
            except UserError as error:
                await guard.fail(str(error))
                raise
            await tasks.start(_end_on_signal, guard)
            gc.freeze()  # as in `run`: what is loaded stays, and is not looked at again
            idle = float("inf") if foreground else policy.loaded.settings.guard_idle_seconds
            if has_terminal():  # a person has started it: agents' clients give it no terminal
                until = "until it is interrupted" if foreground else f"until no event has come for {idle:g} seconds"
                tell(f"the guard judges the events of agents, {until}; hookproxy guard install AGENT lets them ask it")
            try:
                await guard.serve(policy, idle)
            finally:
                guard.close()  # whoever connects now starts another one
                feed.close()
                with anyio.CancelScope(shield=True):  # it is bounded by itself
                    await policy.aclose()
            tasks.cancel_scope.cancel()


def _open_feed() -> LiveFeed:
    """Let consoles find the guard: people may be asked there."""
    from time import time

    from ..live import messages, registry
    from ..session.live_feed import open_feed

    run = messages.Run(messages.VERSION, registry.new_name(), os.getpid(), round(time(), 3), ("hookproxy", "guard"))
    return open_feed(run, tell, needed=False)


async def _end_on_signal(guard: Guard, *, task_status: TaskStatus[None]) -> None:
    from anyio import open_signal_receiver

    with open_signal_receiver(signal.SIGTERM, signal.SIGHUP, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            guard.end(at_once=True)
