"""Lines that the router must not take for others: each was found by a change of the code that no test noticed."""

from __future__ import annotations

import pytest

from hookproxy.protocol.actions import PASS, CallAnswered, Dropped, Refused
from hookproxy.protocol.elicitations import Elicitations
from hookproxy.protocol.router import Router
from tests.protocol.test_router_shortcuts import judged_call, line, opened, tool_call

PING = line(id=3, method="ping").strip()


@pytest.mark.parametrize("around", [b"X", b"\x0b", b"\x00", b"\xa0"])
def test_only_the_blanks_of_json_may_stand_around_a_batch(around: bytes) -> None:
    assert opened().from_agent(b" \t[" + PING + b"] \r\n") is PASS
    assert isinstance(opened().from_agent(around + b"[" + PING + b"]" + around + b"\n"), Refused)


@pytest.mark.parametrize("item", [b'"id":9,"id":10', b'"ID":9', b'"id":9,"Id":10'])
def test_a_batch_with_a_response_that_readers_may_take_differently_is_dropped(item: bytes) -> None:
    router = opened()
    judged_call(router)
    for number in (9, 10):
        assert router.from_agent(tool_call(number=number)) is PASS
    batch = b'[{"jsonrpc":"2.0",%b,"result":{}}]\n' % item
    assert isinstance(router.from_server(batch), Dropped)
    assert router.from_server(b'[{"jsonrpc":"2.0","id":9,"result":{}}]\n') is PASS


def test_an_id_that_is_not_utf_8_is_dropped_with_a_reason() -> None:
    router = opened()
    assert isinstance(router.from_server(b'{"jsonrpc":"2.0","id":"\xff","result":{}}\n'), Dropped)
    judged_call(router)
    assert isinstance(router.from_server(b'{"jsonrpc":"2.0","id":"\xff","result":{}}\n'), Dropped)


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(
    "response",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":%b}}',
        b'{"jsonrpc":"2.0","result":{"content":[],"structuredContent":%b},"id":7}',
        b'{"id":7,"jsonrpc":"2.0","error":{"code":1,"message":"","data":%b}}',
    ],
)
def test_a_response_too_deep_to_be_read_ends_its_call_also_where_elicitations_are_judged(
    guarded: bool, response: bytes
) -> None:
    router = Router(lambda _tool: True, Elicitations(guarded=guarded))
    judged_call(router)
    action = router.from_server(response % (b"[" * 20_000 + b"]" * 20_000))
    assert isinstance(action, CallAnswered)
    assert action.call.response is None


@pytest.mark.parametrize(
    "line_of_server",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{},"method":"elicitation/create"}',
        b'{"jsonrpc":"2.0","id":7,"result":{},"Method":"elicitation/create"}',
    ],
)
def test_what_may_be_a_request_with_the_id_of_a_judged_call_ends_the_call_unread(line_of_server: bytes) -> None:
    router = Router(lambda _tool: True, Elicitations(guarded=True))
    judged_call(router)
    action = router.from_server(line_of_server)
    assert isinstance(action, CallAnswered)
    assert action.call.response is None
