"""The Unix sockets of `gateway.listen`: what is wrong with their addresses, and listening at them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..config.gateway import about_key, check_folder
from ..config.gateway_models import DEFAULT_SOCKET, admin_socket_beside
from ..live.registry import prepare_folder
from ..model.errors import ConfigError, UserError
from ..processes import service
from ..transports import unix_socket

if TYPE_CHECKING:
    import socket

    from ..config.gateway import GatewayConfig

_UNIX: Final = "unix:"
_OWN_FOLDER: Final = "admin"  # in the state folder
_LONGEST_PATH: Final = 103 if sys.platform == "darwin" else 107  # bytes: sun_path of sys/un.h without its zero byte


class UnixAddress(Struct, frozen=True):
    """A Unix socket to listen at."""

    key: str
    """The key of gateway.toml that names it."""
    path: str

    @property
    def folder(self) -> str:
        """Nobody else may write it."""
        return os.path.dirname(self.path)


def unix_addresses(config: GatewayConfig) -> list[UnixAddress]:
    """The Unix sockets that the file names. Raises ConfigError for what is not an address."""
    addresses: list[UnixAddress] = []
    for number, text in enumerate(config.gateway.listen or [f"{_UNIX}{DEFAULT_SOCKET}"]):
        if text.startswith("http"):
            continue
        key, path = f"gateway.listen[{number}]", text.removeprefix(_UNIX)
        if not text.startswith(_UNIX) or not os.path.isabs(path):
            hint = f'write "{_UNIX}/run/hookproxy/mcp.sock", "http://127.0.0.1:8765" or "https://0.0.0.0:8443"'
            raise ConfigError(config.path, f"{key}: {text} is not an address", hint)
        if (length := len(os.fsencode(path))) > _LONGEST_PATH:
            problem = f"{key}: the path of a socket may have {_LONGEST_PATH} bytes, and this one has {length}"
            raise ConfigError(config.path, problem, f'name a shorter one, such as "{_UNIX}{DEFAULT_SOCKET}"')
        if any(address.path == path for address in addresses):
            raise ConfigError(config.path, f"{key}: {path} stands there twice", "remove one of both")
        addresses.append(UnixAddress(key, path))
    return addresses


def check_places(config: GatewayConfig) -> None:
    """Raise ConfigError if one of the sockets cannot be made, or not safely. Folders may be missing yet: systemd makes
    that of a service when it starts.
    """
    group = config.gateway.socket_group
    if group is not None:
        with about_key(config.path, "gateway.socket_group"):
            unix_socket.group_id(group)
    for address in unix_addresses(config):
        if os.path.lexists(address.folder):
            with about_key(config.path, address.key):
                check_folder(address.folder)
                unix_socket.check_folder(address.folder)
                unix_socket.check_replaceable(address.path)


def places_to_watch(config: GatewayConfig) -> Iterator[str]:
    """What may be in the way of the sockets, and may be as it should: a gateway that runs, a folder of systemd."""
    for address in unix_addresses(config):
        if not os.path.lexists(address.folder):
            how = f"systemd makes it with RuntimeDirectory=; install -d -m 0755 {address.folder}"
            yield f"{config.path}: {address.key}: there is no folder {address.folder} yet ({how})"
        elif not os.access(address.folder, os.W_OK | os.X_OK):
            how = f"chown {service.own_account().name} {address.folder}; the sockets of systemd need it not"
            yield f"{config.path}: {address.key}: this account cannot write {address.folder} ({how})"
        elif unix_socket.is_in_use(address.path):
            yield f"{config.path}: {address.key}: a gateway listens at {address.path} now (hookproxy reload tells it)"


def listen_at_all(config: GatewayConfig) -> Iterator[socket.socket]:
    """Listen at the sockets that the file names. Raises UserError."""
    for address in unix_addresses(config):
        with about_key(config.path, address.key):
            check_folder(address.folder)
            yield unix_socket.listen(address.path, int(config.gateway.socket_mode, 8), config.gateway.socket_group)


def admin_path(agents: Sequence[str], environ: Mapping[str, str], state_folder: str) -> str:
    """Where the administration socket is by default; `agents` are the paths of those for agents. Empty: nowhere."""
    if agents:
        return admin_socket_beside(agents[0])
    folder = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]  # systemd's, for RuntimeDirectory=
    if not os.path.isabs(folder):
        folder = os.path.join(state_folder, _OWN_FOLDER) if state_folder else ""
    return admin_socket_beside(os.path.join(folder, os.path.basename(DEFAULT_SOCKET))) if folder else ""


def listen_for_administrators(
    config: GatewayConfig, agents: Sequence[socket.socket], state_folder: str, report: Callable[[str], None]
) -> socket.socket | None:
    """Listen at the administration socket; None: there is no place for it, which is reported. Raises ConfigError for a
    place that the file names.
    """
    named = config.gateway.admin_socket
    path = named or admin_path([listener.getsockname() for listener in agents], os.environ, state_folder)
    try:
        if not path:
            raise UserError("there is no folder for it", "name a path: gateway.admin_socket")
        folder = os.path.dirname(path)
        if not named and folder == os.path.join(state_folder, _OWN_FOLDER):
            prepare_folder(folder)  # as that of consoles: only this account and root can enter it
        else:
            check_folder(folder)
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise UserError(f"{path} is longer than {_LONGEST_PATH} bytes", "name another: gateway.admin_socket")
        return unix_socket.listen(path, admin_mode(config), None)
    except (UserError, OSError) as problem:
        why, hint = (problem.message, problem.hint) if isinstance(problem, UserError) else (str(problem), "")
        if named:
            raise ConfigError(config.path, f"gateway.admin_socket: {why}", hint) from None
        report(f"there is no administration socket, so nobody can list or end sessions: {why} ({hint})")
        return None


def change_admin_mode(admin: socket.socket, config: GatewayConfig, report: Callable[[str], None]) -> None:
    """Let those connect to the administration socket who may have a role now. If its file is gone, it is reported."""
    path = admin.getsockname()
    try:
        os.chmod(path, admin_mode(config))
    except OSError as error:
        report(f"nobody reaches the administration socket {path} before the next start: {error.strerror}")


def admin_mode(config: GatewayConfig) -> int:
    """Who may connect to the administration socket: anybody may have a role, if there are roles."""
    roles = config.roles
    return 0o666 if roles.operator or roles.auditor or roles.approver else 0o600
