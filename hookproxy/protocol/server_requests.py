"""What differs between the server's requests that can be judged: how they are read, rewritten and refused.

A refused request has an answer in the method's own form: an elicitation is declined, or cancelled if nobody was there
to answer; sampling gets the error of the specification; the server learns of no roots. It never learns why: the reason
is for people, and stands in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..jsonrpc import nesting, normalize, raw_json
from ..model.decision import RefusalCause
from ..policy import methods
from . import calls
from .response_edits import error_response
from .responses import Members

ELICITATION: Final = "elicitation/create"
SAMPLING: Final = "sampling/createMessage"
ROOTS: Final = methods.ROOTS

METHODS: Final[Mapping[bytes, str]] = {f'"{name}"'.encode(): name for name in (ELICITATION, SAMPLING, ROOTS)}
"""The methods by their spelling as compact JSON."""

_PARAMS: Final[Mapping[str, frozenset[str]]] = {
    ELICITATION: frozenset({"message", "requestedSchema", "mode", "url", "elicitationId"}),
    SAMPLING: frozenset({
        "messages", "modelPreferences", "systemPrompt", "includeContext", "temperature", "maxTokens", "stopSequences",
        "metadata", "tools", "toolChoice",
    }),
    ROOTS: frozenset(),
}  # fmt: skip
"""The members of params that agents know."""

_OF_PROTOCOL: Final = frozenset({"_meta", "task"})
"""Members of params that no hook gets."""

_NOBODY: Final = frozenset({RefusalCause.NOT_ANSWERED, RefusalCause.ASK_UNAVAILABLE, RefusalCause.STORE_AWAY})
"""Why a request is refused that nobody has decided about."""

_REJECTED: Final = (-1, "User rejected sampling request")  # as in the specification
_REJECTED_TASK: Final = (-1, "User rejected the request")
_SAMPLE: Final = b'{"role":"assistant","content":{"type":"text","text":%b},"model":"none","stopReason":"refusal"}'


def arguments_of(method: str, members: Members, max_depth: int) -> bytes:
    """What hooks get of a request: its params, normalised. Raises Unreadable, DuplicateKeys if they are ambiguous."""
    raw = bytes(members.get("params", b"{}"))
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its params are not an object")
    params = raw_json.fields(raw)
    calls.check_param_keys(params)
    known = _PARAMS[method]
    meant = {raw_json.folded_key(key): key for key in known}
    for key in params:
        if key not in known and (name := meant.get(raw_json.folded_key(key))) is not None:
            raise raw_json.Unreadable(f"its member {key!r} is taken for {name!r} by some readers")
    given = raw_json.encode({key: value for key, value in params.items() if key not in _OF_PROTOCOL})
    if nesting.has_more_values(given, calls.MAX_VALUES):
        raise raw_json.Unreadable(f"it has more than {calls.MAX_VALUES} JSON values")
    arguments, _names = normalize.normalize_object(given)
    if nesting.is_deeper(arguments, max_depth):
        raise raw_json.Unreadable(f"it is nested deeper than {max_depth} levels (max_depth)")
    return arguments


def with_arguments(request: bytes, before: bytes, after: bytes) -> bytes:
    """The request with other params; what stays the same keeps its spelling. Raises ValueError."""
    spans = raw_json.members(request)
    params = request[slice(*spans["params"])] if "params" in spans else b"{}"
    old, new = raw_json.fields(before), raw_json.fields(after)
    for name in old.keys() - new.keys():
        params = raw_json.without_member(params, name)
    for name, value in new.items():
        if name not in old or bytes(old[name]) != bytes(value):
            params = raw_json.with_member(params, name, on_one_line(bytes(value)))
    return raw_json.with_member(request, "params", params)


def refused_result(method: str, cause: RefusalCause) -> bytes:
    """The result that stands for a refusal, for a round in which there are no errors."""
    if method == ELICITATION:
        return b'{"action":"cancel"}' if cause in _NOBODY else b'{"action":"decline"}'
    if method == ROOTS:
        return b'{"roots":[]}'
    return _SAMPLE % raw_json.encode(_REJECTED[1])


def refused(raw_id: bytes, method: str, cause: RefusalCause, *, task: bool) -> bytes:
    """The answer to a refused request; of a `task`, only an error can be one."""
    raw_id = raw_json.one_line(raw_id)
    if task or method == SAMPLING:
        return error_response(raw_id, *(_REJECTED_TASK if method != SAMPLING else _REJECTED))
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_id, refused_result(method, cause))


def unreadable(raw_id: bytes, problem: str) -> bytes:
    """The answer to a request that two readers might read differently."""
    return error_response(raw_json.one_line(raw_id), -32602, f"This request cannot be judged: {problem}.")


def on_one_line(raw: bytes) -> bytes:
    """The JSON text with blanks for line ends: in JSON they only stand between tokens."""
    return raw_json.one_line(raw.replace(b"\n", b" "))
