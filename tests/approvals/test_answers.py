"""Whoever holds the port of the webhook's answers must know the secret itself."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from hookproxy.approvals.answers import AnswerServer, PortTaken
from hookproxy.live.messages import Answer, AnswerTaken
from hookproxy.session.waiting_approvals import WaitingApprovals
from tests.support.webhook_receiver import send

pytestmark = pytest.mark.anyio


async def nothing(_answer: Answer) -> AnswerTaken | None:
    return None


@asynccontextmanager
async def opened(listen: str, secret: bytes = b"secret") -> AsyncIterator[AnswerServer]:
    server = AnswerServer(secret, nothing, print, print)
    try:
        await server.open(listen)
        yield server
    finally:
        await server.aclose()


def port_of(server: AnswerServer) -> int:
    return int(server.address.rpartition(":")[2].partition("/")[0])


def relaying(port: int) -> Callable[[anyio.abc.SocketStream], object]:
    async def relay(asks: anyio.abc.SocketStream) -> None:
        async with asks, await anyio.connect_tcp("127.0.0.1", port) as answers:
            await answers.send(await asks.receive())
            await asks.send(await answers.receive())

    return relay


@pytest.mark.slow
async def test_a_run_finds_another_one_with_its_secret_at_the_port() -> None:
    async with opened("127.0.0.1:0") as first, opened(f"127.0.0.1:{port_of(first)}") as second:
        assert (second.address, second.is_open) == (first.address, False)
        with pytest.raises(PortTaken):
            async with opened(f"127.0.0.1:{port_of(first)}", b"another"):
                pass


async def test_a_program_that_asks_a_run_at_another_port_for_the_proof_is_not_taken_for_one() -> None:
    local = await anyio.create_tcp_listener(local_host="127.0.0.1", family=socket.AF_INET)
    with anyio.fail_after(30):
        async with opened("127.0.0.1:0") as first, local as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, relaying(port_of(first)))
            taken = listener.extra(anyio.abc.SocketAttribute.local_port)
            with pytest.raises(PortTaken):
                async with opened(f"127.0.0.1:{taken}"):
                    pass
            tasks.cancel_scope.cancel()


async def test_an_answer_that_another_run_knows_nothing_of_is_not_found() -> None:
    async def not_found(answer: Answer) -> AnswerTaken:
        waiting = WaitingApprovals("run")
        waiting.take_with_token = nothing
        return await waiting.answer(answer, "somebody", 0)

    async with anyio.create_task_group() as tasks:

        def spawn(*task: Any) -> None:  # noqa: ANN401  # a function and its arguments
            tasks.start_soon(*task)

        server = AnswerServer(b"secret", not_found, spawn, print)
        await server.open("127.0.0.1:0")
        place = f"http://127.0.0.1:{port_of(server)}/approvals/run-1/{'t' * 43}"
        status, _ = await anyio.to_thread.run_sync(partial(send, place, {"decision": "allow"}, "POST"))
        await server.aclose()
    assert status == 404
