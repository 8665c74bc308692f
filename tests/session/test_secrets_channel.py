"""The channel that hides secrets: messages keep their order, whatever is waited for, and none is lost."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from hookproxy.model.secret_settings import SecretSettings, SecretsRestore
from hookproxy.policy.shared_state import SharedSecrets
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.literals import Found
from hookproxy.secrets.session_finder import SessionFinder
from hookproxy.session.hidden_secrets import HiddenSecrets
from hookproxy.session.secrets_channel import SecretsChannel, SessionSide
from tests.support.proxy_rig import TIMEOUT
from tests.support.recording_channel import RecordingChannel

TOKEN: Final = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
SETTINGS: Final = SecretSettings(restore=(SecretsRestore("push"),))
FINDER: Final = Finder(SETTINGS, {})
LONG: Final = "word " * 60_000
LIMIT: Final = 1024 * 1024

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def message(number: int, text: str = "") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": text}}).encode() + b"\n"


def push(number: int, text: str) -> bytes:
    params = {"name": "push", "arguments": {"text": text}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


class Hidden:
    """A channel between a server and a session, which are both the test."""

    def __init__(self, tasks: anyio.abc.TaskGroup, shared: SharedSecrets | None) -> None:
        self.server = RecordingChannel()
        self.secrets = HiddenSecrets(SETTINGS, FINDER, "a", shared)

        def spawn(function: Callable[..., Coroutine[object, object, None]], *given: object) -> None:
            tasks.start_soon(function, *given)

        side = SessionSide(spawn)
        self.channel = SecretsChannel(self.server, self.secrets, LIMIT, side)
        self.got: list[bytes] = []
        self.ended = anyio.Event()
        self.channel.start(self.got.append, self.ended.set, lambda _full: None, lambda: None)

    async def ids(self, count: int) -> list[int]:
        """The ids of so many messages, once the session has them."""
        with anyio.fail_after(TIMEOUT):
            while b"".join(self.got).count(b"\n") < count:
                await anyio.lowlevel.checkpoint()
        assert TOKEN.encode() not in b"".join(self.got)
        return [json.loads(line)["id"] for line in b"".join(self.got).splitlines()]


@asynccontextmanager
async def hidden(shared: SharedSecrets | None = None) -> AsyncIterator[Hidden]:
    async with anyio.create_task_group() as tasks:
        yield Hidden(tasks, shared)
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_messages_keep_their_order_while_a_long_one_is_searched() -> None:
    lines = [message(1, TOKEN), message(2, LONG + TOKEN), message(3, TOKEN), message(4, LONG), message(5), message(6)]
    stream = b"".join(lines)
    async with hidden() as one:
        for at in range(0, len(stream), 70_000):
            one.server.says(stream[at : at + 70_000])
        assert await one.ids(6) == [1, 2, 3, 4, 5, 6]
        assert b"".join(one.got).splitlines(keepends=True)[3:] == lines[3:]


@pytest.mark.slow
async def test_messages_with_secrets_that_come_together_keep_their_order() -> None:
    lines = [message(number, LONG[: 50_000 * (number % 3)] + TOKEN) for number in range(1, 10)]
    async with hidden() as one:
        one.server.says(b"".join(lines))
        assert len(b"".join(one.got).splitlines()) < 9, "the rest is searched in a thread"
        assert await one.ids(9) == list(range(1, 10))


@pytest.mark.slow
async def test_the_server_is_not_read_while_a_long_message_is_searched_and_the_session_may_want_that_too() -> None:
    async with hidden() as one:
        one.server.says(message(1, LONG))
        states = [one.server.reading]
        one.channel.pause()
        assert await one.ids(1) == [1]
        states.append(one.server.reading)
        one.channel.resume()
        states.append(one.server.reading)
        one.server.says(message(2, LONG))
        one.channel.resume()
        states.append(one.server.reading)
        assert await one.ids(2) == [1, 2]
        assert [*states, one.server.reading] == [False, False, True, False, True]


async def test_the_end_comes_after_what_waits() -> None:
    async with hidden() as one:
        one.server.says(message(1, LONG) + message(2, TOKEN) + message(3, TOKEN)[:-1])
        one.server.ends()
        assert not one.ended.is_set()
        with anyio.fail_after(TIMEOUT):
            await one.ended.wait()
        assert re.findall(rb'"id": (\d)', b"".join(one.got)) == [b"1", b"2", b"3"]
        assert TOKEN.encode() not in b"".join(one.got)


async def test_what_is_there_when_the_session_ends_is_delivered_at_once() -> None:
    async with hidden() as one:
        one.server.says(message(1, LONG + TOKEN) + message(2, LONG))
        one.server.says(message(3, TOKEN))
        one.channel.drain()
        assert [json.loads(line)["id"] for line in b"".join(one.got).splitlines()] == [1, 2, 3]
        with anyio.fail_after(TIMEOUT):
            await anyio.wait_all_tasks_blocked()
        assert await one.ids(3) == [1, 2, 3]


class Counting:
    """A finder that says when it has begun, and how often."""

    def __init__(self) -> None:
        self._finder = SessionFinder(FINDER)
        self.begun = threading.Event()
        self.searches = 0

    def find(self, text: bytes) -> list[Found]:
        self.searches += 1
        self.begun.set()
        return self._finder.find(text)


async def test_what_a_thread_searches_when_the_session_ends_is_not_searched_twice() -> None:
    async with hidden() as one:
        finder = one.secrets.masks.finder = Counting()
        one.server.says(message(1, LONG + TOKEN) + message(2))
        await anyio.to_thread.run_sync(finder.begun.wait)
        one.channel.drain()
        assert await one.ids(2) == [1, 2]
        with anyio.fail_after(TIMEOUT):
            await anyio.wait_all_tasks_blocked()
        assert await one.ids(2) == [1, 2]
        assert finder.searches == 2, "one for each message"


async def test_an_error_stands_for_a_message_that_is_too_long() -> None:
    async with hidden() as one:
        substitutes: list[bool] = []
        one.channel.start(
            lambda _: substitutes.append(one.channel.is_substitute), lambda: None, lambda _: None, lambda: None
        )
        one.server.says(message(1, "x" * LIMIT)[:-1])
        one.server.says(b"\n" + message(2))
        assert substitutes == [True, False]
        assert not one.channel.is_substitute


class Guard:
    """What runs of a session share, which answers when the test lets it."""

    def __init__(self) -> None:
        self.lets = anyio.Event()
        self.keeps: anyio.Event | None = None
        self.values: dict[str, str] = {}

    async def key(self) -> bytes:
        await self.lets.wait()
        return b"k" * 32

    async def keep(self, values: Mapping[str, str]) -> None:
        await (self.keeps or self.lets).wait()
        self.values.update(values)

    async def value_of(self, placeholder: str) -> str | None:
        await self.lets.wait()
        return self.values.get(placeholder)


async def test_nothing_is_delivered_before_the_key_of_the_session_is_there() -> None:
    guard = Guard()
    async with hidden(guard) as one:
        one.server.says(message(1, TOKEN) + message(2)[:5])
        one.server.says(message(2)[5:])
        await anyio.wait_all_tasks_blocked()
        assert one.got == []
        guard.lets.set()
        assert await one.ids(2) == [1, 2]
        await anyio.wait_all_tasks_blocked()
        assert list(guard.values.values()) == [TOKEN]


async def test_other_runs_know_a_placeholder_before_the_agent_does() -> None:
    guard = Guard()
    guard.lets.set()
    async with hidden(guard) as one:
        await anyio.wait_all_tasks_blocked()
        known: list[int] = []
        one.channel.start(lambda _piece: known.append(len(guard.values)), lambda: None, lambda _: None, lambda: None)
        one.server.says(message(1) + message(2, TOKEN) + message(3) + message(4, TOKEN[:-1] + "7") + message(5))
        with anyio.fail_after(TIMEOUT):
            while len(known) < 4:
                await anyio.lowlevel.checkpoint()
        assert known[:4] == [0, 1, 1, 2]


async def test_what_waits_for_other_runs_is_delivered_when_the_session_ends() -> None:
    guard = Guard()
    guard.lets.set()
    async with hidden(guard) as one:
        await anyio.wait_all_tasks_blocked()
        guard.keeps = anyio.Event()
        one.server.says(message(1, TOKEN) + message(2, TOKEN) + message(3))
        await anyio.wait_all_tasks_blocked()
        assert one.got == []
        one.channel.drain()
        assert await one.ids(3) == [1, 2, 3]
        guard.keeps.set()
        await anyio.wait_all_tasks_blocked()
        assert await one.ids(3) == [1, 2, 3]


async def test_what_follows_a_look_up_waits_and_the_output_ends_after_it() -> None:
    guard = Guard()
    guard.lets.set()
    ends: list[int] = []
    async with hidden(guard) as one:
        one.server.end_output = lambda: ends.append(len(one.server.written))  # type: ignore[method-assign]  # it notes when
        await anyio.wait_all_tasks_blocked()
        guard.lets = anyio.Event()
        placeholder = "{{secret:github-pat:00000000}}"
        guard.values[placeholder] = TOKEN
        one.channel.write(push(1, "a") + push(2, placeholder) + push(3, "b"))
        one.channel.write(push(4, "{{secret:github-pat:11111111}}"))
        one.channel.end_output()
        await anyio.wait_all_tasks_blocked()
        assert [json.loads(line)["id"] for line in one.server.got.splitlines()] == [1]
        assert one.channel.queued > 0
        guard.lets.set()
        with anyio.fail_after(TIMEOUT):
            await one.channel.flushed()
            await anyio.wait_all_tasks_blocked()
        assert [json.loads(line)["id"] for line in one.server.got.splitlines()] == [1, 2, 3, 4]
        assert ends == [len(one.server.written)]
