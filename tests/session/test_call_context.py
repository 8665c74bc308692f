"""The context of a call's PreToolUse event."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.decision import Refuse
from hookproxy.model.hooks import Event
from tests.support.proxy_rig import DIRECT_LOOP, rig, stub, stub_group

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.mark.parametrize(
    ("raw_id", "text"), [(b"7", "7"), (b'"a\\u0062"', "ab"), (b'"hookproxy:1"', "hookproxy:1"), (b"-3", "-3")]
)
async def test_hooks_get_the_calls_id_as_text(raw_id: bytes, text: str) -> None:
    says = 'read x; printf %s "{\\"permission\\": \\"deny\\", \\"reason\\": $(printf %s "$x" | jq -c .id)}"'
    async with rig(stub_group(stub(Event.PRE_TOOL_USE, says))) as one:
        await one.agent.send(b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"write"}}\n' % raw_id)
        answer = await one.agent.message()
    assert answer["result"]["content"][0]["text"] == f"Blocked by the PreToolUse hook stub: {text}"
    assert answer["id"] == json.loads(raw_id)


def test_a_refusal_names_the_hook_that_refuses() -> None:
    assert Refuse("a", "b").event == "PreToolUse"
