"""The router decides where each line goes.

It is a state machine without I/O, because races live in the tables of what is in flight (law 1). Its rules:

1. A line that any server could take for a `tools/call` is PASS only if no hook concerns its tool.
2. The response to a judged call reaches the agent only after `JudgedCalls.finish`.
3. No request of the agent may have an id under which a judged call may still be answered.
4. A line that two readers could take differently is refused (from the agent) or dropped (from the server).

The tables keep themselves consistent: `InFlight` and `JudgedCalls` (inflight), `JudgedTools` (tool_list), `Tasks`,
`Elicitations`, `HeldNotifications`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc import nesting, raw_json
from ..model.aliases import Alias
from ..model.settings import MAX_DEPTH
from . import actions, calls, fast_scan, feedback, method_forms, responses, tool_list
from .actions import PASS, AgentAction, ServerAction, pass_as
from .calls import id_key
from .elicitations import Elicitations
from .handshake import Handshake
from .held_notifications import HeldNotifications
from .inflight import (
    ANNOUNCED,
    OPENING,
    TOOLS_LIST,
    InFlight,
    JudgedCalls,
    RequestKind,
)
from .responses import Members, Response
from .roots import Roots, may_name_roots
from .session_data import OF_REFUSED, SessionData, WhyWithheld
from .shown_tools import ShownTools, UnknownTool
from .tasks import Tasks

if TYPE_CHECKING:
    from .refused_subscriptions import RefusedSubscriptions

FindAlias = Callable[[str, bytes], Alias | None]
_ROOTS_CHANGED: Final = "the agent's notifications about its roots: the configuration says what they are"


class Router:
    """The decision about each line. It is long because both directions decide by the same tables, and change them.

    A line takes the first way that is certain about it: several calls or responses at once (`scan_…`), one that was
    read already (`pass_…`), or `from_agent` and `from_server`, which read it.

    `judged` says whether a tool has hooks. If it is None, there are no hooks, and nothing is judged or refused.
    `elicitations` is given if hooks observe elicitations. `find_alias` returns the alias by which hooks know a tool in
    a call with these arguments, and raises Unreadable or DuplicateKeys if the alias makes the arguments ambiguous.
    `max_depth` is the limit for the arguments of a judged call.
    """

    def __init__(
        self,
        judged: Callable[[str], bool] | None,
        elicitations: Elicitations | None = None,
        find_alias: FindAlias | None = None,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self._judges_calls = judged is not None  # so a line that cannot be read is refused
        self._max_depth = max_depth
        self._find_alias = find_alias
        self.elicitations = elicitations
        """The server's elicitations in flight; None: no hook observes them."""
        self.requests = InFlight()
        """The agent's requests in flight that no hook judges."""
        self.calls = JudgedCalls(self.requests)
        """The judged ones."""
        self.tools = tool_list.ListedTools()
        """The tools in the tools/list results that have passed."""
        self.is_own_state: Callable[[str], bool] = calls.is_of_this_process
        """Recognises our request states: a call with one of them is judged, whatever its tool."""
        self.held = HeldNotifications()
        """Notifications that wait for the hooks of calls."""
        self.as_line: Callable[[bytes], bytes] = raw_json.one_line
        """Makes of a message to the server one line for every reader; `bytes` if the server reads no lines."""
        self.tasks = Tasks()
        """The tasks of judged calls."""
        self._refused_subscriptions: RefusedSubscriptions | None = None
        self.handshake = Handshake()
        self.roots: Roots | None = None
        """What the server gets of the agent's roots; None: all of them."""
        self._roots_changed = False  # people know that the agent's changes of them count for nothing
        self.session_data = SessionData(self.requests)
        """What the server says it is and has, as far as that is guarded."""
        self._awaited = self.session_data.awaited  # the fast path asks for it at each response
        self.judged_tools = tool_list.JudgedTools(judged, self.tools)
        self._judges_method: Callable[[str], bool] = lambda _method: False
        self._methods: Mapping[bytes, method_forms.MethodForm] = {}  # the methods beside tool calls that are judged

    def change_policy(self, find_alias: FindAlias, elicitations: Elicitations | None, max_depth: int) -> None:
        """Decide anew which tools are judged; calls in flight stay as they are. The arguments are as for a router."""
        self._find_alias, self.elicitations, self._max_depth = find_alias, elicitations, max_depth
        self.judged_tools.forget_all()
        self.judge_methods(self._judges_method)

    def judge_methods(self, judged: Callable[[str], bool]) -> None:
        """Judge the methods of which `judged` says so; all others beside tool calls pass."""
        self._judges_method = judged
        self._methods = {method: form for method, form in method_forms.FORMS.items() if judged(form.name)}

    def show_tools(self, shown: ShownTools | None, why_withheld: WhyWithheld | None = None) -> None:
        """As `SessionData.show`, from the next list and the next call on."""
        self.session_data.show(shown, why_withheld)
        self.judged_tools.special = frozenset() if shown is None else shown.special
        self.judged_tools.forget_all()

    # --- lines from the agent ---

    def from_agent(self, line: bytes) -> AgentAction:
        """Return the action for a line from the agent. The action for a line that does not concern hooks is PASS."""
        if (call := fast_scan.compact_call(line)) is not None and not self._may_name_roots(call.params.meta):
            if (self.handshake.opened or not self._judges_calls) and self._note_unjudged_call(call):
                return PASS
            if self._judges_calls and (request := calls.from_compact(call)) is not None:
                return self._start_call(request, line)
        return self.read_from_agent(line)

    def read_from_agent(self, line: bytes) -> AgentAction:
        """Return the same as `from_agent`, but always read the line member by member."""
        if not self._judges_calls:
            self._observe(line)
            return PASS
        if nesting.has_more_values(line, calls.MAX_VALUES):
            return actions.Refused(f"It has more than {calls.MAX_VALUES} JSON values: more than hooks can judge.")
        try:
            raw_json.check_utf8(line)
            members = raw_json.fields(line)
        except raw_json.DuplicateKeys as problem:
            return actions.Refused(f"Readers may read the message differently: {problem}.")
        except raw_json.Unreadable as problem:
            return self._batch_from_agent(line, problem)
        if self.roots is not None:
            return self._without_roots(self.roots, line, members)
        return self._clean_message(line, members)

    def _clean_message(self, line: bytes, members: Members) -> AgentAction:
        action = self._message_from_agent(line, members)
        if action is PASS and (b"\r" in line or not line.isascii()):
            return pass_as(self.as_line(line), line)
        return action

    def _without_roots(self, roots: Roots, line: bytes, members: Members) -> AgentAction:
        """The action for a message, of which the server gets no roots but those that it may have."""
        try:
            of_roots = roots.from_agent(line, members)
            edited = of_roots.line
            if not edited:
                why, self._roots_changed = "" if self._roots_changed else _ROOTS_CHANGED, True
                return actions.Dropped(why)
            if edited is not line:
                members = raw_json.fields(edited)
        except raw_json.AMBIGUOUS as problem:
            return actions.Refused(f"What it says of roots cannot be read: {problem}.", calls.response_id(members))
        if edited is line and not of_roots.note:
            return self._clean_message(line, members)
        action = self._message_from_agent(edited, members)
        if action is PASS:
            action = actions.Send(self.as_line(edited))
        if isinstance(action, actions.Send) and not of_roots.note:
            return action
        return actions.Edited(action, edited, of_roots.note)

    def _may_name_roots(self, meta: fast_scan.Raw) -> bool:
        """True for a `_meta` that must be read closely, because the server might find the agent's roots in it."""
        return self.roots is not None and self.roots.are_fixed and len(meta) > 0 and may_name_roots(bytes(meta))

    def scan_from_agent(self, block: bytes) -> bool:
        """The fast path: True if all these lines pass, and are noted. False: they must be read one by one."""
        if not self.handshake.opened and self._judges_calls:
            return False
        if self.roots is not None and may_name_roots(block):
            return False
        ids = fast_scan.unjudged_calls(block, self.judged_tools)
        return ids is not None and self.calls.keys().isdisjoint(ids) and self.requests.note_all(ids)

    def scan_call(self, line: bytes) -> bool:
        """As `scan_from_agent` for one line of a session that has been opened: by far the most frequent."""
        call = fast_scan.compact_call(line)
        return call is not None and not self._may_name_roots(call.params.meta) and self._note_unjudged_call(call)

    def pass_call(self, name: str, key: bytes) -> bool:
        """As `scan_call` for a call that was read already; `key` is that of its id, which is a plain integer.

        Its `_meta` says nothing of roots.
        """
        return not self.judged_tools.get(name, True) and key not in self.calls and self.requests.note_one(key)

    # --- lines from the server ---

    def from_server(self, line: bytes) -> ServerAction:
        """Return the action for a line from the server."""
        body = line if line[:1] == b"{" else line.lstrip()
        if body[:1] != b"{":
            is_refused = self.session_data.refuses_server and not line.isspace()
            return actions.Dropped(OF_REFUSED) if is_refused else self._batch_from_server(line)
        try:
            guarded = self.elicitations is not None and self.elicitations.guarded
            frame = responses.read(body, closely=self.withholds_responses or guarded)
        except raw_json.AMBIGUOUS:
            return actions.NotJson()
        if frame is None and self.session_data.refuses_server:
            return self.session_data.of_refused(body)
        if (frame is None or not frame.nothing_else) and (action := self.tasks.notification(body, self.calls, frame)):
            return action
        if frame is None:
            return (self.elicitations and self.elicitations.read_from_server(body)) or self._other_from_server(body)
        maybe_request = guarded and not frame.nothing_else and self.elicitations and self.elicitations.is_unclear(body)
        key = id_key(frame.id)
        if (maybe_request or not frame.certain) and not self.is_taken(key):  # else the call ends with an error
            return self.dropped_as_unclear(frame.id)
        response = None if maybe_request else frame.response
        # some readers skip VT and FF before JSON, which are not JSON: without them, the response can be edited
        return self._response_from_server(body if line[:1] in (b"\v", b"\f") else line, key, response)

    def _other_from_server(self, body: bytes) -> ServerAction:
        if self.roots is not None and self.roots.are_fixed and (raw_id := self.roots.is_request(body)):
            return actions.SendBack(self.roots.response(raw_id), self.roots.note)
        if self._refused_subscriptions and self._refused_subscriptions.covers(body):
            return actions.Dropped("a notification about a resource whose subscription was refused")
        if self.calls or self.tasks:
            if (progress := self.held.without_text(body, self.calls.values())) is not None:
                return actions.NotificationEdited(progress)
            if self.held.take(body, self.calls.values(), self.tasks):
                return actions.NotificationHeld()
        return PASS

    def scan_from_server(self, block: bytes) -> bool:
        """The fast path: True if all these lines pass, and responses in them are noted. False: read them one by one."""
        if not self.requests.is_simple:
            return False
        if self._reads_responses:
            return self._passes_beside_elicitations(block)
        heads = fast_scan.heads(block)
        return heads is not None and self.requests.settle_all(heads)

    def _passes_beside_elicitations(self, block: bytes) -> bool:
        """True if these lines only are read because the server may ask something, and do not ask anything."""
        if self.elicitations is None or self.calls or self.tasks or self._awaited:
            return False
        if self.session_data.refuses_server or self._refused_subscriptions:
            return False
        return self.elicitations.are_others(block)

    def pass_response(self, key: bytes) -> bool:
        """The fast path for a response that was read already: True if it passes, and is noted. False: read its line."""
        return not self._reads_responses and self.requests.settle_simple(key)

    def scan_response(self, line: bytes) -> bytes:
        """As `scan_from_server` for one response with a plain id: that id. Empty: it is something else."""
        if self._reads_responses or (head := fast_scan.head(line)) is None:
            return b""
        raw_id = bytes(head.id)
        if head.method or not fast_scan.is_plain_integer(raw_id):
            return b""
        return raw_id if self.requests.settle_simple(raw_id) else b""

    def may_pass_in_pieces(self, head: bytes) -> bool:
        """True if the line that begins so may pass in pieces: no response is withheld, and none must be read."""
        if self.withholds_responses or self.requests.awaits_session_data or head[:1] != b"{":
            return False
        if self._refused_subscriptions and fast_scan.response_id(head, b"") is None:
            return False  # it may be about one of these resources
        raw_id = fast_scan.response_id(head, b"")
        if self.elicitations and (raw_id is None or self.elicitations.guarded):
            return False  # it may be an elicitation
        if not self._judges_calls or fast_scan.begins_with_method(head):
            return True
        if raw_id is None and fast_scan.begins_with_odd_id(head):
            return False  # no request has it, so the response is dropped
        return self.requests.passes_unread(None if raw_id is None else id_key(raw_id))

    def may_pass_early(self, raw_id: bytes) -> bool:
        """True if the response to this request may pass before its end has come, because nobody must read it."""
        key = id_key(raw_id)
        is_simple = self.requests.is_simple and not self._reads_responses
        return is_simple and self.requests.get(key) is RequestKind.OTHER and key not in self.requests.released

    def note_subscription(self, arguments: bytes, *, refused: bool) -> None:
        """Note how a judged request to subscribe to a resource has ended."""
        if self._refused_subscriptions is None:
            if not refused:
                return
            from .refused_subscriptions import RefusedSubscriptions  # for such sessions only

            self._refused_subscriptions = RefusedSubscriptions()
        self._refused_subscriptions.note(arguments, refused=refused)

    # --- the state of the table ---

    @property
    def _reads_responses(self) -> bool:
        """True while some line from the server may concern more than a request in flight."""
        withholds = self.elicitations or self.tasks or self._awaited or self.session_data.refuses_server
        return bool(self.calls or withholds or self._refused_subscriptions)

    @property
    def pending(self) -> bool:
        """True if the agent still awaits a response of the server."""
        return self.requests.awaits_response or self.calls.awaits_response

    @property
    def withholds_responses(self) -> bool:
        """True if a response may come that must not reach the agent (yet), so responses must be read closely."""
        data = self.session_data
        return bool(self.calls or self.tasks or self.requests.blocks_any or data.awaited or data.refuses_server)

    def is_taken(self, key: bytes) -> bool:
        """True if no other request may have this id: a judged call or a hook's tool call may be answered under it."""
        return key in self.calls or self.requests.is_blocked(key)

    def is_reserved(self, key: bytes) -> bool:
        """As `is_taken`; also True for a judged call whose response passes without being read."""
        return self.is_taken(key) or key in self.requests.released

    # --- one message from the agent ---

    def _message_from_agent(self, line: bytes, members: Members) -> AgentAction:
        try:
            self._check_spelling(members)
        except raw_json.Unreadable as problem:
            return actions.Refused(f"In this message, {problem}.", calls.response_id(members))
        method = calls.method(members)
        if method == calls.METHOD:
            return self._tool_call(line, members)
        if not method:
            return self._response_from_agent(members)
        may_be_judged = method in self._methods or (method in method_forms.FORMS and b"requestState" in line)
        if may_be_judged and (action := self._method_call(line, members, method)) is not None:
            return action
        if "id" not in members:
            return self._notification_from_agent(members, method)
        if refused := self._refused_request(members, method):
            return refused
        if self.tasks and method.startswith(calls.TASKS_PREFIX):
            return self.tasks.request(self.as_line(line), members, self.calls, self.requests)
        self._note(members, method)
        return PASS

    def _notification_from_agent(self, members: Members, method: bytes) -> AgentAction:
        if method == calls.INITIALIZED:
            self.handshake.note_initialized()
        return self._cancel(members) if method == calls.CANCELLED else PASS

    def _refused_request(self, members: Members, method: bytes) -> actions.Refused | None:
        """A request must not go on: its response could not be matched with it, or what it is about is withheld."""
        key, raw_id = id_key(bytes(members["id"])), calls.response_id(members)
        if self.is_reserved(key):
            return actions.Refused("Its id is the id of a tool call that may still be answered.", raw_id)
        return self.session_data.refused(method, members)

    def _check_spelling(self, members: Members) -> None:
        calls.check_spelling(members)
        if self.elicitations is not None:
            self.elicitations.check_is_clear(members)

    def _tool_call(self, line: bytes, members: Members) -> AgentAction:
        try:
            return self._start_call(calls.read(members), line)
        except ValueError as problem:
            return actions.Refused(f"The tool call cannot be judged: {problem}.", calls.response_id(members))

    def _method_call(self, line: bytes, members: Members, method: bytes) -> AgentAction | None:
        """The action for a request of a method beside tool calls; None: it is not judged."""
        try:
            if method not in self._methods:
                if not self._continues_judged_call(method_forms.read(members, method)):
                    return None
            elif not method_forms.may_be_judged(method, members):
                return None
            if why := self.session_data.why_withheld(method, members):
                return actions.Refused(why, calls.response_id(members), code=feedback.REFUSED)
            return self._start_call(method_forms.read(members, method), line)
        except ValueError as problem:
            if method not in self._methods:
                return None
            name = self._methods[method].name
            return actions.Refused(f"This {name} cannot be judged: {problem}.", calls.response_id(members))

    def _start_call(self, request: calls.Request, line: bytes) -> AgentAction:
        key = request.key
        if key in self.requests or key in self.calls or self.requests.is_blocked(key):
            return actions.Refused("Its id is the id of a request that is in flight or cancelled.", request.id)
        is_method = request.mcp_method in method_forms.BY_NAME  # then it is judged for certain
        came = line
        try:
            if not self.handshake.opened:
                self.handshake.note_call(calls.meta(request.meta))
            if (shown := self.session_data.shown) is not None and not is_method:
                request, line = shown.request(request, line)
            if not (is_method or self.judged_tools.find_out(request.tool) or self._continues_judged_call(request)):
                self.requests.note(key, RequestKind.OTHER, request.id)
                self.requests.unjudged_calls += 1
                return PASS if line is came else actions.Send(self.as_line(line))
            if why := self._why_call_is_refused(key):
                return actions.Refused(why, request.id)
            listed = method_forms.BY_NAME[request.tool].tool if is_method else self.tools.get(request.tool)
            clean = self.as_line(line)
            call = calls.judged_call(request, clean, listed, self._find_alias, self._max_depth, self.is_own_state)
        except UnknownTool as unknown:
            return actions.Refused(str(unknown), request.id, code=feedback.BAD_PARAMS)
        except raw_json.AMBIGUOUS as problem:
            what = f"This {request.tool}" if is_method else "The tool call"
            return actions.Refused(f"{what} cannot be judged: {problem}.", request.id)
        self.calls[key] = call
        self.judged_tools.note_judged_call()
        self.handshake.note_judged_call(call.meta)
        return actions.StartCall(call)

    def _why_call_is_refused(self, key: bytes) -> str:
        """Why no judged call may begin with this id; empty: it may."""
        if self.requests.was_cancelled(key):
            return "A cancelled request with its id may still be answered."
        return (
            "" if self.requests.can_bar_more else "Too many calls of this session were cancelled. Start a new session."
        )

    def _continues_judged_call(self, request: calls.Request) -> bool:
        return self._judges_calls and bool(state := request.state) and self.is_own_state(state)

    def _note_unjudged_call(self, call: fast_scan.CompactCall) -> bool:
        """Note a call that is not judged. False: its tool or its id demands a closer look."""
        raw_id = bytes(call.id)
        return fast_scan.is_plain_integer(raw_id) and self.pass_call(call.params.name, raw_id)

    def _cancel(self, members: Members) -> AgentAction:
        try:
            params = raw_json.fields(bytes(members.get("params", b"{}")))
        except raw_json.AMBIGUOUS as problem:
            return actions.Refused(f"The cancellation cannot be read: {problem}.")
        key = id_key(bytes(params.get("requestId", b"")))
        call = self.calls.get(key)
        if call is None:
            judged = key in self.requests.released
            kind = self.requests.settle(key)
            if kind is not None:
                judged |= self.session_data.note_cancelled(key, kind)
                (self.requests.bar if judged else self.requests.cancel)(key)
            return PASS
        return actions.CancelCall(call, forward=self.calls.cancel(call))

    def _note(self, members: Members, method: bytes) -> None:
        """Note a request of the agent that goes to the server: its response may pass."""
        kind = self.session_data.kind(method)
        raw_id = bytes(members["id"])
        key = id_key(raw_id)
        self.requests.note(key, kind, raw_id)
        if method in OPENING:
            self.requests.note_opening(key)
        self.session_data.note(key, kind, members)
        if not self.handshake.opened:
            self.handshake.note_request(members, method, kind is RequestKind.INITIALIZE)

    def _response_from_agent(self, members: Members) -> AgentAction:
        key = id_key(bytes(members.get("id", b"")))
        if key.startswith(calls.OWN_ID_PREFIX):
            return actions.ApprovalAnswered(key, b"" if "error" in members else bytes(members.get("result", b"")))
        return (self.elicitations and self.elicitations.read_response(members)) or PASS

    def _observe(self, line: bytes) -> None:
        """Without hooks: note a request in flight. The server answers a line that cannot be read."""
        with contextlib.suppress(ValueError):
            members = raw_json.fields(line)
            if "id" in members and "method" in members:
                method = calls.method(members)
                self._note(members, method)
                if method == calls.METHOD and "params" in members:
                    name = raw_json.fields(members["params"]).get("name", b"")
                    self.judged_tools.find_out(raw_json.text(name) or "")

    # --- one response from the server ---

    def _response_from_server(self, line: bytes, key: bytes, response: Response | None = None) -> ServerAction:
        call = self.calls.get(key)
        if call is not None:
            if not call.take_response(key, line, response):
                shown = key.decode(errors="replace")
                return actions.Dropped(f"a second or early response to the judged call {shown}")
            self.tasks.note_handles(call)
            return actions.CallAnswered(call)
        if self.requests.is_blocked(key):
            return self._blocked_response(key, response)
        if self.elicitations is not None and key in self.requests and self.elicitations.may_ask_in_result(line):
            self.requests.settle(key)
            why = "a result that asks for what hooks judge, in response to a request that they do not judge"
            return actions.Dropped(why, bytes(raw_json.fields(line).get("id", b"null")))
        kind = self.requests.settle(key)
        if kind is None:
            if not self._judges_calls or self.requests.take_late_response(key):
                return PASS
            return actions.Dropped(f"a response to no request in flight: {key.decode(errors='replace')}")
        return self._announcement(kind, key, line)

    def _announcement(self, kind: RequestKind, key: bytes, line: bytes) -> ServerAction:
        """The action for a response that may say what the server is or has."""
        cursor = self.session_data.take_cursor(key)
        if kind is RequestKind.INITIALIZE:
            return actions.InitializeAnswered()
        if kind is RequestKind.TOOLS_LIST and self._judges_calls:
            listed = tool_list.listed_tools(line) if self.judged_tools.are_listed else []
            self.tools.note(listed)
            return actions.ToolsListed(listed, cursor)
        if kind in ANNOUNCED:
            return actions.Announced(ANNOUNCED[kind], cursor)
        if kind is RequestKind.TOOLS_LIST:
            return actions.Announced(TOOLS_LIST)
        return PASS

    def _blocked_response(self, key: bytes, response: Response | None) -> ServerAction:
        if self.requests.settle_hook_tool_call(key):
            return actions.HookToolCallAnswered(key, response)
        return actions.Dropped(f"the late response to a cancelled judged call: {key.decode(errors='replace')}")

    def dropped_as_unclear(self, raw_id: bytes) -> actions.Dropped:
        """Drop what readers may take for a withheld response; a request with this id, unless empty, gets an error."""
        why = "a message that readers may take for different responses while a response is withheld"
        self.session_data.take_cursor(id_key(raw_id))
        return actions.Dropped(why, raw_id if raw_id and self.requests.settle(id_key(raw_id)) is not None else b"")

    # --- batches, and lines without a JSON object ---

    def _batch_from_agent(self, line: bytes, problem: raw_json.Unreadable) -> AgentAction:
        """Blank lines pass, and batches without a tool call. All other lines are unreadable, as `problem` says."""
        body = line.strip(b" \t\r\n")  # the blanks of JSON, and no others
        if body[:1] != b"[":
            return actions.Refused(f"The line is {problem}.", unreadable=True) if body else PASS
        try:
            batch = calls.read_batch(body)
        except (raw_json.DuplicateKeys, raw_json.Unreadable) as in_batch:
            return actions.Refused(
                f"In a batch, {in_batch}.", unreadable=not isinstance(in_batch, raw_json.DuplicateKeys)
            )
        if why := self._why_batch_is_refused(body, batch):
            return actions.Refused(why)
        for members, method in batch:
            if method == calls.CANCELLED and (action := self._cancel(members)) is not PASS:
                return action
            if method and "id" in members:
                self._note(members, method)
        return pass_as(self.as_line(line), line)

    def _why_batch_is_refused(self, line: bytes, batch: list[tuple[Members, bytes]]) -> str:
        """Return why a readable batch of the agent must not pass; empty: it may pass."""
        if judged := next((self._methods[method].name for _, method in batch if method in self._methods), ""):
            return f"A {judged} is not forwarded in a batch: send it as a separate message."
        requests = [members for members, method in batch if method and "id" in members]
        answering = [members for members, method in batch if not method]
        if self.roots is not None and may_name_roots(line):
            return "A message in a batch may be about roots: send it as a separate message."
        if self.session_data.refuses_in_batch(batch):
            return "A request in a batch is about what the server has: send it as a separate message."
        if any(self.is_reserved(id_key(bytes(members["id"]))) for members in requests):
            return "A request in a batch has the id of a tool call that may still be answered."
        if any(id_key(bytes(members.get("id", b""))).startswith(calls.OWN_ID_PREFIX) for members in answering):
            return "A batch contains a response to hookproxy's approval request: send it as a separate message."
        if self.elicitations and any(map(self.elicitations.is_awaited, answering)):
            return "A batch contains a response to an elicitation that hooks judge: send it as a separate message."
        return ""

    def _batch_from_server(self, line: bytes) -> ServerAction:
        """Blank lines pass, and batches in which nothing concerns a judged call. All other lines are not JSON."""
        if line.isspace():
            return PASS
        try:
            frames = [responses.read(bytes(item), closely=self.withholds_responses) for item in raw_json.items(line)]
        except raw_json.AMBIGUOUS:
            return actions.NotJson()
        if self.tasks.notification_in_batch(line, self.calls):
            return actions.Dropped("a batch with a notification about a judged call's task")
        in_flight = self.calls.values()
        if any(self.held.would_take(bytes(item), in_flight, self.tasks) for item in raw_json.items(line)):
            return actions.Dropped("a batch with a notification that may be about a judged call")
        may_have_elicitation = self.elicitations is not None and self.elicitations.may_be_in_batch(line)
        keys = [id_key(frame.id) for frame in frames if frame is not None]
        uncertain = any(frame is not None and not frame.certain for frame in frames)
        if self.session_data.is_in_batch(keys):
            return actions.Dropped("a batch with a list that must be read alone")
        if uncertain or any(map(self.is_reserved, keys)) or may_have_elicitation:
            return actions.Dropped("a batch with the response to a judged call, or a request that hooks judge")
        expected = [self.requests.settle(key) is not None or self.requests.take_late_response(key) for key in keys]
        if self._judges_calls and not all(expected):
            return actions.Dropped("a batch with a response to no request in flight")
        return PASS
