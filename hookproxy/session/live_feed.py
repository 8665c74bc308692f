"""What consoles see of this process: its calls as they happen, and the approvals that a person may answer there.

    LiveFeed     this process: its sessions, and the consoles that are connected
    LiveSession  one session, and how its calls are written
    Console      one console that is connected: what it knows, and what it is sent at each tick

While no console is connected, this only counts calls: nothing is written, and nothing wakes up. A console never holds
up a call: if it does not read, changes are summed up, and calls that have ended are only counted. The approvals that
wait are kept by `waiting_approvals`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.lines import Lines, Removes
from ..live import messages, registry
from ..live.messages import (
    NOTHING,
    Answer,
    AnswerTaken,
    CallInFlight,
    Changes,
    Counts,
    GivenAnswer,
    Run,
    RunningHook,
    RunSession,
    Settled,
    Stage,
    WaitingApproval,
)
from ..model.approval_settings import NOT_TOLD, WebhookSettings
from ..model.errors import UserError
from ..model.principal import Principal
from ..model.settings import Arguments, Results, Settings
from ..protocol.calls import Call, Phase
from ..transports import unix_socket
from ..trust.sources import state_folder
from .waiting_approvals import UNKNOWN, Invite, ReadEdit, WaitingApprovals

if TYPE_CHECKING:
    from ..approvals.ways import Ways
    from ..audit.log import Audit
    from ..hooks.evaluate import Hooks
    from ..transports.http.request_reader import Request
    from ..transports.http.responder import Responder
    from .proxy import Proxy

_LONGEST_RECORD: Final = 256 * 1024
"""Bytes of a call that has ended as it is sent: of a longer one, digests are sent."""

_LONGEST_ARGUMENTS: Final = 64 * 1024
"""Bytes of the arguments of a call in flight: longer ones are shown when it has ended, or in its approval."""

_TICK_SECONDS: Final = 0.05
"""Between two looks at the calls while a console is connected: people see no difference to at once."""

_MOST_WAITING: Final = 500
"""Calls that have ended and wait to be sent to a console: at 1,000 calls a second, ten ticks."""

_MOST_BYTES_WAITING: Final = 16 * 1024 * 1024
"""Bytes of the texts of these calls: they stay in memory while a console does not read."""

_LINE_BYTES: Final = 4 * 1024 * 1024
"""After so many bytes, what is left comes with the next line. One approval may be longer: it is whole in any case."""

_MOST_RESPONSES: Final = 100
"""Answers of a console whose results it has not read: a person gives one after another."""

_READ_SIZE: Final = 65_536

_RETRY_SECONDS: Final = 10.0
"""Before the next try to accept a console, if there are too few descriptors: each failure is reported."""

_MOST_CONSOLES: Final = 8
"""Of one account that follow a run: a person has one or two open; each costs a look at all calls per tick."""


class Judging(Struct, frozen=True):
    """What judges and records calls at a time."""

    settings: Settings
    audit: Audit
    hooks: Sequence[Hooks]
    hidden: Removes | None = None
    """Removes what the agent and people do not get."""


class LiveSession:
    """A session, or several whose calls one policy judges, and how their calls are written for consoles."""

    def __init__(self, described: Callable[[], Sequence[RunSession]], judging: Callable[[], Judging]) -> None:
        """`described` returns the sessions as consoles get them, `judging` what judges their calls now."""
        self.described = described
        self.judging = judging
        self._shown: dict[str, tuple[bytes, bytes, Raw, Raw]] = {}
        """Of calls in flight: their arguments, and how they are shown; masking them at each tick would be too much."""

    def show_all(self) -> None:
        """Let the records of calls have what hooks get, and how calls end: without a console, few need that."""
        judging = self.judging()
        for hooks in judging.hooks:
            hooks.keep_inputs()
        judging.audit.needs_results = True

    def line(self, record: Record) -> Raw | None:
        """A call that has ended, whole if the audit may have it so; of a long one, digests. None: still too long."""
        judging = self.judging()
        kept = Arguments.MASKED if _masks(judging.settings) else Arguments.FULL
        for whole in (True, False):
            settings = replace(
                judging.settings,
                audit_file="",
                otel=False,
                audit_arguments=kept if whole else Arguments.DIGEST,
                audit_results=Results.FULL if whole else Results.NONE,
            )
            lines = Lines(settings)
            lines.hidden = judging.hidden
            line = lines.of_call(record).rstrip(b"\n")
            if len(line) <= _LONGEST_RECORD:
                return Raw(line)
        return None

    def _arguments(self, name: str, record: Record, judging: Judging) -> tuple[Raw, Raw]:
        """The arguments of a call in flight, and the rewritten ones, as they are shown; NOTHING: too long, or none."""
        if (known := self._shown.get(name)) is not None and known[:2] == (record.arguments, record.final):
            return known[2:]
        shown = [
            Raw(raw) if 0 < len(raw) <= _LONGEST_ARGUMENTS else NOTHING for raw in (record.arguments, record.final)
        ]
        if judging.hidden is not None:
            shown = [Raw(judging.hidden.json(bytes(raw))) if raw != NOTHING else NOTHING for raw in shown]
        if _masks(judging.settings):
            from ..secrets.mask import Masking

            masking = Masking()
            shown = [Raw(masking.json(bytes(raw))) if raw != NOTHING else NOTHING for raw in shown]
        self._shown[name] = (record.arguments, record.final, shown[0], shown[1])
        return shown[0], shown[1]

    def calls(self, is_waiting: Callable[[str], bool]) -> Iterator[CallInFlight]:
        """The calls in flight."""
        judging = self.judging()
        hooks, in_flight = _running_hooks(judging.hooks), judging.audit.in_flight
        for name in [name for name in self._shown if name not in in_flight]:
            del self._shown[name]
        for name, (record, call, at) in in_flight.items():
            waits = hooks.get(call.key.decode(errors="replace"), ())
            stage = _stage(call, asked=is_waiting(name))
            since = waits[0].since if waits else at
            arguments, rewritten = self._arguments(name, record, judging)
            size, alias, waits_for = len(record.arguments), record.alias, tuple(waits)
            yield CallInFlight(
                name, record.session, at, record.tool, stage, since, arguments, size, rewritten, alias, waits_for
            )


def _masks(settings: Settings) -> bool:
    """No arguments are shown that the audit would not record whole."""
    return settings.audit_arguments is not Arguments.FULL


def _running_hooks(all_hooks: Iterable[Hooks]) -> dict[str, list[RunningHook]]:
    """The hooks that run now, by the id of the request that waits for them."""
    offset = time() - monotonic()
    running: dict[str, list[RunningHook]] = {}
    for hooks in all_hooks:
        for since, spec, request in hooks.running():
            if not spec.background:
                running.setdefault(request, []).append(RunningHook(spec.source, spec.event, round(since + offset, 3)))
    return running


def _size(record: Record) -> int:
    """Bytes of the long texts of a record."""
    texts = len(record.arguments) + len(record.final) + len(record.result_before) + len(record.result_after)
    return texts + sum(len(run.input) + len(run.result.stdout) + len(run.result.stderr) for run in record.hook_runs)


def _stage(call: Call, *, asked: bool) -> Stage:
    if asked:
        return "approval"
    if call.phase is Phase.HELD:
        return "hooks"
    return "sent" if call.phase is Phase.FORWARDED else "after"


class Viewer(Struct, frozen=True):
    """Who looks at a console."""

    uid: int
    name: str
    """For people: the account and the process, as the kernel names them."""
    sees_calls: bool = True
    """All of them. Otherwise only those that wait for approval."""
    person: Principal | None = None
    """Who that was when the console was opened, at a gateway with roles."""


class Console:
    """A console that is connected."""

    def __init__(self, feed: LiveFeed, connection: socket.socket, viewer: Viewer) -> None:
        self._feed = feed
        self._connection = connection
        self.viewer = viewer
        self._responses: list[AnswerTaken] = []
        self._ended: deque[tuple[LiveSession, Record]] = deque()
        self._gone: list[str] = []
        self._ended_bytes = 0
        self._settled: list[Settled] = []
        self._known_sessions: dict[str, RunSession] = {}
        self._known_calls: dict[str, CallInFlight] = {}
        self._known_approvals: set[str] = set()
        self._known_counts = Counts()

    def close(self) -> None:
        """Disconnect it."""
        with contextlib.suppress(OSError):  # it has gone
            self._connection.shutdown(socket.SHUT_RDWR)

    def note_ended(self, session: LiveSession, record: Record) -> None:
        """A call has ended. If too many wait, the oldest ones are only counted."""
        self._ended.append((session, record))
        self._ended_bytes += _size(record)
        while len(self._ended) > _MOST_WAITING or self._ended_bytes > _MOST_BYTES_WAITING:
            _, oldest = self._ended.popleft()
            self._ended_bytes -= _size(oldest)
            if oldest.call in self._known_calls:
                self._gone.append(oldest.call)

    def note_settled(self, settled: Settled) -> None:
        """An approval no longer waits. The console hears of it only if it knows the approval."""
        if settled.approval in self._known_approvals:
            self._settled.append(settled)

    async def write(self) -> None:
        """Say who runs, and then what changes. Raises OSError when the console has gone."""
        await self._send(messages.encode(self._feed.run))
        while True:
            responses, self._responses = self._responses, []
            for response in responses:
                await self._send(messages.encode(response))
            if (changes := self._changes()) is not None:
                await self._send(messages.encode(changes))
            await anyio.sleep(_TICK_SECONDS)

    async def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[self._connection.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._connection)

    def _changes(self) -> Changes | None:
        """What the console does not know yet; None: nothing."""
        if not self.viewer.sees_calls:
            return self._changed_approvals()
        ended, gone = self._take_ended()
        changes = Changes(
            self._feed.counts,
            sessions=tuple(self._new_sessions()),
            ended_sessions=tuple(self._ended_sessions()),
            calls=tuple(self._new_calls()),
            ended=ended,
            gone=gone,
            asked=tuple(self._new_approvals()),
            settled=tuple(self._settled),
        )
        self._settled.clear()
        if changes == Changes(self._known_counts):
            return None
        self._known_counts = changes.counts
        return changes

    def _changed_approvals(self) -> Changes | None:
        """The same for whoever sees nothing but what waits for approval."""
        self._ended.clear()
        self._gone.clear()
        self._ended_bytes = 0
        changes = Changes(asked=tuple(self._new_approvals()), settled=tuple(self._settled))
        self._settled.clear()
        return changes if changes.asked or changes.settled else None

    def _take_ended(self) -> tuple[tuple[Raw, ...], tuple[str, ...]]:
        ended: list[Raw] = []
        gone, self._gone = self._gone, []
        length = 0
        while self._ended and length < _LINE_BYTES:
            session, record = self._ended.popleft()
            self._ended_bytes -= _size(record)
            line = session.line(record)
            if line is None:
                gone.append(record.call)
            else:
                ended.append(line)
                length += len(line)
            self._known_calls.pop(record.call, None)
        for name in gone:
            self._known_calls.pop(name, None)
        return tuple(ended), tuple(gone)

    def _new_sessions(self) -> Iterator[RunSession]:
        for session in self._feed.sessions():
            for described in session.described():
                if self._known_sessions.get(described.session) != described:
                    self._known_sessions[described.session] = described
                    yield described

    def _ended_sessions(self) -> list[str]:
        open_sessions = {described.session for session in self._feed.sessions() for described in session.described()}
        ended = [name for name in self._known_sessions if name not in open_sessions]
        for name in ended:
            del self._known_sessions[name]
        return ended

    def _new_calls(self) -> Iterator[CallInFlight]:
        length = 0
        for session in self._feed.sessions():
            for call in session.calls(self._feed.approvals.is_about):
                known = self._known_calls.get(call.call)
                if known == call or length >= _LINE_BYTES:
                    continue
                self._known_calls[call.call] = call
                length += len(bytes(call.arguments)) + len(bytes(call.rewritten))
                yield call if known is None else replace(call, arguments=NOTHING)

    def _new_approvals(self) -> list[WaitingApproval]:
        approvals: list[WaitingApproval] = []
        waiting = list(self._feed.approvals.everywhere())
        self._known_approvals.intersection_update(approval.id for approval in waiting)
        length = 0
        for approval in waiting:
            if approval.id not in self._known_approvals and length < _LINE_BYTES:
                self._known_approvals.add(approval.id)
                approvals.append(approval)
                length += len(bytes(approval.arguments))
        return approvals

    async def read(self, scope: anyio.CancelScope) -> None:
        """Read the person's answers, until the console has gone or says something else; then end the scope."""
        begun = bytearray()
        while True:
            await anyio.wait_readable(self._connection)
            try:
                piece = self._connection.recv(_READ_SIZE)
            except BlockingIOError:
                continue
            begun += piece
            *lines, rest = bytes(begun).split(b"\n")
            begun[:] = rest
            try:
                for line in lines:
                    await self._answer(messages.from_console(line))
            except messages.Unreadable:
                piece = b""
            if not piece or len(begun) > messages.LONGEST_ANSWER or len(self._responses) > _MOST_RESPONSES:
                scope.cancel()
                return

    async def _answer(self, answer: Answer) -> None:
        place = answer.place[:200] or "a console"
        confirmation = await self._feed.approvals.answer(answer, f"{self.viewer.name}, at {place}", self.viewer.uid)
        self._responses.append(confirmation)  # looked up only now: a tick may have taken the list meanwhile


class LiveFeed:
    """This process, for consoles. One for all its sessions."""

    def __init__(self, run: Run, report: Callable[[str], None]) -> None:
        self.run = run
        self._report = report
        self._listener: socket.socket | None = None
        self._folder = ""
        self._ways: Ways | None = None
        self.answers_at = ""
        """The address of a listener of this process for answers of webhooks; empty: there is none."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._sessions: dict[str, LiveSession] = {}
        self._consoles: set[Console] = set()
        self.approvals = approvals = WaitingApprovals(run.run)
        approvals.viewers = lambda: (console.viewer.person for console in self._consoles)
        approvals.on_settled = self._note_settled
        self._calls = self._refused = self._rewritten = self._failed = 0

    def listen(self, folder: str, *, needed: bool = False) -> None:
        """Be found in this folder from now on (empty: there is no place for one), or go on without consoles.

        What prevents it is reported; a folder that cannot be made only if a console is `needed`.
        """
        problem = "there is no home folder; set HOME or XDG_RUNTIME_DIR" * needed if not folder else ""
        try:
            if folder:
                self._listener = registry.listen(folder, self.run.run)
                self._folder = folder
        except UserError as unsafe:
            problem = f"{unsafe.message}; {unsafe.hint}"
        except OSError as error:
            problem = f"{folder}: {error.strerror or error}; name another folder with XDG_RUNTIME_DIR" * needed
        if problem:
            self._report(f"consoles do not see this run: {problem}")

    @property
    def can_ask(self) -> bool:
        """A console can find the approvals of this run."""
        return self._listener is not None

    def ways(self) -> Ways:
        """The ways to tell people about approvals, and to take their answers."""
        if self._ways is None:
            from ..approvals.ways import Ways  # for such configurations only
            from ..config.secret_values import read_value

            def secret_of(hook: WebhookSettings) -> bytes:
                return read_value(hook.secret, "approvals.webhook.secret", os.environ)

            self._ways = Ways(self.approvals.take, secret_of, self._folder, self._spawn, self._report)
            self._ways.own_address = self.answers_at
            self.approvals.take_with_token = self._ways.take
        return self._ways

    @property
    def answer_handler(self) -> Callable[[Request, Responder], None] | None:
        """Responds to answers that come to the listener at `answers_at`; None: none can come."""
        return None if self._ways is None or not self.answers_at else self._ways.handle

    def prepare(self, settings: Settings) -> None:
        """Read what telling people will need. Raises UserError."""
        for layer in filter(None, (settings, settings.managed)):
            if layer.approvals != NOT_TOLD:
                self.ways().prepare(layer.approvals)

    def close(self) -> None:
        """Be found no more."""
        if self._listener is not None:
            registry.remove(self._folder, self.run.run)
            self._listener.close()
            self._listener = None

    # --- what happens ---

    def add_session(self, proxy: Proxy, user: str = "") -> None:
        """A session begins."""
        proxy.calls.approvals.outside.approvals = FeedApprovals(self, partial(_named, proxy, user))

        def described() -> Sequence[RunSession]:
            return (RunSession(proxy.session.id, proxy.session.server, proxy.calls.agent(), user),)

        def judging() -> Judging:
            hidden = None if proxy.secrets is None else proxy.secrets.masks
            return Judging(proxy.policy.settings, proxy.policy.audit, (proxy.policy.hooks,), hidden)

        self.show(proxy.session.id, LiveSession(described, judging))

    def show(self, name: str, session: LiveSession) -> None:
        """Show the calls of a session from now on."""
        self._sessions[name] = session
        self.follow(name)

    def follow(self, name: str) -> None:
        """Follow the calls that a session judges from now on: it begins, or its policy has changed."""
        session = self._sessions[name]
        session.judging().audit.on_ended = lambda record: self._ended(session, record)
        if self.shows_calls:
            session.show_all()

    @property
    def shows_calls(self) -> bool:
        """A console is open that sees all calls."""
        return any(console.viewer.sees_calls for console in self._consoles)

    def remove_session(self, proxy: Proxy) -> None:
        """A session has ended."""
        self._sessions.pop(proxy.session.id, None)

    def _note_settled(self, settled: Settled) -> None:
        for console in self._consoles:
            console.note_settled(settled)

    def _ended(self, session: LiveSession, record: Record) -> None:
        self._calls += 1
        self._refused += record.result == "refused"
        self._rewritten += bool(record.final)
        self._failed += record.result in ("error", "lost", "cancelled")
        for console in self._consoles:
            console.note_ended(session, record)

    @property
    def counts(self) -> Counts:
        """The sums until now."""
        return Counts(self._calls, self._refused, self._rewritten, self._failed, self.approvals.asked)

    # --- consoles ---

    @property
    def is_watched(self) -> bool:
        """Whether a console is connected."""
        return bool(self._consoles)

    async def serve(self) -> None:
        """Serve the consoles that connect, until it is cancelled: then no answer is taken any more."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                await self._accept(tasks)
            finally:
                if self._ways is not None:
                    with anyio.CancelScope(shield=True):  # it is bounded by itself
                        await self._ways.aclose()

    def _spawn(self, function: Callable[..., Coroutine[object, object, None]], *arguments: object) -> None:
        assert self._tasks is not None, "answers come only while consoles are served"
        self._tasks.start_soon(function, *arguments)

    async def _accept(self, tasks: anyio.abc.TaskGroup) -> None:
        if self._listener is None:
            if self._ways is not None:
                await anyio.sleep_forever()  # answers may come
        else:
            self._remove_dead()
            async for connection in unix_socket.accepted(self._listener, _RETRY_SECONDS, self._report_console):
                tasks.start_soon(self._serve, connection)

    def _report_console(self, why: str) -> None:
        self._report(f"a console cannot connect: {why}")

    def _remove_dead(self) -> None:
        try:
            registry.remove_dead(self._folder)
        except (UserError, OSError) as problem:
            why = f"{problem.message}; {problem.hint}" if isinstance(problem, UserError) else problem.strerror
            self._report(f"sockets of earlier runs cannot be removed: {why}")

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one console of our own account or of root. A defect in this ends the connection, and never a call."""
        try:
            with connection:
                uid = unix_socket.uid_of_peer(connection)
                if uid not in (0, os.geteuid()):
                    self._report(f"a console of user {uid} was turned away")
                    return
                approvers = self.approvals.approvers
                person = None if approvers is None else await approvers.who(uid)
                await self.serve_console(connection, Viewer(uid, "", person=person))
        except UserError as problem:
            self._report(f"a console was turned away: {problem.message}")
        except Exception as defect:
            self._report("".join(traceback.format_exception(defect)).rstrip())

    async def serve_console(self, connection: socket.socket, viewer: Viewer) -> None:
        """Serve a console until it has gone; its viewer's name is completed."""
        if sum(console.viewer.uid == viewer.uid for console in self._consoles) >= _MOST_CONSOLES:
            self._report(f"a console was turned away: {_MOST_CONSOLES} follow this run")
            return
        named = f"user {viewer.uid}" if viewer.person is None else f"{viewer.person.name} (uid:{viewer.uid})"
        name = f"{named}, process {unix_socket.process_of_peer(connection)}"
        await self._serve_console(Console(self, connection, replace(viewer, name=name)))

    async def _serve_console(self, console: Console) -> None:
        self._consoles.add(console)
        if console.viewer.sees_calls:
            for session in self._sessions.values():
                session.show_all()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(console.read, tasks.cancel_scope)
                await console.write()
        except* (BrokenPipeError, ConnectionResetError):  # it has gone
            pass
        finally:
            self._consoles.discard(console)
            self.approvals.viewer_left()

    async def end_forbidden(self, may_stay: Callable[[Viewer], Awaitable[bool]]) -> None:
        """Disconnect the consoles of people who may not look any more."""
        for console in list(self._consoles):
            if not await may_stay(console.viewer):
                self._report(f"the console of {console.viewer.name} is closed: the role is gone")
                console.close()

    def sessions(self) -> Iterator[LiveSession]:
        """All sessions."""
        yield from self._sessions.values()


class FeedApprovals(Struct, frozen=True):
    """As OutsideApprovals, with the approvals of a feed."""

    feed: LiveFeed
    named: Callable[[WaitingApproval, Call | None], WaitingApproval]
    """Returns the approval with the session, the call and the agent that it is about."""

    @property
    def consoles_find_it(self) -> bool:
        """As in OutsideApprovals."""
        return self.feed.can_ask

    def is_watched(self) -> bool:
        """As in OutsideApprovals."""
        return self.feed.approvals.may_be_answered(self.named(UNKNOWN, None))

    def ways(self) -> Ways:
        """As in OutsideApprovals."""
        return self.feed.ways()

    async def ask(
        self,
        approval: WaitingApproval,
        call: Call | None = None,
        *,
        only_while_watched: bool = False,
        on_consoles: bool = True,
        read_edit: ReadEdit | None = None,
        invite: Sequence[Invite] = (),
    ) -> GivenAnswer | None:
        """As in OutsideApprovals."""
        return await self.feed.approvals.ask(
            self.named(approval, call),
            only_while_watched=only_while_watched,
            on_consoles=on_consoles,
            read_edit=read_edit,
            invite=invite,
        )


def _named(proxy: Proxy, user: str, approval: WaitingApproval, call: Call | None) -> WaitingApproval:
    """The approval with its session, its call and its agent."""
    session, principal = proxy.session, proxy.session.principal
    in_flight = proxy.policy.audit.in_flight.items() if call is not None else ()
    return replace(
        approval,
        call=next((key for key, (_, other, _) in in_flight if other is call), ""),
        session=session.id,
        user=user,
        user_id="" if principal is None else principal.id,
        agent=proxy.calls.agent(),
    )


def open_feed(run: Run, report: Callable[[str], None], *, needed: bool) -> LiveFeed:
    """A feed that consoles can find. `needed` as for LiveFeed.listen."""
    feed = LiveFeed(run, report)
    folder = registry.folder_of_runs(os.environ, state_folder(os.environ, os.path.expanduser("~")))
    feed.listen(folder, needed=needed)
    return feed
