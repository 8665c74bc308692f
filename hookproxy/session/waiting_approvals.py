"""The approvals that wait for people outside of the agent, and the answers to them (law 1).

How it works: whoever asks puts a `WaitingApproval` here and waits. Everybody who may answer it, on a console or by the
webhook, is shown the same approval, and gives a `GivenAnswer`: the first one that may be given counts, and each later
one learns that it is too late. An approval no longer waits when it is answered, when its time is over, when its call
has ended, and when nobody is left who could answer.

Arguments that a person has changed are read by the `ReadEdit` of whoever asks: what cannot be forwarded is not taken,
and the approval goes on waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from time import time
from typing import Final, Protocol

import anyio
import anyio.abc
from msgspec import Struct, field
from msgspec.structs import replace

from ..live.messages import LONGEST_EDIT, NOTHING, Action, Answer, AnswerTaken, GivenAnswer, Settled, WaitingApproval
from ..model.errors import UserError
from ..model.principal import Principal

_UNKNOWN: Final = "Who has answered is not known, and only some people may."
_TOO_LATE: Final = "This call no longer waits for approval: somebody has answered, its time is over, or it has ended."
_NO_SESSION: Final = "This call cannot be allowed for the session: allow it once, or deny it."
_NO_SIMILAR: Final = "It cannot be said which calls are like this one: allow it once, or deny it."
_NO_EDIT: Final = "The arguments of this call cannot be changed: allow it as it is, or deny it."
_EDIT_ONCE: Final = "With other arguments a call can be allowed once only."

ReadEdit = Callable[[str], Awaitable[bytes]]
"""Reads arguments as a person has typed them: normalised JSON under the server's names, or nothing if they are the same
as before. Raises ValueError with a sentence without a full stop for what cannot be forwarded."""

Invite = Callable[[WaitingApproval], Awaitable[bool]]
"""Tells people about an approval that waits, until it is cancelled. Ends with True if somebody may answer now, with
False if nobody could be reached: it has reported why. Raises nothing."""


UNKNOWN: Final = WaitingApproval("", "", "", "", "", NOTHING, "", "", 0, 0)
"""An approval of which nothing is known."""


class NobodyToAsk(Exception):
    """Nobody could be reached, and no console is open."""


class Approvers(Protocol):
    """Who may answer the approvals of a gateway."""

    async def who(self, uid: int) -> Principal:
        """Who an account is now. Raises UserError if nobody can say."""

    def why_not(self, person: Principal, approval: WaitingApproval, action: Action) -> str:
        """Why this person may not answer so, in a sentence; empty: it is allowed."""


class _Waiting(Struct, eq=False):
    approval: WaitingApproval
    only_while_watched: bool
    """It waits only as long as somebody could answer."""
    read_edit: ReadEdit | None
    on_consoles: bool
    """Consoles show it, and may answer it."""
    invitations: int
    """How many people or programs get it now, or have got it and may answer."""
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: GivenAnswer | None = None
    nobody: bool = False
    """It has ended because nobody could be reached."""


class WaitingApprovals:
    """Those of one process."""

    def __init__(self, run: str) -> None:
        """`run` is a name unlike that of any other process."""
        self._run = run
        self._waiting: dict[str, _Waiting] = {}
        self._elsewhere: dict[str, WaitingApproval] = {}
        self.asked = 0
        """How many there were."""
        self.answer_elsewhere: Callable[[GivenAnswer], Awaitable[AnswerTaken]] | None = None
        """Passes on an answer to an approval that waits in another process."""
        self.approvers: Approvers | None = None
        """Who may answer; None: whoever has a console."""
        self.take_with_token: Callable[[Answer], Awaitable[AnswerTaken | None]] | None = None
        """Takes an answer that has come by the webhook's message, and through another process; None: there is none."""
        self.viewers: Callable[[], Iterable[Principal | None]] = lambda: ()
        """Returns who has a console open."""
        self.on_settled: Callable[[Settled], None] = lambda _settled: None
        """Gets each approval that no longer waits."""

    async def ask(
        self,
        approval: WaitingApproval,
        *,
        only_while_watched: bool = False,
        on_consoles: bool = True,
        read_edit: ReadEdit | None = None,
        invite: Sequence[Invite] = (),
    ) -> GivenAnswer | None:
        """Wait for an answer until `approval.until`; None: nobody has answered. On cancel, it is withdrawn.

        With `only_while_watched` it waits only as long as somebody could answer: the last console that is closed ends
        it, if none of those whom `invite` tells may answer. Raises NobodyToAsk if nobody ever could. Without
        `on_consoles`, only these may.
        """
        self.asked += 1
        name = f"{self._run}-{self.asked}"
        is_short = len(bytes(approval.arguments)) <= LONGEST_EDIT
        named = replace(approval, id=name, may_edit=is_short and read_edit is not None)
        waiting = _Waiting(named, only_while_watched, read_edit, on_consoles, len(invite))
        self._waiting[name] = waiting
        settled = Settled(name, "withdrawn")
        try:
            if invite:
                async with anyio.create_task_group() as tasks:
                    for tell in invite:
                        tasks.start_soon(self._invite, waiting, tell)
                    await _answered(waiting)
                    tasks.cancel_scope.cancel()
            else:
                await _answered(waiting)
            settled = Settled(name, "expired")
            if waiting.answer is not None:
                settled = Settled(name, waiting.answer.answer.action, waiting.answer.by)
            if waiting.nobody:
                raise NobodyToAsk
            return waiting.answer
        finally:
            del self._waiting[name]
            self.on_settled(settled)

    async def _invite(self, waiting: _Waiting, tell: Invite) -> None:
        if await tell(waiting.approval):
            return
        waiting.invitations -= 1
        if not self._has_somebody(waiting):
            waiting.nobody = True
            waiting.answered.set()

    def viewer_left(self) -> None:
        """A console was closed: what nobody can answer any more no longer waits."""
        for waiting in self._waiting.values():
            if not self._has_somebody(waiting):
                waiting.answered.set()

    def _has_somebody(self, waiting: _Waiting) -> bool:
        waits = not waiting.only_while_watched or waiting.invitations > 0
        return waits or (waiting.on_consoles and self.may_be_answered(waiting.approval))

    def may_be_answered(self, approval: WaitingApproval) -> bool:
        """Whether somebody has a console open who may answer this."""
        return any(not self._why_not(person, approval, "allow") for person in self.viewers())

    # --- what waits ---

    def is_about(self, call: str) -> bool:
        """Whether a person is asked about this call."""
        return any(waiting.approval.call == call for waiting in self._waiting.values())

    def here(self) -> list[WaitingApproval]:
        """The approvals that wait in this process, and that consoles may show."""
        shown = (waiting for waiting in self._waiting.values() if waiting.on_consoles)
        return [waiting.approval for waiting in shown if not waiting.answered.is_set()]

    def everywhere(self) -> Iterator[WaitingApproval]:
        """All approvals that consoles show, here and elsewhere."""
        for waiting in self._waiting.values():
            if waiting.on_consoles:
                yield waiting.approval
        yield from self._elsewhere.values()

    def show_elsewhere(self, approvals: Iterable[WaitingApproval]) -> None:
        """Show these approvals, which wait in other processes, and no others of that kind."""
        before, self._elsewhere = self._elsewhere, {approval.id: approval for approval in approvals}
        for name in before.keys() - self._elsewhere.keys():
            self.on_settled(Settled(name, "withdrawn"))

    # --- answers ---

    async def take(self, given: GivenAnswer) -> AnswerTaken:
        """Take an answer: the first one of somebody who may give it counts."""
        answer = given.answer
        waiting = self._waiting.get(answer.approval)
        if waiting is None or waiting.answered.is_set() or not (waiting.on_consoles or answer.token):
            return _not_taken(answer, _TOO_LATE)
        # who has the token has got it from whoever configures who may answer
        why = "" if answer.token else self._why_not(given.who, waiting.approval, answer.action)
        if why := why or _impossible(answer, waiting.approval):
            return _not_taken(answer, why)
        if answer.arguments and waiting.read_edit is not None:
            try:
                given = replace(given, arguments=await waiting.read_edit(answer.arguments))
            except ValueError as problem:
                return _not_taken(answer, f"These arguments cannot be used: {problem}.")
            if self._waiting.get(answer.approval) is not waiting or waiting.answered.is_set():  # meanwhile
                return _not_taken(answer, _TOO_LATE)
        waiting.answer = given
        waiting.answered.set()
        return AnswerTaken(answer.approval, accepted=True)

    def _why_not(self, person: Principal | None, approval: WaitingApproval, action: Action) -> str:
        """Why this person may not answer so; empty: it is allowed."""
        if self.approvers is None:
            return ""
        return _UNKNOWN if person is None else self.approvers.why_not(person, approval, action)

    async def answer(self, answer: Answer, by: str, uid: int) -> AnswerTaken:
        """Take the answer of an account, or pass it on to the process in which its approval waits.

        Who the account is, and what it may, is looked up now: a console may be open for days.
        """
        if answer.token:
            confirmation = None if self.take_with_token is None else await self.take_with_token(answer)
            return confirmation or replace(_not_taken(answer, _TOO_LATE), found=False)
        person = None
        if self.approvers is not None:
            try:
                person = await self.approvers.who(uid)
            except UserError as problem:
                return _not_taken(answer, f"{problem.message}.")
        given = GivenAnswer(answer, by, person)
        if (elsewhere := self._elsewhere.get(answer.approval)) is None or self.answer_elsewhere is None:
            return await self.take(given)
        if why := self._why_not(person, elsewhere, answer.action):
            return _not_taken(answer, why)
        return await self.answer_elsewhere(given)


async def _answered(waiting: _Waiting) -> None:
    with anyio.move_on_after(max(waiting.approval.until - time(), 0)):
        await waiting.answered.wait()


def _impossible(answer: Answer, approval: WaitingApproval) -> str:
    """Why nobody can answer this approval so; empty: it is possible."""
    if answer.action == "allow_session" and not approval.may_allow_session:
        return _NO_SESSION
    if answer.action == "allow_similar" and not approval.similar:
        return _NO_SIMILAR
    if answer.arguments and answer.action != "deny":
        return _NO_EDIT if not approval.may_edit else _EDIT_ONCE if answer.action != "allow" else ""
    return ""


def _not_taken(answer: Answer, why: str) -> AnswerTaken:
    return AnswerTaken(answer.approval, accepted=False, why=why)
