"""A store that answers nonsense, or without end, is a store that is away: the gateway goes on, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path
from time import time

import anyio
import anyio.abc
import pytest

from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.token_file import create_token
from hookproxy.config.gateway_models import StoreTable
from hookproxy.gateway.metrics import Metrics
from hookproxy.gateway.revocations import Revocations
from hookproxy.gateway.store import Store, StoreApprovals, StoreLimits
from hookproxy.model.limits import Limit, Per
from hookproxy.network.store_responses import MOST_BYTES
from hookproxy.policy.shared_state import Approved, StoreUnavailable

pytest.importorskip("redis")

MINUTE = Limit("*", 3, Per.MINUTE, "limits[0]")
HEALTHY = b"+OK\r\n"
INFO = b"$28\r\nmaxmemory_policy:noeviction\n\r\n"
COMMAND = re.compile(rb"(?:^|(?<=\r\n))\*\d+\r\n")
PIECE = 64 * 1024

Pieces = Callable[[], "chain[bytes]"]


def once(data: bytes) -> Pieces:
    return lambda: chain((data,))


def endless(start: bytes, piece: bytes) -> Pieces:
    many = piece * max(PIECE // len(piece), 1)
    return lambda: chain((start,), repeat(many))


NONSENSE: dict[str, Pieces] = {
    "another protocol": once(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "no type": once(b"\r\n\r\n\r\n"),
    "an unknown type": once(b"%2\r\n+a\r\n+b\r\n"),
    "a number that is not one": once(b":seven\r\n"),
    "a number without an end": endless(b":", b"9"),
    "a huge number": once(b":" + b"9" * 5000 + b"\r\n"),
    "a length below zero": once(b"$-7\r\n"),
    "an array below zero": once(b"*-2\r\n"),
    "a length in other digits": once("$٣\r\nabc\r\n".encode()),
    "a text without its end": once(b"$3\r\nabcdef\r\n"),
    "a text of 200 MB": endless(b"$209715200\r\n", b"x" * PIECE),
    "a text of more than there is": endless(b"$9223372036854775807\r\n", b"x" * PIECE),
    "a line without an end": endless(b"+", b"x" * PIECE),
    "an error without an end": endless(b"-ERR ", b"x" * PIECE),
    "an array of more than there is": once(b"*2147483647\r\n"),
    "an array without an end": endless(b"*100000\r\n", b"*1000\r\n" + b":1\r\n" * 1000),
    "arrays in arrays": endless(b"", b"*1\r\n"),
    "nothing": once(b""),
    "half a response": once(b"*2\r\n:0\r\n"),
    "another type": once(b"+QUEUED\r\n"),
    "nothing as a response": once(b"$-1\r\n"),
    "too many numbers": once(b"*3\r\n:0\r\n:0\r\n:0\r\n"),
    "a text for a number": once(b"$1\r\n0\r\n"),
    "a limit that nobody has": once(b"*2\r\n:99\r\n:1\r\n"),
    "a limit below zero": once(b"*2\r\n:-1\r\n:1\r\n"),
    "an error in an array": once(b"*2\r\n-ERR a\r\n-ERR b\r\n"),
    "it is loading": once(b"-LOADING Redis is loading the dataset in memory\r\n"),
    "it has moved": once(b"-MOVED 3999 127.0.0.1:6381\r\n"),
    "ask another one": once(b"-ASK 3999 127.0.0.1:6381\r\n"),
    "an error with line ends": once(b"-ERR a\nhookproxy: all is well\r\n"),
}


class HostileStore:
    """A server that is healthy until `nonsense` is set, and answers every other command with it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder / 'store.sock'}"
        self.path = folder / "store.sock"
        self.nonsense: Pieces | None = None
        self.also_when_looked_at = True
        self.sent = 0
        self.commands = 0

    async def answer(self, connection: anyio.abc.SocketStream) -> None:
        try:
            async with connection:
                while True:
                    for piece in self._answer(await connection.receive()):
                        await connection.send(piece)
                        self.sent += len(piece)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    def _answer(self, command: bytes) -> chain[bytes]:
        self.commands += 1
        is_setup = b"SETINFO" in command or b"SELECT" in command
        is_look = b"KEYS[2] is not used" in command or b"INFO" in command
        if self.nonsense is None or is_setup or (is_look and not self.also_when_looked_at):
            answer = INFO if b"\r\nINFO\r\n" in command else HEALTHY
            return chain((answer,) * len(COMMAND.findall(command)))
        return self.nonsense()


@asynccontextmanager
async def open_store(folder: Path, reports: list[str]) -> AsyncIterator[tuple[HostileStore, Store]]:
    server = HostileStore(folder)
    listener = await anyio.create_unix_listener(server.path)
    async with anyio.create_task_group() as tasks, listener:
        tasks.start_soon(listener.serve, server.answer)
        store = Store(StoreTable(server.url, prefix="test:"), "/", reports.append, Metrics())
        tasks.start_soon(store.keep_in_touch)
        await store.look()
        yield server, store
        tasks.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("name", NONSENSE)
async def test_a_store_that_answers_nonsense_is_away_for_everything_that_it_must_allow(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookproxy.gateway.store._SECONDS", 0.2)
    reports: list[str] = []
    tokens = BearerTokens(token_file(tmp_path), reports.append)
    async with open_store(tmp_path, reports) as (server, store):
        server.nonsense = NONSENSE[name]
        for ask in (
            lambda: StoreLimits(store, "files", "alice", "s", 60).count([MINUTE]),
            lambda: StoreApprovals(store, "files", "alice", "policy", 60).approved(),
            lambda: StoreApprovals(store, "files", "alice", "policy", 60).allow(Approved("write")),
            lambda: store.use_once("nonce", time()),
        ):
            store.failure = ""  # as if it were not known yet
            with anyio.fail_after(30), pytest.raises(StoreUnavailable) as raised:
                await ask()
            assert str(raised.value).isprintable()
            assert len(str(raised.value)) < 300
        store.failure = ""
        with anyio.fail_after(30):
            await Revocations(store, tokens).look()
            await store.look()
        assert not tokens.revoked_elsewhere
        assert server.sent < server.commands * (MOST_BYTES + 4 * PIECE)
        server.nonsense = None
        with anyio.fail_after(30):
            while store.failure:
                await store.look()
    assert len(reports) == 3, "it responds, it is away, and it responds"
    assert all(text.isprintable() for text in reports)


async def test_a_store_that_is_away_and_back_again_and_again_is_reported_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("hookproxy.gateway.store.monotonic", lambda: now[0])
    reports: list[str] = []
    async with open_store(tmp_path, reports) as (server, store):
        server.nonsense, server.also_when_looked_at = NONSENSE["another type"], False
        for now[0] in (1000.0, 1010.0, 1020.0, 1059.0, 1061.0):
            with pytest.raises(StoreUnavailable):
                await store.use_once("nonce", time())
            await store.look()
            assert not store.failure
    assert [text.partition("be reached")[2].partition(":")[0] for text in reports if "cannot" in text] == [
        "",
        ", for the 4th time since this was reported last",
    ]
    assert len(reports) == 5


async def test_revocations_that_a_store_invents_take_no_memory_without_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 100
    monkeypatch.setattr("hookproxy.gateway.revocations.MOST_VALUES", most)
    reports: list[str] = []
    tokens = BearerTokens(token_file(tmp_path), reports.append)
    async with open_store(tmp_path, reports) as (server, store):
        server.also_when_looked_at = False
        revocations = Revocations(store, tokens)
        for start in range(3):
            digests = b"".join(b"$32\r\n%031d%d\r\n" % (number, start) for number in range(most // 2))
            store.failure = ""
            answers = iter((b":%d\r\n" % (start + 1), b"*%d\r\n%b" % (most // 2, digests)))
            server.nonsense = lambda answers=answers: chain((next(answers),))
            await revocations.look()
        assert len(tokens.revoked_elsewhere) == 2 * (most // 2)
        assert "something else" in store.failure


def token_file(folder: Path) -> str:
    path = folder / "tokens"
    create_token(str(path), "alice", (), None, "", time())
    return str(path)
