"""Law 1 against every spelling in the table: through a proxy over real pipes, with a hook that denies."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.call_spellings import CALL, CARRIERS, DANGER, SPELLINGS, UNTERMINATED, Spelling, calls_seen
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig

pytestmark = pytest.mark.anyio

DENY: Final = group(hook("exit 2", matcher=DANGER))

GREETING: Final = b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"capabilities":{}}}\n'
FIRST: Final = b'{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"safe","arguments":{}}}\n'
BEFORE: Final = b'{"jsonrpc":"2.0","id":101,"method":"tools/call","params":{"name":"safe","arguments":{}}}\n'
AFTER: Final = b'{"jsonrpc":"2.0","id":102,"method":"tools/call","params":{"name":"safe","arguments":{}}}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def without_blank_lines(received: bytes) -> bytes:
    return b"".join(line for line in received.splitlines(keepends=True) if line.strip())


@pytest.mark.slow
async def test_no_byte_of_a_denied_call_reaches_the_server_however_it_is_spelled() -> None:
    wrong = []
    for spelling in SPELLINGS:
        async with rig(DENY) as proxied:
            await proxied.agent.send(spelling.text)
            received, answered = await proxied.finish()
        if without_blank_lines(received) != b"":
            wrong.append(f"{spelling}: the server received {received!r}")
        if answered.count(b"\n") < 1:
            wrong.append(f"{spelling}: a refusal is never silent")
    assert not wrong, "\n".join(wrong)


async def begin(proxied: Rig) -> None:
    """From now on whole blocks of calls of `safe` may pass at a glance."""
    await proxied.agent.send(GREETING, FIRST)
    assert await proxied.server.line() == GREETING
    assert await proxied.server.line() == FIRST


@pytest.mark.slow
async def test_a_denied_call_among_others_is_the_only_one_that_stays_away() -> None:
    wrong = []
    for spelling in SPELLINGS:
        async with rig(DENY) as proxied:
            await begin(proxied)
            await proxied.agent.deliver(spelling.text)
            await proxied.agent.deliver(BEFORE + spelling.text + AFTER)
            received, answered = await proxied.finish()
        if without_blank_lines(received) != BEFORE + AFTER:
            wrong.append(f"{spelling}: the server received {received!r}")
        if answered.count(b"\n") < 2:
            wrong.append(f"{spelling}: the agent received {answered!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("spelling", UNTERMINATED, ids=str)
@pytest.mark.slow
async def test_a_denied_call_without_a_line_end_is_denied_as_well(spelling: Spelling) -> None:
    async with rig(DENY) as proxied:
        await proxied.agent.send(GREETING, BEFORE, spelling.text)
        received, answered = await proxied.finish()
    assert without_blank_lines(received) == GREETING + BEFORE
    assert answered.count(b"\n") >= 1


@pytest.mark.slow
async def test_no_reader_finds_a_call_inside_another_message() -> None:
    wrong = []
    for carrier in CARRIERS:
        async with rig(DENY) as proxied:
            await begin(proxied)
            await proxied.agent.deliver(carrier.text)
            await proxied.agent.deliver(BEFORE + carrier.text.replace(b'"id":3', b'"id":4') + AFTER)
            received, _ = await proxied.finish()
        if calls_seen(received) != [] or received.count(BEFORE) != 1 or not received.endswith(AFTER):
            wrong.append(f"{carrier}: the server received {received!r}")
    assert not wrong, "\n".join(wrong)


def test_the_readers_find_what_they_should() -> None:
    for carrier in CARRIERS:
        if carrier.title.endswith(("CR", "VT", "FF", "FS", "GS", "RS", "NEL", "LS", "PS", "line end")):
            assert calls_seen(carrier.text), carrier.title
    assert calls_seen(CALL.encode())
    assert calls_seen(CALL.replace("danger", "safe").encode()) == []
    assert [one.title for one in SPELLINGS if "duplicate" in one.title and not calls_seen(one.text)] == []
