"""Our policy as two interceptors: one that validates, and one that applies what hooks rewrite (laws 1 and 3).

How it works: a host asks about a request, and later about its response. Both interceptors judge by the same hooks and
rules. A validation is final: limits count the call and its record is written. When a host has both judge the same
arguments, or the same result, the hooks run once. A denial is the validation's to report; the mutation of a message
that is denied fails, so that a host that only mutates does not send it. Responses do not say what they respond to: the
host's trace id does, or else it is the session's last request. The draft has no way to ask a person: `on_ask` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import monotonic, perf_counter, time
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..config.load import Loaded
from ..guard.native_session import NativeSession
from ..hooks.evaluate import Hooks
from ..jsonrpc import normalize, raw_json
from ..model.call_end import Failed, Refused, Responded
from ..model.decision import Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import Event, EventContext, HookRun, Outcome, Session
from ..policy import decide, methods
from ..policy.methods import TOOLS_CALL
from ..protocol import (
    actions,
    feedback,
    method_results,
    request_answers,
    request_edits,
    responses,
    server_requests,
    tool_results,
)
from ..protocol.calls import Call, id_key
from ..protocol.interceptors import Descriptor, Hook
from ..protocol.router import Router
from . import payloads
from .payloads import Payload
from .service import Invocation, Offered, Rejected

if TYPE_CHECKING:
    import anyio.abc

VALIDATES: Final = "hookproxy/policy"
"""The interceptor that decides."""
MUTATES: Final = "hookproxy/rewrites"
"""The interceptor that applies rewritten arguments and results."""

_MOST_SESSIONS: Final = 256  # of all hosts: the one that was silent longest is forgotten
_MOST_OPEN: Final = 256  # requests of one session that wait for their response: as many as agents ever have in flight
_KEPT_SECONDS: Final = 60.0  # for the second interceptor of the same message: a host asks at once
_ID: Final = b"1"
_POST_EVENTS: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


class _Open(Struct):
    """A request about which a host has asked, until its response."""

    call: Call
    context: EventContext
    judged: bool
    record: Record | None = None
    """None: only the mutation has been asked."""
    started: float = 0.0
    feedback: tuple[str, ...] = ()
    decided: tuple[bytes, Decision, list[HookRun], float] | None = None
    """What the mutation has decided, on which arguments may run, and when: it holds for their validation."""
    comments: tuple[bytes, Comments, list[HookRun], float] | None = None
    """As `decided`, for the response: it is validated before it is mutated."""


class _HostSession(Struct):
    """A session of a host."""

    session: Session
    native: NativeSession
    open: dict[str, _Open]
    """By the operation."""
    used: float = 0.0


class PolicyInterceptors:
    """Judges messages under one configuration, until it is closed.

    It is long because validation and mutation of both phases of one message share what was decided about it: hooks run
    once, whichever of them a host asks first.
    """

    def __init__(
        self,
        loaded: Loaded,
        session: Session,
        environ: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        report: Callable[[str], None],
    ) -> None:
        """`session` is what hooks get of it, apart from its id. Hooks that nobody awaits run in `tasks`."""
        self._loaded, self._settings = loaded, loaded.settings
        self._session = session
        self._environ = environ
        self._tasks = tasks
        self._report = report
        self._audit = Audit(
            replace(loaded.settings, audit_begun=True)
        )  # the record is there before the message goes on
        self._audit.report_to(report)
        for spec in (spec for group in loaded.groups for spec in group.hooks if spec.event is Event.PRE_MCP_TOOL_CALL):
            report(f"{spec.source} never runs here: the draft has no message about the `_meta` that is sent")
        self._sessions: dict[str, _HostSession] = {}
        self._judges_responses = any(spec.event in _POST_EVENTS for group in loaded.groups for spec in group.hooks)

    def offered(self) -> list[Offered]:
        """The interceptors for this configuration: one, or two if some hook could rewrite something."""
        hooks = self._of_session("").native.hooks_of(self._session.server)
        named = [TOOLS_CALL, *(method for method in methods.JUDGED if hooks.concerns_method(method))]
        answered = [name for name in named if name == TOOLS_CALL or hooks.has_post_hooks_for(name)]
        own = [Hook(tuple(named), "request")] + ([Hook(tuple(answered), "response")] if self._judges_responses else [])
        about = "The hooks, rules and limits of hookproxy"
        validates = Descriptor(VALIDATES, "validation", tuple(own), description=f"{about}: whether a message may pass")
        offered = [Offered(validates, self._validate)]
        if any(group.hooks for group in self._loaded.groups):
            text = f"{about}: what hooks rewrite in a message. Use it together with {VALIDATES}"
            offered.insert(0, Offered(Descriptor(MUTATES, "mutation", tuple(own), description=text), self._mutate))
        return offered

    async def aclose(self) -> None:
        """End the sessions, and write what waits to be recorded."""
        for session in list(self._sessions.values()):
            await self._end_session(session)
        self._note(self._audit.close())

    # --- the two interceptors ---

    async def _validate(self, invocation: Invocation) -> Mapping[str, object]:
        session = self._of_session(invocation.session)
        if invocation.phase == "response":
            return await self._validate_response(session, invocation)
        try:
            opened, _payload = self._read(session, invocation)
        except ValueError as problem:
            return _invalid(_unjudged(invocation, problem))
        if not opened.judged:
            self._keep(session, invocation, opened)
            return {"valid": True}
        decision = await self._decide(session, invocation, opened)
        if isinstance(decision, Refuse):
            return _invalid(_because(decision, opened.call))
        return {"valid": True, **_messages("info", opened.feedback)}

    async def _mutate(self, invocation: Invocation) -> Mapping[str, object]:
        session = self._of_session(invocation.session)
        if invocation.phase == "response":
            return await self._mutate_response(session, invocation)
        try:
            opened, payload = self._read(session, invocation)
        except ValueError as problem:
            raise Rejected(_unjudged(invocation, problem)) from None
        unchanged = {"modified": False, "payload": msgspec.Raw(invocation.payload)}
        if not opened.judged:
            self._keep(session, invocation, opened)
            return unchanged
        runs: list[HookRun] = []
        decision = await self._evaluate(session, opened, runs)
        if isinstance(decision, Refuse):
            self._record_refusal(opened, decision, runs)
            raise Rejected(_because(decision, opened.call))
        opened.decided = opened.context.arguments, decision, runs, monotonic()
        self._keep(session, invocation, opened)
        if decision.arguments is None:
            return unchanged
        return {
            "modified": True,
            "payload": msgspec.Raw(payload.with_inner(_rewritten(opened.call, decision.arguments))),
        }

    async def _validate_response(self, session: _HostSession, invocation: Invocation) -> Mapping[str, object]:
        opened = self._request_of(session, invocation)
        if not opened.judged:
            return {"valid": True}
        payload, comments, runs = await self._comments(session, opened, invocation)
        opened.comments = invocation.payload, comments, runs, monotonic()
        takes = comments.withheld or comments.hidden_by
        self._record_response(opened, payload, runs, str(comments.hidden_by or "hook failed") if takes else "")
        if comments.withheld:
            return _invalid(feedback.withheld_sentence(comments.withheld, ()))
        if comments.hidden_by:
            return _invalid(feedback.hidden_sentence(comments))
        texts = feedback.feedback_text(comments, opened.feedback)
        return {"valid": True, **_messages("warn" if comments.failed else "info", [texts] if texts else [])}

    async def _mutate_response(self, session: _HostSession, invocation: Invocation) -> Mapping[str, object]:
        opened = self._request_of(session, invocation)
        unchanged = {"modified": False, "payload": msgspec.Raw(invocation.payload)}
        if not opened.judged:
            return unchanged
        payload, comments, _runs = await self._comments(session, opened, invocation)
        if comments.withheld:
            raise Rejected(feedback.withheld_sentence(comments.withheld, ()))
        inner = self._delivered(opened, payload, comments)
        session.open.pop(invocation.operation, None)
        if inner == payload.inner:
            return unchanged
        return {"modified": True, "payload": msgspec.Raw(payload.with_inner(inner))}

    # --- requests ---

    def _read(self, session: _HostSession, invocation: Invocation) -> tuple[_Open, Payload]:
        """The request as hooks and rules may read it. Raises ValueError."""
        method = invocation.event
        payload = payloads.read_request(invocation.payload, method)
        hooks = self._hooks(session)
        line = payloads.request_line(method, payload.inner)
        if len(line) > self._settings.max_message_bytes:
            raise ValueError(feedback.message_too_long(len(line), self._settings.max_message_bytes).rstrip("."))
        if methods.JUDGED.get(method) is methods.Direction.FROM_SERVER:
            members = raw_json.fields(line)
            arguments = server_requests.arguments_of(method, members, self._settings.max_depth)
            call = Call(id_key(_ID), _ID, line, method, arguments, {}, False, False, mcp_method=method)
        else:
            router = Router(lambda _tool: True, find_alias=hooks.groups.alias, max_depth=self._settings.max_depth)
            router.judge_methods(lambda _method: True)
            effect = router.from_agent(line)
            if not isinstance(effect, actions.StartCall):
                raise ValueError(effect.why if isinstance(effect, actions.Refused) else f"it is not a {method}")
            call = effect.call
        concerned = hooks.concerns(call.tool) if method == TOOLS_CALL else hooks.concerns_method(method)
        opened = _Open(call, self._context(session, hooks, call), concerned or self._settings.audit_all_calls)
        kept = session.open.get(invocation.operation)
        if kept is not None and (kept.call.tool, kept.call.mcp_method) == (call.tool, call.mcp_method):
            opened.decided, kept.decided = kept.decided, None
        return opened, payload

    def _context(self, session: _HostSession, hooks: Hooks, call: Call) -> EventContext:
        return EventContext(
            event=Event.PRE_TOOL_USE,
            session=session.session,
            tool=call.tool,
            tool_name=hooks.groups.first_tool_name(call.tool, call.alias),
            tool_use_id=self._audit.new_id() or "call",
            arguments=call.arguments,
            alias=call.alias,
            request_id=call.key.decode(errors="replace"),
            at=time(),
        )

    async def _evaluate(self, session: _HostSession, opened: _Open, runs: list[HookRun]) -> Decision:
        """What hooks and rules decide, without a person."""
        evaluation = await self._hooks(session).run_pre_hooks(opened.context, None, runs)
        decision = evaluation.decision
        opened.context = evaluation.context_after(opened.context)
        if isinstance(decision, Proceed) and decision.approval_request is not None:
            decision = decide.without_person(decision, self._settings, can_ask=False)
        return replace(decision, remedy="") if isinstance(decision, Refuse) else decision  # no console is asked here

    async def _decide(self, session: _HostSession, invocation: Invocation, opened: _Open) -> Decision:
        """The final decision: it is counted and recorded."""
        if self._audit.required and (problem := self._audit.failure()):
            return _unrecorded(problem)
        kept, opened.decided = opened.decided, None
        runs: list[HookRun] = []
        if kept is not None and kept[0] == opened.call.arguments and monotonic() - kept[3] < _KEPT_SECONDS:
            decision, runs = kept[1], kept[2]
        else:
            decision = await self._evaluate(session, opened, runs)
            if isinstance(decision, Proceed) and opened.context.arguments != opened.call.arguments:
                decision = Refuse(VALIDATES, _NOT_APPLIED)
        decision = await self._hooks(session).apply_limits(decision, opened.context)
        if isinstance(decision, Refuse):
            self._record_refusal(opened, decision, runs)
            return decision
        opened.feedback = decision.feedback
        opened.record = record = self._begin(opened, runs)
        record.note_allowed(decision)
        if (problem := self._audit.write_begun(record)) and self._audit.required:
            return _unrecorded(problem)
        if not self._judges_responses:
            record.note_end(Responded(result="sent"))
            self._write(opened, record)
            opened.record = None
        self._keep(session, invocation, opened)
        return decision

    def _keep(self, session: _HostSession, invocation: Invocation, opened: _Open) -> None:
        """Keep the request for its response: the last of its operation."""
        earlier = session.open.pop(invocation.operation, None)
        if earlier is not None and earlier is not opened:
            self._record_loss(earlier)
        if len(session.open) >= _MOST_OPEN:
            self._record_loss(session.open.pop(next(iter(session.open))))
        session.open[invocation.operation] = opened

    # --- responses ---

    def _request_of(self, session: _HostSession, invocation: Invocation) -> _Open:
        opened = session.open.get(invocation.operation)
        if opened is None or opened.call.mcp_method != invocation.event:
            raise Rejected(f"the request is not known to which this is the response: have {VALIDATES} judge it before")
        return opened

    async def _comments(
        self, session: _HostSession, opened: _Open, invocation: Invocation
    ) -> tuple[Payload, Comments, list[HookRun]]:
        """What post hooks make of the response."""
        kept, opened.comments = opened.comments, None
        try:
            payload = payloads.read_response(invocation.payload)
            if kept is not None and kept[0] == invocation.payload and monotonic() - kept[3] < _KEPT_SECONDS:
                return payload, kept[1], kept[2]
            outcome = self._outcome(opened.call, payload)
        except ValueError as problem:
            raise Rejected(f"this response cannot be judged: {problem}") from None
        event = Event.POST_TOOL_USE_FAILURE if outcome.error else Event.POST_TOOL_USE
        runs: list[HookRun] = []
        context = replace(opened.context, event=event, outcome=outcome)
        return payload, await self._hooks(session).run_post_hooks(context, runs), runs

    def _outcome(self, call: Call, payload: Payload) -> Outcome:
        """What hooks get of a response. Raises ValueError."""
        if methods.JUDGED.get(call.mcp_method) is methods.Direction.FROM_SERVER:
            member = "error" if payload.is_error else "result"
            members = raw_json.fields(b'{"%b":%b}' % (member.encode(), payload.inner))
            return request_answers.outcome_of(members, self._settings.max_depth)
        frame = responses.read(payloads.response_line(payload), closely=True)
        call.response = frame.response if frame is not None else None
        return tool_results.read(call, self._settings.max_depth).outcome

    def _delivered(self, opened: _Open, payload: Payload, comments: Comments) -> bytes:
        """The result, or the error, with what the hooks make of it."""
        call, line = opened.call, payloads.response_line(payload)
        if methods.JUDGED.get(call.mcp_method) is methods.Direction.FROM_SERVER:
            withheld = server_requests.refused_result(call.mcp_method, RefusalCause.FAILURE)
            return request_answers.after_comments(call.mcp_method, comments, payload.inner, withheld)
        if payload.is_error:
            edited = feedback.deliver_error(line, comments, opened.feedback).line
        elif call.mcp_method != TOOLS_CALL:
            edited = method_results.deliver(call, line, comments, opened.feedback).line
        else:
            edited = feedback.deliver(line, comments, opened.feedback, self._settings.feedback, None).line
        if edited is line:
            return payload.inner
        members = raw_json.fields(edited)
        member = "error" if payload.is_error else "result"
        if member not in members:
            raise Rejected(_message_of(members) or "the result must not reach the agent")
        return bytes(members[member])

    # --- sessions and records ---

    def _hooks(self, session: _HostSession) -> Hooks:
        return session.native.hooks_of(self._session.server)

    def _of_session(self, name: str) -> _HostSession:
        session = self._sessions.pop(name, None)
        if session is None:
            if len(self._sessions) >= _MOST_SESSIONS:
                self._tasks.start_soon(self._end_session, self._sessions[next(iter(self._sessions))])
            native = NativeSession(self._loaded, self._environ, self._tasks, name)
            own = replace(self._session, id=name) if name else self._session
            session = _HostSession(own, native, {})
        self._sessions[name] = session  # the one used last is the last one
        return session

    async def _end_session(self, session: _HostSession) -> None:
        self._sessions = {name: other for name, other in self._sessions.items() if other is not session}
        for opened in session.open.values():
            self._record_loss(opened)
        await session.native.aclose()

    def _begin(self, opened: _Open, runs: list[HookRun]) -> Record:
        call, context = opened.call, opened.context
        record = Record(context.session.id, context.session.server, call.tool, _ID, call.arguments)
        record.agent, record.method, record.hook_runs = "interceptor host", call.mcp_method, runs
        record.alias = context.alias.name if context.alias else ""
        opened.started = perf_counter()
        self._audit.begin(record, call)
        return record

    def _record_refusal(self, opened: _Open, decision: Refuse, runs: list[HookRun]) -> None:
        record = self._begin(opened, runs)
        record.note_end(Refused(b"", decision.reason, decision.cause.value, decision.by, decision.place))
        self._write(opened, record)

    def _record_response(self, opened: _Open, payload: Payload, runs: list[HookRun], withheld: str) -> None:
        record, opened.record = opened.record, None
        if record is None:
            return
        record.hook_runs = [*record.hook_runs, *runs]
        if withheld:
            record.note_end(Failed(None, f"the response is withheld: {withheld}"))
        else:
            record.note_end(Responded(result="error" if payload.is_error else "ok"))
        self._write(opened, record)

    def _record_loss(self, opened: _Open) -> None:
        record, opened.record = opened.record, None
        if record is not None:
            record.note_end(Failed(None, "the host has not reported how this call ended", "lost"))
            self._write(opened, record)

    def _write(self, opened: _Open, record: Record) -> None:
        record.ms = (perf_counter() - opened.started) * 1000
        self._note(self._audit.write(record))

    def _note(self, problem: str) -> None:
        if problem:
            self._report(f"the audit cannot be written: {problem}")


_NOT_APPLIED: Final = f"a hook rewrites this, which the interceptor {MUTATES} must do before"


def _rewritten(call: Call, arguments: bytes) -> bytes:
    """The params with these arguments."""
    if methods.JUDGED.get(call.mcp_method) is methods.Direction.FROM_SERVER:
        line = server_requests.with_arguments(call.line, call.arguments, normalize.normalize(arguments))
    else:
        line = request_edits.line_for_server(call, arguments)
    return payloads.inner_of(line, "params")


def _because(decision: Refuse, call: Call) -> str:
    """What the model reads of a refusal."""
    line = feedback.refusal(_ID, decision, method=call.mcp_method)
    members = raw_json.fields(line)
    if "error" in members:
        return _message_of(members)
    content = raw_json.all_items(bytes(raw_json.fields(members["result"])["content"]))
    return raw_json.text(bytes(raw_json.fields(content[0])["text"])) or decision.reason


def _message_of(members: responses.Members) -> str:
    return raw_json.text(bytes(raw_json.fields(members["error"]).get("message", b""))) or ""


def _unjudged(invocation: Invocation, problem: ValueError) -> str:
    text = str(problem)
    return text if text.endswith(".") else f"This {invocation.event} cannot be judged: {text}."


def _unrecorded(problem: str) -> Refuse:
    return Refuse("the audit", f"{feedback.NOT_RECORDED} ({problem})", cause=RefusalCause.FAILURE)


def _invalid(text: str) -> Mapping[str, object]:
    return {"valid": False, "severity": "error", **_messages("error", [text])}


def _messages(severity: str, texts: Iterable[str]) -> Mapping[str, object]:
    messages = [{"message": text, "severity": severity} for text in texts]
    return {"messages": messages} if messages else {}
