"""How many calls a limit allows, and when it allows the next; the test sets the clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.limits import ANY_CALL, Beyond, CountedCall, Limit, Measure, Per, Within
from hookproxy.policy.rate_limits import LimitReached, RateLimits, SharedWindows, _Amounts, refusing, tool_rule


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def limit(tool: str = "search_*", calls: int = 2, per: Per = Per.MINUTE, by: str = "limits[0]") -> Limit:
    return Limit(tool, calls, per, by)


def reached(limits: RateLimits, names: Sequence[str], call: CountedCall = ANY_CALL) -> LimitReached | None:
    """The limit that refuses a call now, which counts nothing."""
    return refusing(limits.exceeded(names, call))


def test_calls_up_to_the_limit_pass_and_then_the_wait_is_reported() -> None:
    clock = Clock()
    one = RateLimits([limit()], clock)
    assert one.count(["search_web"]) is None
    clock.now += 20
    assert one.count(["search_files"]) is None
    assert one.count(["search_web"]) == LimitReached(limit(), retry_after=40)
    clock.now += 39.5
    assert reached(one, ["search_web"]) == LimitReached(limit(), retry_after=1)
    clock.now += 0.5
    assert one.count(["search_web"]) is None
    assert one.count(["search_web"]) == LimitReached(limit(), retry_after=20)


def test_a_check_counts_nothing_and_neither_does_a_refusal() -> None:
    clock = Clock()
    one = RateLimits([limit(calls=1, per=Per.SECOND)], clock)
    assert [reached(one, ["search_x"]) for _ in range(5)] == [None] * 5
    one.count(["search_x"])
    for _ in range(9):
        clock.now += 0.1
        assert one.count(["search_x"]) is not None
    clock.now += 0.2
    assert one.count(["search_x"]) is None


def test_a_call_that_one_limit_refuses_counts_against_no_other() -> None:
    strict, loose = limit(calls=1), limit("*", calls=3, by="limits[1]")
    one = RateLimits([strict, loose], Clock())
    for _ in range(4):
        one.count(["search_x"])
    assert one.count(["list"]) is None
    assert one.count(["list"]) is None
    assert one.count(["list"]) == LimitReached(loose, retry_after=60)


def test_the_limit_with_the_longest_wait_is_reported() -> None:
    short, long, budget = limit(calls=1, per=Per.SECOND), limit(calls=1, per=Per.DAY), limit(calls=1, per=Per.SESSION)
    one = RateLimits([short, long], Clock())
    one.count(["search_x"])
    assert reached(one, ["search_x"]) == LimitReached(long, retry_after=86_400)
    one = RateLimits([short, budget, long], Clock())
    one.count(["search_x"])
    assert reached(one, ["search_x"]) == LimitReached(budget, retry_after=0)


def test_a_limit_per_session_never_ends() -> None:
    clock = Clock()
    one = RateLimits([limit(calls=2, per=Per.SESSION)], clock)
    one.count(["search_x"])
    one.count(["search_x"])
    clock.now += 1e9
    assert reached(one, ["search_x"]) == LimitReached(limit(calls=2, per=Per.SESSION), retry_after=0)


@pytest.mark.parametrize("names", [("search_x",), ("x", "mcp__s__search_x", "search_x"), ("Search_X",), (" search_x",)])
def test_a_limit_applies_to_any_name_of_a_tool_in_any_case(names: tuple[str, ...]) -> None:
    assert RateLimits([limit()]).concerns(names)


def test_other_tools_are_not_concerned() -> None:
    one = RateLimits([limit(calls=1)])
    assert not one.concerns(["list", "mcp__s__list"])
    assert [one.count(["list"]) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("text", ["Bash(rm *)", "Bash(*)", "a b", "read|write", ""])
def test_a_limit_that_names_no_tools_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="tools"):
        tool_rule(text)


@given(
    st.integers(1, 5),
    st.lists(st.floats(0, 40), max_size=60),
)
def test_no_minute_has_more_calls_than_allowed_wherever_it_begins(calls: int, pauses: list[float]) -> None:
    clock = Clock()
    one = RateLimits([limit(calls=calls)], clock)
    passed: list[float] = []
    for pause in pauses:
        clock.now += pause
        over = one.count(["search_x"])
        if over is None:
            passed.append(clock.now)
        else:
            assert 1 <= over.retry_after <= 60
            assert sum(time > clock.now - 60 for time in passed) == calls  # it was full
            clock.now += over.retry_after
            assert reached(one, ["search_x"]) is None  # the reported wait is true
            clock.now -= over.retry_after
    for begin in passed:
        assert sum(begin <= time < begin + 60 for time in passed) <= calls


@pytest.mark.slow
def test_windows_of_users_who_have_left_do_not_fill_memory() -> None:
    clock = Clock()
    windows = SharedWindows(clock)
    for user in range(5000):
        RateLimits([limit()], clock, partial(windows.of, (f"user{user}",))).count(["search_web"])
        clock.now += 1
    assert len(windows) < 2500


def test_windows_of_limits_that_are_configured_no_more_do_not_fill_memory() -> None:
    clock = Clock()
    windows = SharedWindows(clock)
    for calls in range(1, 5000):
        RateLimits([limit(calls=calls)], clock, partial(windows.of, ("anna",)))
    assert len(windows) < 2500


@pytest.mark.slow
def test_a_window_is_kept_while_a_run_uses_it_or_a_call_counts() -> None:
    clock = Clock()
    windows = SharedWindows(clock)

    def opened(user: str) -> RateLimits:
        return RateLimits([limit(calls=1)], clock, partial(windows.of, (user,)))

    def many_others_come() -> None:
        for number in range(5000):
            opened(f"user{number}-{clock.now}")

    open_run = opened("anna")
    assert opened("ben").count(["search_web"]) is None
    many_others_come()
    assert open_run.count(["search_web"]) is None
    for user in ("anna", "ben"):
        assert reached(opened(user), ["search_web"]) is not None
    del open_run
    clock.now += 59
    many_others_come()
    for user in ("anna", "ben"):
        assert reached(opened(user), ["search_web"]) is not None
    clock.now += 1
    many_others_come()
    assert opened("anna").count(["search_web"]) is None


def test_a_limit_of_bytes_counts_arguments_and_responses_of_the_period() -> None:
    now = 0.0
    limit = Limit("read", 100, Per.MINUTE, "limits[0]", measure=Measure.BYTES)
    limits = RateLimits([limit, Limit("*", 9, Per.MINUTE, "limits[1]")], lambda: now)
    assert limits.measures_results(("read",))
    assert not limits.measures_results(("write",))
    assert limits.count(("read",), 40) is None
    assert limits.count(("write",), 1000) is None
    limits.note_end(("read",), 59, 1.0)
    assert reached(limits, ("read",)) is None
    now = 30.0
    assert limits.count(("read",), 500) is None, "nobody knows before how long a response will be"
    assert limits.count(("read",), 0) == LimitReached(limit, 60)
    assert limits.exceeded(("read",), known_after=True) == [LimitReached(limit, 60)]
    assert reached(limits, ("write",)) is None
    now = 89.5
    assert limits.count(("read",), 0) == LimitReached(limit, 1)
    now = 90.0
    assert limits.count(("read",), 0) is None


def test_a_limit_of_bytes_keeps_a_bounded_number_of_parts() -> None:
    now = 0.0
    limits = RateLimits([Limit("*", 10_000, Per.HOUR, "limits[0]", measure=Measure.BYTES)], lambda: now)
    for _ in range(5000):
        now += 1
        limits.count(("read",), 1)
    [window] = limits._windows
    [amounts] = window._counts.values()
    assert isinstance(amounts, _Amounts)
    assert len(amounts._parts) <= 65
    assert reached(limits, ("read",)) is None
    for _ in range(7000):
        limits.count(("read",), 1)
    over = reached(limits, ("read",))
    assert over is not None
    assert 0 < over.retry_after <= 3600


def call(arguments: bytes = b"{}", tool: str = "s/read", subagent: str = "") -> CountedCall:
    return CountedCall(tool, arguments, subagent)


def same(most: int = 2, window: float = 600.0, beyond: Beyond = Beyond.DENY) -> Limit:
    return Limit("*", most, Per.SESSION, "limits[0]", measure=Measure.SAME, window=window, beyond=beyond)


def test_the_same_call_again_and_again_is_refused_and_others_pass() -> None:
    clock = Clock()
    limits = RateLimits([same()], clock)
    first = call(b'{"path":"a","line":1}')
    assert limits.count(["read"], call=first) is None
    clock.now += 30
    assert limits.count(["read"], call=call(b'{"line":1,"path":"a"}')) is None, "the order of members says nothing"
    assert limits.count(["read"], call=first) == LimitReached(same(), 570)
    for other in (call(b'{"path":"a","line":2}'), call(first.arguments, "s/write"), call(first.arguments, "t/read")):
        assert limits.count(["read"], call=other) is None
    clock.now += 570
    assert limits.count(["read"], call=first) is None


def test_calls_whose_numbers_differ_are_not_the_same() -> None:
    limits = RateLimits([same(1)], Clock())
    for arguments in (b'{"a":1}', b'{"a":"1"}', b'{"a":true}', b'{"a":2}', b'{"a":[1]}', b'{"a":null}', b"{}"):
        assert limits.count(["read"], call=call(arguments)) is None


def test_each_subagent_has_a_budget_of_its_own_and_the_main_agent_one() -> None:
    limit = Limit("*", 1, Per.HOUR, "limits[0]", within=Within.SUBAGENT)
    limits = RateLimits([limit], Clock())
    for subagent in ("", "a", "b", "\ud800", "\ud801"):
        assert limits.count(["read"], call=call(subagent=subagent)) is None
        assert limits.count(["write"], call=call(subagent=subagent)) == LimitReached(limit, 3600)
    together = RateLimits([Limit("*", 1, Per.HOUR, "limits[0]", within=Within.AGENT)], Clock())
    assert together.count(["read"], call=call(subagent="a")) is None
    assert together.count(["read"], call=call(subagent="b")) is not None


def test_the_time_and_the_results_of_calls_count_when_these_have_ended() -> None:
    clock = Clock()
    seconds = Limit("*", 10, Per.SESSION, "limits[0]", measure=Measure.SECONDS)
    results = Limit("*", 100, Per.MINUTE, "limits[1]", measure=Measure.RESULT_BYTES)
    limits = RateLimits([seconds, results], clock)
    assert limits.count(["read"], 5000) is None, "arguments are no results"
    limits.note_end(["read"], 99, 9.5)
    assert limits.count(["read"]) is None
    limits.note_end(["read"], 1, 0.25)
    assert limits.count(["read"]) == LimitReached(results, 60)
    clock.now += 60
    assert limits.count(["read"]) is None
    limits.note_end(["read"], 0, 0.25)
    assert limits.count(["read"]) == LimitReached(seconds, 0), "a session never ends"


def test_a_limit_that_asks_lets_an_approved_call_pass_and_counts_it() -> None:
    clock = Clock()
    asks = same(1, window=60.0, beyond=Beyond.ASK)
    limits = RateLimits([asks, same(3, window=60.0)], clock)
    assert limits.count(["read"], call=call()) is None
    assert limits.exceeded(["read"], call()) == [LimitReached(asks, 60)]
    assert limits.count(["read"], call=call()) == LimitReached(asks, 60), "nobody was asked"
    clock.now += 30
    assert limits.count(["read"], call=call(), approved=[asks.key]) is None
    assert limits.exceeded(["read"], call()) == [LimitReached(asks, 60)], "the approved call counts"
    assert limits.count(["read"], call=call(), approved=[asks.key]) is None
    refused = limits.count(["read"], call=call(), approved=[asks.key])
    assert refused == LimitReached(same(3, window=60.0), 30), "an approval is of one limit alone"


def test_a_limit_that_comments_refuses_nothing() -> None:
    limits = RateLimits([same(1, beyond=Beyond.COMMENT)], Clock())
    assert [limits.count(["read"], call=call()) for _ in range(5)] == [None] * 5
    assert [over.limit.beyond for over in limits.exceeded(["read"], call())] == [Beyond.COMMENT]


def test_many_different_calls_take_bounded_memory_and_the_last_ones_are_known() -> None:
    limits = RateLimits([same(1)], Clock())
    for number in range(3000):
        assert limits.count(["read"], call=call(b"%d" % number)) is None
    [window] = limits._windows
    assert len(window._counts) == 1024
    assert limits.count(["read"], call=call(b"2999")) is not None


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit("Bash", 20, Per.SESSION, "l"), "20 calls of Bash per session"),
        (Limit("*", 1, Per.MINUTE, "l", within=Within.SUBAGENT), "1 call per minute by each subagent"),
        (same(5), "5 times the same call within 10 minutes"),
        (same(1, 90.0), "once the same call within 90 seconds"),
        (Limit("*", 90, Per.HOUR, "l", measure=Measure.SECONDS), "90 seconds of calls per hour"),
        (Limit("*", 5 << 20, Per.DAY, "l", measure=Measure.RESULT_BYTES), "5 MiB of results per day"),
    ],
)
def test_a_limit_says_what_it_allows(limit: Limit, text: str) -> None:
    assert str(limit) == text


def test_what_calls_have_taken_is_forgotten_with_its_period() -> None:
    clock = Clock()
    amounts = _Amounts(Limit("*", 10, Per.MINUTE, "limits[0]", measure=Measure.SECONDS))
    assert amounts.is_over(clock.now)
    amounts.add(clock.now, 3.0)
    amounts.add(clock.now + 30, 4.0)
    assert not amounts.is_over(clock.now + 89)
    assert amounts.is_over(clock.now + 90)
