"""`hookproxy serve`: the gateway, which starts or reaches MCP servers for several people, behind one policy."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from ..checks.startup_notes import with_lines
from ..config.gateway import load_gateway
from ..config.gateway_models import INSTANCE_NAME
from ..gateway import server_process, service_manager
from ..gateway.http_listeners import listen_at_all as http_listeners_of
from ..gateway.http_listeners import listen_for_probes, tls_context
from ..gateway.log import GatewayLog
from ..gateway.start_checks import check_listening, check_policy
from ..gateway.start_problems import start_problems
from ..gateway.unix_listeners import listen_at_all, listen_for_administrators
from ..hooks import failures, watched
from ..model.errors import UserError, printable
from ..processes import inherited_state, process
from ..transports import unix_socket
from ..transports.event_loop import new_loop
from ..trust.sources import state_folder
from .common import working_directory
from .options import Parser

if TYPE_CHECKING:
    import socket

    from ..config.gateway import GatewayConfig


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal. Returns the exit status."""
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        raise UserError("serve has no FILE of its own: --config names it", f"hookproxy serve --config {arguments[0]}")
    options = build_parser().parse_args(list(arguments))
    systemd = service_manager.take_address(os.environ)
    process.prepare_for_children()
    cwd = working_directory()
    of_systemd = _sockets_of_systemd()
    paths = [name for one in of_systemd if isinstance(name := one.getsockname(), str)]

    def load(candidate: str = "") -> GatewayConfig:
        loaded = _named(load_gateway(options.config, os.environ, cwd, candidate, paths), options.instance)
        check_policy(loaded)
        server_process.check(loaded)
        return replace(loaded, notes=(*loaded.notes, *server_process.notes(loaded), *start_problems(loaded)))

    config = load()
    inherited_state.reset()
    report = GatewayLog(as_json=config.gateway.log == "json", instance=config.gateway.instance)
    for note in (*config.notes, *_passing(config)):
        report(with_lines(note))
    check_listening(config)
    tls = tls_context(config)
    unix_listeners = of_systemd or list(listen_at_all(config))
    folder = state_folder(os.environ, os.path.expanduser("~"))
    admin = listen_for_administrators(config, unix_listeners, folder, report)
    http_listeners, probes = list(http_listeners_of(config)), listen_for_probes(config)

    try:
        from ..gateway.serve import Listening, serve

        gc.freeze()  # as in `run`: what is loaded stays, and is not looked at again
        listening = Listening(unix_listeners, bool(of_systemd), http_listeners, tls, probes, admin, folder)
        manager = service_manager.ServiceManager(systemd, report)
        anyio.run(serve, config, listening, report, load, manager, backend_options={"loop_factory": new_loop})
    finally:
        others = [listener for listener in (probes, admin) if listener is not None]
        for listener in (*unix_listeners, *(one for _, one in http_listeners), *others):
            listener.close()
    return 0


def _passing(config: GatewayConfig) -> Iterator[str]:
    """A line for each server, with how many of its hooks let a call pass if they fail, and what is only watched."""
    for server in config.servers.values():
        if passing := failures.summary(server.loaded.groups, server.loaded.settings):
            yield f'{server.name}: {passing}: on_failure = "deny" in {config.path} refuses such calls'
        if (of_server := server.loaded.watched) is not None:
            yield f"{server.name}: {watched.summary(of_server)}"


def _named(config: GatewayConfig, instance: str | None) -> GatewayConfig:
    """The configuration with the gateway's name of the command line. Raises UserError."""
    if instance is None:
        return config
    if not re.fullmatch(INSTANCE_NAME, instance):
        raise UserError(f"--instance {printable(instance)} is not a name", "use letters, digits, - and _; at most 32")
    return replace(config, gateway=replace(config.gateway, instance=instance))


def _sockets_of_systemd() -> list[socket.socket]:
    """The sockets at which systemd listens for us; none: we listen at those that the file names. Raises UserError."""
    sockets = unix_socket.inherited_listeners(os.environ, os.getpid())
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # children must not take them for theirs
        os.environ.pop(name, None)
    return sockets


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "serve",
        "Run the gateway: start or reach MCP servers for several people, behind hooks that they cannot go around. "
        "Agents reach it with hookproxy connect, or over HTTP at /mcp/NAME. hookproxy reload puts a changed file into "
        "force; SIGTERM ends it after the calls in flight.",
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="the gateway's configuration, gateway.toml")
    parser.add_argument(
        "--instance", metavar="NAME", help="this gateway's name among several, in place of gateway.instance"
    )
    return parser
