"""A server of the interceptors that a case needs: the behaviours of the working group's ADAPTER.md, on our server.

It is started as `behaviours.py CASE.json`, and speaks on standard input and output. The two behaviours about secrets
are hookproxy's own: `[flow]` with a source and a sink, and what masks secrets. Which server a tool belongs to, the
presets say.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec

from hookproxy.flow.session_labels import SessionLabels
from hookproxy.hooks.evaluate import Hooks
from hookproxy.interceptors.over_stdio import serve
from hookproxy.interceptors.service import Invocation, Offered, Service
from hookproxy.jsonrpc import raw_json
from hookproxy.model.decision import Comments, Refuse
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event, EventContext, Session
from hookproxy.model.settings import Settings
from hookproxy.policy.presets import PRESETS
from hookproxy.policy.shared_state import Shared
from hookproxy.protocol import interceptors as wire
from hookproxy.secrets.mask import Masking

Judge = Callable[[Invocation], Mapping[str, object]]
AsyncJudge = Callable[[Invocation], Awaitable[Mapping[str, object]]]
LONGEST = 1_000_000
"""Bytes of a message: cases have some hundred."""


def payload_of(invocation: Invocation) -> dict[str, Any]:
    """The payload, if it is an object."""
    payload = json.loads(invocation.payload)
    return payload if isinstance(payload, dict) else {}


def note_of(invocation: Invocation) -> object:
    """The argument that the behaviours are about."""
    return payload_of(invocation).get("arguments", {}).get("note")


def invalid(text: str) -> Mapping[str, object]:
    """The result of a validation that blocks."""
    return {"valid": False, "severity": "error", "messages": [{"message": text, "severity": "error"}]}


def allow_all(_invocation: Invocation) -> Mapping[str, object]:
    """`allow-all`."""
    return {"valid": True}


def deny_all(_invocation: Invocation) -> Mapping[str, object]:
    """`deny-all`."""
    return invalid("denied by policy")


def require_note(invocation: Invocation) -> Mapping[str, object]:
    """`require-note`."""
    note = note_of(invocation)
    return {"valid": True} if isinstance(note, str) and note else invalid("note is required")


def require_uppercase_note(invocation: Invocation) -> Mapping[str, object]:
    """`require-uppercase-note`."""
    note = note_of(invocation)
    return {"valid": True} if isinstance(note, str) and note == note.upper() else invalid("note must be uppercase")


def uppercase_note(invocation: Invocation) -> Mapping[str, object]:
    """`uppercase-note`."""
    payload, note = payload_of(invocation), note_of(invocation)
    if not isinstance(note, str):
        return {"modified": False, "payload": msgspec.Raw(invocation.payload)}
    return {"modified": True, "payload": {**payload, "arguments": {**payload["arguments"], "note": note.upper()}}}


def crash(_invocation: Invocation) -> Mapping[str, object]:
    """`crash`."""
    raise RuntimeError("the interceptor crashed")


def secretless_redactor() -> Judge:
    """`secretless-redactor`: what looks like a secret does not go out."""

    def redact(invocation: Invocation) -> Mapping[str, object]:
        masked = Masking().json(invocation.payload)
        return {"modified": masked != invocation.payload, "payload": msgspec.Raw(masked)}

    return redact


SECRETS = Settings(
    flow_sources=(Source(FlowMatch(servers=("*",)), ("secret",), "flow.sources[0]", secrets=True),),
    flow_sinks=(Sink(FlowMatch(servers=("*",)), ("secret",), "flow.sinks[0]", "deny", "value", back_to_origin=True),),
)
"""A secret may go back to where it was read, and nowhere else: two tables of `[flow]`."""


class _GuardedSession:
    """A session of a host: its labels, and the call whose response comes next."""

    def __init__(self) -> None:
        self._labels = SessionLabels()
        self._hooks: dict[str, Hooks] = {}
        self._last: EventContext | None = None

    async def judge(self, invocation: Invocation) -> Mapping[str, object]:
        """Judge a call, or note what its response brings."""
        if invocation.phase == "response":
            if self._last is not None:
                await self._hooks_at(self._last).note_result(self._last, invocation.payload, "", Comments())
            return {"valid": True}
        payload = payload_of(invocation)
        tool = str(payload.get("name", ""))
        server = next((name for name, _ in PRESETS.naming(tool)), tool)
        arguments = raw_json.encode(payload.get("arguments", {}))
        session = Session(invocation.session, server, "/", "/")
        self._last = EventContext(Event.PRE_TOOL_USE, session, tool, tool, arguments=arguments)
        decision = (await self._hooks_at(self._last).run_pre_hooks(self._last, None, [])).decision
        return invalid(decision.reason) if isinstance(decision, Refuse) else {"valid": True}

    def _hooks_at(self, context: EventContext) -> Hooks:
        server = context.session.server
        return self._hooks.setdefault(server, Hooks((), SECRETS, server, {}, shared=Shared(labels=self._labels)))


def cross_boundary_guard() -> AsyncJudge:
    """`cross-boundary-guard`: a secret that came from one server does not go to another one."""
    sessions: defaultdict[str, _GuardedSession] = defaultdict(_GuardedSession)

    async def judge(invocation: Invocation) -> Mapping[str, object]:
        return await sessions[invocation.session].judge(invocation)

    return judge


BEHAVIOURS: dict[str, Callable[[], Judge | AsyncJudge]] = {
    "allow-all": lambda: allow_all,
    "deny-all": lambda: deny_all,
    "require-note": lambda: require_note,
    "require-uppercase-note": lambda: require_uppercase_note,
    "uppercase-note": lambda: uppercase_note,
    "crash": lambda: crash,
    "cross-boundary-guard": cross_boundary_guard,
    "secretless-redactor": secretless_redactor,
}


def offered(entry: dict[str, Any]) -> Offered:
    """An interceptor of a case."""
    phases = wire.PHASES if entry["phases"] == "both" else (entry["phases"],)
    hooks = [{"events": entry["events"], "phase": phase} for phase in phases]
    kept = {key: entry[key] for key in ("name", "type", "mode", "failOpen", "priorityHint") if key in entry}
    [descriptor] = wire.read_list(raw_json.fields(json.dumps({"interceptors": [{**kept, "hooks": hooks}]}).encode()))
    judge = BEHAVIOURS[entry["behavior"]]()

    async def handle(invocation: Invocation) -> Mapping[str, object]:
        result = judge(invocation)
        return await result if isinstance(result, Awaitable) else result

    return Offered(descriptor, handle)


def main() -> None:
    """Serve until the host has gone."""
    case = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    service = Service([offered(entry) for entry in case["interceptors"]], lambda _text: None)
    anyio.run(serve, service, os.dup(0), os.dup(1), LONGEST)


if __name__ == "__main__":
    main()
