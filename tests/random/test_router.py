"""Random schedules for the router: responses, cancellations and ends in any order, and the two rules hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, consumes, invariant, multiple, rule

from hookproxy.protocol.actions import (
    PASS,
    AgentAction,
    CallAnswered,
    CancelCall,
    Dropped,
    InitializeAnswered,
    Refused,
    ServerAction,
    StartCall,
    ToolsListed,
)
from hookproxy.protocol.calls import Call, Phase
from hookproxy.protocol.router import Router
from tests.support.examples import examples

IDS: Final = ("1", '"1"', '"a"', '"\\u0061"')
METHODS: Final = ("ping", "initialize", "tools/list", "resources/read", "subscriptions/listen")


def key_of(spelling: str) -> str:
    return spelling.replace("\\u0061", "a").strip('"')


@dataclass(eq=False)
class NotedRequest:
    """A request that the server has."""

    id: str
    call: Call | None
    """The judged call that it is."""
    unseen: bool = False
    """It was judged, and nobody has to see its answer."""
    answered: bool = False
    cancelled: bool = False

    @property
    def key(self) -> str:
        return key_of(self.id)


class Schedule(RuleBasedStateMachine):
    """The agent, the server and the hooks of one session; what they may see of each other is the switchboard's."""

    started: Bundle[Call] = Bundle("started")
    noted: Bundle[NotedRequest] = Bundle("noted")

    def __init__(self) -> None:
        super().__init__()
        self.router = Router(lambda tool: tool == "danger")
        self.router.from_agent(b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}\n')
        self.router.from_server(b'{"jsonrpc":"2.0","id":"i","result":{}}\n')
        self.live: dict[str, Call] = {}
        """Judged calls that have neither ended nor been cancelled."""
        self.all_heard: list[NotedRequest] = []
        self.reused: set[str] = set()
        """Ids that the agent used again before they were answered."""
        self.ambiguous: set[str] = set()
        """Ids whose responses can no longer be assigned to a request, nor to a set of calls."""

    def agent_says(self, line: str) -> AgentAction:
        block = line.encode() + b"\n"
        return PASS if self.router.scan_from_agent(block) else self.router.from_agent(block)

    def server_says(self, line: str) -> ServerAction:
        block = line.encode() + b"\n"
        return PASS if self.router.scan_from_server(block) else self.router.from_server(block)

    def note_request(self, spelling: str, call: Call | None = None) -> NotedRequest:
        one = NotedRequest(spelling, call)
        others = self.unanswered(one.key)
        if others:
            self.reused.add(one.key)
        if any(other.call is None for other in others):
            self.ambiguous.add(one.key)
        self.all_heard.append(one)
        return one

    def unanswered(self, key: str) -> list[NotedRequest]:
        return [one for one in self.all_heard if one.key == key and not one.answered]

    def waiting(self, key: str) -> list[NotedRequest]:
        return [one for one in self.unanswered(key) if not one.cancelled]

    # --- the agent ---

    @rule(target=started, spelling=st.sampled_from(IDS), loose=st.booleans())
    def calls_a_judged_tool(self, spelling: str, loose: bool) -> MultipleResults[Call] | Call:
        params = '{"name":"danger","arguments":{"a":1}}'
        line = f'{{"jsonrpc":"2.0","id":{spelling},"method":"tools/call","params":{params}}}'
        effect = self.agent_says(line.replace(",", ", ") if loose else line)
        assert isinstance(effect, StartCall | Refused), "nothing judged passes"
        key = key_of(spelling)
        if isinstance(effect, Refused):
            assert key in self.live or self.heard_of(key), "only an id that may be in use is refused"
            return multiple()
        assert key not in self.live
        assert key in self.ambiguous or not self.waiting(key)
        self.live[key] = effect.call
        return effect.call

    def heard_of(self, key: str) -> bool:
        return any(one.key == key for one in self.all_heard)

    @rule(target=noted, spelling=st.sampled_from(IDS), tool=st.sampled_from(("safe", "other")))
    def calls_another_tool(self, spelling: str, tool: str) -> MultipleResults[NotedRequest] | NotedRequest:
        line = f'{{"jsonrpc":"2.0","id":{spelling},"method":"tools/call","params":{{"name":"{tool}"}}}}'
        return self.requested(spelling, self.agent_says(line))

    @rule(target=noted, spelling=st.sampled_from(IDS), method=st.sampled_from(METHODS))
    def requests_something_else(self, spelling: str, method: str) -> MultipleResults[NotedRequest] | NotedRequest:
        line = f'{{"jsonrpc":"2.0","id":{spelling},"method":"{method}","params":{{}}}}'
        return self.requested(spelling, self.agent_says(line))

    def requested(self, spelling: str, effect: AgentAction) -> MultipleResults[NotedRequest] | NotedRequest:
        if isinstance(effect, Refused):
            assert key_of(spelling) in self.live or self.heard_of(key_of(spelling))
            return multiple()
        assert effect is PASS
        assert key_of(spelling) not in self.live, "an id of a judged call is nobody else's"
        return self.note_request(spelling)

    @rule(spelling=st.sampled_from(IDS))
    def cancels(self, spelling: str) -> None:
        params = f'{{"requestId":{spelling}}}'
        line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'
        effect = self.agent_says(line)
        key = key_of(spelling)
        call = self.live.pop(key, None)
        if call is None:
            assert effect is PASS
        else:
            assert isinstance(effect, CancelCall)
            assert effect.call is call
            assert effect.forward is any(one.call is call for one in self.all_heard)
        for one in self.waiting(key):
            one.cancelled = True

    @rule(target=noted, spelling=st.sampled_from(IDS), unseen=st.booleans())
    def calls_a_judged_tool_and_cancels_it_when_the_server_has_it(
        self, spelling: str, unseen: bool
    ) -> MultipleResults[NotedRequest] | NotedRequest:
        call = self.calls_a_judged_tool(spelling, loose=False)
        if not isinstance(call, Call):
            return multiple()
        one = self.hooks_allow(call, unseen)
        self.cancels(spelling)
        return one

    # --- the call's task ---

    @rule(target=noted, call=started, unseen=st.booleans())
    def hooks_allow(self, call: Call, unseen: bool) -> MultipleResults[NotedRequest] | NotedRequest:
        lives = self.live.get(call.key.decode()) is call
        if not lives and call.phase is not Phase.CANCELLED:
            return multiple()  # it was refused: its task is over
        expected = lives and call.phase is Phase.HELD
        assert self.router.calls.release(call, unseen=unseen) is expected
        if not expected:
            return multiple()
        if not unseen:
            return self.note_request(call.id.decode(), call)
        del self.live[call.key.decode()]
        one = self.note_request(call.id.decode())
        one.unseen = True
        return one

    @rule(call=started)
    def the_answer_goes_out(self, call: Call) -> None:
        if call.phase is Phase.FORWARDED:
            return  # it is the server's turn
        key = call.key.decode()
        expected = self.live.get(key) is call
        assert self.router.calls.finish(call) is expected, "a call ends once, and a cancelled one never"
        assert self.router.calls.finish(call) is False
        if expected:
            del self.live[key]

    # --- the server ---

    @rule(one=noted, form=st.sampled_from(("result", "error", "both", "batch")))
    def answers(self, one: NotedRequest, form: str) -> None:
        self.answer(one, form)

    @rule(one=consumes(noted))
    def answers_for_the_last_time(self, one: NotedRequest) -> None:
        self.answer(one, "result")

    def answer(self, one: NotedRequest, form: str) -> None:
        if one.answered and (one.key in self.live or self.unanswered(one.key)):
            self.ambiguous.add(one.key)
        content = {
            "result": '"result":{"a":1}',
            "error": '"error":{"code":1,"message":"x"}',
            "both": '"result":{},"method":"ping"',
        }.get(form, '"result":{}')
        line = f'{{"jsonrpc":"2.0","id":{one.id},{content}}}'
        before = None if one.call is None else one.call.phase
        effect = self.server_says(f"[{line}]" if form == "batch" else line)
        if one.call is not None:
            self.judged_was_answered(one, effect, before)
        elif not (one.answered or one.key in self.reused | self.ambiguous):
            if one.unseen and one.cancelled:
                assert isinstance(effect, Dropped), "a late answer to a call that was judged passes never"
            elif one.unseen and form == "batch":
                assert isinstance(effect, Dropped), "no batch with the answer to a judged call passes"
            elif not one.cancelled:
                assert effect is PASS or isinstance(effect, InitializeAnswered | ToolsListed)
        if form != "batch" or effect is PASS:
            one.answered = True

    def judged_was_answered(self, one: NotedRequest, effect: ServerAction, before: Phase | None) -> None:
        if one.key in self.ambiguous:
            return
        assert isinstance(effect, CallAnswered | Dropped), "an answer to a judged call passes through its task only"
        if isinstance(effect, CallAnswered):
            assert effect.call is one.call
            assert before is Phase.FORWARDED, "early, late and second answers are dropped"
            assert self.live[one.key] is one.call

    @rule(number=st.integers(100, 103))
    def answers_what_nobody_asked(self, number: int) -> None:
        effect = self.server_says(f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}')
        assert isinstance(effect, Dropped)

    @rule(method=st.sampled_from(("ping", "notifications/progress")), spelling=st.sampled_from(("", *IDS)))
    def says_something_of_its_own(self, method: str, spelling: str) -> None:
        given_id = f'"id":{spelling},' if spelling else ""
        assert self.server_says(f'{{"jsonrpc":"2.0",{given_id}"method":"{method}"}}') is PASS

    # --- always ---

    @invariant()
    def the_table_holds_what_lives_and_nothing_else(self) -> None:
        assert {key.decode(): call for key, call in self.router.calls.items()} == self.live

    @invariant()
    def a_request_is_pending_while_the_server_owes_its_answer(self) -> None:
        if any(call.phase is Phase.FORWARDED for call in self.live.values()):
            assert self.router.pending
            assert not self.router.may_pass_in_pieces(b'{"result":')

    @invariant()
    def no_call_is_remembered_that_has_been_answered(self) -> None:
        assert self.router.requests.released.keys() <= self.router.requests.keys()


TestSchedule = Schedule.TestCase
TestSchedule.settings = examples(70, steps=30)
