"""The lines of a judged call: as the server gets it, and its `input_required` response as the agent gets it (law 2)."""

from __future__ import annotations

import contextlib
from typing import Final

from ..jsonrpc import normalize, raw_json
from . import approval_messages, input_rounds, method_forms
from .calls import Call
from .request_state import CallRound, embedded_server_state
from .response_edits import json_string
from .responses import Members

_PROTOCOL_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})
"""A prefix with one of these labels, such as `io.modelcontextprotocol/`, is reserved for the protocol."""


def line_for_server(
    call: Call,
    arguments: bytes | None,
    waiting: CallRound | None = None,
    meta: bytes | None = None,
    inputs: bytes | None = None,
) -> bytes:
    """Return the agent's line with these arguments and this `_meta` (None: the agent's; else as in `meta_for_server`).

    `inputs` are the answers to the server's requests in place of the agent's; None: the agent's own.

    `waiting` is the round that the request state has brought back. A state that only looks like hookproxy's never
    reaches a server, but the server's state in it does.
    """
    if arguments is None and meta is None and inputs is None and not call.has_own_state:
        return call.line
    start, end = raw_json.members(call.line)["params"]
    params = call.line[start:end]
    if arguments is not None and call.mcp_method in method_forms.BY_NAME:
        params = method_forms.with_arguments(params, call.arguments, normalize.normalize(arguments))
    elif arguments is not None:
        params = raw_json.with_member(params, "arguments", raw_json.one_line(arguments.replace(b"\n", b" ")))
    if meta is not None:
        sent = meta_for_server(call.meta, meta)
        params = raw_json.with_member(params, "_meta", sent) if sent else raw_json.without_member(params, "_meta")
    if inputs is not None:
        params = input_rounds.with_answers(params, inputs)
    if call.has_own_state:
        params = _with_server_state(params, call, waiting, call.inputs if inputs is None else inputs)
    return raw_json.splice(call.line, [((start, end), params)])


def _with_server_state(params: bytes, call: Call, waiting: CallRound | None, inputs: bytes) -> bytes:
    """The params with the server's own state in place of ours, and without the answer to our own request."""
    state = embedded_server_state(call.state) if waiting is None else waiting.state
    if state:
        params = raw_json.with_member(params, "requestState", raw_json.one_line(state))
    else:
        params = raw_json.without_member(params, "requestState")
    if waiting is None or waiting.approval_request:  # else the response is for another hookproxy behind this one
        params = _without_approval_response(params, inputs)
    return params


def meta_for_server(members: Members, chosen: bytes) -> bytes:
    """Return the `_meta` that a hook has chosen (an object or `null`); empty: none. Raises Unreadable, DuplicateKeys.

    The protocol's own members stay as the agent sent them: its progress notifications and the era depend on them.
    """
    kept = {name: value for name, value in members.items() if _is_of_protocol(name)}
    others = {} if chosen == b"null" else raw_json.fields(chosen)
    new = {name: value for name, value in others.items() if not _is_of_protocol(name)}
    if chosen == b"null" and not kept:
        return b""
    return raw_json.one_line(raw_json.encode(new | kept).replace(b"\n", b" "))


def _is_of_protocol(name: str) -> bool:
    """Whether MCP reserves this name in `_meta`: `progressToken`, and prefixes with one of two labels."""
    folded = raw_json.folded_key(name)
    prefix, slash, _ = folded.partition("/")
    return folded == "progresstoken" or (bool(slash) and not _PROTOCOL_LABELS.isdisjoint(prefix.split(".")))


def _without_approval_response(params: bytes, inputs: bytes) -> bytes:
    """Remove the response to hookproxy's approval request, and `inputResponses` if it was the only one."""
    if not inputs.startswith(b"{"):
        return params
    others = raw_json.without_member(inputs, approval_messages.MEMBER)
    if others == inputs:
        return params
    if raw_json.fields(others):
        return raw_json.with_member(params, "inputResponses", others)
    return raw_json.without_member(params, "inputResponses")


def with_own_state(line: bytes, request_state: str) -> bytes:
    """Return the server's `input_required` response with hookproxy's requestState, which contains the server's."""
    start, end = raw_json.members(line)["result"]
    result = raw_json.with_member(line[start:end], "requestState", json_string(request_state))
    return raw_json.splice(line, [((start, end), result)])


def with_agent_id(call: Call) -> bytes:
    """Return the response to a repeated call under the agent's id; unchanged if it is ambiguous."""
    with contextlib.suppress(ValueError):
        return raw_json.with_member(call.response_line, "id", call.id)
    call.response = None  # so that it is withheld
    return call.response_line


def server_state_of(line: bytes) -> bytes:
    """Return the requestState of a response as spelled; empty: none. Raises Unreadable, DuplicateKeys."""
    return bytes(raw_json.fields(raw_json.fields(line)["result"]).get("requestState", b""))
