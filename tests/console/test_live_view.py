"""What one open page is told: everything at first, then what has changed; lists are bounded, and counts are exact."""

from __future__ import annotations

import html
import json
import re

import pytest
from msgspec import Raw

from hookproxy.console.call_filter import CallFilter
from hookproxy.console.live_view import MOST_ROWS, LiveView, settled
from hookproxy.console.state import State
from hookproxy.live.messages import (
    VERSION,
    CallInFlight,
    Changes,
    Counts,
    Run,
    RunningHook,
    RunSession,
    Settled,
    WaitingApproval,
)

EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def state() -> State:
    made = State()
    made.apply("r", Run(VERSION, "r", 42, 0.0, ("server",)))
    made.apply("r", Changes(sessions=(RunSession("s", "files", "agent 1"),)))
    return made


def ended(number: int, **members: object) -> Raw:
    record = {"v": 1, "call": f"c-{number}", "session": "s", "server": "files", "tool": "read", "decision": "allow"}
    return Raw(json.dumps({**record, "time": "2026-11-22T10:00:00+00:00", "result": "ok", **members}).encode())


def approval(name: str = "q", **members: object) -> WaitingApproval:
    values: dict[str, object] = {
        "id": name, "call": "c", "session": "s", "server": "files", "tool": "write", "arguments": Raw(b'{"a":1}'),
        "reason": "because", "asked_by": "the rule write", "at": 0.0, "until": 60.0, **members,
    }  # fmt: skip
    return WaitingApproval(**values)  # type: ignore[arg-type]  # the members are right


def test_a_page_gets_everything_first_and_then_what_is_new() -> None:
    all_runs = state()
    all_runs.apply("r", Changes(counts=Counts(calls=2), ended=(ended(1), ended(2))))
    view = LiveView(all_runs, CallFilter(), "token")
    first = view.change()
    assert first.first
    assert ["call=c-1" in first.ended[0], "call=c-2" in first.ended[1]] == [True, True]
    was_current = view.is_current
    all_runs.apply("r", Changes(counts=Counts(calls=3), ended=(ended(3),)))
    assert (was_current, view.is_current) == (True, False)
    later = view.change()
    assert not later.first
    assert len(later.ended) == 1
    assert "<b>3</b> ended" in later.counts


def test_a_page_that_was_slow_gets_the_newest_rows_and_exact_counts() -> None:
    all_runs = state()
    view = LiveView(all_runs, CallFilter(), "token")
    view.change()
    for batch in range(100):
        done = (batch + 1) * 50
        rows = tuple(ended(number) for number in range(done - 50, done))
        all_runs.apply("r", Changes(counts=Counts(calls=done), ended=rows))
    change = view.change()
    assert len(change.ended) == MOST_ROWS
    assert "call=c-4999" in change.ended[-1]
    assert "<b>5,000</b> ended" in change.counts
    assert len(change.encoded) < 500_000


def test_a_filter_leaves_rows_out_and_counts_in() -> None:
    all_runs = state()
    rows = tuple(ended(number, tool="write" if number % 2 else "read") for number in range(10))
    all_runs.apply("r", Changes(counts=Counts(calls=10), ended=rows))
    change = LiveView(all_runs, CallFilter(tool="wri"), "token").change()
    assert len(change.ended) == 5
    assert "<b>10</b> ended" in change.counts


def test_a_call_in_flight_says_which_hook_it_waits_for() -> None:
    all_runs = state()
    call = CallInFlight(
        "c", "s", 0.0, "write", "hooks", 0.0, Raw(b"{}"), 2, hooks=(RunningHook("guard.sh", "PreToolUse", 0.0),)
    )
    all_runs.apply("r", Changes(calls=(call,)))
    view = LiveView(all_runs, CallFilter(), "token")
    assert "guard.sh since" in view.change().in_flight
    assert view.has_calls_in_flight
    assert LiveView(all_runs, CallFilter(agent="other"), "token").change().in_flight == ""


def test_an_approval_is_sent_once_and_its_end_is_reported() -> None:
    all_runs = state()
    all_runs.apply("r", Changes(asked=(approval(),)))
    view = LiveView(all_runs, CallFilter(tool="nothing"), "form-token")
    change = view.change()
    ((key, markup, sentence),) = change.asked
    assert (key, sentence, change.waiting) == ("r/q", "write of files waits for your approval", 1)
    assert 'value="form-token"' in markup
    assert view.change().asked == []
    all_runs.apply("r", Changes(settled=(Settled("q", "allow", "anna, top"),)))
    assert view.change().settled == [("r/q", "Allowed once by anna, top")]


def test_what_others_wrote_is_text_in_every_part_of_a_change() -> None:
    all_runs = state()
    all_runs.apply("r", Run(VERSION, "r", 1, 0.0, (EVIL,), url=EVIL, cwd=EVIL))
    session = RunSession("s", EVIL, EVIL)
    evil = Raw(json.dumps({EVIL: EVIL}, ensure_ascii=False).encode())
    call = CallInFlight(EVIL, "s", 0.0, EVIL, "hooks", 0.0, evil, 2, hooks=(RunningHook(EVIL, EVIL, 0.0),))
    asked = approval(
        EVIL,
        may_edit=True,
        similar=EVIL,
        agent=EVIL,
        tool=EVIL,
        server=EVIL,
        reason=EVIL,
        asked_by=EVIL,
        place=EVIL,
        alias=EVIL,
        arguments=evil,
        user=EVIL,
    )
    rows = (
        ended(
            1,
            tool=EVIL,
            server=EVIL,
            agent=EVIL,
            reason=EVIL,
            by=EVIL,
            result=EVIL,
            decision=EVIL,
            arguments={EVIL: EVIL},
        ),
    )
    all_runs.apply("r", Changes(sessions=(session,), calls=(call,), asked=(asked,), ended=rows))
    change = LiveView(all_runs, CallFilter(), "token").change()
    for markup in (change.runs, change.in_flight, *change.ended, change.asked[0][1]):
        assert "<img" not in markup
        assert "\x1b" not in markup
        assert "\u202e" not in markup


def test_arguments_are_changed_in_a_field_without_hidden_characters() -> None:
    all_runs = state()
    hidden = Raw(json.dumps({"to": "a\u202eb\U000e0101", "n": 1}, ensure_ascii=False).encode())
    all_runs.apply("r", Changes(asked=(approval(may_edit=True, arguments=hidden), approval("p"))))
    may, may_not = LiveView(all_runs, CallFilter(), "token").change().asked
    (field,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", may[1], re.DOTALL)
    assert field.isascii()
    assert json.loads(html.unescape(field)) == json.loads(bytes(hidden))
    assert "<textarea" not in may_not[1]


def test_a_time_that_no_calendar_has_spoils_nothing() -> None:
    all_runs = state()
    call = CallInFlight("c", "s", 1e300, "write", "hooks", -1e300)
    rows = (ended(1, time="0001-01-01T00:00:00+00:00"), ended(2, time="9999-12-31T23:59:59+00:00"), ended(3, time="x"))
    all_runs.apply("r", Changes(calls=(call,), ended=rows, asked=(approval(until=1e300),)))
    change = LiveView(all_runs, CallFilter(), "token").change()
    assert len(change.ended) == 3
    assert "write" in change.in_flight


def test_an_approval_at_a_gateway_names_the_user() -> None:
    all_runs = state()
    all_runs.apply("r", Changes(asked=(approval(user="alice"),)))
    assert "alice" in LiveView(all_runs, CallFilter(), "token").change().asked[0][1]


@pytest.mark.slow
def test_the_arguments_of_an_approval_are_whole() -> None:
    all_runs = state()
    long = json.dumps({"content": "x" * 10_000_000 + "the end"}).encode()
    all_runs.apply("r", Changes(asked=(approval(arguments=Raw(long)),)))
    markup = LiveView(all_runs, CallFilter(), "token").change().asked[0][1]
    assert markup.count("x") >= 10_000_000
    assert "the end&quot;" in markup or 'the end"' in markup


def test_an_answer_about_a_lock_is_said_in_its_own_words() -> None:
    assert settled(Settled("q", "allow", "anna"), about_lock=True) == "Accepted and recorded by anna"
    all_runs = state()
    all_runs.apply("r", Changes(asked=(approval("q", now=Raw(b'{"name":"x"}')), approval("p"))))
    view = LiveView(all_runs, CallFilter(), "token")
    view.change()
    all_runs.apply("r", Changes(settled=(Settled("q", "deny"), Settled("p", "deny"))))
    assert sorted(view.change().settled) == [("r/p", "Denied"), ("r/q", "Refused: it stays withheld")]
