"""Who is blocked: `hookproxy users block` ends all that a user has open here, and nothing of the user passes any more.

A block is for a name, and for every account and token that has had it here: neither another token nor another name in
the claims of an issuer's token goes around it. Each decision is a record. They are kept in a file, which all gateways
with the same state folder read again when it changes, and in the store, where there is one: of two records of one name
the later one counts, and of two of the same time the one that blocks.

Law: a block that was learned holds until somebody allows the user, whatever happens to the store and the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from ..files.replace import replace_file
from ..model.errors import ConfigError
from ..model.principal import Principal
from ..network.store_responses import MOST_VALUES
from ..policy.shared_state import StoreUnavailable
from ..processes import service
from ..trust.managed_files import Ownership, read_owned, resolved
from .sealed_values import SealedValues

if TYPE_CHECKING:
    from .store import Store

_LOOK_SECONDS: Final = 1.0
"""How often it is looked: so soon a block is in force at all gateways. One command of the store each time."""

_LATER: Final = 0.001
"""Seconds by which a decision is later than the one that it replaces, although the clock here may be behind."""

_FORGET_SECONDS: Final = 90.0 * 86_400
"""After which it is forgotten that somebody was allowed again: a gateway that was away for so long blocks once more."""

_VERSION: Final = 1
_SEALED: Final = "users"  # what such values are sealed for


class Decision(Struct, frozen=True):
    """Somebody has blocked a user, or allowed one again."""

    user: str
    """The name, as rules have it; or the id of one account or token, such as `uid:1001`."""
    blocked: bool
    at: float
    """In seconds since 1970."""
    by: str
    """Who has decided it."""
    ids: tuple[str, ...] = ()
    """The ids of all whom this gateway knew by the name."""

    def replaces(self, other: Decision | None) -> bool:
        """Whether it counts more than the other one about the same user."""
        return other is None or (self.at, self.blocked, self.by) > (other.at, other.blocked, other.by)


class _File(Struct):
    v: int
    users: list[Decision]


class BlockedUsers:
    """All decisions, and who is blocked by them."""

    def __init__(self, path: str, store: Store | None, sealed: SealedValues, report: Callable[[str], None]) -> None:
        """`path` is that of the file; empty: there is none. Raises ConfigError if it cannot be used.

        With seal keys, only who has one can block and allow by way of the store.
        """
        self._path = path
        self._store = store
        self._sealed = sealed
        self._report = report
        self._key = f"{store.prefix}users" if store is not None else ""
        self._decisions: dict[str, Decision] = {}
        self._blocked: frozenset[str] = frozenset()
        self._signature: tuple[int, int] | None = None
        self._failure = ""
        self.on_change: Callable[[], None] = lambda: None
        """Called when somebody has been blocked."""
        if path and self._is_safe():
            self._learn(self._read())

    def __bool__(self) -> bool:
        """Whether anybody is blocked."""
        return bool(self._blocked)

    @property
    def blocked(self) -> list[Decision]:
        """The decisions that block somebody, the earliest first."""
        return sorted((one for one in self._decisions.values() if one.blocked), key=lambda one: one.at)

    def blocks(self, user: Principal) -> bool:
        """Whether this user is blocked."""
        return bool(self._blocked) and (user.name in self._blocked or user.id in self._blocked)

    async def decide(self, user: str, blocked: bool, by: str, ids: Iterable[str] = ()) -> list[str]:
        """Block a user, or allow one again, here in any case. Returns sentences about what was not possible."""
        self._read_again()
        before = self._decisions.get(user)
        at = max(time(), before.at + _LATER) if before is not None else time()
        self._learn([Decision(user, blocked, at, by, tuple(sorted(set(ids))) if blocked else ())])
        problems = []
        if problem := self._write():
            problems.append(f"{problem}; so it holds until this gateway ends")
        if self._store is not None:
            await self.look()
            if self._store.failure:
                problems.append(
                    f"the store cannot be reached ({self._store.failure}); other gateways learn it when it can"
                )
        return problems

    async def share(self) -> None:
        """Look again and again. Runs until it is cancelled."""
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Learn what others have decided, and publish what they do not know. What is known stays in force."""
        self._read_again()
        if self._store is None or self._store.failure:
            return
        try:
            await self._share_with(self._store)
        except StoreUnavailable:  # the store has reported it
            return

    async def _share_with(self, store: Store) -> None:
        members = store.checked(frozenset[bytes], await store.ask("SMEMBERS", self._key))
        if len(self._decisions) + len(members) > MOST_VALUES:  # such a store invents them
            raise store.nonsense()
        there: dict[str, Decision] = {}
        superseded: list[bytes] = []
        for raw in members:
            decision = self._decoded(raw)
            if decision is not None and decision.replaces(there.get(decision.user)):
                there[decision.user] = decision
        if self._learn(there.values()):
            self._tell(self._write())
        missing = [one for one in self._decisions.values() if one.replaces(there.get(one.user))]
        if missing:
            await store.ask("SADD", self._key, *map(self._encoded, missing))
            superseded = [raw for raw in members if self._is_superseded(raw)]
        if superseded:
            await store.ask("SREM", self._key, *superseded)

    def _is_superseded(self, raw: bytes) -> bool:
        decision = self._decoded(raw)
        known = None if decision is None else self._decisions.get(decision.user)
        return decision is not None and known is not None and known.replaces(decision)

    def _encoded(self, decision: Decision) -> bytes:
        return self._sealed.seal(decision, _SEALED, self._key) if self._sealed.keys() else msgspec.json.encode(decision)

    def _decoded(self, raw: bytes) -> Decision | None:
        """A decision in the store; None: it is of another version of hookproxy, or of somebody without the key."""
        if self._sealed.keys():
            return self._sealed.open(raw, Decision, _SEALED, self._key)
        try:
            return msgspec.json.decode(raw, type=Decision)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _learn(self, decisions: Iterable[Decision]) -> bool:
        """Take what counts more than what is known. False: nothing does."""
        new = [one for one in decisions if one.replaces(self._decisions.get(one.user))]
        for one in new:
            before = self._decisions.get(one.user)
            if one.blocked and before is not None and before.blocked:
                one = msgspec.structs.replace(one, ids=tuple(sorted({*one.ids, *before.ids})))
            self._decisions[one.user] = one
        blocking = self.blocked
        self._blocked = frozenset(name for one in blocking for name in (one.user, *one.ids))
        if any(one.blocked for one in new):
            self.on_change()
        return bool(new)

    # --- the file ---

    def _is_safe(self) -> bool:
        """Whether nobody else can put something in the place of the file. Else it is reported, and there is no file.

        Raises ConfigError if there is one already.
        """
        try:
            with suppress(FileNotFoundError), resolved(self._path, _ownership()):
                pass
        except ConfigError as problem:
            if os.path.lexists(self._path):
                raise
            self._report(f"who is blocked is not kept over a restart: {problem.message} ({problem.hint})")
            self._path = ""
        except OSError:  # said when it is to be written
            pass
        return bool(self._path)

    def _signature_now(self) -> tuple[int, int] | None:
        try:
            state = os.stat(self._path)
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns

    def _read(self) -> list[Decision]:
        """The decisions in the file. Raises ConfigError."""
        self._signature = self._signature_now()
        hint = "remove it: then nobody is blocked"
        try:
            file = msgspec.json.decode(read_owned(self._path, _ownership()).data, type=_File)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise ConfigError(self._path, f"cannot be read: {problem.strerror}", hint) from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise ConfigError(self._path, f"does not say who is blocked: {problem}", hint) from None
        if file.v != _VERSION:
            raise ConfigError(self._path, "is of another version of hookproxy", hint)
        return file.users

    def _read_again(self) -> None:
        """Learn what another gateway has written, and write again what it has overwritten: it did not know of it."""
        if not self._path or self._signature_now() == self._signature:
            return
        try:
            there = {one.user: one for one in self._read()}
        except ConfigError as problem:
            self._tell(f"{problem.message}; who is blocked stays so ({problem.hint})")
            return
        self._failure = ""
        self._learn(there.values())
        if there and any(one.replaces(there.get(one.user)) for one in self._kept()):
            self._tell(self._write())

    def _kept(self) -> list[Decision]:
        """The decisions that belong into the file."""
        oldest = time() - _FORGET_SECONDS
        return [one for one in self._decisions.values() if one.blocked or one.at > oldest]

    def _write(self) -> str:
        """Write all decisions into the file. Returns why that is not possible, without a full stop."""
        if not self._path:
            return "there is no safe state folder to remember it in (HOME, XDG_STATE_HOME)"
        users = self._kept()
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            replace_file(self._path, msgspec.json.encode(_File(_VERSION, users)) + b"\n")
        except OSError as problem:
            return f"{self._path} cannot be written: {problem.strerror}"
        self._signature = self._signature_now()
        return ""

    def _tell(self, problem: str) -> None:
        """Report a problem once."""
        if problem and problem != self._failure:
            self._report(problem)
        self._failure = problem


def _ownership() -> Ownership:
    return Ownership(frozenset({0, os.geteuid()}), service.own_account().name, "the names of blocked users", True)
