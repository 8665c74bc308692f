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


TOKEN = b'"progressToken":7'


def call_with_meta(meta: bytes) -> Call:
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name": "w"%b,"arguments":{"a": 1.0}}}\n' % meta
    return calls.judged_call(calls.read(raw_json.fields(line)), line, None)


@pytest.mark.parametrize(
    ("meta", "chosen", "sent"),
    [
        (b',"_meta": {"x":1}', b'{"a": 1.10}', b',"_meta": {"a":1.10}'),
        (b',"_meta": {"x":1}', b"null", b""),
        (b',"_meta": {"x":1}', b"{}", b',"_meta": {}'),
        (b',"_meta":{"x":1, %b}' % TOKEN, b"null", b',"_meta":{%b}' % TOKEN),
        (b',"_meta":{%b}' % TOKEN, b'{"progressToken":8,"ProgressToken":9,"b":2}', b',"_meta":{"b":2,%b}' % TOKEN),
        (b',"_meta":{}', b'{"io.modelcontextprotocol/protocolVersion":"1","dev.MCP/x":1,"mcp/y":2,"c":3}',
         b',"_meta":{"c":3}'),
        (b',"_meta":{"io.modelcontextprotocol/x": [1.0]}', b'{"io.modelcontextprotocol/x":2}',
         b',"_meta":{"io.modelcontextprotocol/x":[1.0]}'),
        (b',"_meta":null', b"null", b""),
    ],
)  # fmt: skip
def test_a_hooks_meta_replaces_all_but_the_protocols_own_members(meta: bytes, chosen: bytes, sent: bytes) -> None:
    assert request_edits.line_for_server(call_with_meta(meta), None, meta=chosen) == call_with_meta(sent).line


def test_a_hooks_meta_is_added_to_a_call_without_one() -> None:
    one = call_with_meta(b"")
    line = request_edits.line_for_server(one, None, meta=b'{"a":\n1.10}')
    assert line == one.line.replace(b'{"a": 1.0}', b'{"a": 1.0},"_meta":{"a":1.10}')


def test_the_meta_and_the_arguments_change_together() -> None:
    one = call_with_meta(b',"_meta":{"x":1}')
    line = request_edits.line_for_server(one, b'{"b":2}', meta=b'{"y":"\xe2\x80\xa8"}')
    assert line == one.line.replace(b'{"x":1}', b'{"y":"\\u2028"}').replace(b'{"a": 1.0}', b'{"b":2}')
