"""Runs the interceptors of `[[interceptors]]` on calls and other judged messages: hooks of the type `interceptor`.

How it works: each server is a hook for each event. Of one message, the first of these hooks runs the interceptors of
all servers of its file as one chain (`interceptor_chain`), because priorities hold among all of them, and a validation
sees what every mutation has made of it. Another file has a chain of its own, which runs when its turn comes: what the
administrator's servers judge is then what nobody rewrites any more (law 1). Then each server's hook reports what its
own interceptors decide: the one that blocks blocks, and the first one has what was changed. A server that cannot be
asked blocks (law 3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio
import msgspec
from msgspec import Struct

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Document, Ended, Event, HookResult, HookSpec
from ..policy import methods
from ..protocol import interceptors as wire
from ..protocol.interceptors import Descriptor, Phase
from ..protocol.method_results import OF_PROTOCOL
from ..protocol.response_edits import RESULT_MEMBERS
from .event_watch import TimeLimit, get_watch
from .interceptor_chain import ChainResult, run_chain
from .interceptor_http import HttpConnection
from .interceptor_server import InterceptorServer, ProcessConnection
from .runner import HookFailed, Report, StatefulRunner

_MOST_KEPT: Final = 256  # results that wait for the hooks of further servers: as many as calls are ever in flight
_MOST_SINKS: Final = 64  # invocations of sinks that nobody waits for; more are not begun


def open_runner(hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. The first message starts the servers."""
    by_file: dict[str, list[HookSpec]] = {}
    for spec in hooks:
        by_file.setdefault(spec.process, []).append(spec)
    chains = {file: _Servers(of_file, report) for file, of_file in by_file.items()}

    async def run_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        return await chains[spec.process].run_hook(spec, document, env)

    async def aclose() -> None:
        async with anyio.create_task_group() as tasks:
            for chain in chains.values():
                tasks.start_soon(chain.aclose)

    return StatefulRunner(run_hook, aclose, lambda spec: chains[spec.process].invalidate(spec))


class _Message(Struct):
    """What a hook of this type gets, as its dialect writes it."""

    event: str
    phase: Phase
    payload: msgspec.Raw
    key: str
    """The same for the hooks of all servers."""
    context: dict[str, object]


_MESSAGE: Final = msgspec.json.Decoder(_Message)


class _Server(Struct, eq=False):
    """One server, with the hook by which it is known."""

    spec: HookSpec
    server: InterceptorServer
    connection: ProcessConnection | HttpConnection


class _Judged(Struct, frozen=True):
    """What became of a message, and which interceptors there were."""

    result: ChainResult
    places: tuple[tuple[str, Descriptor], ...]
    """The server of each, by its name."""


class _Servers:
    """All servers of one file."""

    def __init__(self, hooks: Sequence[HookSpec], report: Report) -> None:
        self._report = report
        self._names = list(dict.fromkeys(spec.label for spec in hooks))
        self._specs = {spec.label: spec for spec in reversed(hooks)}
        self._servers: dict[str, _Server] = {}
        self._results: dict[tuple[str, str], _Judged | HookFailed] = {}
        self._sinks: set[asyncio.Task[None]] = set()
        self._unheard: set[str] = set()
        self._empty: set[str] = set()

    async def run_hook(self, spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        """As `runner.Runner`."""
        loop = asyncio.get_running_loop()
        begun = loop.time()

        def ended(**members: object) -> HookResult:
            return msgspec.structs.replace(HookResult(Ended.EXITED, ms=(loop.time() - begun) * 1000), **members)

        message = _MESSAGE.decode(document.stdin)
        key = (message.key, f"{message.event} {message.phase}")
        is_first, is_last = spec.label == self._names[0], spec.label == self._names[-1]
        if is_first:
            while len(self._results) >= _MOST_KEPT:
                self._results.pop(next(iter(self._results)))
            judged: _Judged | HookFailed
            try:
                judged = await self._run_chain(message, document, env)
            except HookFailed as failure:
                judged = failure
            if not _blocks(self._results.get(key)):  # a message may have several readings: all of them must pass
                self._results[key] = judged
        result = self._results.pop(key, None) if is_last else self._results.get(key)
        if result is None:
            return ended(ended=Ended.FAILED, detail="was not asked about this message")
        if isinstance(result, HookFailed):
            return ended(ended=Ended.FAILED, detail=str(result)) if is_first else ended()
        return self._reported(spec, message, result, is_first, ended())

    def _reported(
        self, spec: HookSpec, message: _Message, judged: _Judged, is_first: bool, done: HookResult
    ) -> HookResult:
        """What this server's part in the result is, as hooks of our own report it."""
        output: dict[str, object] = {}
        result, places = judged.result, judged.places
        if notes := [text for place, text in result.notes if places[place][0] == spec.label]:
            output["systemMessage"] = "\n".join(notes)
        if result.blocked:
            label, descriptor = places[result.place]
            if label != spec.label:
                return msgspec.structs.replace(done, stdout=_printed(output))
            why = f"the interceptor {descriptor.name}: {result.blocked}"
            if result.failed or message.phase == "response":
                return msgspec.structs.replace(done, ended=Ended.FAILED, detail=f"blocks it: {why}")
            output["hookSpecificOutput"] = _specific(spec, permissionDecision="deny", permissionDecisionReason=why)
        elif is_first and result.payload != bytes(message.payload):
            try:
                output["hookSpecificOutput"] = _changed(spec, message, result.payload)
            except ValueError as problem:
                return msgspec.structs.replace(done, ended=Ended.FAILED, detail=f"changed it so that {problem}")
            if message.phase == "response" and (told := _not_delivered(message, result.payload)):
                output["systemMessage"] = "\n".join((*notes, told))
        return msgspec.structs.replace(done, stdout=_printed(output))

    async def _run_chain(self, message: _Message, document: Document, env: Mapping[str, str]) -> _Judged:
        places: list[tuple[str, Descriptor]] = []
        for name in self._names:
            server = self._server(name)
            server.connection.document, server.connection.env = document, env
            try:
                with TimeLimit(get_watch(asyncio.get_running_loop()), server.spec.timeout):
                    descriptors = await server.server.descriptors()
            except TimeoutError:
                raise HookFailed(f"{name} did not say in time what it offers") from None
            except HookFailed as failure:
                raise HookFailed(f"{name}: {failure}" if len(self._names) > 1 else str(failure)) from None
            self._note_unheard(server.spec, descriptors)
            places += ((name, descriptor) for descriptor in descriptors)
        from_server = methods.JUDGED.get(message.event) is methods.Direction.FROM_SERVER

        async def invoke(place: int, payload: bytes) -> wire.Outcome:
            name, descriptor = places[place]
            server = self._servers[name]
            seconds = server.spec.timeout
            params = wire.invocation(descriptor.name, message.event, message.phase, payload, seconds, message.context)
            with TimeLimit(get_watch(asyncio.get_running_loop()), seconds):
                return await server.server.invoke(descriptor, message.phase, params)

        def start_sink(place: int, payload: bytes) -> None:
            if len(self._sinks) < _MOST_SINKS:
                sink = asyncio.get_running_loop().create_task(
                    self._observe(places[place], partial(invoke, place, payload))
                )
                self._sinks.add(sink)
                sink.add_done_callback(self._sinks.discard)

        result = await run_chain(
            [descriptor for _, descriptor in places],
            message.event,
            message.phase,
            bytes(message.payload),
            invoke,
            start_sink,
            from_server=from_server,
        )
        return _Judged(result, tuple(places))

    async def _observe(self, place: tuple[str, Descriptor], invoke: Callable[[], Awaitable[wire.Outcome]]) -> None:
        try:
            await invoke()
        except (HookFailed, TimeoutError) as failure:
            why = str(failure) or "did not answer in time"
            self._report(self._specs[place[0]], f"the sink {place[1].name} {why}, which blocks nothing")

    def _note_unheard(self, spec: HookSpec, descriptors: Sequence[Descriptor]) -> None:
        """Report once which interceptors are only for events at which nothing can be judged, and who has none."""
        if not descriptors and spec.label not in self._empty:
            self._empty.add(spec.label)
            self._report(spec, "offers no interceptors, so it judges nothing")
        judged = (methods.TOOLS_CALL, *methods.JUDGED)
        for descriptor in descriptors:
            if descriptor.name not in self._unheard and not any(map(descriptor.concerns, judged)):
                self._unheard.add(descriptor.name)
                events = ", ".join(dict.fromkeys(event for hook in descriptor.hooks for event in hook.events))
                self._report(spec, f"the interceptor {descriptor.name} never runs: {events} is not judged here")

    def _server(self, name: str) -> _Server:
        if name not in self._servers:
            spec = self._specs[name]
            connection = HttpConnection(spec) if spec.url else ProcessConnection(spec, self._report)
            server = InterceptorServer(connection)
            connection.on_end = server.forget
            self._servers[name] = _Server(spec, server, connection)
        return self._servers[name]

    def invalidate(self, spec: HookSpec) -> None:
        """As StatefulRunner."""
        if server := self._servers.get(spec.label):
            server.connection.end_process("was ended because its program has changed since it started")

    async def aclose(self) -> None:
        """As StatefulRunner."""
        for sink in self._sinks:
            sink.cancel()
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.server.aclose)


def _blocks(judged: _Judged | HookFailed | None) -> bool:
    return isinstance(judged, HookFailed) or (judged is not None and bool(judged.result.blocked))


def _printed(output: Mapping[str, object]) -> bytes:
    return raw_json.encode(output) if output else b""


def _specific(spec: HookSpec, **members: object) -> dict[str, object]:
    return {"hookEventName": spec.event, **members}


def _changed(spec: HookSpec, message: _Message, payload: bytes) -> dict[str, object]:
    """What the mutations make of a message. Raises ValueError: that cannot be sent."""
    new = raw_json.fields(normalize.normalize(payload))
    if spec.event is Event.POST_TOOL_USE_FAILURE:
        raise ValueError("a failed call has another result, which cannot be sent")
    if spec.event is not Event.PRE_TOOL_USE:
        return _specific(spec, updatedToolOutput=msgspec.Raw(payload))
    if message.event != methods.TOOLS_CALL:
        return _specific(spec, updatedInput=msgspec.Raw(payload))
    old = raw_json.fields(message.payload)
    if bytes(new.get("name", b"")) != bytes(old["name"]):
        raise ValueError("another tool would be called")
    if others := new.keys() - {"name", "arguments"}:
        raise ValueError(f"{min(others)!r} would be sent: of a call, only arguments can be changed")
    return _specific(spec, updatedInput=new.get("arguments", msgspec.Raw(b"{}")))


def _not_delivered(message: _Message, payload: bytes) -> str:
    """What the mutations have changed of a response that its agent does not get, for people; empty: nothing."""
    if methods.JUDGED.get(message.event) is methods.Direction.FROM_SERVER:
        return ""  # the agent's answer, of which the server gets all
    new, old = (msgspec.json.decode(raw) if raw[:1] == b"{" else {} for raw in (payload, bytes(message.payload)))
    is_call = message.event == methods.TOOLS_CALL
    known = old.keys() | RESULT_MEMBERS if is_call else old.keys() - OF_PROTOCOL
    names = ", ".join(sorted(repr(name) for name in new.keys() - known if new[name] != old.get(name)))
    return f"{names} of the result is not delivered as it was changed" if names else ""
