"""`hookproxy connect`: a stdio MCP server for agents, which passes all bytes to the gateway and back, unread.

With `--url`, `connect_url` does it over HTTP.

It is started for each session of each agent, so it imports nothing that is not built into Python.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    import socket
    from collections.abc import Sequence

    from .options import Parser
else:
    import _signal as signal  # these and not `signal` and `socket`, which make enumerations: 10 ms
    import _socket as socket

DEFAULT_SOCKET = "/run/hookproxy/mcp.sock"  # as `config.gateway_models` has it; compared by a test
_PIECE = 65_536  # bytes per read: the capacity of a pipe on Linux
_LONGEST_REPLY = 2048  # bytes: the gateway's is shorter
_REASON_SECONDS = 2.0  # the gateway says why it ends a session before it closes the connection, or just after
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # only on Linux
_RIGHTS_BYTES = socket.CMSG_SPACE(12)  # three descriptors
WITHOUT_REASON = "the gateway has closed the connection without a reason: it was ended or killed"


def main(arguments: "Sequence[str]") -> int:
    """Relay between the agent and the gateway until one of them ends. Returns the exit status."""
    name, path, command, url = _options(list(arguments))
    if url is not None:
        from . import connect_url  # half of what `run` imports

        return connect_url.main(url)
    gateway = open_socket(path)
    descriptors = ask(gateway, _preamble(name, command))
    server = _start(command, descriptors[1:]) if command else 0
    try:
        status = _relay(gateway, server)
    finally:
        if server:
            _end(server)
    if status:
        from .common import tell

        tell(_end_reason(descriptors))
    return status


def _options(arguments: "list[str]") -> "tuple[str, str, list[str], argparse.Namespace | None]":
    """The server's name, the socket's path, a command, and all options if there is a URL instead of a socket.

    What is not the usual form is left to argparse.
    """
    path = os.environ.get("HOOKPROXY_SOCKET") or DEFAULT_SOCKET
    command: list[str] = []
    if "--" in arguments:
        end = arguments.index("--")
        arguments, command = arguments[:end], arguments[end + 1 :]
    if len(arguments) == 3 and arguments[1] == "--socket":
        arguments, path = arguments[:1], arguments[2]
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        return arguments[0], path, command, None
    options = build_parser().parse_args(arguments)
    if not options.url:
        if options.token_file or options.ca or options.allow_http:
            raise build_parser().wrong("--token-file, --ca and --allow-http are for --url")
        return options.name, options.socket or path, command, None
    if options.socket or command:
        what = "--socket" if options.socket else "a command"
        raise _error(f"--url and {what} exclude each other", "a server that runs as you needs the gateway's socket")
    return options.name, "", [], options


def _start(command: "Sequence[str]", pipes: "Sequence[int]") -> int:
    """Start a server as this user with these pipes, which the gateway has made. Returns its process id."""
    stdin, stdout = pipes
    try:
        actions = ((os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1))
        pid = os.posix_spawnp(command[0], list(command), os.environ, file_actions=actions, setsigdef=(signal.SIGPIPE,))
    except OSError as error:
        from ..secrets.mask import Masking  # only if something has failed

        hint, status = "install it, or give its full path", 127  # as in shells, and `model.errors`
        program = Masking().text(command[0])
        raise _error(f"cannot start the server {program}: {error.strerror}", hint, status) from None
    os.close(stdin)
    os.close(stdout)
    return pid


def _end(server: int) -> None:
    """Wait for the server to end, then send SIGTERM, then SIGKILL, in the times of `hookproxy run`."""
    import select

    from ..processes import process

    exit_fd = process.open_exit_fd(server)
    poll = select.poll()
    poll.register(exit_fd, select.POLLIN)
    for number, milliseconds in ((signal.SIGTERM, 1000), (signal.SIGKILL, 500)):
        if poll.poll(milliseconds):
            break
        os.kill(server, number)
    os.close(exit_fd)
    process.reap(server)


def open_socket(path: str) -> "socket.socket":
    """Connect to the gateway at this path. Raises UserError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as error:
        hint = "start it: hookproxy serve --config FILE; --socket or HOOKPROXY_SOCKET names another place"
        if error.errno == 13:
            hint = "this account may not connect: it must be in the group of the socket"
        raise _error(f"cannot reach the gateway at {path}: {error.strerror}", hint) from None
    return connection


def _preamble(name: str, command: "Sequence[str]") -> "list[str]":
    """The lines that say which server is wanted."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    if "\n" in name:
        raise build_parser().wrong("a server's name cannot contain a line break")
    lines = [f"server {name}"] + ([f"cwd {cwd}"] if cwd and "\n" not in cwd else [])
    return lines + (["pipes"] if command else [])


def ask(gateway: "socket.socket", lines: "Sequence[str]") -> "Sequence[int]":
    """Say what is wanted, and wait until it is there. Returns the descriptors that come with it.

    The first one is where the gateway says why it ends the session; then come the pipes, if it was asked for them.

    Raises UserError with what the gateway says.
    """
    try:  # noqa: SIM105 - contextlib is an import
        gateway.sendall("\n".join(["hookproxy 1", *lines, "", ""]).encode("utf-8", "surrogateescape"))
    except OSError:  # it has refused us already, and says why
        pass
    reply, descriptors = _read_reply(gateway)
    if reply != b"ok\n":
        text, _, hint = reply.removeprefix(b"error ").decode("utf-8", "replace").strip().partition("\t")
        raise _error(text or "the gateway has closed the connection", hint or "its log says more")
    return descriptors


def _read_reply(gateway: "socket.socket") -> "tuple[bytes, Sequence[int]]":
    """The gateway's first line and the descriptors beside it, and nothing of what follows, which is the server's."""
    reply, rights = b"", b""
    try:
        while not reply.endswith(b"\n") and len(reply) < _LONGEST_REPLY:
            piece, ancillary, _, _ = gateway.recvmsg(1, _RIGHTS_BYTES, _CLOSE_ON_EXEC)
            if not piece:
                break
            reply += piece
            for _, _, data in ancillary:
                rights += data
    except OSError:  # it was killed
        pass
    descriptors = [int.from_bytes(rights[at : at + 4], sys.byteorder) for at in range(0, len(rights), 4)]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return reply, descriptors


def _end_reason(descriptors: "Sequence[int]") -> str:
    """Why the gateway has ended the session, in its own words."""
    from ..model.errors import printable

    text = b""
    try:
        reason = socket.socket(fileno=descriptors[0])
        reason.settimeout(_REASON_SECONDS)
        while not text.endswith(b"\n") and (piece := reason.recv(_LONGEST_REPLY)):
            text += piece
    except (IndexError, OSError):  # it was killed, or is stuck
        pass
    return printable(text.decode("utf-8", "replace").strip()) or WITHOUT_REASON


def _error(message: str, hint: str, status: int = 2) -> Exception:
    from ..model.errors import UserError  # only if something has failed

    return UserError(message, hint, status)


def _relay(gateway: "socket.socket", server: int) -> int:
    """Pass bytes both ways, each way in a thread that blocks. Returns the exit status: 1 if the gateway ended it first.

    Two threads take less time for a message than one that waits for both sides, and a slow side holds up only its own
    direction.
    """
    import _thread

    def end_at_once(number: int, _frame: object) -> None:
        if server:
            os.kill(server, number)
        os._exit(128 + number)  # an exception would look like a defect

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_at_once)
    for descriptor in (0, 1):
        os.set_blocking(descriptor, True)
    ended: list[bool] = []
    _thread.start_new_thread(_pass_input, (gateway, ended))
    try:
        while piece := gateway.recv(_PIECE):
            while piece:
                piece = piece[os.write(1, piece) :]
    except OSError:  # the agent reads no more, or the gateway was killed
        pass
    return 0 if ended else 1


def _pass_input(gateway: "socket.socket", ended: "list[bool]") -> None:
    try:
        while piece := os.read(0, _PIECE):
            gateway.sendall(piece)
        ended.append(True)
        gateway.shutdown(socket.SHUT_WR)
    except OSError:  # the gateway has closed the connection: the other thread sees it too
        pass


def build_parser() -> "Parser":
    """The parser of this verb's command line."""
    from .options import Parser

    parser = Parser(
        "connect",
        "Be the server NAME of the gateway for an agent that starts its servers: all bytes are passed on, both ways. "
        "Over HTTP the token is in FILE, in $HOOKPROXY_TOKEN, or a login of hookproxy login.",
        rest="[-- COMMAND [ARG...]]",
    )
    parser.epilog = (
        "With a command after two dashes, the server runs as you, on your files, and the gateway gets its pipes."
    )
    parser.add_argument("name", metavar="NAME", help="the server's name in the gateway's configuration")
    parser.add_argument(
        "--socket", metavar="PATH", help=f"the gateway's socket (default: $HOOKPROXY_SOCKET, else {DEFAULT_SOCKET})"
    )
    parser.add_argument("--url", metavar="URL", help="the gateway's address instead, https://HOST[:PORT]")
    parser.add_argument("--token-file", metavar="FILE", help="the file with the token for --url, of mode 600")
    parser.add_argument("--ca", metavar="FILE", help="trust the certificates in FILE instead of the system's")
    parser.add_argument(
        "--allow-http", action="store_true", help="allow http:// to other machines, where everybody may read along"
    )
    return parser
