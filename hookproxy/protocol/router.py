"""Who gets each frame, and the table of calls in flight: a state machine without I/O, because races live here (law 1).

Rule 1: nothing that a server could take for a `tools/call` leaves as PASS unless no hook concerns its tool.
Rule 2: the answer to a judged call leaves through `finish` only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Protocol

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.hooks import Tool
from . import actions, calls, fast_scan, responses, tool_list
from .actions import PASS, AgentAction, ServerAction, as_one_line
from .calls import Call, Phase, id_key
from .elicitations import Elicitations
from .handshake import Handshake
from .inflight import REQUEST_KINDS, InFlight, RequestKind
from .responses import Members, Response
from .tasks import Tasks


class RouterState(Protocol):
    """What is asked of the switchboard."""

    @property
    def calls(self) -> Mapping[bytes, Call]:
        """Judged calls in flight."""

    @property
    def requests(self) -> InFlight:
        """The agent's other requests in flight."""

    @property
    def elicitations(self) -> Elicitations | None:
        """The server's questions, where hooks hear of them."""

    @property
    def tasks(self) -> Tasks:
        """The tasks of judged calls."""

    @property
    def judges_calls(self) -> bool:
        """Some calls are judged."""

    @property
    def withholds_responses(self) -> bool:
        """Some answer that may come is not to reach the agent, or not yet."""

    def is_taken(self, key: bytes) -> bool:
        """A judged call has this id, or may still be answered under it."""

    def is_reserved(self, key: bytes) -> bool:
        """The same, or a call has it that was judged and goes on as any other request."""

    def cancel(self, members: Members) -> AgentAction:
        """The agent's cancellation."""

    def note(self, members: Members, method: bytes) -> None:
        """A request of the agent goes out."""


def from_agent(router: RouterState, line: bytes, problem: raw_json.Unreadable) -> AgentAction:
    """A line that holds no object: blank ones pass, and batches without any tool call; the rest cannot be read."""
    body = line.strip(b" \t\r\n")  # what JSON takes for blank, and no more
    if body[:1] != b"[":
        return actions.Refused(f"The line is {problem}.", unreadable=True) if body else PASS
    try:
        batch = calls.read_batch(body)
    except (raw_json.DuplicateKeys, raw_json.Unreadable) as in_batch:
        return actions.Refused(f"In a batch, {in_batch}.", unreadable=not isinstance(in_batch, raw_json.DuplicateKeys))
    if why := _forbidden(router, batch):
        return actions.Refused(why)
    for members, method in batch:
        if method == calls.CANCELLED and (effect := router.cancel(members)) is not PASS:
            return effect
        if method and "id" in members:
            router.note(members, method)
    return as_one_line(line)


def _forbidden(router: RouterState, batch: list[tuple[Members, bytes]]) -> str:
    """Why a batch that can be read may not pass all the same; empty: it may."""
    requests = [members for members, method in batch if method and "id" in members]
    answers = [members for members, method in batch if not method]
    if any(router.is_reserved(id_key(bytes(members["id"]))) for members in requests):
        return "A request in a batch has the id of a tool call that may still be answered."
    if any(id_key(bytes(members.get("id", b""))).startswith(calls.OWN_ID_PREFIX) for members in answers):
        return "In a batch, an answer to a question of hookproxy: send it as a message of its own."
    if router.elicitations and any(map(router.elicitations.is_awaited, answers)):
        return "In a batch, an answer to a question that hooks judge: send it as a message of its own."
    return ""


def from_server(router: RouterState, line: bytes) -> ServerAction:
    """A line that holds no object: blank ones pass, and batches that answer no judged call; the rest is noise."""
    if line.isspace():
        return PASS
    try:
        found = [responses.read(bytes(item), closely=router.withholds_responses) for item in raw_json.items(line)]
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return actions.NotJson()
    if router.tasks.notification_in_batch(line, router.calls):
        return actions.Dropped("a batch that tells of a judged call's task")
    hides = router.elicitations is not None and router.elicitations.may_be_in_batch(line)
    keys = [id_key(reply.id) for reply in found if reply is not None]
    if any(reply is not None and not reply.certain for reply in found) or any(map(router.is_reserved, keys)) or hides:
        return actions.Dropped("a batch that holds the answer to a judged call, or a question that hooks judge")
    welcome = [
        router.requests.settle(key) is not None or router.requests.take_late_response(key) or key == b"null"
        for key in keys
    ]
    if router.judges_calls and not all(welcome):
        return actions.Dropped("a batch with an answer that nobody asked for")
    return PASS


class Router:
    """The table of requests in flight.

    `judged` says whether hooks concern a tool; None: there are no hooks, and nothing is judged or refused.
    `elicitations` is given where hooks hear of them, `aliases` where they know tools by other names.
    """

    def __init__(
        self,
        judged: Callable[[str], bool] | None,
        elicitations: Elicitations | None = None,
        aliases: Mapping[str, Alias] | None = None,
    ) -> None:
        self._judged = judged
        self.judges_calls = judged is not None
        """Some calls are judged: what cannot be read is refused."""
        self._aliases = aliases or {}
        self.elicitations = elicitations
        self.calls: dict[bytes, Call] = {}
        """Judged calls, by the key of their id, until their answer has left."""
        self.requests = InFlight()
        self.tools: dict[str, Tool] = {}
        """What passing listings told."""
        self.tasks = Tasks()
        self.handshake = Handshake()
        self._judged_names = fast_scan.JudgedTools()

    def from_agent(self, line: bytes) -> AgentAction:
        """Where a line from the agent goes. A line that is no concern of hooks is PASS."""
        if (call := fast_scan.compact_call(line)) is not None:
            if not self._judged_names.get(call.params.name, True) and self._note_unjudged_call(bytes(call.id)):
                return PASS
            if self._judged is not None and (request := calls.from_compact(call)) is not None:
                return self._start_call(request, line)
        return self.read_from_agent(line)

    def _note_unjudged_call(self, raw_id: bytes) -> bool:
        """True if a call with this id, which is not to be judged, is noted, and nobody has to look closer."""
        ready = self.handshake.opened or self._judged is None
        return (
            ready
            and raw_id not in self.calls
            and fast_scan.is_plain_integer(raw_id)
            and self.requests.note_all([raw_id])
        )

    def read_from_agent(self, line: bytes) -> AgentAction:
        """The same as `from_agent`, member by member."""
        if self._judged is None:
            self._observe(line)
            return PASS
        try:
            raw_json.check_utf8(line)
            members = raw_json.fields(line)
        except raw_json.DuplicateKeys as problem:
            return actions.Refused(f"{problem}, which readers take differently.")
        except raw_json.Unreadable as problem:
            return from_agent(self, line, problem)
        effect = self._message_from_agent(line, members)
        if effect is PASS and (b"\r" in line or not line.isascii()):
            return as_one_line(line)
        return effect

    def scan_from_agent(self, block: bytes) -> bool:
        """True if all these lines pass, and are noted; False if they must be read one by one."""
        if not self.handshake.opened and self._judged is not None:
            return False
        ids = fast_scan.unjudged_calls(block, self._judged_names)
        return ids is not None and self.calls.keys().isdisjoint(ids) and self.requests.note_all(ids)

    def _observe(self, line: bytes) -> None:
        """Note a request in flight; a line that cannot be read is the server's to answer."""
        with contextlib.suppress(ValueError):
            members = raw_json.fields(line)
            if "id" in members and "method" in members:
                method = calls.method(members)
                self.note(members, method)
                if method == calls.METHOD and "params" in members:
                    self._judged_names.note(calls.tool_name(bytes(members["params"])), False)

    def is_taken(self, key: bytes) -> bool:
        """A judged call or an errand has this id, or had it and may still be answered: no other request may have it."""
        return key in self.calls or self.requests.is_blocked(key)

    def is_reserved(self, key: bytes) -> bool:
        """The same, or a call that was judged and has gone on has it."""
        return self.is_taken(key) or key in self.requests.released

    def _message_from_agent(self, line: bytes, members: Members) -> AgentAction:
        try:
            calls.check_spelling(members)
        except raw_json.Unreadable as problem:
            return actions.Refused(f"In this message, {problem}.", calls.response_id(members))
        method = calls.method(members)
        if method == calls.METHOD:
            return self._tool_call(line, members)
        if not method:
            return self._response_from_agent(members)
        if "id" not in members:
            return self._notification(members, method)
        if self.is_reserved(id_key(bytes(members["id"]))):
            return actions.Refused(
                "Its id is that of a tool call that may still be answered.", calls.response_id(members)
            )
        if self.tasks and method.startswith(calls.TASKS_PREFIX):
            return self.tasks.request(line, members, self.calls, self.requests)
        self.note(members, method)
        return PASS

    def _response_from_agent(self, members: Members) -> AgentAction:
        """The agent's answer: to a request of the server, or to ours."""
        key = id_key(bytes(members.get("id", b"")))
        if key.startswith(calls.OWN_ID_PREFIX):
            return actions.ApprovalAnswered(key, b"" if "error" in members else bytes(members.get("result", b"")))
        return (self.elicitations and self.elicitations.read_response(members)) or PASS

    def _notification(self, members: Members, method: bytes) -> AgentAction:
        if method == calls.INITIALIZED:
            self.handshake.note_initialized()
        return self.cancel(members) if method == calls.CANCELLED else PASS

    def note(self, members: Members, method: bytes) -> None:
        """A request of the agent goes out: its answer will be welcome."""
        kind = REQUEST_KINDS.get(method, RequestKind.OTHER)
        self.requests.note(id_key(bytes(members["id"])), kind)
        if not self.handshake.opened:
            self.handshake.note_request(members, method, kind is RequestKind.INITIALIZE)

    def _tool_call(self, line: bytes, members: Members) -> AgentAction:
        try:
            request = calls.read(members)
        except (raw_json.Unreadable, raw_json.DuplicateKeys) as problem:
            return actions.Refused(f"The tool call cannot be judged: {problem}.", calls.response_id(members))
        return self._start_call(request, line)

    def _start_call(self, request: calls.Request, line: bytes) -> AgentAction:
        key = request.key
        if key in self.requests or key in self.calls or self.requests.is_blocked(key):
            return actions.Refused("Its id is that of a request in flight, or of a cancelled one.", request.id)
        try:
            if not self.handshake.opened:
                self.handshake.note_call(calls.meta(request.meta))
            if not self._is_judged(request):
                self.requests.note(key, RequestKind.OTHER)
                return PASS
            if self.requests.was_cancelled(key):
                return actions.Refused("Its id is that of a cancelled request, which may be answered.", request.id)
            call = calls.judged_call(request, line, self.tools.get(request.tool), self._aliases.get(request.tool))
        except (raw_json.Unreadable, raw_json.DuplicateKeys) as problem:
            return actions.Refused(f"The tool call cannot be judged: {problem}.", request.id)
        self.calls[key] = call
        self.handshake.note_judged_call(call.meta)
        return actions.StartCall(call)

    def _is_judged(self, request: calls.Request) -> bool:
        judged = self._judged is not None and self._judged(request.tool)
        self._judged_names.note(request.tool, judged)
        return judged or (self._judged is not None and request.has_own_state)

    def cancel(self, members: Members) -> AgentAction:
        """The agent's `notifications/cancelled`."""
        try:
            params = raw_json.fields(bytes(members.get("params", b"{}")))
        except (raw_json.Unreadable, raw_json.DuplicateKeys) as problem:
            return actions.Refused(f"The cancellation cannot be read: {problem}.")
        key = id_key(bytes(params.get("requestId", b"")))
        call = self.calls.get(key)
        if call is None:
            judged = key in self.requests.released
            if self.requests.settle(key) is not None:
                self.requests.cancel(key, late_answer_passes=not judged)
            return PASS
        forward = call.phase in (Phase.FORWARDED, Phase.ANSWERED)
        if call.phase is Phase.FORWARDED:
            self.requests.cancel(call.sent_key, late_answer_passes=False)
        call.phase = Phase.CANCELLED
        self._forget(call)
        return actions.CancelCall(call, forward)

    def release(self, call: Call, *, unseen: bool = False) -> bool:
        """It is allowed; its answer is awaited now, or passes `unseen`, and it has ended. False: it is cancelled."""
        if call.phase is not Phase.HELD:
            return False
        call.phase = Phase.FORWARDED
        if unseen:
            self._forget(call)
            self.requests.note_released(call.key, call.id)
        return True

    def finish(self, call: Call) -> bool:
        """The call's answer goes to the agent now. False if it must not: the agent has cancelled it, or has one."""
        if self.calls.get(call.key) is not call:
            return False
        self._forget(call)
        return True

    def prepare_retry(self, call: Call) -> bool:
        """The call is to be made again, under an id of ours: a session uses none twice. False if it is cancelled."""
        if call.phase is not Phase.ANSWERED:
            return False
        if call.sent_id:
            del self.calls[call.sent_key]
        call.phase, call.sent_id, call.answer, call.response = Phase.HELD, calls.new_id(), b"", None
        call.sent_key = id_key(call.sent_id)
        self.calls[call.sent_key] = call
        return True

    def _forget(self, call: Call) -> None:
        del self.calls[call.key]
        self.calls.pop(call.sent_key, None)

    @property
    def withholds_responses(self) -> bool:
        """Some answer that may come is not to reach the agent, or not yet: no reader may find it anywhere."""
        return bool(self.calls or self.tasks or self.requests.blocks_any)

    @property
    def pending(self) -> bool:
        """The server still owes an answer to the agent."""
        return self.requests.awaits_response or any(call.phase is Phase.FORWARDED for call in self.calls.values())

    def scan_from_server(self, block: bytes) -> bool:
        """True if all these lines pass, and answers among them are noted; False if they must be read one by one."""
        if self.calls or self.elicitations or self.tasks or not self.requests.is_simple:
            return False
        found = fast_scan.heads(block)
        return found is not None and self.requests.settle_all(found, id_key)

    def from_server(self, line: bytes) -> ServerAction:
        """Where a line from the server goes."""
        body = line if line[:1] == b"{" else line.lstrip()
        if body[:1] != b"{":
            return from_server(self, line)
        try:
            reply = responses.read(body, closely=self.withholds_responses)
        except (raw_json.Unreadable, raw_json.DuplicateKeys):
            return actions.NotJson()
        if (reply is None or not reply.nothing_else) and (told := self.tasks.notification(body, self.calls, reply)):
            return told
        if reply is None:
            return (self.elicitations and self.elicitations.read_from_server(body)) or PASS
        key = id_key(reply.id)
        if not reply.certain and not self.is_taken(key):
            return actions.Dropped("a message that may be an answer or not, while another is not to pass unseen")
        return self._response_from_server(line, key, reply.response)

    def _response_from_server(self, line: bytes, key: bytes, said: Response | None = None) -> ServerAction:
        call = self.calls.get(key)
        if call is not None:
            if call.phase is not Phase.FORWARDED or key != call.sent_key:
                return actions.Dropped(f"a second or early answer to the judged call {key.decode(errors='replace')}")
            call.phase, call.answer, call.response = Phase.ANSWERED, line, said
            self.tasks.note_handles(call)
            return actions.CallAnswered(call)
        if self.requests.is_blocked(key):
            return self._blocked_response(key, said)
        kind = self.requests.settle(key)
        if kind is None:
            if (
                self._judged is None or key == b"null" or self.requests.take_late_response(key)
            ):  # null: to what it could not read
                return PASS
            return actions.Dropped(f"an answer that nobody asked for: {key.decode(errors='replace')}")
        if kind is RequestKind.INITIALIZE:
            return actions.InitializeAnswered()
        if kind is RequestKind.TOOLS_LIST and self._judged is not None:
            self.tools.update((tool.name, tool) for tool in tool_list.listed_tools(line))
            return actions.ToolsListed()
        return PASS

    def _blocked_response(self, key: bytes, said: Response | None) -> ServerAction:
        if self.requests.settle_hook_tool_call(key):
            return actions.HookToolCallAnswered(key, said)
        self.requests.take_late_response(key)
        return actions.Dropped(f"the late answer to a cancelled judged call: {key.decode(errors='replace')}")

    def may_pass_in_pieces(self, head: bytes) -> bool:
        """True if nobody has to see the line whole that begins so: it is no judged call's answer, late or second."""
        if self.calls or self.tasks or self.requests.awaits_session_data or head[:1] != b"{":
            return False
        raw_id = fast_scan.response_id(head, b"")
        if raw_id is None and self.elicitations:
            return False  # it may be a question
        if self._judged is None or fast_scan.is_no_response(head):
            return True
        return self.requests.passes_unread(None if raw_id is None else id_key(raw_id))
