"""A hostile document is refused in the form that its agent reads, also where failing hooks let calls pass.

Nothing of it is recorded, and the guard goes on: it judges the next event, whose record is whole.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from hookproxy.dialects.agent_side import HookOutput, names
from hookproxy.guard import client, exchange
from hookproxy.guard.current_policy import CurrentPolicy, Read
from hookproxy.guard.server import Guard
from hookproxy.model.hooks import Permission
from tests.guard.test_judge import AGENTS, before, configured, permission, records

pytestmark = pytest.mark.anyio

MEGABYTES_50 = 50_000_000


@asynccontextmanager
async def guarding(folder: Path) -> AsyncIterator[Path]:
    """The socket of a guard that denies `rm`."""
    guard = Guard(str(folder / "guard"), print)
    loaded = configured(folder, '[permissions]\ndeny = ["Bash(rm *)"]')
    async with anyio.create_task_group() as tasks:
        policy = CurrentPolicy(lambda: Read(loaded, {}), tasks, print)
        tasks.start_soon(guard.serve, policy, 1000)
        yield folder / "guard" / "guard.sock"
        guard.end(at_once=True)
        await policy.aclose()


async def ask(path: Path, head: bytes, *parts: bytes) -> HookOutput:
    """What the agent reads from the client for this request."""
    async with await anyio.connect_unix(path) as connection:
        await connection.send(head)
        for part in parts:
            await connection.send(part)
        response = bytearray()
        while (whole := client.complete_parts(response)) is None:
            response += await connection.receive()
    status, output, text = whole
    return HookOutput(output, text.decode(), status)


def request(agent: str, document: bytes) -> bytes:
    environ = b"\0".join(f"{name}={value}".encode() for name, value in AGENTS[agent].before_variables.items())
    head = b"hookproxy-guard 1 %b 1 %d %d\n" % (agent.encode(), len(environ), len(document))
    return head + b"/" + environ + document


@pytest.mark.parametrize("agent", names())
@pytest.mark.slow
async def test_a_hostile_document_is_refused_and_the_next_event_is_judged(agent: str, tmp_path: Path) -> None:
    document = before(agent).document
    hostile = {
        "cut off": document[:-1],
        "cut off in the middle": document[: len(document) // 2],
        "empty": b"",
        "not UTF-8": document.replace(b"rm x", b"rm x\xff\xfe"),
        "not UTF-8 elsewhere": document[:-1] + b',"more":"\xff"}',
        "UTF-16": document.decode().encode("utf-16"),
        "two documents": document + document,
        "nested": document.replace(b'"rm x"', b"[" * 100_000 + b"]" * 100_000),
        "twin keys": document.replace(b'"rm x"', b'"ls", "command": "rm x", "command": "ls"'),
        "half a character": document.replace(b"rm x", b"\\ud800"),
        "nothing but NULs": b"\0" * 1000,
        "too many values": document[:-1] + b',"more":[' + b"1," * 300_000 + b"1]}",
        "too many members": document[:-1] + b"".join(b',"m%d":1' % number for number in range(2000)) + b"}",
    }
    if hostile["twin keys"].count(b'"command"') < 3:  # it calls the argument otherwise
        del hostile["twin keys"]
    async with guarding(tmp_path) as path:
        with anyio.fail_after(60):
            for name, raw in hostile.items():
                output = await ask(path, request(agent, raw))
                assert permission(agent, output) is Permission.DENY, name
            too_long = b"hookproxy-guard 1 %b 1 0 %d\n" % (agent.encode(), MEGABYTES_50)
            piece = b" " * 1_000_000
            output = await ask(path, too_long, b"/", *[piece] * (MEGABYTES_50 // len(piece)))
            assert permission(agent, output) is Permission.DENY
            assert records(tmp_path) == []
            if b"rm x" in document:
                assert permission(agent, await ask(path, request(agent, document))) is Permission.DENY
                assert [record["result"] for record in records(tmp_path)] == ["refused"]


async def test_a_request_that_ends_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    document = before("claude").document
    async with guarding(tmp_path) as path:
        with anyio.fail_after(60):
            whole = request("claude", document)
            for length in (0, 1, len(whole) // 2, len(whole) - 1):
                async with await anyio.connect_unix(path) as connection:
                    if length:
                        await connection.send(whole[:length])
            assert permission("claude", await ask(path, whole)) is Permission.DENY
    assert len(records(tmp_path)) == 1


@pytest.mark.parametrize(
    "head",
    [
        b"hookproxy-guard 1 claude 1 0 99999999999999999999\n",
        b"hookproxy-guard 1 claude 99999999 0 1\n",
        b"hookproxy-guard 1 claude 1 0 1\nxxx",
        b"hookproxy-guard 1 ../../etc 1 0 2\n/{}",
        b"hookproxy-guard 1 \xff 1 0 2\n/{}",
        b"x" * 1000,
    ],
)
async def test_nonsense_is_refused(head: bytes, tmp_path: Path) -> None:
    async with guarding(tmp_path) as path:
        with anyio.fail_after(60):
            output = await ask(path, head)
            assert output.status == 2 or permission("claude", output) is Permission.DENY
            assert (
                permission("claude", await ask(path, request("claude", before("claude").document))) is Permission.DENY
            )


def test_the_longest_document_that_is_judged_is_far_shorter() -> None:
    assert exchange.LONGEST_DOCUMENT < MEGABYTES_50 / 2
    assert json.loads(before("claude").document)
