"""Who gets each frame, and the table of calls in flight: a state machine without I/O, because races live here (law 1).

Rule 1: nothing that a server could take for a `tools/call` leaves as PASS unless no hook concerns its tool.
Rule 2: the answer to a judged call leaves through `finish` only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import msgspec

from . import calls, glance, wire
from .calls import Call, Members, Phase, Said, id_key
from .effects import (
    PASS,
    Answered,
    CancelCall,
    Dropped,
    FromAgent,
    FromServer,
    InitializeAnswered,
    Noise,
    Refused,
    Send,
    StartCall,
    ToolsListed,
)
from .model import Tool

CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
"""The member of `params._meta` in which an agent of the stateless era names itself."""

_LAPSED_LIMIT: Final = 1024  # cancelled requests whose late answer is still recognised; agents cancel a few at a time
_NAMES_LIMIT: Final = 4096  # names remembered: the agent chooses them, and a table must not grow for ever


class Kind(Enum):
    """Requests of the agent that are no judged calls, by what their answers are good for."""

    OTHER = auto()
    INITIALIZE = auto()
    TOOLS_LIST = auto()
    ENDLESS = auto()  # answered only when the server ends it


_KINDS: Final = {
    b'"initialize"': Kind.INITIALIZE,
    b'"tools/list"': Kind.TOOLS_LIST,
    b'"subscriptions/listen"': Kind.ENDLESS,
}


class _Head(msgspec.Struct):
    """What tells an answer from other frames, of a line whose other members do not matter."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_HEAD: Final = msgspec.json.Decoder(_Head)


class Switchboard:
    """The table of requests in flight.

    `judged` says whether hooks concern a tool; None: there are no hooks, and nothing is judged or refused.
    """

    def __init__(self, judged: Callable[[str], bool] | None) -> None:
        self._judged = judged
        self.calls: dict[bytes, Call] = {}
        """Judged calls, by the key of their id, until their answer has left."""
        self.requests: dict[bytes, Kind] = {}
        self.tools: dict[str, Tool] = {}
        """What passing listings told."""
        self.opened = False
        """The session has begun: `initialize`, or the first request of the stateless era but `server/discover`."""
        self.handshake = False
        """It began with `initialize`."""
        self.agent = ""
        """Name and version as the agent gave them."""
        self._judged_names: dict[bytes, bool] = {}  # by the tool's name as spelled in JSON, for glances
        self._lapsed: dict[bytes, bool] = {}  # cancelled, not answered yet; True: a late answer passes

    # --- from the agent ---

    def from_agent(self, line: bytes) -> FromAgent:
        """Where a line from the agent goes. A line that is no concern of hooks is PASS."""
        if self._judged is None:
            self._watch(line)
            return PASS
        try:
            if not line.isascii():
                wire.check_text(line)
            members = wire.fields(line)
        except wire.TwinKeys as problem:
            return Refused(f"{problem}, which readers take differently.")
        except wire.Unreadable as problem:
            return self._no_object(line, problem)
        effect = self._frame(line, members)
        if effect is PASS and (b"\r" in line or not line.isascii()):
            return _as_one_line(line)
        return effect

    def glance_from_agent(self, block: bytes) -> bool:
        """True if all these lines pass, and are noted; False if they must be read one by one."""
        if not self.opened and self._judged is not None:
            return False
        if block.find(b"\n") == len(block) - 1:
            key = glance.unjudged_call(block, self._judged_names)
            if key is None or key in self.requests or key in self.calls:
                return False
            self.requests[key] = Kind.OTHER
            return True
        ids = glance.unjudged_calls(block, self._judged_names)
        if ids is None or not (self.calls.keys().isdisjoint(ids) and self.requests.keys().isdisjoint(ids)):
            return False
        fresh = dict.fromkeys(ids, Kind.OTHER)
        if len(fresh) != len(ids):
            return False
        self.requests.update(fresh)
        return True

    def _watch(self, line: bytes) -> None:
        """Note a request in flight; a line that cannot be read is the server's to answer."""
        with contextlib.suppress(ValueError):
            members = wire.fields(line)
            if "id" in members and "method" in members:
                method = calls.method(members)
                self._note(members, method)
                if method == calls.METHOD:
                    self._judged_names[bytes(wire.fields(bytes(members["params"])).get("name", b""))] = False

    def _no_object(self, line: bytes, problem: wire.Unreadable) -> FromAgent:
        """Blank lines pass, and so does a batch without any tool call; the rest cannot be read."""
        if not line.strip():
            return PASS
        try:
            wire.check_text(line)
            batch = [wire.fields(bytes(item)) for item in wire.items(line)]
        except wire.TwinKeys as twins:
            return Refused(f"In a batch, {twins}, which readers take differently.")
        except wire.Unreadable:
            return Refused(f"The line is {problem}.", unreadable=True)
        return self._batch(line, batch)

    def _batch(self, line: bytes, batch: list[dict[str, msgspec.Raw]]) -> FromAgent:
        for members in batch:
            try:
                calls.check_spelling(members)
            except wire.Unreadable as problem:
                return Refused(f"In a batch, {problem}.")
            if calls.method(members) == calls.METHOD:
                return Refused("A tool call in a batch is not forwarded. Send it as a message of its own.")
            if id_key(calls.own_id(members)) in self.calls and "method" in members:
                return Refused("A request in a batch has the id of a tool call in flight.")
        for members in batch:
            if "id" in members and "method" in members:
                self._note(members, calls.method(members))
        return _as_one_line(line)

    def _frame(self, line: bytes, members: Members) -> FromAgent:
        try:
            calls.check_spelling(members)
        except wire.Unreadable as problem:
            return Refused(f"In this message, {problem}.", calls.own_id(members))
        method = calls.method(members)
        if method == calls.METHOD:
            return self._call(line, members)
        if not method:
            return PASS  # the agent's answer to a request of the server
        if "id" not in members:
            return self._cancelled(members) if method == b'"notifications/cancelled"' else PASS
        if id_key(bytes(members["id"])) in self.calls:
            return Refused("Its id is that of a tool call in flight.", calls.own_id(members))
        self._note(members, method)
        return PASS

    def _note(self, members: Members, method: bytes) -> None:
        """A request of the agent goes out: its answer will be welcome."""
        kind = _KINDS.get(method, Kind.OTHER)
        self.requests[id_key(bytes(members["id"]))] = kind
        if self.opened or method == b'"server/discover"' or "params" not in members:
            return
        with contextlib.suppress(ValueError):  # a request without readable params belongs to neither era
            params = wire.fields(bytes(members["params"]))
            if kind is Kind.INITIALIZE:
                self.opened = self.handshake = True
                self.agent = calls.introduced(params.get("clientInfo"))
            else:
                self._open_stateless(calls.meta(params))

    def _open_stateless(self, meta: Members) -> None:
        if not self.opened and calls.PROTOCOL_VERSION_KEY in meta:
            self.opened = True
            self.agent = calls.introduced(meta.get(CLIENT_INFO_KEY))

    def _call(self, line: bytes, members: Members) -> FromAgent:
        raw_id = calls.own_id(members)
        try:
            request = calls.read(members)
            key = request.key
            if key in self.calls or key in self.requests:
                return Refused("Its id is that of a request in flight.", raw_id)
            if not self.opened:
                self._open_stateless(calls.meta(request.params))
            if not self._is_judged(request):
                self.requests[key] = Kind.OTHER
                return PASS
            if key in self._lapsed:
                return Refused("Its id is that of a cancelled request, which may still be answered.", raw_id)
            call = calls.to_judge(request, line, self.tools.get(request.tool))
        except (wire.Unreadable, wire.TwinKeys) as problem:
            return Refused(f"The tool call cannot be judged: {problem}.", raw_id)
        self.calls[key] = call
        return StartCall(call)

    def _is_judged(self, request: calls.Request) -> bool:
        judged = self._judged is not None and self._judged(request.tool)
        if len(self._judged_names) >= _NAMES_LIMIT:
            self._judged_names.clear()
        self._judged_names[bytes(request.params["name"])] = judged
        return judged

    def _cancelled(self, members: Members) -> FromAgent:
        try:
            params = wire.fields(bytes(members.get("params", b"{}")))
        except (wire.Unreadable, wire.TwinKeys) as problem:
            return Refused(f"The cancellation cannot be read: {problem}.")
        key = id_key(bytes(params.get("requestId", b"")))
        call = self.calls.get(key)
        if call is None:
            if self.requests.pop(key, None) is not None:
                self._lapse(key, late_answer_passes=True)
            return PASS
        forward = call.phase is not Phase.HELD
        if call.phase is Phase.FORWARDED:
            self._lapse(key, late_answer_passes=False)
        call.phase = Phase.CANCELLED
        del self.calls[key]
        return CancelCall(call, forward)

    def _lapse(self, key: bytes, *, late_answer_passes: bool) -> None:
        self._lapsed[key] = late_answer_passes
        if len(self._lapsed) > _LAPSED_LIMIT:
            del self._lapsed[next(iter(self._lapsed))]

    # --- what becomes of a judged call ---

    def release(self, call: Call) -> bool:
        """The call is allowed: from now on its answer is awaited. False if the agent has cancelled it meanwhile."""
        if call.phase is not Phase.HELD:
            return False
        call.phase = Phase.FORWARDED
        return True

    def finish(self, call: Call) -> bool:
        """The call's answer goes to the agent now. False if it must not: the agent has cancelled it, or has one."""
        if self.calls.get(call.key) is not call:
            return False
        del self.calls[call.key]
        return True

    @property
    def watching(self) -> bool:
        """An answer that must be seen whole may come: a long line is assembled, not passed on in pieces."""
        return bool(self.calls) or any(
            kind is Kind.INITIALIZE or kind is Kind.TOOLS_LIST for kind in self.requests.values()
        )

    @property
    def pending(self) -> bool:
        """The server still owes an answer to the agent."""
        return any(call.phase is Phase.FORWARDED for call in self.calls.values()) or any(
            kind is not Kind.ENDLESS for kind in self.requests.values()
        )

    # --- from the server ---

    def glance_from_server(self, block: bytes) -> bool:
        """True if all these lines pass, and answers among them are noted; False if they must be read one by one."""
        if self.calls:
            return False
        found = glance.heads(block)
        if found is None:
            return False
        answered: list[bytes] = []
        for head in found:
            if head.id:
                key = id_key(bytes(head.id))
                if head.method or self.requests.get(key) is not Kind.OTHER:
                    return False
                answered.append(key)
        for key in answered:
            self.requests.pop(key, None)  # a twin answer finds nothing, and passes: it is to no judged call
        return True

    def from_server(self, line: bytes) -> FromServer:
        """Where a line from the server goes."""
        if line[:1] != b"{":
            return self._no_frame(line)
        if self.calls:
            return self._read(line)
        try:
            head = _HEAD.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._scanned(line)
        if head.id is msgspec.UNSET:
            return PASS
        if head.result is msgspec.UNSET and head.error is msgspec.UNSET and head.method is not msgspec.UNSET:
            return PASS  # a request of the server
        return self._answer(line, id_key(bytes(head.id)))

    def _read(self, line: bytes) -> FromServer:
        """A line that may answer a judged call is read whole, once: what is found goes with the call."""
        try:
            answer = calls.read_answer(line)
        except (wire.TwinKeys, wire.Unreadable):
            return self._ambiguous(line)
        return PASS if answer is None else self._answer(line, id_key(answer[0]), answer[1])

    def _ambiguous(self, line: bytes) -> FromServer:
        """If any reader could take the line for a judged call's answer, it is that, and says nothing."""
        effect = self._scanned(line)
        if isinstance(effect, Noise):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                head = _HEAD.decode(line)
                if head.id is not msgspec.UNSET and id_key(bytes(head.id)) in self.calls:
                    return self._answer(line, id_key(bytes(head.id)))
        return effect

    def _scanned(self, line: bytes) -> FromServer:
        """A line that the fast reader cannot take is JSON all the same to others (half a surrogate pair), or none."""
        try:
            members = {key: line[slice(*span)] for key, span in wire.members(line).items()}
        except (wire.Unreadable, wire.TwinKeys):
            return Noise()
        if "id" not in members or ("method" in members and not members.keys() & {"result", "error"}):
            return PASS
        return self._answer(line, id_key(members["id"]))

    def _no_frame(self, line: bytes) -> FromServer:
        """Blank lines and batches pass, unless a batch answers a judged call: nobody asked for a batch."""
        body = line.lstrip()
        if body[:1] == b"{":
            return self.from_server(body)
        if not body:
            return PASS
        try:
            keys = [id_key(bytes(wire.fields(bytes(item)).get("id", b"null"))) for item in wire.items(line)]
        except (wire.Unreadable, wire.TwinKeys):
            return Noise()
        if any(key in self.calls for key in keys):
            return Dropped("a batch that holds the answer to a judged call")
        for key in keys:
            self.requests.pop(key, None)
        return PASS

    def _answer(self, line: bytes, key: bytes, said: Said | None = None) -> FromServer:
        call = self.calls.get(key)
        if call is not None:
            if call.phase is not Phase.FORWARDED:
                return Dropped(f"a second or early answer to the judged call {key.decode(errors='replace')}")
            call.phase, call.answer, call.said = Phase.ANSWERED, line, said
            return Answered(call)
        kind = self.requests.pop(key, None)
        if kind is None:
            if self._judged is None or self._lapsed.pop(key, False):
                return PASS
            return Dropped(f"an answer to no request, or to a cancelled one: {key.decode(errors='replace')}")
        if kind is Kind.INITIALIZE:
            return InitializeAnswered()
        if kind is Kind.TOOLS_LIST and self._judged is not None:
            self.tools.update((tool.name, tool) for tool in calls.listed_tools(line))
            return ToolsListed()
        return PASS

    def answered_in_pieces(self, key: bytes) -> None:
        """A long answer that nobody had to see has passed."""
        self.requests.pop(key, None)


def _as_one_line(line: bytes) -> FromAgent:
    clean = wire.one_line(line)
    return PASS if clean == line else Send(clean)
