"""Starts a server, asks it for its tools as an agent would, and ends it: for `check`, before any agent uses it.

The server is not trusted: it may hang, exit, print anything or ask something. Whatever happens, its whole process group
is ended, and nothing that it printed reaches a terminal raw.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Struct

from .. import __version__
from ..jsonrpc import raw_json
from ..model.errors import UserError, printable
from ..model.hooks import Tool
from ..processes import environment, process, spawn
from ..processes.ending import end_server
from ..protocol import tool_list
from ..protocol.calls import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY

LIST_SECONDS: Final = 30.0
"""How long a server may take to start and to list its tools: `npx` may have to download it first."""

_SLOW_SECONDS: Final = 1.0  # until a person wonders whether anything happens
_CLOSED_SECONDS: Final = 0.1  # from the end of its output to its exit, if it exits by itself
_MAX_PAGES: Final = 1000  # of one list: more is a server that never comes to an end
_MAX_BYTES: Final = 64 * 1024 * 1024  # of one line and of all pages: as much as one message may have
_MAX_SHOWN: Final = 500  # characters of its standard error or of an error message: enough to recognise the cause

_PYTHON_FRAME: Final = re.compile(r'^[ |]*File ".*", line \d+', re.MULTILINE)
_PYTHON_ERROR: Final = re.compile(r"^[ |]*([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)", re.MULTILINE)
"""In a traceback, also of a group: the line that says what happened, at the end of the lines that say where."""
_PIECE: Final = 65_536  # bytes per read: what a pipe holds

_HANDSHAKE_VERSION: Final = "2025-11-25"  # the last version that begins with `initialize`
_STATELESS_VERSION: Final = "2026-07-28"  # the first version without it
_CLIENT: Final = {"name": "hookproxy", "version": __version__}
_STATELESS_META: Final = {PROTOCOL_VERSION_KEY: _STATELESS_VERSION, CLIENT_INFO_KEY: _CLIENT, CAPABILITIES_KEY: {}}
_SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
_NO_SUCH_METHOD: Final = {"code": -32601, "message": "hookproxy check only lists tools"}


class ServerTools(Struct, frozen=True):
    """A server's tools."""

    tools: tuple[Tool, ...]
    """In the order of its list."""
    server_info: str = ""
    """The server's name as it gives it; empty: it gives none."""
    noise: int = 0
    """How many lines on its standard output were not JSON."""


async def list_tools(
    command: Sequence[str],
    environ: Mapping[str, str],
    seconds: float = LIST_SECONDS,
    on_slow: Callable[[float], None] = lambda _seconds: None,
) -> ServerTools:
    """Start the server in our folder and with this environment, ask it for its tools, and end it.

    `seconds` is the time that it may take; `on_slow` is called after a second, with the seconds that are left. Raises
    UserError if it cannot be started or does not list its tools in that time. On cancel it is ended, too.
    """
    server = _Server(command, environ)
    failure: str | None = None
    found = ServerTools(())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.keep_stderr)
        tasks.start_soon(_after_a_while, on_slow, seconds)
        try:
            with anyio.fail_after(seconds):
                found = await _Conversation(server).list_tools()
        except TimeoutError:
            failure = f"has not listed its tools within {seconds:g} seconds"
        except (_ServerFailed, ValueError) as error:
            failure = str(error)
        finally:
            with anyio.CancelScope(shield=True):
                await server.end()
        tasks.cancel_scope.cancel()
    server.close()
    if failure is not None:
        raise server.error(failure)
    return found


async def _after_a_while(on_slow: Callable[[float], None], seconds: float) -> None:
    if seconds > _SLOW_SECONDS:
        await anyio.sleep(_SLOW_SECONDS)
        on_slow(seconds - _SLOW_SECONDS)


class _ServerFailed(Exception):
    """The server does not list its tools; the text says what it did. Empty: a pipe to it is closed."""


class _ErrorResponse(Exception):
    """The server answered a request with an error; the text is its message."""


class _Conversation:
    """The requests to one server, one after another, in its era of the protocol."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._id = 0
        self._bytes = 0
        self._noise = 0

    async def list_tools(self) -> ServerTools:
        """Begin the session in the way that the server knows, and read all pages of its list."""
        try:
            result = await self._request(
                "initialize", {"protocolVersion": _HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": _CLIENT}
            )
        except _ErrorResponse:  # a server of the stateless era knows no such request
            return await self._read_pages({"_meta": _STATELESS_META}, True, "")
        await self._send({"method": "notifications/initialized"})
        has_tools = "tools" in raw_json.fields(result.get("capabilities", b"{}"))
        return await self._read_pages({}, has_tools, _name(result.get("serverInfo")))

    async def _read_pages(self, params: Mapping[str, object], has_tools: bool, server_info: str) -> ServerTools:
        tools: dict[str, Tool] = {}
        cursor: str | None = ""
        for _ in range(_MAX_PAGES):
            try:
                result = await self._request("tools/list", {**params, "cursor": cursor} if cursor else params)
            except _ErrorResponse as error:
                if not has_tools:
                    return ServerTools((), server_info, self._noise)
                raise _ServerFailed(f"answered tools/list with an error: {error}") from None
            server_info = server_info or _name(_members(result.get("_meta")).get(_SERVER_INFO_KEY))
            page = raw_json.encode({"result": result})
            cursor = tool_list.next_cursor(page)
            if cursor is None:
                raise _ServerFailed("answered tools/list without a list of tools")
            tools.update((tool.name, tool) for tool in tool_list.listed_tools(page))
            if not cursor:
                return ServerTools(tuple(tools.values()), server_info, self._noise)
        raise _ServerFailed(f"lists its tools on more than {_MAX_PAGES} pages")

    async def _request(self, method: str, params: Mapping[str, object]) -> Mapping[str, msgspec.Raw]:
        """The result of a request. Raises _ErrorResponse, _ServerFailed, ValueError."""
        self._id += 1
        await self._send({"id": self._id, "method": method, "params": params})
        while True:
            line = await self._server.next_line()
            if not line.strip():
                continue
            try:
                members = raw_json.fields(line)
            except ValueError:
                self._noise += 1
                continue
            if "method" in members:
                await self._answer(members)
            elif bytes(members.get("id", b"")).strip(b'"') == str(self._id).encode():  # some servers answer 1 with "1"
                return self._result(line, members)

    def _result(self, line: bytes, members: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        self._bytes += len(line)
        if self._bytes > _MAX_BYTES:
            raise _ServerFailed(f"lists its tools in more than {_MAX_BYTES} bytes")
        if "error" in members:
            text = raw_json.text(bytes(_members(members["error"]).get("message", b""))) or ""
            raise _ErrorResponse(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
        return _members(members.get("result"))

    async def _answer(self, members: Mapping[str, msgspec.Raw]) -> None:
        """Answer a request of the server: with nothing, a ping; else with an error. A notification has no response."""
        if "id" in members:
            ping = bytes(members["method"]) == b'"ping"'
            await self._send({"id": members["id"], **({"result": {}} if ping else {"error": _NO_SUCH_METHOD})})

    async def _send(self, message: Mapping[str, object]) -> None:
        await self._server.write(raw_json.encode({"jsonrpc": "2.0", **message}) + b"\n")


class _Server:
    """The process of a server, in a process group of its own."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it. Raises UserError."""
        self._command = command
        self._pid, (self._stdin, self._stdout, self._stderr, self._exit) = _start(command, environ)
        self._output = bytearray()
        self._stderr_end = b""
        self._exit_status: int | None = None  # of a server that has ended by itself

    async def next_line(self) -> bytes:
        """The next line that it prints. Raises _ServerFailed."""
        searched = 0
        while (end := self._output.find(b"\n", searched)) < 0:
            searched = len(self._output)
            if searched > _MAX_BYTES:
                raise _ServerFailed(f"printed more than {_MAX_BYTES} bytes on one line")
            piece = await _read(self._stdout)
            if not piece:
                raise _ServerFailed
            self._output += piece
        line = bytes(self._output[:end])
        del self._output[: end + 1]
        return line

    async def write(self, line: bytes) -> None:
        """Write a line to it. Raises _ServerFailed."""
        while line:
            try:
                line = line[os.write(self._stdin, line) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)
            except BrokenPipeError:
                raise _ServerFailed from None

    async def keep_stderr(self) -> None:
        """Read its standard error, and keep the end."""
        while piece := await _read(self._stderr):
            self._stderr_end = (self._stderr_end + piece)[-4 * _MAX_SHOWN :]

    async def end(self) -> None:
        """End it as at the end of a run: close its input, then TERM, then KILL for its whole group; reap it."""
        by_itself = await self._has_exited(_CLOSED_SECONDS)
        process.close_all((self._stdin, self._stdout))
        await end_server(self._has_exited, partial(process.signal_group, self._pid))
        if await self._has_exited(process.REAP_LIMIT):
            process.signal_group(self._pid, signal.SIGKILL)  # what is left of its group; its id is not reused yet
            status = process.reap(self._pid)
            self._exit_status = status if by_itself else None
        os.close(self._exit)

    def close(self) -> None:
        """Close its standard error, which nobody reads any more."""
        os.close(self._stderr)

    async def _has_exited(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await anyio.wait_readable(self._exit)
            return True
        return False

    def error(self, what: str) -> UserError:
        """The error for people, with the end of what the server has printed on standard error."""
        if not what:
            status = self._exit_status
            how = "closed its input or output" if status is None else f"exited with status {status}"
            how = how if status is None or status >= 0 else f"was ended by signal {-status}"
            what = f"{how} before it had listed its tools"
        stderr = _end(self._stderr_end.decode(errors="replace"))
        printed = f"its standard error ends with: {stderr}" if stderr else "it printed nothing on standard error"
        return UserError(printable(f"the server {what}"), printable(f"{printed}; {_command_line(self._command)}"))


def _end(stderr: str) -> str:
    """The end of a text on standard error, in one line: of a traceback of Python only the error, else whole lines."""
    if errors := _PYTHON_ERROR.findall(stderr) if _PYTHON_FRAME.search(stderr) else []:
        return str(errors[-1])[:_MAX_SHOWN]
    shown = ""
    for line in reversed([" ".join(line.split()) for line in stderr.splitlines()]):
        if shown and len(line) + len(shown) >= _MAX_SHOWN:
            break
        shown = f"{line} {shown}".strip()
    return shown[-_MAX_SHOWN:]


def _start(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, tuple[int, int, int, int]]:
    """Start the server. Returns its process id, our ends of its standard streams, and a descriptor for its exit.

    Raises UserError.
    """
    fds: list[int] = []
    try:
        program = process.find_program(command[0], environ.get("PATH")) or command[0]
        for _ in range(3):
            fds += os.pipe()
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = fds
        for fd in (to_stdin, from_stdout, from_stderr):
            os.set_blocking(fd, False)
        variables = environment.entries(environ)
        pid = spawn.start_hook(os.fsencode(program), tuple(command), variables, "", (stdin, stdout, stderr))
    except (OSError, ValueError) as error:
        process.close_all(fds)
        why = process.why_not_started(error, command[0])
        raise UserError(printable(f"cannot start the server: {why}"), printable(_command_line(command))) from None
    process.close_all((stdin, stdout, stderr))
    return pid, (to_stdin, from_stdout, from_stderr, process.open_exit_fd(pid))


async def _read(fd: int) -> bytes:
    """The next bytes, at least one; none at the end."""
    while True:
        await anyio.lowlevel.checkpoint()  # a server that prints without end must not keep the deadline from passing
        try:
            return os.read(fd, _PIECE)
        except BlockingIOError:
            await anyio.wait_readable(fd)


def _command_line(command: Sequence[str]) -> str:
    return f"the server's command line is: {' '.join(command)}"


def _members(raw: msgspec.Raw | None) -> Mapping[str, msgspec.Raw]:
    """The members of an object; none if it is not an object that can be read."""
    try:
        return raw_json.fields(raw or b"{}")
    except ValueError:
        return {}


def _name(raw: msgspec.Raw | None) -> str:
    """The member `name` of the server's description; empty if there is none."""
    return raw_json.text(bytes(_members(raw).get("name", b""))) or ""
