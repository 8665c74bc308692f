"""The line of a judged call as the server gets it: nothing that is only for hookproxy remains in it."""

from __future__ import annotations

import json

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.model.decision import ApprovalRequest
from hookproxy.protocol import calls, request_edits
from hookproxy.protocol.calls import OWN_STATE_PREFIX, Call
from hookproxy.protocol.request_state import CallRound, StateSealer

META = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'


def call(more: bytes = b"") -> Call:
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{%b, "name":"write","arguments":{"a": 1.0}%b}}\n'
    line = line % (META, more)
    return calls.judged_call(calls.read(raw_json.fields(line)), line, None)


def test_an_unchanged_call_keeps_the_agents_bytes() -> None:
    one = call(b',"requestState":"theirs","inputResponses":{"x":{}}')
    assert request_edits.line_for_server(one, None) is one.line


def test_a_rewrite_changes_only_the_arguments() -> None:
    one = call(b',"x":1')
    assert request_edits.line_for_server(one, b'{"a":\n2}') == one.line.replace(b'{"a": 1.0}', b'{"a": 2}')


@pytest.mark.parametrize(
    ("state", "inputs", "more"),
    [
        (b'"S"', b"{}", b',"requestState":"S","inputResponses":{}'),
        (b"", b'{"hookproxy.ask":{"action":"accept"}}', b""),
        (b'"S"', b'{"x":{"a": 1},"hookproxy.ask":{}}', b',"requestState":"S","inputResponses":{"x":{"a": 1}}'),
    ],
)
def test_only_the_servers_own_state_reaches_the_server(state: bytes, inputs: bytes, more: bytes) -> None:
    waiting = CallRound("write", b"{}", state=state, approval_request=ApprovalRequest("a", "b"))
    state = StateSealer().to_request_state(waiting).encode()
    one = call(b',"requestState":"%b","inputResponses":%b' % (state, inputs))
    assert request_edits.line_for_server(one, None, waiting) == call(more).line
    assert request_edits.line_for_server(one, None) == call(more).line, "also if the state was not restored"


def test_a_state_that_only_looks_like_ours_is_removed() -> None:
    one = call(b',"requestState":"%bx.y"' % OWN_STATE_PREFIX.encode())
    assert request_edits.line_for_server(one, None) == call().line
    other = call(b',"requestState":"hookproxy1.x.y","inputResponses":{"hookproxy.ask":{}}')
    assert request_edits.line_for_server(other, None) is other.line, "it is another hookproxy's, behind us"


def test_a_response_to_a_hookproxy_behind_us_is_forwarded() -> None:
    waiting = CallRound("write", b"{}", state=b'"S"')
    answered = b',"inputResponses":{"hookproxy.ask":{"action":"accept"}}'
    one = call(b',"requestState":"%b"%b' % (StateSealer().to_request_state(waiting).encode(), answered))
    assert request_edits.line_for_server(one, None, waiting) == call(b',"requestState":"S"' + answered).line


@pytest.mark.parametrize(("own", "state"), [(b',"requestState":"S"', b'"S"'), (b"", b"")])
def test_our_request_state_contains_the_servers_state(own: bytes, state: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required" %b}}\n' % own
    assert request_edits.server_state_of(line) == state
    sealed = json.loads(request_edits.with_own_state(line, "hookproxy1.x"))
    assert sealed["result"] == {"resultType": "input_required", "requestState": "hookproxy1.x"}
