"""Occasions outside of calls: the session's begin and end, questions to the person, what happens beside a call.

Law 3: what hooks have for people is told on standard error, to the agent's log where there is one, and in the audit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import time
from typing import Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ..audit.log import Audit
from ..jsonrpc import raw_json
from ..model.hooks import SILENT, Event, Occasion, Session, Statement
from ..protocol import feedback
from ..protocol.actions import Elicited
from ..protocol.handshake import Greeting
from .evaluate import Hooks

_AT_ONCE: Final = 64  # occasions that nobody waits for: a server that asks for ever must not fill memory with them
_RECORDED: Final = frozenset(
    {Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST}
)
"""The events whose hooks stand in the record of their call."""


class Surroundings(Struct, frozen=True):
    """What moments need of the proxy."""

    hooks: Hooks
    session: Session
    audit: Audit
    say: Callable[[str], None]
    """Tells people one line, on standard error. Never blocks."""
    to_agent: Callable[[bytes], None]
    spawn: Callable[..., None]
    """Starts a task that ends with the proxy."""
    tell: Callable[[], None]
    """Something has changed that the end of the run may wait for."""


class Moments:
    """What hooks are told, and say, when it is no call's turn."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._begun = anyio.Event()  # SessionStart hooks have spoken
        self._words: tuple[str, ...] = ()  # for the model, and not delivered yet
        self._introduced = False
        self._logging = False
        self._said: set[str] = set()
        self._starts = around.hooks.groups.hears(Event.SESSION_START)
        self.unsaid = self._starts
        """SessionStart hooks may have something for the model that no answer has carried yet."""
        self.introducing = 0
        """Answers to `initialize` that wait for SessionStart hooks."""
        self.aside = 0
        """Occasions that hooks are told of while nobody waits."""
        if not self._starts:
            self._begun.set()

    def begin_session(self) -> None:
        """The agent has begun the session: SessionStart hooks speak now. A probing copy of us is never asked."""
        if self._starts:
            self._around.spawn(self._begin)

    async def _begin(self) -> None:
        occasion = Occasion(Event.SESSION_START, self._around.session, occasioned_by="startup", at=time())
        try:
            self._words += _words(await self._around.hooks.at(occasion))
        except OSError as problem:  # too few descriptors or processes
            self._around.say(f"SessionStart hooks could not be run: {problem.strerror}")
        self._begun.set()

    async def end_session(self) -> None:
        """Ask the SessionEnd hooks. On cancel they are ended with their whole process groups."""
        occasion = Occasion(Event.SESSION_END, self._around.session, occasioned_by="other", at=time())
        try:
            await self._around.hooks.at(occasion)
        except OSError as problem:  # too few descriptors or processes
            self._around.say(f"SessionEnd hooks could not be run: {problem.strerror}")

    def introduce(self, line: bytes, greeting: Greeting) -> None:
        """The server has answered `initialize`: what it declares, and what SessionStart hooks have to add."""
        with contextlib.suppress(ValueError, KeyError):
            result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
            greeting.answered(result)
            self._logging = "logging" in raw_json.fields(bytes(result["capabilities"]))
        if self._begun.is_set() and not self._words:
            self._introduced = True
            self._around.to_agent(line)
        else:
            self.introducing += 1
            self._around.spawn(self._instruct, line)

    async def _instruct(self, line: bytes) -> None:
        await self._begun.wait()
        texts, self._words = self._words, ()
        self._introduced = True
        self._around.to_agent(feedback.with_instructions(line, texts))
        self.introducing -= 1
        self._around.tell()

    def silent(self) -> bool:
        """There is nothing that an answer should carry, and SessionStart hooks are done."""
        return not (self.unsaid or self._words)

    async def words(self, uses_initialize: bool) -> tuple[str, ...]:
        """Wait until SessionStart hooks are done; gives what waits for the model, to go with a call's result.

        With `uses_initialize`, what comes before the answer to `initialize` goes into that.
        """
        if not self._begun.is_set():  # to wait for what has happened would cost a trip around the loop
            await self._begun.wait()
        if uses_initialize and not self._introduced:
            return ()
        texts, self._words, self.unsaid = self._words, (), False
        return texts

    def elicited(self, elicited: Elicited, only_told: bool = False) -> None:
        """The server asks the person, or has the answer, in the stateless era; `only_told` as in `occur`."""
        occasion = Occasion(
            Event.ELICITATION_RESULT if elicited.action else Event.ELICITATION,
            self._around.session,
            occasioned_by=elicited.action,
            message=elicited.message,
            inquiry=elicited.inquiry,
        )
        self.occur(occasion, only_told)
        if not elicited.action:
            self.shown(elicited.message)

    def shown(self, message: str) -> None:
        """The person is shown a question of the server."""
        session = self._around.session
        self.occur(Occasion(Event.NOTIFICATION, session, occasioned_by="elicitation_dialog", message=message))
        self.occur(Occasion(Event.USER_INPUT, session, message=message))

    def occur(self, occasion: Occasion, only_told: bool = False) -> None:
        """Tell hooks of something that nobody waits for; what they have for the model goes with the next answer.

        `only_told`: but for those that may answer a question of the server.
        """
        groups = self._around.hooks.groups
        if not groups.hears(occasion.event) or (only_told and all(one.answers for one in groups.at(occasion))):
            return
        if self.aside >= _AT_ONCE:
            self._around.say(f"{occasion.event} hooks are not told: {_AT_ONCE} such hooks are running")
            return
        self.aside += 1
        self._around.spawn(self._occur, replace(occasion, at=time()), only_told)

    async def _occur(self, occasion: Occasion, only_told: bool) -> None:
        try:
            self.keep_feedback(await self._around.hooks.at(occasion, only_told))
        except OSError as problem:  # too few descriptors or processes
            self._around.say(f"{occasion.event} hooks could not be run: {problem.strerror}")
        finally:
            self.aside -= 1
            self._around.tell()

    def keep_feedback(self, statements: list[Statement]) -> None:
        """Keep what hooks had for the model, until an answer can carry it."""
        self._words += _words(statements)

    def report(self, one: Statement) -> None:
        """Tell people what a hook has for them: messages, and trouble with it."""
        if one.verdict is SILENT:  # as nearly all are
            return
        spec, around = one.spec, self._around
        told = list(one.verdict.messages)
        for text in told:
            around.say(f"{spec.label}: {text}")
            if self._logging:
                around.to_agent(feedback.log_entry(text))
        if one.verdict.trouble:
            follows = f"; {one.consequence}" if one.consequence else ""
            around.say(f"{spec.event} hook {spec.label} ({spec.source}): {one.verdict.trouble}{follows}")
            told.append(one.verdict.trouble)
        if told and (spec.event not in _RECORDED or spec.background):
            self.note(f"{spec.event} hook {spec.label} ({spec.source}): " + "; ".join(told))

    def say_once(self, text: str) -> None:
        """Tell people, unless they have been told."""
        if text not in self._said:
            self._said.add(text)
            self._around.say(text)

    def note(self, text: str) -> None:
        """Put a sentence into the audit."""
        if problem := self._around.audit.note(self._around.session, text):
            self._around.say(f"an audit line cannot be written: {problem}")


def _words(statements: list[Statement]) -> tuple[str, ...]:
    return tuple(text for one in statements for text in one.verdict.feedback)
