"""Batches: no tool call and no response to a judged call passes in one."""

import pytest

from hookproxy.protocol.actions import PASS, Dropped, NotJson, Refused, Send, StartCall
from hookproxy.protocol.calls import OWN_ID_PREFIX
from hookproxy.protocol.router import Router

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"}}'
PING = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":9,"result":{}}'


@pytest.fixture
def router() -> Router:
    return Router(lambda tool: tool == "danger")


@pytest.mark.parametrize(
    "batch", [b"[%b]\n" % CALL, b"[%b,%b]\n" % (PING, CALL), b"[%b" % PING, b"[1,{}]\n", b"\v[%b]\n" % PING]
)
def test_a_batch_with_a_call_or_an_invalid_message_is_refused(router: Router, batch: bytes) -> None:
    assert isinstance(router.from_agent(batch), Refused)


def test_a_batch_of_other_requests_passes_and_so_do_their_responses_once(router: Router) -> None:
    assert router.from_agent(b"[%b]\n" % PING) is PASS
    assert router.from_server(b"[%b]\n" % PONG) is PASS
    assert isinstance(router.from_server(b"[%b]\n" % PONG), Dropped)
    assert router.from_agent(b"[%s]\n".replace(b"%s", PING.replace(b"ping", "\u2028".encode()))) != PASS
    assert isinstance(router.from_agent(b"[%b]\n" % PING.replace(b"ping", "\u2028".encode())), Send)


def test_a_response_to_a_judged_call_never_passes_in_a_batch(router: Router) -> None:
    effect = router.from_agent(CALL + b"\n")
    assert isinstance(effect, StartCall)
    router.calls.release(effect.call)
    for spelled in (b"7", b'"7"', b"7.0"):
        assert isinstance(router.from_server(b"[%b]\n" % PONG.replace(b"9", spelled)), Dropped)
    assert isinstance(router.from_agent(b"[%b]\n" % PING.replace(b"9", b"7")), Refused)
    assert isinstance(router.from_server(b"[no JSON\n"), NotJson)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":null,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}\n',
        b'{"jsonrpc":"2.0","result":{"x":[1]}}\n',
        b'{"error":{"code":1,"message":"m"}}\n',
        b'[{"jsonrpc":"2.0","id":null,"result":{}}]\n',
        b'[{"jsonrpc":"2.0","result":{}}]\n',
    ],
)
@pytest.mark.parametrize("waiting", [False, True])
def test_a_response_without_an_id_passes_only_if_a_request_had_none(router: Router, line: bytes, waiting: bool) -> None:
    assert router.from_agent(PING + b"\n") is PASS
    if waiting:
        call = router.from_agent(CALL + b"\n")
        assert isinstance(call, StartCall)
        router.calls.release(call.call)
    assert not router.scan_from_server(line)
    assert not router.scan_from_server(PONG + b"\n" + line)
    assert not router.scan_response(line)
    assert isinstance(router.from_server(line), Dropped)
    assert router.from_agent(PING.replace(b"9", b"null") + b"\n") is PASS
    assert router.from_server(line) is PASS
    assert isinstance(router.from_server(line), Dropped), "only once"


@pytest.mark.parametrize(
    "head", [b'{"jsonrpc":"2.0","id":null,"result":{"x":"', b'{"id":{},"result":"', b'{ "id" : true']
)
def test_the_beginning_of_a_response_without_a_usual_id_does_not_pass_before_its_end(
    router: Router, head: bytes
) -> None:
    assert router.from_agent(PING + b"\n") is PASS
    assert not router.may_pass_in_pieces(head + b"x" * 70_000)
    assert router.may_pass_in_pieces(b'{"result":"' + b"x" * 70_000), "its id may be at its end"
    assert router.may_pass_in_pieces(b'{"jsonrpc":"2.0","method":"x","params":{"x":"' + b"x" * 70_000)


def test_without_hooks_every_batch_passes() -> None:
    router = Router(None)
    assert router.from_agent(b"[%b]\n" % CALL) is PASS
    assert router.from_server(b"[%b]\n" % PONG) is PASS


def test_a_batch_with_a_response_to_our_own_request_is_refused(router: Router) -> None:
    answer = PONG.replace(b"9", b'"%b1"' % OWN_ID_PREFIX)
    assert isinstance(router.from_agent(b"[%b]\n" % answer), Refused)
