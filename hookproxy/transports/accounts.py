"""Who the accounts of this machine are: their names and groups, as the system's directory of accounts has them.

The kernel says which account has connected (`unix_socket.uid_of_peer`). Everything else is looked up by the account and
never taken from the process: a process can drop its groups in a user namespace of its own, and keeps those that were
taken from its account long ago.

A look-up may ask a server (LDAP, sssd) and may hang, so it runs in a thread of its own, for a bounded time:

    answered          it counts for `_FRESH_SECONDS`, then it is looked up again
    not answered      the last answer counts for `_LAST_ANSWER_SECONDS`; whoever has none is not let in
    for longer        the user is `in_doubt`. So is an account without an entry: who that is, nobody knows

Law: who is in doubt is among all whom a rule denies something, and among nobody whom one allows something.

A directory that is away may answer as if its groups did not exist. So while a group that a rule names is missing, and
has existed before, an answer is incomplete: the last complete one counts for as long as above, and then everybody is in
doubt about this one group (`doubted`). `forget` accepts that it is gone.
"""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import Final

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from ..model.errors import UserError, describe_error
from ..model.principal import Principal

_FRESH_SECONDS: Final = 2.0
"""How long an answer counts: an agent that opens ten servers at once needs one look-up, and nobody notices two
seconds."""

_PATIENCE_SECONDS: Final = 3.0
"""How long a look-up may take: directories answer within milliseconds, and agents wait for as long as this."""

_LAST_ANSWER_SECONDS: Final = 60.0
"""How long the last answer counts while there is no other: directory servers are restarted within a minute."""

_MOST_LOOK_UPS: Final = 16
"""That run at a time: those that hang keep their threads."""

_MOST_KEPT: Final = 4096
"""Accounts whose last answer is kept: more than a machine has people."""

_UID_MAP: Final = "/proc/self/uid_map"
_OVERFLOW_UID: Final = "/proc/sys/kernel/overflowuid"
_ALL_UIDS: Final = "4294967295"  # how many the first user namespace maps
_UNPRINTED: Final = ","  # what stands between groups in $HOOKPROXY_GROUPS

Read = Callable[[int], Principal]
"""Looks an account up, in a thread. Raises OSError."""


class _Answer(Struct, frozen=True):
    principal: Principal
    at: float


class _LookUp(Struct, eq=False):
    """One look-up that runs; several may wait for it."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str = ""


class Accounts:
    """The accounts of this machine, as they were looked up last."""

    def __init__(
        self,
        report: Callable[[str], None],
        groups_of_rules: Callable[[], Iterable[str]] = tuple,
        *,
        read: Read | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`groups_of_rules` returns the groups that the configuration in force names."""
        self._report = report
        self._groups_of_rules = groups_of_rules
        self._read = read or read_account
        self._clock = clock
        self._answers: dict[int, _Answer] = {}
        self._incomplete: dict[int, Principal] = {}  # the newest answers without a group that has disappeared
        self._look_ups: dict[int, _LookUp] = {}
        self._existing: set[str] = set()  # groups of rules that have been seen
        self._failure = ""  # why the last look-up has failed
        self._foreign = _foreign_uid()

    def forget(self) -> None:
        """The configuration was read again: groups of rules that are missing now are gone."""
        self._existing.clear()

    async def principal(self, uid: int) -> Principal:
        """Who this account is now. Raises UserError if nobody can say."""
        if uid == self._foreign:
            problem = f"the account is of another user namespace, and all such accounts have the number {uid} here"
            raise UserError(problem, "run the agent and the gateway in namespaces that know the same accounts")
        known = self._answers.get(uid)
        if known is not None and self._clock() - known.at < _FRESH_SECONDS:
            return known.principal
        failure = await self._look_up(uid)
        known = self._answers.get(uid)
        if failure and (known is None or self._clock() - known.at >= _LAST_ANSWER_SECONDS):
            incomplete = self._incomplete.get(uid)
            if incomplete is not None:
                return incomplete
        if known is None:
            problem = f"the account of user {uid} cannot be looked up now: {failure}"
            raise UserError(problem, "try again in a minute; the gateway's administrator can look why")
        if failure and self._clock() - known.at >= _LAST_ANSWER_SECONDS:
            return replace(known.principal, in_doubt=True)
        return known.principal

    async def _look_up(self, uid: int) -> str:
        """Look an account up, unless that is being done. Returns why there is no answer; empty if there is one."""
        running = self._look_ups.get(uid)
        if running is None and len(self._look_ups) >= _MOST_LOOK_UPS:
            return self._note("too many look-ups are not answered")
        if running is None:
            running = self._look_ups[uid] = _LookUp()
            loop = asyncio.get_running_loop()
            # not a thread of the pool: one that hangs would keep this process from ending
            Thread(target=self._run, args=(uid, loop), daemon=True, name=f"account {uid}").start()
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                await running.ended.wait()
        except TimeoutError:
            return self._note(f"there is no answer within {_PATIENCE_SECONDS:g} seconds")
        return self._note(running.failure)

    def _run(self, uid: int, loop: asyncio.AbstractEventLoop) -> None:
        """In the thread: look up, and tell the loop."""
        answer: Principal | str
        try:
            groups = frozenset(self._groups_of_rules())
            answer = self._read(uid)
            existing = {name for name in groups if is_local_group(name)}
            answer = replace(answer, doubted=tuple(sorted((self._existing & groups) - existing)))
            self._existing |= existing
        except Exception as problem:  # whatever the directory's library raises
            answer = describe_error(problem)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._take, uid, answer)

    def _take(self, uid: int, answer: Principal | str) -> None:
        running = self._look_ups.pop(uid)
        self._incomplete.pop(uid, None)
        if isinstance(answer, str):
            running.failure = answer
        elif answer.doubted:
            gone = f"the group {answer.doubted[0]}, which a rule names, has disappeared"
            running.failure = f"{gone} (hookproxy reload accepts it)"
            self._incomplete[uid] = answer
            if len(self._incomplete) > _MOST_KEPT:
                del self._incomplete[next(iter(self._incomplete))]
        else:
            if answer.in_doubt and uid not in self._answers:
                effect = "rules that deny something to a group or another name count for it"
                self._report(f"the account {uid} has no entry in the system's directory of accounts: {effect}")
            self._answers.pop(uid, None)
            self._answers[uid] = _Answer(answer, self._clock())
            if len(self._answers) > _MOST_KEPT:
                del self._answers[next(iter(self._answers))]
        running.ended.set()

    def _note(self, failure: str) -> str:
        """Report that there are no answers, and that there are some again: each once."""
        if failure and not self._failure:
            effect = f"the last answers count for {_LAST_ANSWER_SECONDS:g} seconds; then what is not known denies"
            self._report(f"accounts cannot be looked up: {failure}; {effect}")
        elif self._failure and not failure:
            self._report("accounts can be looked up again")
        self._failure = failure
        return failure


def read_account(uid: int) -> Principal:
    """Look an account up. It may take long where a directory server has the accounts. Raises OSError."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Principal(f"uid:{uid}", str(uid), in_doubt=True)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    gids = dict.fromkeys((entry.pw_gid, *sorted(groups)))  # another order makes nobody another user
    return Principal(f"uid:{uid}", entry.pw_name, tuple(dict.fromkeys(map(_group_name, gids))))


def _group_name(gid: int) -> str:
    """The group's name; its number if it has none, or one that hooks could take for several."""
    try:
        name = grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
    return name if name.isprintable() and _UNPRINTED not in name else str(gid)


def is_local_group(name: str) -> bool:
    """Whether the machine has a group of this name."""
    try:
        grp.getgrnam(name)
    except (KeyError, ValueError):  # ValueError: it contains NUL
        return False
    return True


def _foreign_uid() -> int:
    """The number that stands for all accounts which this user namespace does not know; -1 if it knows all."""
    try:
        with open(_UID_MAP) as map_file, open(_OVERFLOW_UID) as overflow_file:
            knows_all = map_file.read().split() == ["0", "0", _ALL_UIDS]
            return -1 if knows_all else int(overflow_file.read())
    except (OSError, ValueError):  # a system without user namespaces
        return -1
