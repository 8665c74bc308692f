"""What several gateways share, in a Valkey or Redis server: rate limits, used approvals, approvals for a session.

Law: where the store cannot be reached, nothing passes that it must allow, and everything else goes on. A store that
answers nonsense, or more than it was asked for, cannot be reached, whatever its client library makes of it.
Counting is one script, which the server runs as a whole: no two gateways count at the same time.
"""

# ruff: noqa: D102  # methods without a docstring are described by policy.shared_state
from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Struct, field

from ..model.errors import UserError, not_installed
from ..model.limits import ANY_CALL, CountedCall, Limit, Measure
from ..network.store_responses import Bounds, parser_class
from ..policy.rate_limits import LimitReached, count_key, limit_reached, refusing
from ..policy.sent_approvals import read_approved
from ..policy.shared_state import Approved, Shared, StoreUnavailable
from ..protocol.request_state import USED_SECONDS
from .secrets import read_secrets

if TYPE_CHECKING:
    from ..config.gateway_models import StoreTable
    from .metrics import Metrics
    from .session import SessionIdentity

_SECONDS: Final = 2.0
"""That a response may take, with the connection; a store in the same building answers within a millisecond."""

_LOOK_SECONDS: Final = 1.0
"""How often it is tried whether the store answers: so soon calls go on when it is back."""

_REPORT_SECONDS: Final = 60.0
"""A store that is away and back again and again is reported so often: the log must not be full of it."""

_TOGETHER: Final = 256  # commands that are sent in one write: more would keep the first ones waiting

_MAX_APPROVALS: Final = 1024  # entries of one session, as those that hooks add: the set must stay bounded
_SESSION_SECONDS: Final = 30.0 * 86_400
"""How long the calls of a session that is bound to one gateway are remembered after the last one: longer than people
leave an agent open: 30 days."""

_MICROSECONDS: Final = 1_000_000
_MILLISECONDS: Final = 1000
_EVICTS_NOTHING: Final = "noeviction"
_SCRIPT: Final = re.compile(r" script: [0-9a-f]{40}, on .*", re.DOTALL)  # which of ours it was, in a server's errors
_LATE: Final = "it does not respond in time"
_NONSENSE: Final = "it responds with something else than it was asked for"
_LONGEST_FAILURE: Final = 200  # characters: a server's errors become lines of the log, and of refusals
_CLUSTER_ERRORS: Final = re.compile(r"(MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN|CLUSTERERROR)\b")

Argument = str | bytes | int | float
_T = TypeVar("_T")

_COUNT: Final = """
-- For each limit: KEYS has the times of its last calls, ARGV after the first has how many it allows, in how many
-- microseconds (0: in the session), for how many milliseconds they are kept, and 1 if it refuses a call beyond.
-- ARGV[1] is 1 if the call counts. Returns how many microseconds each limit waits (0: not, -1: for ever).
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local waits, refused = {}, false
for i, key in ipairs(KEYS) do
  local calls, period = tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1])
  waits[i] = 0
  if redis.call('LLEN', key) >= calls then
    waits[i] = -1
    if period > 0 then
      waits[i] = math.max(math.min(redis.call('LINDEX', key, -calls) + period - now, period), 0)
    end
    refused = refused or (waits[i] ~= 0 and ARGV[4 * i + 1] == '1')
  end
  if period == 0 and ARGV[1] == '1' then redis.call('PEXPIRE', key, ARGV[4 * i]) end
end
if ARGV[1] == '1' and not refused then
  for i, key in ipairs(KEYS) do
    redis.call('RPUSH', key, string.format('%.0f', now))
    redis.call('LTRIM', key, -tonumber(ARGV[4 * i - 2]), -1)
    redis.call('PEXPIRE', key, ARGV[4 * i])
  end
end
return waits
"""

_SINCE: Final = "since"
"""The key with the time, in seconds since 1970, from which on the store has everything."""

_REMEMBERS: Final = """
-- KEYS[2] is not used: two keys, as those of calls, are more than a sharded cluster takes.
return redis.call('SET', KEYS[1], redis.call('TIME')[1], 'NX')
"""

_USE_ONCE: Final = """
-- KEYS: of what is used, and of the time from which on the store knows what was used. ARGV: for how many milliseconds
-- it is kept, and when it was made. Returns 1 if it was certainly not used before.
local since = redis.call('GET', KEYS[2])
if not since then
  since = redis.call('TIME')[1]
  redis.call('SET', KEYS[2], since)
end
if tonumber(ARGV[2]) < tonumber(since) then return 0 end
return redis.call('SET', KEYS[1], 1, 'NX', 'PX', ARGV[1]) and 1 or 0
"""

_ALLOW: Final = """
-- KEYS[1] has what is allowed. ARGV: what to add, how many there may be, and for how many milliseconds they are kept.
if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[2]) then redis.call('SADD', KEYS[1], ARGV[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
"""

_APPROVED: Final = """
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('SMEMBERS', KEYS[1])
"""

Send = Callable[[Sequence[Sequence[Argument]]], Awaitable[list[object]]]
"""Sends commands in one write, and returns their responses; an exception stands for one that has failed."""
Close = Callable[[], Awaitable[None]]
"""Closes the connections; the next commands open a new one."""


class _Command(Struct, eq=False):
    """A command that waits for its response."""

    words: Sequence[Argument]
    has_response: anyio.Event = field(default_factory=anyio.Event)
    response: object = None
    failure: str = ""
    """Why there is no response, in a few words."""
    is_wanted: bool = True
    """Somebody waits for it: else it is not sent, and counts nothing."""


class _Reach(Enum):
    """Whether the store answers. It is tried each second, and with each command; each change is reported once.

    UNTRIED ──▶ UP ◀──▶ AWAY
       └─────────────────▲
    """

    UNTRIED = auto()
    UP = auto()
    AWAY = auto()


class Store:
    """The store, and whether it can be reached. Commands of many calls at a time go over one connection together."""

    def __init__(self, table: StoreTable, folder: str, report: Callable[[str], None], metrics: Metrics) -> None:
        """`folder` is that of gateway.toml. Raises UserError if the package is missing, or a key cannot be used."""
        self._where = urlsplit(table.url).hostname or urlsplit(table.url).path
        self.prefix = table.prefix
        """What all keys begin with."""
        self._report = report
        self._metrics = metrics
        self._send, self._close = _client(table, folder)
        self._commands: list[_Command] = []
        self._has_commands = anyio.Event()
        self._reach = _Reach.UNTRIED
        self._reported = _Reach.UNTRIED
        self._reported_away = -math.inf  # when it was
        self._times_away = 0  # since it was reported so
        self.failure = "it has not been reached yet"
        """Why it cannot be reached, in a few words without a full stop; empty if it can."""
        metrics.store_up = False

    async def keep_in_touch(self) -> None:
        """Send commands, and look again and again whether the store answers. Runs until it is cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_commands)
                while True:
                    await self.look()
                    await anyio.sleep(_LOOK_SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def look(self) -> None:
        """Look whether the store can be written: one that is full, or a replica, cannot. It does not raise: a change is
        reported.
        """
        try:
            await self._response_to("EVAL", _REMEMBERS, 2, self.prefix + _SINCE, self.prefix)
            memory = await self._response_to("INFO", "memory") if self.failure else None
        except StoreUnavailable as problem:
            self._note(str(problem))
            return
        if self.failure:
            self._note("")
            self._check_eviction(memory)

    async def ask(self, command: str, *arguments: Argument) -> object:
        """The response to a command. Raises StoreUnavailable, at once while the store is known to be away.

        `keep_in_touch` must run. On cancel the command may have been carried out.
        """
        try:
            if self.failure:
                raise StoreUnavailable(self.failure)
            return await self._response_to(command, *arguments)
        except StoreUnavailable as problem:
            raise self._unavailable(str(problem)) from None

    async def ask_once(self, *words: Argument) -> object:
        """The response to a command, over a connection of its own: for a program that ends then.

        Raises StoreUnavailable.
        """
        try:
            with anyio.fail_after(_SECONDS):
                (response,) = await self._send([words])
        except Exception as problem:  # as in `_send_commands`
            response = problem
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()
        if isinstance(response, Exception):
            raise StoreUnavailable(_why(response))
        return response

    async def run_script(self, type_: type[_T], script: str, keys: Sequence[str], *arguments: Argument) -> _T:
        """The response to a script with these keys, which is of this type. Raises StoreUnavailable."""
        return self.checked(type_, await self.ask("EVAL", script, len(keys), *keys, *arguments))

    def checked(self, type_: type[_T], response: object) -> _T:
        """A response that must be of this type. Raises StoreUnavailable: who answers something else is not a store."""
        try:
            return msgspec.convert(response, type_)
        except (msgspec.ValidationError, TypeError, RecursionError):  # a type that msgspec cannot take
            raise self.nonsense() from None

    def nonsense(self) -> StoreUnavailable:
        """The store has answered what no store answers: from now on it is away. Returns what is to be raised."""
        return self._unavailable(_NONSENSE)

    def _unavailable(self, why: str) -> StoreUnavailable:
        self._note(why)
        self._metrics.store_failures += 1
        return StoreUnavailable(f"the store cannot be reached: {why}")

    def key(self, kind: str, *parts: str) -> str:
        """The key of something. It names no user: whoever looks at the store need not know who does what."""
        joined = "".join(f"{len(part)}:{part}" for part in parts).encode(errors="surrogatepass")
        return f"{self.prefix}{kind}:{hashlib.sha256(joined).hexdigest()[:32]}"

    async def use_once(self, text: str, made: float) -> bool:
        """A store that has lost its memory does not know what was used before."""
        keys = [f"{self.prefix}used:{text}", self.prefix + _SINCE]
        return await self.run_script(int, _USE_ONCE, keys, round(USED_SECONDS * _MILLISECONDS), made) == 1

    def _note(self, failure: str) -> None:
        """Note that the store answers (empty), or why it does not."""
        before, self._reach = self._reach, _Reach.AWAY if failure else _Reach.UP
        self.failure, self._metrics.store_up = failure, not failure
        if failure and before is not _Reach.AWAY:
            self._times_away += 1
        if self._reach is self._reported:
            return
        if not failure:
            self._report(f"the store at {self._where} responds")
        elif monotonic() - self._reported_away < _REPORT_SECONDS:
            return
        else:
            effect = "calls with limits and approvals are refused until it can; everything else goes on"
            often = f", for the {self._times_away}th time since this was reported last" if self._times_away > 1 else ""
            self._report(f"the store at {self._where} cannot be reached{often}: {failure}; {effect}")
            self._reported_away, self._times_away = monotonic(), 0
        self._reported = self._reach

    def _check_eviction(self, memory: object) -> None:
        """Report a store that may forget what it is to remember: used approvals would count again."""
        policy = memory.get("maxmemory_policy") if isinstance(memory, dict) else None
        if policy is not None and policy != _EVICTS_NOTHING:
            self._report(
                f"the store at {self._where} forgets limits and used approvals when its memory is full: its "
                f"maxmemory-policy is {policy}, and should be {_EVICTS_NOTHING}"
            )

    async def _response_to(self, *words: Argument) -> object:
        """The response to a command. Raises StoreUnavailable."""
        command = _Command(words)
        self._commands.append(command)
        self._has_commands.set()
        try:
            with anyio.fail_after(_SECONDS):
                await command.has_response.wait()
        except TimeoutError:
            raise StoreUnavailable(_LATE) from None
        finally:
            command.is_wanted = False
        if command.failure:
            raise StoreUnavailable(command.failure)
        return command.response

    async def _send_commands(self) -> None:
        """Send what has come since the last responses. Runs until it is cancelled."""
        while True:
            await self._has_commands.wait()
            self._has_commands = anyio.Event()
            while self._commands:
                together = [command for command in self._commands[:_TOGETHER] if command.is_wanted]
                del self._commands[:_TOGETHER]
                responses: list[object]
                try:
                    with anyio.fail_after(_SECONDS):
                        responses = await self._send([command.words for command in together])
                except Exception as problem:  # whatever a client library makes of nonsense
                    responses = [problem] * len(together)
                for command, response in zip(together, responses, strict=True):
                    if isinstance(response, Exception):
                        command.failure = _why(response)
                    command.response = response
                    command.has_response.set()
                if any(isinstance(response, Exception) for response in responses):
                    await self._close()  # at the same address there may be another server now


class StoreLimits(Struct, frozen=True):
    """The rate limits of one session: all sessions of a user at a server, at all gateways, count together."""

    _store: Store
    _server: str
    _user: str
    _session: str  # for limits of a session, which are forgotten so long after its last call:
    _session_seconds: float

    async def exceeded(self, limits: Sequence[Limit], call: CountedCall = ANY_CALL) -> Sequence[LimitReached]:
        return await self._exceeded(limits, call, (), count=False)

    async def count(
        self, limits: Sequence[Limit], call: CountedCall = ANY_CALL, approved: Iterable[str] = ()
    ) -> LimitReached | None:
        approved = frozenset(approved)
        return refusing(await self._exceeded(limits, call, approved, count=True), approved)

    async def _exceeded(
        self, limits: Sequence[Limit], call: CountedCall, approved: Collection[str], *, count: bool
    ) -> list[LimitReached]:
        by_key = {self._key(limit, call): limit for limit in limits}  # a limit that stands twice counts once
        arguments: list[Argument] = [int(count)]
        for limit in by_key.values():
            if math.isinf(limit.period):
                period, kept = 0, round(self._session_seconds * _MILLISECONDS)
            else:
                period, kept = round(limit.period * _MICROSECONDS), round(limit.period * _MILLISECONDS)
            refuses = refusing([limit_reached(limit, math.inf)], approved) is not None
            arguments += (int(limit.most), period, kept, int(refuses))
        waits = await self._store.run_script(list[int], _COUNT, list(by_key), *arguments)
        if len(waits) != len(by_key):
            raise self._store.nonsense()
        return [
            limit_reached(limit, math.inf if wait < 0 else wait / _MICROSECONDS)
            for limit, wait in zip(by_key.values(), waits, strict=True)
            if wait
        ]

    def _key(self, limit: Limit, call: CountedCall) -> str:
        session = (self._session,) if limit.of_session else ()
        user = (" ".join(sorted(limit.users)), "together") if limit.together else (self._user,)
        period = f"{limit.window:.0f}" if limit.window else limit.per
        most = str(int(limit.most))
        alone = (limit.measure, count_key(limit, call).hex()) if limit.measure is not Measure.CALLS else ()
        return self._store.key("limit", self._server, *user, limit.tool, most, period, *session, *alone)


class StoreApprovals:
    """What a person has allowed for the stateless requests of one user at one server, under one policy."""

    def __init__(self, store: Store, server: str, user: str, policy: str, seconds: float) -> None:
        """It is forgotten so long after it was last looked at."""
        self._store = store
        self._key = store.key("approvals", server, user, policy)
        self._milliseconds = round(seconds * _MILLISECONDS)

    async def approved(self) -> Sequence[Approved]:
        entries = await self._store.run_script(list[bytes], _APPROVED, [self._key], self._milliseconds)
        if len(entries) > _MAX_APPROVALS:
            raise self._store.nonsense()
        return [calls for raw in entries if (calls := _decoded(raw)) is not None]

    async def allow(self, calls: Approved) -> None:
        encoded = msgspec.json.encode(calls)
        await self._store.run_script(int, _ALLOW, [self._key], encoded, _MAX_APPROVALS, self._milliseconds)


def _decoded(raw: bytes) -> Approved | None:
    try:
        return read_approved(raw)
    except (msgspec.MsgspecError, RecursionError):  # of another version of hookproxy: the person is asked again
        return None


def shared_of(store: Store, server: str, identity: SessionIdentity, idle_seconds: float, policy: str) -> Shared:
    """What a session shares with those of other gateways. Stateless requests of a user at a server are one session."""
    user = identity.principal.id
    if not identity.is_stateless:
        return Shared(limits=StoreLimits(store, server, user, identity.id, _SESSION_SECONDS))
    limits = StoreLimits(store, server, user, "", idle_seconds)
    return Shared(limits=limits, approvals=StoreApprovals(store, server, user, policy, idle_seconds))


def _client(table: StoreTable, folder: str) -> tuple[Send, Close]:
    """What sends commands, and what closes the connections. Raises UserError."""
    try:
        from redis.asyncio import ConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import ResponseError
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        raise not_installed("gateway.store", "redis", "cluster") from None
    bounds = Bounds()
    try:
        pool = ConnectionPool.from_url(
            table.url,
            parser_class=parser_class(bounds, ResponseError),
            socket_timeout=_SECONDS,
            socket_connect_timeout=_SECONDS,
            protocol=2,  # which every server speaks without a word before
            retry=Retry(NoBackoff(), 0),  # a command that is sent twice would count twice
            **_options(table, folder),
        )
    except ValueError as problem:
        raise UserError(f"gateway.store.url cannot be used: {problem}", 'write "redis://HOST:6379/0"') from None
    client = Redis(connection_pool=pool)

    async def send(commands: Sequence[Sequence[Argument]]) -> list[object]:
        bounds.begin()
        pipeline = client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        return await pipeline.execute(raise_on_error=False)

    async def close() -> None:
        with anyio.move_on_after(_SECONDS), suppress(Exception):  # who asked has got the failure itself
            await pool.disconnect()

    return send, close


def _why(failure: Exception) -> str:
    """Why there is no answer, in a few words without a full stop."""
    text = str(failure)
    if _CLUSTER_ERRORS.match(text):
        return "it is a part of a sharded cluster, which cannot be a store"
    return (_SCRIPT.sub("", text).splitlines() or [_LATE])[0].rstrip(".")[:_LONGEST_FAILURE]


def _options(table: StoreTable, folder: str) -> dict[str, str]:
    """How to log in, and whom to trust. Raises UserError."""
    options = {}
    if table.user:
        options["username"] = table.user
    if table.password is not None:
        options["password"] = read_secrets({"gateway.store.password": table.password})["gateway.store.password"]
    if table.url.startswith("rediss:") and table.ca:
        options["ssl_ca_certs"] = os.path.join(folder, table.ca)
    return options
