"""Asks a person on a console to accept what differs from `hookproxy.lock` (`on_change = "ask"`).

How it works: each difference that is withheld, and could be recorded, is an approval of its own on the consoles.
Nothing waits for the answer: what is not accepted stays withheld, and is asked about again when its list comes again.
An accepted difference is written to the lock file and holds for all sessions with it; a refused one is not asked about
again. What must hold: each difference is asked about once at a time in all sessions, and a server that changes again
and again cannot ask without end (`_MOST_REFUSED`).
"""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..live.messages import NOTHING, WaitingApproval
from ..lock.description import Description, Identity, Kind
from ..model.errors import UserError, printable
from ..protocol.response_edits import json_string
from . import lock_updates
from .approval import Approvals
from .lock_comparison import LockComparison, entry_or_none
from .outside_approval import OutsideApprovals

_MOST_ASKED: Final = 50  # at a time in one session: a person answers a few, and the rest is asked with the next list
_MOST_REFUSED: Final = 20  # of one server: one that says something else again and again must not tire a person out


class Question(Struct, frozen=True):
    """A difference that a person may accept."""

    kind: Kind | None
    """None: the instructions."""
    name: str
    raw: bytes
    """What the server says now, as JSON."""
    why: str
    recorded: bytes
    """What is recorded, as JSON; empty: nothing."""

    @property
    def text(self) -> tuple[Kind | None, str, bytes]:
        """What it asks about, with its text."""
        return self.kind, self.name, self.raw

    @property
    def shown(self) -> bytes:
        """What the server says now, in the order of what is recorded, so that people see what differs."""
        came = None if self.kind is None else entry_or_none(self.kind, self.raw)
        return self.raw if came is None else came.text

    @property
    def subject(self) -> str:
        """What it is about, for people."""
        return "instructions" if self.kind is None else printable(f"{self.kind.value} {self.name}")


class LockQuestions:
    """The questions of one session. Nothing waits for an answer: what is not accepted stays withheld."""

    def __init__(
        self, comparison: LockComparison, approvals: Approvals, spawn: Callable[..., None], seconds: Callable[[], float]
    ) -> None:
        """`seconds`: how long a question waits for an answer. It is asked again when the list comes again."""
        self._comparison = comparison
        self._approvals = approvals
        self._spawn = spawn
        self._seconds = seconds
        self._waiting = 0

    def ask(self) -> None:
        """Ask about all that is withheld and not asked about yet, if consoles can find this run."""
        if (outside := self._approvals.outside.approvals) is None or not outside.consoles_find_it:
            return
        comparison = self._comparison
        asked, refused = comparison.shared.asked, comparison.shared.refused.get(comparison.server, ())
        if len(refused) >= _MOST_REFUSED:
            comparison.reports.note(
                f"nobody is asked about it any more, because {len(refused)} of its changes were refused"
            )
            return
        for question in self._questions():
            key = (comparison.server, question.kind, question.name)
            if key not in asked and question.text not in refused and self._waiting < _MOST_ASKED:
                asked.add(key)
                self._waiting += 1
                self._spawn(self._ask, question, outside)

    async def _ask(self, question: Question, outside: OutsideApprovals) -> None:
        comparison, now = self._comparison, time()
        waiting = WaitingApproval(
            id="",
            call="",
            session="",
            server=comparison.server,
            tool=question.subject,
            arguments=NOTHING,
            reason=question.why,
            asked_by="hookproxy.lock",
            at=now,
            until=now + self._seconds(),
            may_allow_session=False,
            recorded=Raw(question.recorded or b"null"),
            now=Raw(question.shown),
        )
        try:
            answer = await outside.ask(waiting)
        finally:
            self._waiting -= 1
            comparison.shared.asked.discard((comparison.server, question.kind, question.name))
        if answer is not None and answer.answer.action == "allow":
            self._accept(question, answer.by)
        elif answer is not None:
            comparison.shared.refused.setdefault(comparison.server, set()).add(question.text)
            comparison.reports.record(f"{question.subject}: refused by {answer.by}")

    def _accept(self, question: Question, by: str) -> None:
        """Record what a person has accepted: for all sessions from now on."""
        kind, name = question.kind, question.name
        came = None if kind is None else entry_or_none(kind, question.raw)

        def accepted(before: Description | None) -> Description:
            before = before or Description(Identity(), {})
            if came is None or kind is None:
                instructions = raw_json.text(question.raw) or ""
                return Description(replace(before.identity, instructions=instructions), before.entries)
            return Description(before.identity, {**before.entries, (kind, name): came})

        try:
            now = lock_updates.update(self._comparison.shared.path, self._comparison.server, accepted)
        except UserError as problem:
            self._comparison.reports.note(f"what {by} has accepted cannot be recorded: {problem}")
            return
        self._comparison.shared.pin(self._comparison.server, now)
        self._comparison.reports.record(f"{question.subject}: accepted by {by}")

    def _questions(self) -> list[Question]:
        """What a person may accept now, each thing once in all sessions."""
        pinned = self._comparison.pinned
        if pinned is None or self._comparison.settings.on_change != "ask":
            return []
        texts = [
            Question(kind, name, withheld.raw, withheld.why(), b"" if recorded is None else recorded.text)
            for (kind, name), withheld in self._comparison.withheld.items()
            if not withheld.hides and entry_or_none(kind, withheld.raw) is not None
            for recorded in [pinned.description.entries.get((kind, name))]
        ]
        if self._comparison.instructions:
            why = " and ".join(change.sentence() for change in self._comparison.instructions)
            current = json_string(self._comparison.identity.instructions)
            texts.append(Question(None, "", current, why, json_string(pinned.description.identity.instructions)))
        return texts
