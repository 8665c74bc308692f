"""Hooks that are tools of a server: what they are called with, and how their runs end."""

from __future__ import annotations

import json
from typing import Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Ended, Event, HookSpec
from hookproxy.runners import mcp_tool
from hookproxy.runners.runner import CallTool, HookFailed, no_server

pytestmark = pytest.mark.anyio

SPEC: Final = HookSpec(
    "claude", "f: k", Event.PRE_TOOL_USE, "check", type="mcp_tool", server="policy", tool="check", timeout=5.0
)
MEMBERS: Final = {
    "session_id": "s",
    "tool_input": {"path": 'a"},"x":{"', "n": 1.50, "deep": {"list": [1, 2]}, "none": None, "dollar": "${session_id}"},
    "wörter": "ä\u2028",
}
DOCUMENT: Final = json.dumps(MEMBERS).encode() + b"\n"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${session_id}", "s"),
        ("in ${session_id}: ${tool_input.path}", 'in s: a"},"x":{"'),
        ("${tool_input.n}", "1.5"),
        ("${tool_input.deep}", '{"list": [1, 2]}'),
        ("${tool_input.none}${tool_input.missing}${no.such}${session_id.x}", ""),
        ("${tool_input.dollar}", "${session_id}"),
        ("${wörter}", "ä\u2028"),
        ("$session_id ${} ${${session_id}}", "$session_id ${} ${s}"),
        ({"a": {"${session_id}": ["${session_id}", 1, None]}}, {"a": {"${session_id}": ["s", 1, None]}}),
        (7, 7),
    ],
)
def test_a_template_is_filled_with_members_of_the_document(template: object, expected: object) -> None:
    given = json.loads(mcp_tool.fill_template(json.dumps({"it": template}).encode(), DOCUMENT))
    assert given == {"it": expected}


@pytest.mark.parametrize("document", [b"", b"[]", b"nonsense", b'{"a": 1, "a": 2}', b"\xff"])
def test_a_document_that_cannot_be_read_fills_with_nothing(document: bytes) -> None:
    assert mcp_tool.fill_template(b'{"it":"-${a}-"}', document) == b'{"it":"--"}'


def test_numbers_keep_their_spelling() -> None:
    assert mcp_tool.fill_template(b'{"n":1.50,"it":"${session_id}"}', DOCUMENT) == b'{"n":1.50,"it":"s"}'


async def test_the_text_of_the_tool_is_the_output_of_the_hook() -> None:
    calls = []

    async def call_tool(*call: object) -> bytes:
        calls.append(call)
        return b"text"

    run = mcp_tool.runner_for(call_tool)
    result = await run(replace(SPEC, input=b'{"it":"${session_id}"}'), Document(DOCUMENT, {}), {})
    assert (result.ended, result.code, result.stdout) == (Ended.EXITED, 0, b"text")
    assert calls == [("policy", "check", b'{"it":"s"}')]


async def hang(*_call: object) -> bytes:
    await anyio.sleep_forever()
    return b""


async def refuse(*_call: object) -> bytes:
    raise HookFailed("reported an error: no")


@pytest.mark.parametrize(
    ("call_tool", "ended", "detail"),
    [
        (hang, Ended.TIMED_OUT, ""),
        (refuse, Ended.FAILED, "reported an error: no"),
        (no_server, Ended.FAILED, "cannot be called: no server is connected"),
    ],
)
async def test_every_other_outcome_is_a_result_too(call_tool: CallTool, ended: Ended, detail: str) -> None:
    result = await mcp_tool.runner_for(call_tool)(replace(SPEC, timeout=0.02), Document(DOCUMENT, {}), {})
    assert (result.ended, result.stdout, result.detail) == (ended, b"", detail)
