"""The connection to one server of interceptors (SEP-2624): a process that stays alive, and speaks MCP by lines.

How it works: the first message starts the process, introduces us, and lists what it offers; then any number of requests
is in flight, each recognised by its id. A process that ends, or prints something that is not a message, fails all that
wait (law 3), and the next message starts it again, but not at once. What it asks of us gets nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Final, Protocol

import msgspec

from .. import __version__
from ..jsonrpc import raw_json
from ..model.hooks import Document, HookSpec
from ..processes.process import OUTPUT_LIMIT
from ..protocol import interceptors as wire
from ..protocol.calls import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from ..protocol.interceptors import Descriptor
from ..protocol.responses import Members
from . import command
from .long_lived_process import LongLivedProcess, RestartedProcess
from .runner import HookFailed, Report

_RESTART_DELAY: Final = 1.0  # seconds from its end to its next start: a call that comes before is not judged
_HANDSHAKE_VERSION: Final = "2025-11-25"  # the last version that begins with `initialize`
_STATELESS_VERSION: Final = "2026-07-28"  # the first version without it
_CLIENT: Final = {"name": "hookproxy", "version": __version__}
_CAPABILITIES: Final[Mapping[str, object]] = {"extensions": {wire.EXTENSION: {}}}
_MOST_PAGES: Final = 100  # of one list: more is a server that never comes to an end
_SHOWN: Final = 300  # characters of an error message: enough to recognise the cause


class Connection(Protocol):
    """What carries requests to a server."""

    async def request(self, method: str, params: Mapping[str, object]) -> Members:
        """The members of the response. Raises HookFailed. On cancel, the response is dropped."""

    async def notify(self, method: str) -> None:
        """Send a notification. Raises HookFailed."""

    async def aclose(self) -> None:
        """End it."""


class InterceptorServer:
    """One server, and what it offers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._meta: Mapping[str, object] = {}  # what each request of the stateless era needs
        self._lock = asyncio.Lock()
        self._descriptors: tuple[Descriptor, ...] | None = None

    def forget(self) -> None:
        """It was started again, or says that it offers something else."""
        self._descriptors = None

    async def descriptors(self) -> tuple[Descriptor, ...]:
        """What it offers. Raises HookFailed."""
        async with self._lock:
            if self._descriptors is None:
                await self._begin()
                self._descriptors = await self._list()
            return self._descriptors

    async def invoke(self, descriptor: Descriptor, phase: wire.Phase, params: Mapping[str, object]) -> wire.Outcome:
        """The outcome that the interceptor responds. Raises HookFailed."""
        result = await self._result(wire.INVOKE, {**params, **self._meta})
        try:
            return wire.read_outcome(descriptor, phase, result)
        except ValueError as problem:
            raise HookFailed(str(problem)) from None

    async def aclose(self) -> None:
        """End the connection."""
        await self._connection.aclose()

    async def _begin(self) -> None:
        first = {"protocolVersion": _HANDSHAKE_VERSION, "capabilities": _CAPABILITIES, "clientInfo": _CLIENT}
        self._meta = {}
        members = await self._connection.request("initialize", first)
        if "error" in members:  # a server of the stateless era knows no such request
            keys = (PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CAPABILITIES_KEY)
            self._meta = {"_meta": dict(zip(keys, (_STATELESS_VERSION, _CLIENT, _CAPABILITIES), strict=True))}
        else:
            await self._connection.notify("notifications/initialized")

    async def _list(self) -> tuple[Descriptor, ...]:
        descriptors: tuple[Descriptor, ...] = ()
        cursor = ""
        for _ in range(_MOST_PAGES):
            result = await self._result(wire.LIST, {**self._meta, **({"cursor": cursor} if cursor else {})})
            try:
                descriptors += wire.read_list(result)
                wire.check_names(descriptors)
            except ValueError as problem:
                raise HookFailed(f"cannot be used: {problem}") from None
            cursor = raw_json.text(bytes(result.get("nextCursor", b""))) or ""
            if not cursor:
                return descriptors
        raise HookFailed(f"lists its interceptors on more than {_MOST_PAGES} pages")

    async def _result(self, method: str, params: Mapping[str, object]) -> Members:
        members = await self._connection.request(method, params)
        try:
            if "error" in members:
                error = raw_json.fields(members["error"])
                raise HookFailed(f"answered with an error: {_shown(raw_json.text(bytes(error.get('message', b''))))}")
            return raw_json.fields(members["result"])
        except (KeyError, ValueError):
            raise HookFailed(f"answered {method} with neither a result nor an error") from None


def _shown(text: str | None) -> str:
    text = text or "without a message"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class ProcessConnection:
    """The connection to a process, which is started when it is needed."""

    def __init__(self, spec: HookSpec, report: Report) -> None:
        self._spec = spec
        self._report = partial(report, spec)
        self._loop = asyncio.get_running_loop()
        self._process: RestartedProcess[Members] = RestartedProcess(spec, self._on_output, self._on_process_end)
        self._pending = self._process.pending  # responses to come, by the ids of our requests
        self._ids = count(1)
        self._earliest_start = 0.0  # on the loop's clock
        self._why = ""  # it ended
        self.on_end: Callable[[], None] = lambda: None
        """Called when it has ended."""
        self.document: Document | None = None
        """What the process gets as its variables."""
        self.env: Mapping[str, str] = {}

    async def request(self, method: str, params: Mapping[str, object]) -> Members:
        """As Connection."""
        process = self._process.current or self._start()
        own_id = str(next(self._ids))
        response: asyncio.Future[Members] = self._loop.create_future()
        self._pending[own_id] = response
        message = {"jsonrpc": "2.0", "id": int(own_id), "method": method, "params": params}
        line = raw_json.one_line(raw_json.encode(message)) + b"\n"
        process.output_limit = max(process.output_limit, OUTPUT_LIMIT + 2 * len(line))
        process.write(line)
        try:
            return await response
        finally:
            del self._pending[own_id]

    async def notify(self, method: str) -> None:
        """As Connection."""
        if (process := self._process.current) is not None:
            process.write(raw_json.encode({"jsonrpc": "2.0", "method": method}) + b"\n")

    def end_process(self, why: str) -> None:
        """End the process: the next request starts another one."""
        self._process.kill(why)

    async def aclose(self) -> None:
        """As Connection."""
        await self._process.aclose()

    def _start(self) -> LongLivedProcess:
        if self._process.is_closed:
            raise HookFailed("cannot be started: the session has ended")
        if self._loop.time() < self._earliest_start:
            raise HookFailed(self._why)
        try:
            return self._process.start(self.document or Document(b"", {}), self.env)
        except (OSError, ValueError) as error:
            raise HookFailed(f"cannot be started: {command.not_started(self._spec, error).detail}") from None

    def _on_output(self, process: LongLivedProcess) -> None:
        *lines, rest = bytes(process.output).split(b"\n")
        process.output[:] = rest
        for line in lines:
            if line.strip() and process is self._process.current:
                self._on_line(line)

    def _on_line(self, line: bytes) -> None:
        try:
            members = raw_json.fields(line)
        except ValueError:
            self.end_process("printed a line that is not a JSON object")
            return
        if "method" in members:
            self._on_request(members)
            return
        response = self._pending.get(bytes(members.get("id", b"")).strip(b'"').decode(errors="replace"))
        if response is not None and not response.done():  # else nobody waits for it any more
            response.set_result(members)

    def _on_request(self, members: Members) -> None:
        if "id" not in members:
            if bytes(members["method"]).endswith(b'/list_changed"'):
                self.on_end()
            return
        response: dict[str, object] = {"error": {"code": -32601, "message": "a host of interceptors offers nothing"}}
        if bytes(members["method"]) == b'"ping"':
            response = {"result": {}}
        if (process := self._process.current) is not None:
            message = {"jsonrpc": "2.0", "id": msgspec.Raw(bytes(members["id"])), **response}
            process.write(raw_json.encode(message) + b"\n")

    def _on_process_end(self, _process: LongLivedProcess, why: str) -> type[HookFailed]:
        """The process is dead: all pending requests fail with this, and the next start is delayed."""
        self._why = why
        self._earliest_start = self._loop.time() + _RESTART_DELAY
        self.on_end()
        if not self._pending and not self._process.is_closed:
            self._report(f"the server of interceptors {why}; it is started again when it is needed")
        return HookFailed
