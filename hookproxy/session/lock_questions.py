"""Asks a person on a console whether what a server says of itself is accepted (`on_change = "ask"`)."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import Final

from msgspec import Raw

from ..live.messages import NOTHING, WaitingApproval
from .approval import Approvals
from .lock_guard import LockGuard, Question

_MOST_ASKED: Final = 50  # at a time in one session: a person answers a few, and the rest is asked with the next list


class LockQuestions:
    """The questions of one session. Nothing waits for an answer: what is not accepted stays withheld."""

    def __init__(
        self, guard: LockGuard, approvals: Approvals, spawn: Callable[..., None], seconds: Callable[[], float]
    ) -> None:
        """`seconds`: how long a question waits for an answer. It is asked again when the list comes again."""
        self._guard = guard
        self._approvals = approvals
        self._spawn = spawn
        self._seconds = seconds
        self._waiting = 0

    def ask(self) -> None:
        """Ask about all that is withheld and not asked about yet, if consoles can find this run."""
        if self._approvals.console is None:
            return
        asked = self._guard.shared.asked
        for question in self._guard.questions():
            key = (self._guard.server, question.kind, question.name, question.raw)
            if key not in asked and self._waiting < _MOST_ASKED:
                asked.add(key)
                self._waiting += 1
                self._spawn(self._ask, question)

    async def _ask(self, question: Question) -> None:
        guard, now = self._guard, time()
        waiting = WaitingApproval(
            id="",
            call="",
            session="",
            server=guard.server,
            tool=question.subject,
            arguments=NOTHING,
            reason=question.why,
            asked_by="hookproxy.lock",
            at=now,
            until=now + self._seconds(),
            may_allow_session=False,
            recorded=Raw(question.recorded or b"null"),
            now=Raw(question.raw),
        )
        try:
            console = self._approvals.console
            answer = None if console is None else await console(None, waiting, False)
        finally:
            self._waiting -= 1
            guard.shared.asked.discard((guard.server, question.kind, question.name, question.raw))
        if answer is not None and answer.answer.action == "allow":
            guard.accept(question, answer.by)
        elif answer is not None:
            guard.refused(question, answer.by)
