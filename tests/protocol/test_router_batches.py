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
    router.release(effect.call)
    for spelled in (b"7", b'"7"', b"7.0"):
        assert isinstance(router.from_server(b"[%b]\n" % PONG.replace(b"9", spelled)), Dropped)
    assert isinstance(router.from_agent(b"[%b]\n" % PING.replace(b"9", b"7")), Refused)
    assert isinstance(router.from_server(b"[no JSON\n"), NotJson)


def test_without_hooks_every_batch_passes() -> None:
    router = Router(None)
    assert router.from_agent(b"[%b]\n" % CALL) is PASS
    assert router.from_server(b"[%b]\n" % PONG) is PASS


def test_a_batch_with_a_response_to_our_own_request_is_refused(router: Router) -> None:
    answer = PONG.replace(b"9", b'"%b1"' % OWN_ID_PREFIX)
    assert isinstance(router.from_agent(b"[%b]\n" % answer), Refused)
