"""Starts the servers of sessions, with their secrets, and relays what they print on standard error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from ..processes import service
from ..processes.process import Server
from ..session.remote_server import RemoteOptions, headers, open_remote_server, with_values_redacted
from ..session.server_end import ServerProcess
from ..transports.http.address import parse
from ..transports.line_log import relay_lines
from ..transports.pipe import open_channel

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.settings import Settings
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel

_MAX_SECRET_BYTES: Final = 65_536
"""A secret is a token or a small key file; a file that grows without end must not fill memory."""


def open_server(server: GatewayServer, settings: Settings, report: Report) -> tuple[Channel, ServerEnd]:
    """Start or reach the server of a session, which has these settings. Raises UserError."""
    if server.table.url is not None:
        return _open_remote(server, settings, report)
    account = service.account_named(server.table.user) if server.table.user else service.own_account()
    values = {**server.table.env, **read_secrets(server.credentials)}
    output, stderr = os.pipe()
    try:
        started = service.start(
            server.table.command or (), service.environment(account, values), server.cwd, account, stderr
        )
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(stderr)
    relay_lines(output, lambda line: report(f"the server says: {line}"))
    return _channel(started), ServerProcess(started, leads_group=True)


def _open_remote(server: GatewayServer, settings: Settings, report: Report) -> tuple[Channel, ServerEnd]:
    table = server.table
    address = parse(table.url or "", allow_http=table.allow_http)
    written = [f"{name}: {value}" for name, value in table.headers.items()]
    with_values = headers(written, read_secrets(server.credentials), f"servers.{server.name}.headers:")
    options = RemoteOptions(with_values, table.ca, table.cert, table.key)
    return open_remote_server(address, options, settings, os.environ, report)


def secrets_redacted(server: GatewayServer, settings: Settings) -> Settings:
    """The settings so that the audit contains none of the server's secrets. Raises UserError."""
    return with_values_redacted(settings, read_secrets(server.credentials).values())


def _channel(server: Server) -> Channel:
    return open_channel(server.from_server, server.to_server)


def read_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """The secrets in these files, by name, without a line end. Raises UserError, which contains no secret."""
    found = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as file:
                data = file.read(_MAX_SECRET_BYTES + 1)
            text = data.decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UserError(f"the credential {name} cannot be read from {path}: {why}", "correct the file") from None
        if len(data) > _MAX_SECRET_BYTES or not text or "\0" in text:
            raise UserError(f"the credential {name} in {path} is no secret", "it is empty, or longer than 64 KiB")
        found[name] = text
    return found
