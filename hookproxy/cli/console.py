"""`hookproxy console`: a local web page with the calls of all runs, approvals, the audit and the configuration."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..config.load import load
from ..console.web import Options
from ..model.errors import UserError
from .common import add_hook_options, load_named, new_parser, show, split_command, working_directory
from .hook_runtime import redirected_output, run
from .run import server_name

if TYPE_CHECKING:
    import argparse


USAGE: Final = (
    "hookproxy console [--port N | --socket PATH] [--open] [--audit FILE] [--config FILE] [--hooks [DIALECT=]FILE]..."
)

_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 64


def main(arguments: Sequence[str]) -> int:
    """Serve the pages until a signal. Returns the exit status."""
    option_words, command = split_command(arguments)
    options = build_parser().parse_args(option_words)
    if options.name and not command:
        raise UserError("--name names no server, because there is no COMMAND", f"usage: {USAGE}")
    from ..console.access import Access
    from ..console.web import Options

    cwd = working_directory()
    console_options = Options(
        load=partial(load_named, options, cwd),
        environ=os.environ,
        cwd=cwd,
        audit=os.path.join(cwd, options.audit) if options.audit else "",
        compared={
            file: partial(load, file, options.hooks, None, os.environ, cwd, options.project) for file in options.compare
        },
        command=command,
        server=options.name or (server_name(command) if command else ""),
    )
    for each in (console_options.load, *console_options.compared.values()):
        each()  # a configuration that cannot be read is an error here, not only on a page
    listener = _listen(options)
    with contextlib.closing(listener):
        run(partial(_serve, console_options, listener, Access(), options.open))
    return 0


def _listen(options: argparse.Namespace) -> socket.socket:
    """Listen on the loopback, or at a path that only this account can connect to. Raises UserError."""
    if options.socket is not None:
        from ..transports import unix_socket

        return unix_socket.listen(os.path.abspath(options.socket), 0o600, None)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, options.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        hint = "name another port, or none: then a free one is taken"
        raise UserError(f"cannot listen on {_HOST}:{options.port}: {error.strerror}", hint) from None
    listener.setblocking(False)
    return listener


async def _serve(options: Options, listener: socket.socket, access: object, opens: bool) -> None:
    from ..console.access import Access
    from ..console.state import State
    from ..console.web import Pages, serve

    assert isinstance(access, Access)
    app = Pages(options, access, State()).app()

    async def started() -> None:
        if listener.family == socket.AF_UNIX:
            path = listener.getsockname()
            address = access.first_address("http://localhost:PORT")
            show(f"the console listens at {path}\n")
            show(f"from another machine: ssh -L PORT:{path} HOST, then open {address}\n")
        else:
            address = access.first_address(f"http://{_HOST}:{listener.getsockname()[1]}")
            show(f"the console: {address}\n")

    with contextlib.ExitStack() as until_end:

        async def started_and_printed() -> None:
            await started()
            until_end.enter_context(redirected_output())  # from now on, hooks that are tried may print

        await serve(app, listener, started_and_printed)


def build_parser() -> argparse.ArgumentParser:
    """The parser of this verb's command line."""
    parser = new_parser(
        "console",
        USAGE,
        "Show a local web page with the calls of all runs of this user, the approvals that wait, the audit and the "
        "configuration. It listens on 127.0.0.1 only; whoever has the address that it prints may use it.",
    )
    parser.add_argument("--port", metavar="N", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--socket", metavar="PATH", help="listen at a Unix socket instead, for ssh -L")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.add_argument("--audit", metavar="FILE", help="the audit file (default: the one of the configuration)")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        action="append",
        default=[],
        help="a changed hookproxy.toml, which the page may replay recorded calls through; may be given several times",
    )
    add_hook_options(parser)
    parser.add_argument("--name", help="the name of COMMAND's server as hooks see it (default: derived from COMMAND)")
    return parser
