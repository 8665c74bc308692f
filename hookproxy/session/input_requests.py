"""The server's requests in `input_required` results of calls, and the agent's answers in the next round (2026-07-28).

They are judged as requests that come alone (`judged_request`). A refused one is cut out of the result, and our answer
is sent with those of the agent; if none is left, we send the next round. An answer to what nobody asked reaches no
server.
"""

from __future__ import annotations

from collections.abc import Callable

from ..hooks.session_events import SessionEvents
from ..jsonrpc import normalize, raw_json
from ..model.call_end import CallEnd, Cancelled, Failed, Responded
from ..model.decision import Proceed, RefusalCause, Refuse
from ..protocol import approval_messages, input_rounds, request_answers, server_requests
from ..protocol.calls import Call
from ..protocol.elicitations import MAX_PENDING
from ..protocol.input_rounds import JudgedInputs
from ..protocol.request_state import CallRound
from ..protocol.responses import Members, Response
from ..protocol.router import Router
from .judged_request import JudgedRequest, JudgesRequests


class InputRequests:
    """Judges requests in results, and their answers."""

    def __init__(
        self, router: Router, session_events: SessionEvents, max_depth: Callable[[], int], judge: JudgesRequests
    ) -> None:
        self._router = router
        self._session_events = session_events
        self._max_depth = max_depth
        self._judge = judge

    @property
    def _judged(self) -> frozenset[str]:
        elicitations = self._router.elicitations
        return frozenset() if elicitations is None else elicitations.judged_in_results

    def ask_in(self, response: Response) -> bool:
        """True if a final result, or an error, may ask for something that is judged."""
        if not self._judged:
            return False
        if response.error is not None:
            return input_rounds.asks_in_error(response.error, self._judged)
        return input_rounds.asks(response.result or {}, self._judged)

    async def judge(self, call: Call, line: bytes, result: Members) -> JudgedInputs:
        """Judge the requests in the result of a response. Raises ValueError: the agent might read them differently."""
        if not self._judged:
            return JudgedInputs(line)
        requests = input_rounds.requests(result)
        if len(requests) > MAX_PENDING:
            raise raw_json.Unreadable(f"it has more than {MAX_PENDING} requests")
        refused: dict[str, bytes] = {}
        rewritten: dict[str, bytes] = {}
        for name, raw in requests.items():
            method = input_rounds.method_of(raw)
            if method not in self._judged:
                continue
            decision = await self._decide(call, method, bytes(raw))
            if isinstance(decision, Refuse):
                refused[name] = server_requests.refused_result(method, decision.cause)
            elif decision is not None:
                rewritten[name] = decision
        if refused or rewritten:
            line = input_rounds.with_requests(line, refused, rewritten)
        left = raw_json.fields(raw_json.fields(line)["result"]).get(input_rounds.REQUESTS, b"{}")
        none_left = bool(refused) and len(refused) == len(requests)
        return JudgedInputs(line, bytes(left), refused, none_left)

    async def _decide(self, call: Call, method: str, raw: bytes) -> Refuse | bytes | None:
        """The refusal of one request, or the request as hooks have rewritten it; None: it passes as it is."""
        arguments = server_requests.arguments_of(method, raw_json.fields(raw), self._max_depth())
        request = self._judge.request(method, call.id, arguments, raw)
        end: CallEnd = Cancelled()
        try:
            decision = await request.decide()
            end = Responded(None, "pending")
            if isinstance(decision, Refuse):
                end = request.refused(decision, b"")
        finally:
            passes = request.close(end)
        if isinstance(decision, Refuse):
            return decision
        if not passes:
            return Refuse("the audit", "", cause=RefusalCause.FAILURE)
        if decision.arguments is None:
            return None
        return server_requests.with_arguments(raw, arguments, normalize.normalize(decision.arguments))

    async def judge_answers(self, call: Call, earlier: CallRound | None) -> bytes | None:
        """The answers that the server gets; None: those that the agent has sent. Raises Unreadable, DuplicateKeys."""
        ours = {} if earlier is None or not earlier.refused else raw_json.fields(earlier.refused)
        if not (self._judged or ours):
            return None
        given = raw_json.fields(call.inputs) if call.inputs else {}
        requested = {} if earlier is None or not earlier.requested else raw_json.fields(earlier.requested)
        is_approval = earlier is None or earlier.approval_request is not None
        answers: dict[str, bytes] = {}
        for name, raw in given.items():
            if name in requested:
                answers[name] = await self._judged_answer(call, bytes(requested[name]), bytes(raw))
            elif name == approval_messages.MEMBER and is_approval:
                answers[name] = bytes(raw)
            else:
                text = f"left out the agent's answer {name[:100]!r}, for which the server has not asked"
                self._session_events.note_in_audit(text)
        answers |= {name: bytes(answer) for name, answer in ours.items()}
        return None if answers == {name: bytes(raw) for name, raw in given.items()} else input_rounds.encode(answers)

    async def _judged_answer(self, call: Call, asked: bytes, answer: bytes) -> bytes:
        method = input_rounds.method_of(asked)
        if method not in self._judged:
            return answer
        depth = self._max_depth()
        arguments = server_requests.arguments_of(method, raw_json.fields(asked), depth)
        request = self._judge.request(method, call.id, arguments, asked)
        request.record.note_allowed(Proceed())
        end: CallEnd = Cancelled()
        withheld = server_requests.refused_result(method, RefusalCause.FAILURE)
        try:
            edited, end = await self._after_hooks(request, method, answer, withheld)
            if isinstance(end, Responded) and (refuse := await request.refuse_answer(edited)) is not None:
                edited, end = withheld, request.refused(refuse, b"")
        finally:
            passes = request.close(end)
        return edited if passes else withheld

    async def _after_hooks(
        self, request: JudgedRequest, method: str, answer: bytes, withheld: bytes
    ) -> tuple[bytes, CallEnd]:
        if not request.judges_answer:
            return answer, Responded(None)
        try:
            comments = await request.judge_answer(request_answers.outcome_of_result(answer))
            edited = request_answers.after_comments(method, comments, answer, withheld)
        except ValueError as problem:
            return withheld, Failed(None, str(problem))
        if edited is not answer:
            request.record.result_before, request.record.result_after = answer, edited
        return edited, Responded(None)
