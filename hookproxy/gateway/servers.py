"""Starts the servers of sessions, with their secrets, and relays what they print on standard error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from ..processes import service
from ..processes.process import Server
from ..session.server_end import ServerProcess
from ..transports.line_log import relay_lines
from ..transports.pipe import open_channel

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel

_MAX_SECRET_BYTES: Final = 65_536
"""A secret is a token or a small key file; a file that grows without end must not fill memory."""


def open_server(server: GatewayServer, report: Report) -> tuple[Channel, ServerEnd]:
    """Start the server of a session. Raises UserError."""
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
