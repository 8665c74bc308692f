"""The labels of a user's stateless requests at one server, in the store: what one gateway read, no other one lets out.

How it works: the readings are the fields of a hash, by their numbers, and the prints of what was read the fields of
another one, each with the numbers of its readings. The store knows neither what was read nor where: prints are keyed,
and a reading goes there without the place. Each function is one script, which the store runs as a whole.

Law 3: beyond a bound, further readings with the same labels are one, whose labels do not end with time, or are carried
by any text. Where the store cannot be reached, nothing passes that depends on labels.
"""

# ruff: noqa: D102  # methods without a docstring are described by policy.shared_state
from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..model.flow import SEVERAL_SERVERS, ClearedFlow, KnownLabels, Reading
from .store import Store

_T = TypeVar("_T")

_MOST_READINGS: Final = 256  # as in one process: each is compared with each call of a sink
_MOST_PRINTS: Final = 20_000  # of a session: the store has 100 bytes for each, and other sessions
_MOST_CLEARED: Final = 256
_MILLISECONDS: Final = 1000

_KEY: Final = """
-- KEYS[1] has the key of prints. ARGV: another one, and for how many milliseconds it is kept. Returns the key.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('GET', KEYS[1])
"""

_KNOWN: Final = """
-- KEYS: the readings, the prints, what is cleared, the last number, and the key of prints: without that, no print would
-- be found again, so none of them is forgotten before the others. ARGV: for how many milliseconds they are kept,
-- and the prints of a text. Returns the time in milliseconds, the readings with their fields, what is cleared, and the
-- fields of the readings of which the text has something.
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
local fields = {}
for i = 2, #ARGV do
  local found = redis.call('HGET', KEYS[2], ARGV[i])
  if found then table.insert(fields, found) end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {now, redis.call('HGETALL', KEYS[1]), redis.call('SMEMBERS', KEYS[3]), fields}
"""

_ADD: Final = """
-- KEYS as above. ARGV: for how many milliseconds they are kept, how many readings and prints there may be, the reading,
-- the same for further ones with its labels, the field of these, 1 if any text carries it, and its prints.
-- Numbers begin with the time, so that none comes again when the store has forgotten the last one: what a person has
-- cleared is known by them.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', KEYS[4], now, 'NX')
local number = redis.call('INCR', KEYS[4])
local whole, field, reading = ARGV[7], tostring(number), ARGV[4]
if redis.call('HLEN', KEYS[2]) + #ARGV - 7 > tonumber(ARGV[3]) then whole = '1' end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2]) then
  field, reading = ARGV[6], ARGV[5]
  local before = redis.call('HGET', KEYS[1], field)
  if before and string.match(before, '^%d+ %d+ 1 ') then whole = '1' end
end
redis.call('HSET', KEYS[1], field, number .. ' ' .. now .. ' ' .. whole .. ' ' .. reading)
for i = 8, #ARGV do
  if whole == '1' then break end
  local found = redis.call('HGET', KEYS[2], ARGV[i])
  if not found then
    redis.call('HSET', KEYS[2], ARGV[i], field)
  elseif not string.find(' ' .. found .. ' ', ' ' .. field .. ' ', 1, true) then
    redis.call('HSET', KEYS[2], ARGV[i], found .. ' ' .. field)
  end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return number
"""

_REPLACE: Final = """
-- KEYS[1] has the readings. ARGV: a field, what it has now, and what it will have; empty: it is removed.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then return redis.call('HDEL', KEYS[1], ARGV[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""

_CLEAR: Final = """
-- KEYS[1] has what is cleared. ARGV: what to add, how many there may be, and for how many milliseconds they are kept.
if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[2]) then redis.call('SADD', KEYS[1], ARGV[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
"""


class _Kept(Struct, frozen=True):
    number: int
    since: int
    """By the clock of the store, in milliseconds."""
    whole: bool
    reading: Reading

    def has_ended(self, now: int) -> bool:
        seconds = self.reading.seconds
        return bool(seconds) and now - self.since >= seconds * _MILLISECONDS


class StoreLabels:
    """The labels of one user's stateless requests at one server."""

    def __init__(self, store: Store, server: str, user: str, seconds: float) -> None:
        """They are forgotten so long after they were last looked at, as the session itself."""
        self._store = store
        parts = ("read", "prints", "cleared", "last", "key")
        self._keys = [store.key(f"labels-{part}", server, user) for part in parts]
        self._milliseconds = round(seconds * _MILLISECONDS)

    async def key(self) -> bytes:
        new = os.urandom(16).hex()  # text: a client may decode what it gets
        return await self._store.run_script(bytes, _KEY, self._keys[4:], new, self._milliseconds)

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        texts = [] if prints is None else sorted(map(str, prints))
        now, fields, raw_cleared, found = await self._store.run_script(
            tuple[int, list[bytes], list[bytes], list[bytes]], _KNOWN, self._keys, self._milliseconds, *texts
        )
        by_field = {field: self._kept(raw) for field, raw in zip(fields[::2], fields[1::2], strict=False)}
        kept = {field: one for field, one in by_field.items() if not one.has_ended(now)}
        carried = {field for names in found for field in names.split()}
        return KnownLabels(
            tuple(one.reading for one in sorted(kept.values(), key=lambda one: one.number)),
            frozenset(one.number for field, one in kept.items() if one.whole or prints is None or field in carried),
            tuple(self._decoded(raw, ClearedFlow) for raw in raw_cleared),
        )

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        known = replace(reading, place="", call="")
        further = replace(known, server=SEVERAL_SERVERS, seconds=0.0)
        texts = [] if whole or len(prints) > _MOST_PRINTS else sorted(map(str, prints))
        whole = whole or len(prints) > _MOST_PRINTS
        await self._store.run_script(
            int, _ADD, self._keys, self._milliseconds, _MOST_READINGS, _MOST_PRINTS, msgspec.json.encode(known),
            msgspec.json.encode(further), f"further:{','.join(sorted(reading.labels))}", int(whole), *texts,
        )  # fmt: skip

    async def remove(self, labels: Collection[str]) -> None:
        fields = await self._store.run_script(list[bytes], "return redis.call('HGETALL', KEYS[1])", self._keys[:1])
        for field, raw in zip(fields[::2], fields[1::2], strict=True):
            kept = self._kept(raw)
            left = tuple(label for label in kept.reading.labels if label not in labels)
            if left != kept.reading.labels:
                head = raw[: len(raw) - len(raw.split(b" ", 3)[3])]
                new = head + msgspec.json.encode(replace(kept.reading, labels=left, number=0)) if left else b""
                await self._store.run_script(int, _REPLACE, self._keys[:1], field, raw, new)

    async def clear(self, cleared: ClearedFlow) -> None:
        encoded = msgspec.json.encode(cleared)
        await self._store.run_script(int, _CLEAR, self._keys[2:3], encoded, _MOST_CLEARED, self._milliseconds)

    def _kept(self, raw: bytes) -> _Kept:
        try:
            number, since, whole, encoded = raw.split(b" ", 3)
            reading = replace(self._decoded(encoded, Reading), number=int(number))
            return _Kept(int(number), int(since), whole == b"1", reading)
        except ValueError:
            raise self._store.nonsense() from None

    def _decoded(self, raw: bytes, type_: type[_T]) -> _T:
        """Raises StoreUnavailable: a label must not be lost because it is from another version of hookproxy."""
        try:
            return msgspec.json.decode(raw, type=type_)
        except (msgspec.MsgspecError, RecursionError):
            raise self._store.nonsense() from None
