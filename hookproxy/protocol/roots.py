"""The roots of an agent, folders in which a server may work: a gateway's servers get those of the administrator.

A server that trusts the roots of its client works there with its own rights, and these are the gateway's: an agent
could name the gateway's files. So what the administrator lists stands in place of whatever the agent says:

    initialize             the capability is announced if something is listed, else it is taken out
    roots/list             is answered here (2025-11-25 and earlier)
    inputResponses         the answer of the agent to a `roots/list` is replaced (2026-07-28)
    clientCapabilities     as in `initialize`, but never added: the agent must answer the server's input request
    list_changed           goes nowhere

Law: no text of the agent that some server could take for roots reaches the server; what cannot be read is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Raw

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls
from .fast_scan import ReadCall
from .feedback import NOT_ANNOUNCED, error
from .responses import Members

ROOTS_LIST: Final = "roots/list"

_INITIALIZE: Final = b'"initialize"'
_LIST_CHANGED: Final = b'"notifications/roots/list_changed"'
_KEY: Final = "roots"
_REMEMBERED_BYTES: Final = 1024  # of a `_meta` that is remembered: they have 100 to 400

Edit = tuple[Span, bytes]


class Roots:
    """What the servers of agents get in place of the agents' own roots."""

    def __init__(self, listed: Sequence[tuple[str, str]]) -> None:
        """`listed` are addresses (`file:///…`) and names; none: servers learn that the agent has no roots."""
        self.listed = bool(listed)
        self._result = raw_json.encode({_KEY: [{"uri": uri, "name": name} for uri, name in listed]})
        self._known_meta = lru_cache(maxsize=256)(self._edited_meta)  # an agent has few

    def response(self, raw_id: bytes) -> bytes:
        """The response to a server that asks for the roots."""
        if not self.listed:
            return error(raw_id, NOT_ANNOUNCED)
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_id, self._result)

    def is_request(self, line: bytes) -> bytes:
        """The id, as spelled, of a server's request for the roots; empty: the line is something else."""
        if b"roots" not in line and b"\\" not in line:
            return b""
        try:
            members = raw_json.fields(line)
        except ValueError:
            return b""
        return bytes(members.get("id", b"")) if calls.method(members) == b'"roots/list"' else b""

    # --- what an agent says ---

    def from_agent(self, line: bytes, members: Members) -> bytes:
        """The line as the server gets it; empty: the server does not get it. Raises Unreadable, DuplicateKeys."""
        method = calls.method(members)
        if not (may_name_roots(line) or (self.listed and method == _INITIALIZE)):
            return line
        if method == _LIST_CHANGED:
            return b""
        if "result" in members:
            if "method" in members:
                raise raw_json.Unreadable("some readers take it for a request, and others for a response")
            return self._response(line, members)
        place = raw_json.members(line).get("params")
        if place is None or line[place[0] : place[0] + 1] != b"{":
            return line
        edits = [*self._params_edits(line[slice(*place)], is_initialize=method == _INITIALIZE)]
        if not edits:
            return line
        return raw_json.splice(line, [((start + place[0], end + place[0]), new) for (start, end), new in sorted(edits)])

    def _response(self, line: bytes, members: Members) -> bytes:
        """A response of the agent. The server has not asked the agent for roots."""
        if bytes(memoryview(members.get("result", b""))[:1]) != b"{":
            return line
        place = raw_json.members(line)["result"]
        if not any(raw_json.folded_key(key) == _KEY for key in raw_json.members(line[slice(*place)])):
            return line
        return self.response(calls.response_id(members))

    def _params_edits(self, params: bytes, *, is_initialize: bool) -> Iterator[Edit]:
        """The edits of the params of a request or a notification."""
        spans = raw_json.members(params)
        _check_lookalikes(spans, ("_meta", "capabilities", "inputResponses"))
        if is_initialize:
            yield from _capabilities_edit(params, spans, "capabilities", announced=self.listed, adds=True)
        if (meta := _object(params, spans, "_meta")) and (edited := self._meta(meta)) != meta:
            yield spans["_meta"], edited
        if inputs := _object(params, spans, "inputResponses"):
            start = spans["inputResponses"][0]
            for first, end in raw_json.members(inputs).values():
                answer = inputs[first:end]
                if answer[:1] == b"{" and any(raw_json.folded_key(key) == _KEY for key in raw_json.members(answer)):
                    yield (start + first, start + end), self._result

    def in_call(self, call: ReadCall) -> ReadCall | None:
        """The call as the server gets it; None: its line must be read."""
        if not len(call.meta):
            return call
        meta = bytes(call.meta)
        try:
            edited = self._meta(meta)
        except raw_json.AMBIGUOUS:
            return None
        if edited == meta:
            return call
        if call.line.count(meta) != 1:  # it is unclear which of them it is
            return None
        line = call.line.replace(meta, edited)
        return ReadCall(call.id, call.name, call.arguments, Raw(edited), line, call.version)

    def _meta(self, meta: bytes) -> bytes:
        """The `_meta` of a request as the server gets it."""
        if not may_name_roots(meta):
            return meta
        return self._known_meta(meta) if len(meta) <= _REMEMBERED_BYTES else self._edited_meta(meta)

    def _edited_meta(self, meta: bytes) -> bytes:
        spans = raw_json.members(meta)
        _check_lookalikes(spans, (calls.CAPABILITIES_KEY,))
        edits = [*_capabilities_edit(meta, spans, calls.CAPABILITIES_KEY, announced=self.listed, adds=False)]
        return raw_json.splice(meta, edits) if edits else meta


def may_name_roots(text: bytes) -> bool:
    """False if certainly no reader finds a member `roots` in this JSON text, as in nearly all texts."""
    return b"roots" in text.lower() or b"\\u" in text or not text.isascii()


def _capabilities_edit(
    holder: bytes, spans: dict[str, Span], name: str, *, announced: bool, adds: bool
) -> Iterator[Edit]:
    """The edit of capabilities so that roots are announced, or not; `adds`: even if the agent has none."""
    raw = _object(holder, spans, name) or b"{}"
    inner = raw_json.members(raw)
    _check_lookalikes(inner, (_KEY,))
    if announced and (adds or _KEY in inner):
        edited = raw_json.with_member(raw, _KEY, b"{}")  # without listChanged: no change is announced
    else:
        edited = raw_json.without_member(raw, _KEY)
    if edited != raw:
        yield raw_json.insertion(holder, spans, name, edited)


def _object(holder: bytes, spans: dict[str, Span], name: str) -> bytes:
    """A member that is an object, as spelled; empty: there is none."""
    start, end = spans.get(name, (0, 0))
    return holder[start:end] if holder[start : start + 1] == b"{" and end else b""


def _check_lookalikes(spans: dict[str, Span], meant: Sequence[str]) -> None:
    """Raise Unreadable for a key that some readers take for one of these."""
    folded = {raw_json.folded_key(name): name for name in meant}
    for key in spans:
        if folded.get(raw_json.folded_key(key), key) != key:
            raise raw_json.Unreadable(
                f"its member {key!r} is taken for {folded[raw_json.folded_key(key)]!r} by some readers"
            )
