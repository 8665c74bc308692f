"""How many calls a limit allows, and when it allows the next; the test sets the clock."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.settings import Limit, Per
from hookproxy.policy.rate_limits import LimitReached, RateLimits, SharedWindows, tool_rule


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def limit(tool: str = "search_*", calls: int = 2, per: Per = Per.MINUTE, by: str = "limits[0]") -> Limit:
    return Limit(tool, calls, per, by)


def test_calls_up_to_the_limit_pass_and_then_the_wait_is_reported() -> None:
    clock = Clock()
    one = RateLimits([limit()], clock)
    assert one.count(["search_web"]) is None
    clock.now += 20
    assert one.count(["search_files"]) is None
    assert one.count(["search_web"]) == LimitReached(limit(), retry_after=40)
    clock.now += 39.5
    assert one.reached(["search_web"]) == LimitReached(limit(), retry_after=1)
    clock.now += 0.5
    assert one.count(["search_web"]) is None
    assert one.count(["search_web"]) == LimitReached(limit(), retry_after=20)


def test_a_check_counts_nothing_and_neither_does_a_refusal() -> None:
    clock = Clock()
    one = RateLimits([limit(calls=1, per=Per.SECOND)], clock)
    assert [one.reached(["search_x"]) for _ in range(5)] == [None] * 5
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
    assert one.reached(["search_x"]) == LimitReached(long, retry_after=86_400)
    one = RateLimits([short, budget, long], Clock())
    one.count(["search_x"])
    assert one.reached(["search_x"]) == LimitReached(budget, retry_after=0)


def test_a_limit_per_session_never_ends() -> None:
    clock = Clock()
    one = RateLimits([limit(calls=2, per=Per.SESSION)], clock)
    one.count(["search_x"])
    one.count(["search_x"])
    clock.now += 1e9
    assert one.reached(["search_x"]) == LimitReached(limit(calls=2, per=Per.SESSION), retry_after=0)


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
        reached = one.count(["search_x"])
        if reached is None:
            passed.append(clock.now)
        else:
            assert 1 <= reached.retry_after <= 60
            assert sum(time > clock.now - 60 for time in passed) == calls  # it was full
            clock.now += reached.retry_after
            assert one.reached(["search_x"]) is None  # the reported wait is true
            clock.now -= reached.retry_after
    for begin in passed:
        assert sum(begin <= time < begin + 60 for time in passed) <= calls


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
        assert opened(user).reached(["search_web"]) is not None
    del open_run
    clock.now += 59
    many_others_come()
    for user in ("anna", "ben"):
        assert opened(user).reached(["search_web"]) is not None
    clock.now += 1
    many_others_come()
    assert opened("anna").count(["search_web"]) is None


def test_a_limit_of_bytes_counts_arguments_and_responses_of_the_period() -> None:
    now = 0.0
    limit = Limit("read", 0, Per.MINUTE, "limits[0]", size=100)
    limits = RateLimits([limit, Limit("*", 9, Per.MINUTE, "limits[1]")], lambda: now)
    assert limits.counts_bytes(("read",))
    assert not limits.counts_bytes(("write",))
    assert limits.count(("read",), 40) is None
    assert limits.count(("write",), 1000) is None
    limits.note_bytes(("read",), 59)
    assert limits.reached(("read",)) is None
    now = 30.0
    assert limits.count(("read",), 500) is None, "nobody knows before how long a response will be"
    assert limits.count(("read",), 0) == LimitReached(limit, 60)
    assert limits.reached(("read",), of_bytes=True) == LimitReached(limit, 60)
    assert limits.reached(("write",)) is None
    now = 89.5
    assert limits.count(("read",), 0) == LimitReached(limit, 1)
    now = 90.0
    assert limits.count(("read",), 0) is None


def test_a_limit_of_bytes_keeps_a_bounded_number_of_parts() -> None:
    now = 0.0
    limits = RateLimits([Limit("*", 0, Per.HOUR, "limits[0]", size=10_000)], lambda: now)
    for _ in range(5000):
        now += 1
        limits.count(("read",), 1)
    [window] = limits._windows
    assert len(window.times) <= 65
    assert limits.reached(("read",)) is None
    for _ in range(7000):
        limits.count(("read",), 1)
    reached = limits.reached(("read",))
    assert reached is not None
    assert 0 < reached.retry_after <= 3600
