"""The hooks of `[[interceptors]]`: servers of MCP interceptors (SEP-2624). What they get is the message itself.

A document has the method, the phase, and the params or the result as the agent or the server has them; under the names
of `[tools.X]`, if that is configured. What hooks of this kind print is what our own hooks print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from ..model.errors import ConfigError
from ..model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ..model.settings import OnFailure, SeenNames
from ..policy import methods
from .dialect import Group
from .own import OWN
from .shared import handler_types
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.hook_file import Table
from .shared.input import iso_8601

_EVENTS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_EVERYTHING: Final = "*/*|*"
"""A matcher of all methods and all tools: the interceptors' own hooks say which they are for."""


def interceptor_group(tables: Sequence[Mapping[str, object]], path: str, where: str, folder: str) -> Group:
    """The hooks of all `[[interceptors]]` of the file at `path`. Raises ConfigError."""
    entries = [Table(f"{where}[{number}]", "", table) for number, table in enumerate(tables)]
    names = [entry.text("name") for entry in entries]
    for name, entry in zip(names, entries, strict=True):
        if names.count(name) > 1:
            raise ConfigError(f"{entry.where}.name", f"{name!r} is the name of another one, too", "choose another name")
    hooks = tuple(_hook(entry, event, folder, path) for event in _EVENTS for entry in entries)
    return Group(INTERCEPTORS, path, hooks, INTERCEPTORS.tool_names, match_all_names=True, names=SeenNames.OWN)


def _hook(entry: Table, event: Event, folder: str, path: str) -> HookSpec:
    env, argv = entry.table("env"), entry.texts("argv") or ()
    if bool(argv) == ("url" in entry.members):
        raise ConfigError(entry.where, "needs exactly one of argv and url", 'write argv = ["./server"]')
    misplaced = ("headers", "allowed_env_vars") if argv else ("env",)
    if wrong := [key for key in misplaced if key in entry.members]:
        raise entry.error(wrong[0], f"is not for a server with {'argv' if argv else 'url'}", f"remove {wrong[0]}")
    target = None if argv else handler_types.read_http(entry, "allowed_env_vars", strict=True).http_target
    return HookSpec(
        dialect=INTERCEPTORS.name,
        source=entry.where,
        event=event,
        label=entry.text("name"),
        matcher=_EVERYTHING,
        argv=shared_hook_file.resolve_program(argv, folder),
        url=target.url if target else "",
        headers=target.headers if target else (),
        allowed_env_vars=target.allowed_env_vars if target else (),
        cwd=folder,
        env=tuple((key, env.text(key)) for key in env.members),
        timeout=entry.plausible_seconds("timeout", OWN.default_timeout),
        fails_closed=True,
        withholds=True,
        on_failure=OnFailure.DENY,  # `failOpen` of an interceptor says otherwise
        type="interceptor",
        process=path,  # the servers of a file are one chain
        traits=frozenset({entry.text("name")}),  # two servers of the same command are two
    )


def write_input(_spec: HookSpec, context: EventContext) -> Document:
    """The message, its method and phase, and what its request and its response have in common."""
    method = context.tool if methods.is_method(context.tool) else methods.TOOLS_CALL
    if context.event is Event.PRE_TOOL_USE:
        payload = context.arguments if method == context.tool else _params(context)
    else:
        payload = _result(context.outcome or Outcome(), method)
    session = context.session
    key = msgspec.json.encode(
        [shared_input.utf8(text) for text in (session.id, context.tool_use_id, context.request_id)]
    )
    about: dict[str, object] = {
        "sessionId": shared_input.utf8(session.id),
        "traceId": sha256(key).hexdigest()[:32],
        "timestamp": iso_8601(int(context.at)),
    }
    if session.principal is not None:
        about["principal"] = {"type": "user", "id": session.principal.name}
    members = {
        "event": method,
        "phase": "request" if context.event is Event.PRE_TOOL_USE else "response",
        "payload": msgspec.Raw(payload),
        "key": key.decode(),
        "context": about,
    }
    return Document(shared_input.json_line(members), env={})


def _params(context: EventContext) -> bytes:
    name = context.tool if context.alias is None else context.tool_name
    return msgspec.json.encode({"name": shared_input.utf8(name), "arguments": msgspec.Raw(context.arguments)})


def _result(outcome: Outcome, method: str) -> bytes:
    if outcome.whole and method != methods.TOOLS_CALL:
        return outcome.whole
    if not outcome.has_result:
        return msgspec.json.encode({"error": {"code": -32603, "message": outcome.error}})
    members: dict[str, object] = {"content": msgspec.Raw(outcome.content)}
    if outcome.structured:
        members["structuredContent"] = msgspec.Raw(outcome.structured)
    if outcome.more[:1] == b"{":
        members |= msgspec.json.decode(outcome.more, type=dict[str, msgspec.Raw])
    if outcome.error:
        members["isError"] = True
    return msgspec.json.encode(members)


INTERCEPTORS: Final = replace(
    OWN,
    name="interceptors",
    write_input=write_input,
    order=Order.PIPELINE,
    described_by="SEP-2624, docs/sep.md of its working group",
)
