"""What Python hooks get of the calls before."""

from __future__ import annotations

import msgspec

from hookproxy.hooks import session_calls
from hookproxy.hooks.api import PastCall
from hookproxy.hooks.session_calls import SessionCalls


def read(calls: SessionCalls) -> list[PastCall]:
    return msgspec.json.decode(calls.json(), type=list[PastCall])


def test_calls_are_read_as_they_were_noted_the_oldest_first() -> None:
    calls = SessionCalls()
    assert read(calls) == []
    calls.note("files", "read", b'{"path": "a\\u0020b", "n": 1.0}', "allow", "ok")
    calls.note("", "Bash", b"{}", "deny", "refused")
    first, second = read(calls)
    assert (first.server, first.tool_name, first.tool_input) == ("files", "read", {"path": "a b", "n": 1.0})
    assert (second.server, second.tool_name, second.decision, second.result) == ("", "Bash", "deny", "refused")
    assert second.timestamp >= first.timestamp > "2026"


def test_of_long_arguments_nothing_is_kept() -> None:
    calls = SessionCalls()
    calls.note("files", "write", b'{"content":"%b"}' % (b"x" * 10_000), "allow", "ok")
    assert [call.tool_input for call in read(calls)] == [None]


def test_only_so_many_are_kept() -> None:
    calls = SessionCalls()
    for number in range(session_calls._MOST + 3):
        calls.note("files", str(number), b"{}", "allow", "ok")
    kept = read(calls)
    assert [kept[0].tool_name, len(kept)] == ["3", session_calls._MOST]


def test_names_that_are_no_utf_8_are_kept_as_far_as_they_are() -> None:
    calls = SessionCalls()
    calls.note("fi\udcffles", 'x","tool_input":{"a":1},"y":"', b"{}", "allow", "ok")
    (call,) = read(calls)
    assert call.tool_name.startswith('x","')
    assert call.tool_input == {}
