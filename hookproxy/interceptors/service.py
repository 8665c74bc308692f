"""The requests to which a server of interceptors responds: which it offers, and what becomes of an invocation.

How it works: each line is one message, read as strictly as the agent's (law 1). An invocation is handled by what is
offered under its name, within the time that it allows. A message that cannot be judged gets an error, because hosts
block on errors unless they are configured otherwise (law 3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Final

import anyio
import msgspec
from msgspec import Struct

from .. import __version__
from ..jsonrpc import raw_json
from ..protocol import interceptors as wire
from ..protocol.calls import PROTOCOL_VERSION_KEY
from ..protocol.interceptors import Descriptor, Phase
from ..protocol.responses import Members

_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of MCP that begin with `initialize`: all have what is needed here."""

_STATELESS_VERSION: Final = "2026-07-28"  # the first version without it
_LONGEST_SECONDS: Final = 3600.0  # of an invocation: a host that allows more means no limit
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_NO_SUCH_METHOD: Final = -32601


class Invocation(Struct, frozen=True):
    """One message that is to be judged."""

    event: str
    """Its method."""
    phase: Phase
    payload: bytes
    """Its params, or its result, as spelled."""
    session: str
    """The session as the host names it; empty: it does not."""
    operation: str
    """What the request and its response have in common: the host's trace; empty: it names none."""


class Rejected(Exception):
    """The invocation gets an error; the text is its reason."""

    def __init__(self, reason: str, code: int = wire.FAILED) -> None:
        super().__init__(reason)
        self.code = code


Handle = Callable[[Invocation], Awaitable[Mapping[str, object]]]
"""Judges a message: the members of the result beside `interceptor`, `type` and `phase`. Raises Rejected."""


class Offered(Struct, frozen=True):
    """One interceptor that is offered."""

    descriptor: Descriptor
    handle: Handle


class Service:
    """Responds to the lines of one host, or of several."""

    def __init__(self, offered: Sequence[Offered], report: Callable[[str], None]) -> None:
        """`report` gets defects, for people."""
        self._offered = {interceptor.descriptor.name: interceptor for interceptor in offered}
        self._report = report

    async def respond(self, line: bytes) -> bytes | None:
        """The response to a line, without a line feed; None: there is none to give. On cancel, its hooks are ended."""
        try:
            members = raw_json.fields(line)
        except ValueError as problem:
            return _error(b"null", _PARSE_ERROR, f"this message cannot be read: {problem}")
        raw_id = bytes(members.get("id", b""))
        method = raw_json.text(bytes(members.get("method", b""))) or ""
        if not method or (not raw_id and "id" in members):
            return None if "result" in members or "error" in members else _error(b"null", _INVALID_REQUEST, "no method")
        if not raw_id:
            return None
        try:
            params = raw_json.fields(members["params"]) if "params" in members else {}
            result = await self._result(method, params)
        except Rejected as rejected:
            return _error(raw_id, rejected.code, str(rejected), _data(members))
        except ValueError as problem:
            return _error(raw_id, wire.INVALID, f"its params cannot be read: {problem}")
        except Exception as defect:  # the boundary of one request: fail closed, and report it
            self._report(f"a defect of hookproxy: {defect!r}")
            return _error(raw_id, wire.FAILED, "a defect of hookproxy; its standard error says more", _data(members))
        meta = raw_json.fields(params["_meta"]) if "_meta" in params else {}
        if PROTOCOL_VERSION_KEY in meta:
            result = {"resultType": "complete", **result}
        return raw_json.encode({"jsonrpc": "2.0", "id": msgspec.Raw(raw_id), "result": result})

    async def _result(self, method: str, params: Members) -> Mapping[str, object]:
        if method == wire.INVOKE:
            return await self._invoke(params)
        if method == wire.LIST:
            return self._list(params)
        if method == "initialize":
            return self._initialized(params)
        if method == "server/discover":
            return {**self._introduction(), "supportedVersions": [_STATELESS_VERSION]}
        if method == "ping":
            return {}
        raise Rejected(f"there is no method {method!r} here: this server offers interceptors", _NO_SUCH_METHOD)

    def _introduction(self) -> dict[str, object]:
        hooks = [hook for interceptor in self._offered.values() for hook in interceptor.descriptor.hooks]
        events = {event for hook in hooks for event in hook.events}
        return {
            "capabilities": {"extensions": {wire.EXTENSION: {"supportedEvents": sorted(events)}}},
            "serverInfo": {"name": "hookproxy", "version": __version__},
        }

    def _initialized(self, params: Members) -> Mapping[str, object]:
        wanted = raw_json.text(bytes(params.get("protocolVersion", b"")))
        return {"protocolVersion": wanted if wanted in _VERSIONS else _VERSIONS[-1], **self._introduction()}

    def _list(self, params: Members) -> Mapping[str, object]:
        event = _text(params, "event") if "event" in params and bytes(params["event"]) != b"null" else ""
        descriptors = [interceptor.descriptor for interceptor in self._offered.values()]
        listed = [descriptor for descriptor in descriptors if not event or descriptor.concerns(event)]
        return {"interceptors": [descriptor.listed() for descriptor in listed]}

    async def _invoke(self, params: Members) -> Mapping[str, object]:
        name, event, phase = (_text(params, key) for key in ("name", "event", "phase"))
        offered = self._offered.get(name)
        if offered is None:
            raise Rejected(f"there is no interceptor {name!r}; {wire.LIST} lists them", wire.INVALID)
        descriptor = offered.descriptor
        own_phase = next((known for known in wire.PHASES if known == phase), None)
        if own_phase is None or not descriptor.runs_at(event, own_phase):
            raise Rejected(f"{name!r} is not for the event {event!r} in the phase {phase!r}", wire.INVALID)
        context = raw_json.fields(params["context"]) if _given(params, "context") else {}
        trace = [raw_json.text(bytes(context[key])) or "" for key in ("traceId", "spanId") if _given(context, key)]
        session = _text(context, "sessionId") if _given(context, "sessionId") else ""
        payload = bytes(params.get("payload", b"null"))
        begun = perf_counter()
        with anyio.move_on_after(_seconds(params)) as limit:
            given = await offered.handle(Invocation(event, own_phase, payload, session, "/".join(trace)))
        if limit.cancelled_caught:
            raise Rejected("Interceptor execution timeout", wire.TIMED_OUT)
        own = {"interceptor": name, "type": descriptor.type, "phase": phase}
        return {**own, **given, "durationMs": round((perf_counter() - begun) * 1000, 3)}


def _seconds(params: Members) -> float:
    if not _given(params, "timeoutMs"):
        return _LONGEST_SECONDS
    value = raw_json.decoded(params["timeoutMs"])
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise Rejected(f"timeoutMs is not a number of milliseconds: {value!r}", wire.INVALID)
    return min(value / 1000, _LONGEST_SECONDS)


def _given(members: Members, key: str) -> bool:
    return bytes(members.get(key, b"null")) != b"null"


def _text(members: Members, key: str) -> str:
    value = raw_json.text(bytes(members.get(key, b"")))
    if value is None:
        raise Rejected(f"{key} is not a text", wire.INVALID)
    return value


def _data(members: Members) -> dict[str, object]:
    """Which interceptor an error is about."""
    try:
        params = raw_json.fields(members["params"])
        return {key: params[own] for key, own in (("interceptor", "name"), ("phase", "phase")) if own in params}
    except (KeyError, ValueError):
        return {}


def _error(raw_id: bytes, code: int, text: str, data: Mapping[str, object] | None = None) -> bytes:
    error: dict[str, object] = {"code": code, "message": text}
    if data:
        error["data"] = {**data, "reason": text}
    return raw_json.encode({"jsonrpc": "2.0", "id": msgspec.Raw(raw_id), "error": error})
