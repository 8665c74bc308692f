"""Performs what the switchboard decides, with one task for each judged call; what such a call needs is here (law 1)."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

import anyio
import anyio.abc

from . import feedback, wire
from .audit import Audit
from .calls import Call, Phase
from .changes import Changes
from .effects import (
    Answered,
    CancelCall,
    Dropped,
    FromAgent,
    FromServer,
    InitializeAnswered,
    Noise,
    Opened,
    Refused,
    StartCall,
    ToolsListed,
)
from .hooks import Hooks
from .intercept import Ending, intercept, refusal
from .model import Delivery, Event, Occasion, Refuse, Session, Settings, Statement, Tool
from .relay import Relay
from .switchboard import Switchboard
from .transports.base import Channel

_NOISE_SHOWN: Final = 2000  # bytes of a line that is no JSON: enough to know it by, and no flood
_HELD: Final = "too many bytes are held for hooks"

Say = Callable[[str], None]
"""Tells people one line, on standard error. Never blocks."""


class Proxy:
    """One agent and one server, and the calls between them. Without hooks everything passes."""

    def __init__(  # noqa: PLR0913  # its parts, each made elsewhere
        self,
        agent: Channel,
        server: Channel,
        hooks: Hooks,
        settings: Settings,
        session: Session,
        audit: Audit,
        say: Say,
    ) -> None:
        self.hooks = hooks
        self.settings = settings
        self.session = session
        self.audit = audit
        self.say = say
        self.board = Switchboard(self._concerns if hooks.any else None)
        self.relay = Relay(agent, server, self.board, settings.max_message_bytes, hooks.any, self._perform)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._running: dict[Call, anyio.TaskHandle[None]] = {}
        self._last_words: dict[Call, bytes] = {}  # what the agent is told of a call whose task we end
        self._answered: dict[Call, anyio.Event] = {}
        self._held: set[Call] = set()
        self._held_bytes = 0
        self._said: set[str] = set()
        self._logging = False
        self.server_lost = ""
        """How the server ended, once it has."""
        self.changes = Changes()
        self.passed = Changes()  # lines from the server: told apart, because they are many
        self._begun = anyio.Event()  # SessionStart hooks have spoken
        self._opening: tuple[str, ...] = ()
        self._unsaid = hooks.hears(Event.SESSION_START)
        self._introducing = 0  # answers to `initialize` that wait for SessionStart hooks

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Calls live in `tasks` from now on."""
        self._tasks = tasks
        self.hooks.run_aside_in(tasks, self.report, self.changes.tell)
        self.relay.on_passed = self.passed.tell
        if not self.hooks.hears(Event.SESSION_START):
            self._begun.set()

    def _concerns(self, tool: str) -> bool:
        """True if hooks are to see calls of this tool; what SessionStart said may wait for any call at all."""
        return (self._unsaid and not self.board.handshake) or self.hooks.concerns(tool)

    def _perform(self, effect: FromAgent | FromServer, line: bytes) -> None:  # noqa: C901  # one case for each
        match effect:
            case StartCall(call):
                self._start(call)
            case Answered(call):
                self._answered[call].set()
            case CancelCall(call, forward):
                self._cancel(call, line if forward else b"")
            case Refused(why, id_lexeme, unreadable):
                self.say(f"refused a message of the agent: {why}")
                self.relay.to_agent(feedback.refused_frame(id_lexeme, why, unreadable=unreadable))
            case Opened():
                self._open_session()
            case InitializeAnswered():
                self._introduce(line)
            case ToolsListed():
                self.relay.to_agent(self._listing(line))
            case Noise():
                self.say(f"the server printed what is no JSON: {line[:_NOISE_SHOWN].decode(errors='replace').rstrip()}")
            case Dropped(why):
                self.say(f"dropped {why}")
                if problem := self.audit.note(self.session, f"dropped {why}"):
                    self.say(f"an audit line cannot be written: {problem}")
            case _:
                raise AssertionError(f"{effect} is for the relay")

    def _spawn(
        self, function: Callable[..., Coroutine[object, object, None]], *arguments: object
    ) -> anyio.TaskHandle[None]:
        assert self._tasks is not None, "open comes before the first byte"
        return self._tasks.start_soon(function, *arguments)

    def _start(self, call: Call) -> None:
        self._hold(call)
        self._running[call] = self._spawn(self._see_through, call)

    def _hold(self, call: Call) -> None:
        """Keep memory bounded: read no more from the agent while as much waits for hooks as one line may have."""
        self._held.add(call)
        self._held_bytes += len(call.line)
        self.relay.pause_agent(_HELD, self._held_bytes > self.settings.max_message_bytes)

    def _let_go(self, call: Call) -> None:
        if call in self._held:
            self._held.remove(call)
            self._held_bytes -= len(call.line)
            self.relay.pause_agent(_HELD, self._held_bytes > self.settings.max_message_bytes)

    async def _see_through(self, call: Call) -> None:
        """One call's task. Whatever happens in it ends this call alone, and never lets it pass unjudged."""
        try:
            await intercept(call, self)
        except Exception as defect:  # the task's boundary: fail closed, and say so
            self.say("".join(traceback.format_exception(defect)).rstrip())
            self.answer(call, feedback.defect(call.id, f"{type(defect).__name__}: {defect}"))
        finally:
            del self._running[call]
            self._let_go(call)
            if call in self._last_words:
                self.answer(call, self._last_words.pop(call))
            self.changes.tell()

    def _cancel(self, call: Call, notification: bytes) -> None:
        if not notification:
            self._running[call].cancel()
            return
        self.relay.to_server(wire.one_line(notification))
        if call in self._answered:
            self._answered[call].set()

    # --- the session ---

    def _open_session(self) -> None:
        for source in self.hooks.double(self.board.agent):
            self.say(f"{self.board.agent} runs the hooks of {source} itself, so that they now run twice for each call")
        if not self._begun.is_set():
            self._spawn(self._begin_session)

    async def _begin_session(self) -> None:
        """SessionStart hooks speak when the agent has begun the session: a probing copy of us is never asked."""
        self._opening = await self.session_event(Event.SESSION_START, "startup")
        self._begun.set()

    async def session_event(self, event: Event, occasioned_by: str) -> tuple[str, ...]:
        """Ask SessionStart or SessionEnd hooks; gives what they have for the model."""
        statements = await self.hooks.of_session(Occasion(event, self.session, occasioned_by=occasioned_by))
        self.report(statements)
        return tuple(text for one in statements for text in one.verdict.feedback)

    def _introduce(self, line: bytes) -> None:
        """The server has answered `initialize`: what it declares, and what SessionStart hooks have to add."""
        with contextlib.suppress(ValueError, KeyError):
            result = wire.fields(bytes(wire.fields(line)["result"]))
            self._logging = "logging" in wire.fields(bytes(result["capabilities"]))
        if self._begun.is_set() and not self._opening:
            self.relay.to_agent(line)
        else:
            self._introducing += 1
            self._spawn(self._instruct, line)

    async def _instruct(self, line: bytes) -> None:
        await self._begun.wait()
        texts, self._opening = self._opening, ()
        self.relay.to_agent(feedback.with_instructions(line, texts))
        self._introducing -= 1
        self.changes.tell()

    def _listing(self, line: bytes) -> bytes:
        if self.settings.feedback is Delivery.STRIP_OUTPUT_SCHEMA:
            return feedback.without_output_schemas(line, self.hooks.concerns)
        return line

    # --- what a call needs (intercept.Desk) ---

    def agent(self) -> str:
        """As in Desk."""
        return self.board.agent

    def tool(self, name: str) -> Tool | None:
        """As in Desk."""
        return self.board.tools.get(name)

    async def opening(self) -> tuple[str, ...]:
        """As in Desk."""
        if not self._begun.is_set():  # to wait for what has happened would cost a trip around the loop
            await self._begun.wait()
        if self.board.handshake:  # its place is in the answer to `initialize`
            return ()
        texts, self._opening, self._unsaid = self._opening, (), False
        return texts

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """As in Desk."""
        await self.passed.until(lambda: not self.relay.passing)  # what has begun must not end as this call's answer
        if self.server_lost or self.relay.server.gone:
            return Ending.LOST
        if not self.board.release(call):
            return Ending.INTERRUPTED
        answered = self._answered[call] = anyio.Event()
        self.relay.to_server(line)
        self._let_go(call)
        try:
            await answered.wait()
        finally:
            del self._answered[call]
        if call.phase is Phase.CANCELLED:
            return Ending.INTERRUPTED
        return call.answer or Ending.LOST

    def answer(self, call: Call, line: bytes) -> None:
        """As in Desk."""
        if self.board.finish(call):
            self.relay.to_agent(line)

    def stop_others(self, call: Call, refuse: Refuse) -> None:
        """As in Desk."""
        self.end_held(lambda other: refusal(other, refuse), but=call)

    def end_held(self, last_words: Callable[[Call], bytes], but: Call | None = None) -> None:
        """End the hooks of all calls that the server does not know yet; each is told `last_words`."""
        self._end(last_words, [call for call in self._running if call.phase is Phase.HELD and call is not but])

    def end_all(self, last_words: Callable[[Call], bytes]) -> None:
        """End the hooks of all calls: what has not been judged by now does not pass."""
        self._end(last_words, list(self._running))

    def _end(self, last_words: Callable[[Call], bytes], calls: Sequence[Call]) -> None:
        for call in calls:
            self._last_words[call] = last_words(call)
            self._running[call].cancel()

    def lose_server(self, how: str) -> None:
        """The server is gone: calls that it has are lost, and calls that it should have got are."""
        self.server_lost = how
        self.end_held(self.lost)
        for answered in self._answered.values():
            answered.set()

    def lost(self, call: Call) -> bytes:
        """As in Desk."""
        return feedback.server_lost(call.id, self.server_lost or "closed its input")

    def report(self, statements: Sequence[Statement]) -> None:
        """As in Desk."""
        for one in statements:
            if one.verdict.trouble:
                self.say(f"{one.spec.event} hook {one.spec.label} ({one.spec.source}): {one.verdict.trouble}")
            for text in one.verdict.messages:
                self.say(f"{one.spec.label}: {text}")
                if self._logging:
                    self.relay.to_agent(feedback.log_entry(text))

    def say_once(self, text: str) -> None:
        """As in Desk."""
        if text not in self._said:
            self.say(text)
        self._said.add(text)

    @property
    def busy(self) -> bool:
        """Some judged call, or an answer that hooks may add to, is still under way."""
        return bool(self._running or self._introducing)

    @property
    def holding(self) -> bool:
        """Some call waits for hooks that decide whether the server gets it."""
        return any(call.phase is Phase.HELD for call in self._running)
