"""The administration socket: who has a role lists and ends sessions, blocks users, reloads, and sees the audit.

Anybody may connect, since roles are for any account; the kernel says who has, and nothing of the request is read before
that account is known to have a role. Everything that changes something is in the log and in each audit file, with who
has done it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..audit.checkpoints import SIGNED
from ..audit.hash_chain import rotations
from ..files.open_flags import READ_FILE
from ..model.errors import UserError, describe_error
from ..model.principal import GROUP_SIGN, Principal
from ..processes import spawn
from ..processes.process import close_all
from ..session.live_feed import Viewer
from ..transports import unix_socket
from .accepting import connections
from .admin_messages import LONGEST, MOST_FILES, Act, BlockedUser, OpenSession, Reply, Request, encode, read_request
from .approvers import GatewayApprovers
from .blocked_users import BlockedUsers
from .refusal_log import RefusalLog
from .roles import Rights
from .sealed_values import SealedValues
from .session import MeteredAudit
from .shared_sessions import EndSessions, SharedSessions

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from ..session.proxy import Report
    from .gateway import Gateway
    from .session import GatewaySession
    from .unix_connections import Reload

_REQUEST_SECONDS: Final = 10.0
"""How long a connection may take to say what it wants: the command line does it at once."""

_MOST_OF_ONE: Final = 16
"""Connections of one account at a time: a person has one or two, and a console stays connected."""

_MOST_UNKNOWN: Final = 64
"""Connections whose accounts are being looked up: one user may connect by thousands of subordinate accounts."""

_SEND_SECONDS: Final = 10.0  # that a reply may take: whoever does not read keeps nothing here
_LENT: Final = 16  # spare descriptors for one request, which writes files of the audit, or reads the configuration
_LOOK_UP_SECONDS: Final = 2.0  # that it may take to find the account of a name
_SHORTEST_ID: Final = 4  # characters of a session's id: fewer may be a mistake
_NOBODY: Final = "only root, the gateway's account and those whom [roles] names may do this"

ServeConsole = Callable[[socket.socket, Viewer], Awaitable[None]]
"""Serves a console until it has gone."""


class _GoneError(Exception):
    """The connection is gone, or says nothing."""


class Administration:
    """All connections to the administration socket."""

    def __init__(self, gateway: Gateway, report: Report, reload: Reload, serve_console: ServeConsole) -> None:
        self.shared: SharedSessions | None = None
        """The sessions of other gateways; None: there is no store."""
        self._gateway = gateway
        self._report = report
        self._reload = reload
        self._serve_console = serve_console
        self._refusals = RefusalLog(report)
        self._connected = Counter[int]()
        self._unknown = 0  # connections of accounts that are being looked up

    def share_sessions(self, run: str, tasks: TaskGroup) -> None:
        """Let operators at other gateways with the same store see and end what is here. `run` names this process."""
        if (store := self._gateway.store) is not None:
            sealed = SealedValues(lambda: self._gateway.seal_keys)
            self.shared = SharedSessions(store, sealed, run, self.sessions, self.end_sessions)
            tasks.start_soon(self.shared.share)

    async def accept(self, listener: socket.socket | None) -> None:
        """Accept connections until it is cancelled; None: there is no socket."""
        if listener is None:
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._refusals.keep_reporting)
            async for connection in connections(listener, self._gateway.spare):  # agents' listeners report failures
                tasks.start_soon(self._serve, connection)

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one connection. What goes wrong concerns nothing else."""
        with connection:
            try:
                uid = unix_socket.uid_of_peer(connection)
                if self._connected[uid] >= _MOST_OF_ONE:
                    return
                if self._unknown >= _MOST_UNKNOWN and uid not in (0, os.geteuid()):
                    return
                self._connected[uid] += 1
                try:
                    await self._handle(connection, uid)
                finally:
                    self._connected[uid] -= 1
                    if not self._connected[uid]:
                        del self._connected[uid]
            except (_GoneError, OSError):
                pass
            except Exception as defect:
                self._report("".join(traceback.format_exception(defect)).rstrip())

    async def _handle(self, connection: socket.socket, uid: int) -> None:
        user, files = Principal(f"uid:{uid}", str(uid)), list[int]()
        try:
            user, rights = await self._who(uid)
            request = read_request(await _read_line(connection))
            if request.act == "console":
                if not (rights.audits or rights.approves):
                    raise UserError(f"{user.name} may not see the console", _NOBODY)
                await _send(connection, encode(Reply(True)))
                await self._serve_console(connection, Viewer(uid, "", rights.audits, user))
                return
            with self._gateway.spare.lent(_LENT):
                reply = await self._reply_to(request, user, rights, files)
        except UserError as problem:
            who = f"{user.name} (uid {uid})"
            self._refusals.note(who, problem.message, f"administration: {who} was refused: {problem.message}")
            reply = Reply(False, (problem.message,), problem.hint)
        except _GoneError:
            raise
        except Exception as defect:
            self._report("".join(traceback.format_exception(defect)).rstrip())
            reply = Reply(False, (f"the gateway has failed: {describe_error(defect)}",), "its log has more")
        try:
            await _send(connection, encode(reply), files)
        finally:
            close_all(files)

    async def _who(self, uid: int) -> tuple[Principal, Rights]:
        """Who has connected, and what it may do. Raises UserError for those who may do nothing."""
        if (hooks := spawn.hooks_account()) is not None and uid == hooks.uid != os.geteuid():
            raise UserError(f"the account of the hooks, {hooks.name}, has no role", _NOBODY)
        self._unknown += 1
        try:
            user = await GatewayApprovers(self._gateway).who(uid)
        finally:
            self._unknown -= 1
        rights = self._gateway.rights_of(user)
        if not rights:
            raise UserError(f"{user.name} has no role at this gateway", _NOBODY)
        return user, rights

    async def _reply_to(self, request: Request, user: Principal, rights: Rights, files: list[int]) -> Reply:
        """Do what is asked. `files` gets the descriptors that go with the reply. Raises UserError."""
        if not _may(rights, request.act):
            raise UserError(f"{user.name} may not do this: {request.act}", _NOBODY)
        match request.act:
            case "sessions":
                elsewhere, why_not = ((), "") if self.shared is None else await self.shared.elsewhere()
                return Reply(True, (why_not,) * bool(why_not), sessions=(*self.sessions(), *elsewhere))
            case "users":
                return Reply(True, users=tuple(self._blocked()))
            case "end":
                return await self._end(request, user)
            case "block":
                return await self._block(request.user, user)
            case "allow":
                return await self._allow(request.user, user)
            case "reload":
                return await self._run_reload(user)
            case _:
                return self._audit(files)

    def _blocked(self) -> Iterator[BlockedUser]:
        for decision in self._gateway.blocked.blocked:
            yield BlockedUser(decision.user, decision.at, decision.by)

    async def _run_reload(self, by: Principal) -> Reply:
        self._note(by, f"{_shown(by)} reloads the configuration")
        reloaded = await self._reload()
        if reloaded.done:
            return Reply(True, tuple(reloaded.says))
        return Reply(False, tuple(reloaded.says), "correct it, and reload again")

    def sessions(self) -> Iterator[OpenSession]:
        """The open sessions, the oldest first."""
        now, name = time(), self._gateway.config.gateway.instance
        for session in sorted(self._gateway.sessions, key=lambda one: one.since):
            if session.is_ending:
                continue
            session.note_use(now)
            yield _as_listed(session, name)

    async def _end(self, request: Request, by: Principal) -> Reply:
        """End one session, or all of a user, at all gateways."""
        if not request.user and len(request.session) < _SHORTEST_ID:
            raise UserError(f"{request.session!r} is too short", "give more of the id that `hookproxy sessions` shows")
        elsewhere, problem = ((), "") if self.shared is None else await self.shared.elsewhere()
        found = [one for one in (*self.sessions(), *elsewhere) if _is_meant(one, request)]
        if request.session and len(found) > 1:
            raise UserError(f"{request.session} is the beginning of {len(found)} ids", "give more of it")
        if not found:
            what = f"{request.user} has no open session" if request.user else f"there is no session {request.session}"
            raise UserError(f"{what}{f'; {problem}' * bool(problem)}", "`hookproxy sessions` lists them")
        wish = EndSessions(_shown(by), by.id, "", found[0].id if request.session else "", request.user)
        self.end_sessions(wish)
        if self.shared is not None and (request.user or found[0] in elsewhere):
            problem = await self.shared.end(wish.by, wish.by_id, session=wish.session, user=wish.user)
        says = [f"ended {one.described}" for one in found]
        return Reply(True, (*says, *(problem,) * bool(problem)))

    def end_sessions(self, wish: EndSessions) -> None:
        """End the sessions that an operator means, here or at another gateway."""
        for session in list(self._gateway.sessions):
            identity = session.identity
            named = _is_named(identity.principal, wish.user) if wish.user else identity.id == wish.session
            if named:
                self._report(f"administration: {wish.by} ends {_as_listed(session, '').described}")
                note = f"{wish.by} has ended this session"
                session.end("an operator of the gateway has ended the session", note, wish.by_id)

    async def _block(self, name: str, by: Principal) -> Reply:
        """Block a user: whatever is open ends, and nothing passes any more."""
        _check_name(name)
        ids = {one.identity.principal.id for one in self._gateway.sessions if one.identity.principal.name == name}
        with anyio.move_on_after(_LOOK_UP_SECONDS):  # to block somebody must not depend on a directory that hangs
            if (uid := await anyio.to_thread.run_sync(_uid_of, name, abandon_on_cancel=True)) is not None:
                ids.add(f"uid:{uid}")
        if _is_named(by, name) or by.id in ids:
            raise UserError("you cannot block yourself", "another operator can, or root")
        known = bool(ids) or self._gateway.knows(name)
        blocked = self._gateway.blocked
        problems = await blocked.decide(name, True, _shown(by), ids)
        self._note(by, f"{_shown(by)} has blocked {name}")
        says = [f"{name} is blocked", *problems]
        if not known:
            says.append(f"nobody called {name} is known here: no account, no token and no open session")
        return Reply(True, tuple(says))

    async def _allow(self, name: str, by: Principal) -> Reply:
        _check_name(name)
        blocked: BlockedUsers = self._gateway.blocked
        decisions = [one for one in blocked.blocked if name == one.user or name in one.ids]
        if not decisions:
            raise UserError(f"{name} is not blocked", "`hookproxy users` lists who is")
        problems: list[str] = []
        for decision in decisions:
            problems += await blocked.decide(decision.user, False, _shown(by))
            self._note(by, f"{_shown(by)} has allowed {decision.user} again")
        return Reply(True, (*(f"{one.user} is allowed again" for one in decisions), *dict.fromkeys(problems)))

    def _audit(self, files: list[int]) -> Reply:
        """The audit files of all servers as descriptors, each with those that were rotated and its last checkpoint."""
        paths: list[str] = []
        for path in self._audits():
            for suffix in (*(f".{number}" for number in sorted(rotations(path))), "", SIGNED):
                name = path + suffix
                try:
                    files.append(os.open(name, READ_FILE))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise UserError(
                        f"the audit file {name} cannot be opened: {error.strerror}", "see its log"
                    ) from None
                paths.append(name)
        if not paths:
            raise UserError("the gateway has no audit file", "[audit] file in its configuration names one")
        if len(paths) > MOST_FILES:
            close_all(files[:-MOST_FILES])
            del files[:-MOST_FILES], paths[:-MOST_FILES]
        return Reply(True, files=tuple(paths))

    def _audits(self) -> dict[str, MeteredAudit]:
        """The audit of each file, by its path."""
        return self._gateway.audits(Principal("", ""))

    def _note(self, by: Principal, text: str) -> None:
        """Write what was done into the log, and into each audit file."""
        self._report(f"administration: {text}")
        for path, audit in self._gateway.audits(by).items():
            if problem := audit.note(None, text, by.id) or audit.close():
                self._report(f"the audit {path} cannot be written: {problem}")


def _may(rights: Rights, act: Act) -> bool:
    """Whether somebody with these rights may do this."""
    if act == "audit":
        return rights.audits
    return rights.operates or (rights.audits and act in ("sessions", "users"))


def _shown(user: Principal) -> str:
    return user.name if user.name == user.id.removeprefix("uid:") else f"{user.name} ({user.id})"


def _as_listed(session: GatewaySession, gateway: str) -> OpenSession:
    identity = session.identity
    return OpenSession(
        identity.id,
        identity.principal.name,
        session.server.name,
        session.since,
        session.calls,
        session.last,
        "unix" if session.is_local else "http",
        gateway,
        identity.principal.id,
    )


def _is_named(user: Principal, name: str) -> bool:
    return name in (user.name, user.id)


def _is_meant(session: OpenSession, request: Request) -> bool:
    if request.user:
        return request.user in (session.user, session.user_id)
    return session.id.startswith(request.session)


def _check_name(name: str) -> None:
    """Raise UserError for what is not the name of one user."""
    if name.startswith(GROUP_SIGN):
        raise UserError(f"{name} is a group", "block its users one by one")
    if not name or not name.isprintable() or name != name.strip():
        raise UserError(f"{name!a} is not the name of a user", "write it as `hookproxy sessions` shows it")


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return None


async def _read_line(connection: socket.socket) -> bytes:
    """The request. Raises UserError, _GoneError."""
    received = bytearray()
    try:
        with anyio.fail_after(_REQUEST_SECONDS):
            while not received.endswith(b"\n"):
                await anyio.wait_readable(connection)
                with contextlib.suppress(BlockingIOError):
                    piece = connection.recv(LONGEST)
                    received += piece
                    if not piece or len(received) > LONGEST:
                        raise UserError("the request is not one line", "ask with hookproxy sessions, users or reload")
    except OSError:  # or TimeoutError
        raise _GoneError from None
    return bytes(received)


async def _send(connection: socket.socket, line: bytes, files: Sequence[int] = ()) -> None:
    """Send a reply, with descriptors. Raises _GoneError."""
    rest, ancillary = memoryview(line), list(files)
    try:
        with anyio.fail_after(_SEND_SECONDS):
            while rest:
                try:
                    sent = socket.send_fds(connection, [rest], ancillary) if ancillary else connection.send(rest)
                    ancillary, rest = [], rest[sent:]
                except BlockingIOError:
                    await anyio.wait_writable(connection)
    except OSError:  # or TimeoutError
        raise _GoneError from None
