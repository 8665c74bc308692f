"""The roots of an agent, folders in which a server may work: what stands between both where not all of them may pass.

A server that trusts the roots of its client works there with its own rights. A gateway's servers have the gateway's: an
agent could name the gateway's files. So either a list stands in place of whatever the agent says:

    initialize             the capability is announced if something is listed, else it is taken out
    roots/list             is answered here (2025-11-25 and earlier)
    inputResponses         the answer of the agent to a `roots/list` is replaced (2026-07-28)
    clientCapabilities     as in `initialize`, but never added: the agent must answer the server's input request
    list_changed           goes nowhere

or the agent is asked, and those of its roots that are not allowed are cut out of its answers (responses and
`inputResponses`), of which the rest stays as it was spelled; all else passes.

Law: no text of the agent that some server could take for other roots reaches it; what cannot be read is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Raw, Struct

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls
from .fast_scan import ReadCall
from .feedback import NOT_ANNOUNCED, error
from .response_edits import INTERNAL_ERROR
from .responses import Members

ROOTS_LIST: Final = "roots/list"

_INITIALIZE: Final = b'"initialize"'
_LIST_CHANGED: Final = b'"notifications/roots/list_changed"'
_KEY: Final = "roots"
_REMEMBERED_BYTES: Final = 1024  # of a `_meta` that is remembered: they have 100 to 400

Edit = tuple[Span, bytes]


Allows = Callable[[str], bool]
"""Says whether the root with this address may reach the server."""

_MOST_JUDGED: Final = 256  # roots in one answer: people have a few, and each is looked up on the disk
_MOST_SHOWN: Final = 300  # characters of an address in a note: nearly all are shorter
_UNCLEAR: Final = (INTERNAL_ERROR, "The roots of the client cannot be read.")


class FromAgent(Struct, frozen=True):
    """What becomes of a line of the agent."""

    line: bytes
    """As the server gets it; empty: the server does not get it."""
    note: str = ""
    """What the agent gave and what the server gets, for people; empty: it gave none."""


class Roots:
    """What the server of an agent gets of the agent's roots."""

    def __init__(self, listed: Sequence[tuple[str, str]] | None, allows: Allows | None = None) -> None:
        """`listed` are addresses (`file:///…`) and names; none: servers learn that the agent has no roots. If it is
        None, the agent is asked, and the server gets what `allows` lets pass; at least one of both is given.
        """
        self.are_fixed = listed is not None
        """The agent is not asked, and nothing that it says is used."""
        self._allows = allows or (lambda _address: True)
        given = [(uri, name) for uri, name in listed or () if self._allows(uri)]
        self.listed = bool(given)
        self._given = ", ".join(uri for uri, _name in given) or "none"
        self._result = raw_json.encode({_KEY: [{"uri": uri, "name": name} for uri, name in given]})
        self._known_meta = lru_cache(maxsize=256)(self._edited_meta)  # an agent has few

    def response(self, raw_id: bytes) -> bytes:
        """The response to a server that asks for the roots."""
        if not self.listed:
            return error(raw_id, NOT_ANNOUNCED)
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_id, self._result)

    @property
    def note(self) -> str:
        """What a server gets that asks for roots, for people."""
        return f"the server asked for roots: it got {self._given}, and the agent was not asked"

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

    def from_agent(self, line: bytes, members: Members) -> FromAgent:
        """What becomes of a line of the agent. Raises Unreadable, DuplicateKeys."""
        method = calls.method(members)
        if not (may_name_roots(line) or (self.listed and method == _INITIALIZE)):
            return FromAgent(line)
        if method == _LIST_CHANGED:
            return FromAgent(b"" if self.are_fixed else line)
        if "result" in members:
            if "method" in members:
                raise raw_json.Unreadable("some readers take it for a request, and others for a response")
            return self._response(line, members)
        place = raw_json.members(line).get("params")
        if place is None or line[place[0] : place[0] + 1] != b"{":
            return FromAgent(line)
        notes: list[str] = []
        edits = [*self._params_edits(line[slice(*place)], notes, is_initialize=method == _INITIALIZE)]
        if edits:
            moved = [((start + place[0], end + place[0]), new) for (start, end), new in sorted(edits)]
            line = raw_json.splice(line, moved)
        return FromAgent(line, "; ".join(notes))

    def _response(self, line: bytes, members: Members) -> FromAgent:
        """A response of the agent, whatever the server has asked."""
        start, end = raw_json.members(line)["result"]
        result = line[start:end]
        if not _has_roots(result):
            return FromAgent(line)
        if self.are_fixed:  # the server has not asked the agent for roots
            note = f"{_gave(result)}; the server got {self._given}"
            return FromAgent(self.response(calls.response_id(members)), note)
        try:
            edited, note = self._allowed(result)
        except raw_json.AMBIGUOUS as problem:
            unclear = error(calls.response_id(members), _UNCLEAR)
            return FromAgent(unclear, f"the agent gave roots that cannot be read ({problem}); the server got an error")
        return FromAgent(line if edited is result else raw_json.splice(line, [((start, end), edited)]), note)

    def _allowed(self, answer: bytes) -> tuple[bytes, str]:
        """The answer with those of its roots that are allowed, itself if all are, and what to note of it.

        Raises Unreadable, DuplicateKeys.
        """
        spans = raw_json.members(answer)
        _check_lookalikes(spans, (_KEY,))
        start, end = spans[_KEY]
        if answer[start : start + 1] != b"[":
            raise raw_json.Unreadable("they are not an array")
        roots = [bytes(root) for root in raw_json.items(answer[start:end])]
        kept = [root for root in roots[:_MOST_JUDGED] if self._allows_root(root)]
        note = f"{_gave(answer)}; the server got {_shown(kept)}"
        if len(kept) == len(roots):
            return answer, note
        return raw_json.splice(answer, [((start, end), b"[%b]" % b",".join(kept))]), note

    def _allows_root(self, root: bytes) -> bool:
        try:
            spans = raw_json.members(root)
            _check_lookalikes(spans, ("uri",))
        except raw_json.AMBIGUOUS:
            return False
        address = raw_json.text(root[slice(*spans["uri"])]) if "uri" in spans else None
        return address is not None and self._allows(address)

    def _params_edits(self, params: bytes, notes: list[str], *, is_initialize: bool) -> Iterator[Edit]:
        """The edits of the params of a request or a notification; `notes` get what to note of the agent's roots."""
        spans = raw_json.members(params)
        _check_lookalikes(spans, ("_meta", "capabilities", "inputResponses"))
        if is_initialize and self.are_fixed:
            yield from _capabilities_edit(params, spans, "capabilities", announced=self.listed, adds=True)
        if (meta := _object(params, spans, "_meta")) and (edited := self._meta(meta)) != meta:
            yield spans["_meta"], edited
        if inputs := _object(params, spans, "inputResponses"):
            start = spans["inputResponses"][0]
            for first, end in raw_json.members(inputs).values():
                answer = inputs[first:end]
                if not _has_roots(answer):
                    continue
                if self.are_fixed:
                    edited, note = self._result, f"{_gave(answer)}; the server got {self._given}"
                else:
                    edited, note = self._allowed(answer)
                notes.append(note)
                if edited is not answer:
                    yield (start + first, start + end), edited

    def in_call(self, call: ReadCall) -> ReadCall | None:
        """The call as the server gets it; None: its line must be read."""
        if not (self.are_fixed and len(call.meta)):
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
        if not (self.are_fixed and may_name_roots(meta)):
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


def _has_roots(answer: bytes) -> bool:
    """True for an object that some reader may take for roots."""
    return answer[:1] == b"{" and any(raw_json.folded_key(key) == _KEY for key in raw_json.members(answer))


def _gave(answer: bytes) -> str:
    try:
        roots = [bytes(root) for root in raw_json.items(raw_json.fields(answer).get(_KEY, b"[]"))]
    except raw_json.AMBIGUOUS:
        return "the agent gave roots that cannot be read"
    return f"the agent gave the roots {_shown(roots)}" if roots else "the agent gave no roots"


def _shown(roots: Sequence[bytes]) -> str:
    """The addresses of roots, for people."""
    addresses = [_address(root)[:_MOST_SHOWN] for root in roots[:_MOST_JUDGED]]
    if len(roots) > _MOST_JUDGED:
        addresses.append(f"and {len(roots) - _MOST_JUDGED} more")
    return ", ".join(addresses) or "none"


def _address(root: bytes) -> str:
    try:
        return raw_json.text(raw_json.fields(root).get("uri", b"")) or repr(root.decode())
    except raw_json.AMBIGUOUS:
        return repr(root.decode(errors="replace"))


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
