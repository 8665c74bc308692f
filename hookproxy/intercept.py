"""The life of one tools/call, top to bottom: asked, refused or forwarded, answered, commented, recorded (law 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

from . import feedback, legible, wire
from .audit import Audit, Record
from .calls import Call
from .hooks import Hooks
from .model import Event, Occasion, Outcome, Proceed, Refuse, Session, Settings, Statement, Tool

if TYPE_CHECKING:
    import msgspec

_ID_IN_META: Final = ("claudecode/toolUseId", "callId")
"""Where agents name their own call: Claude Code, Codex."""


class Ending(Enum):
    """How a forwarded call can end without an answer."""

    LOST = auto()  # the server is gone
    INTERRUPTED = auto()  # the agent cancelled it


class Desk(Protocol):
    """What a call needs of the proxy that holds it."""

    hooks: Hooks
    settings: Settings
    session: Session
    audit: Audit

    def agent(self) -> str:
        """Name and version as the agent gave them, else nothing."""

    def tool(self, name: str) -> Tool | None:
        """What a listing told of the tool."""

    async def opening(self) -> tuple[str, ...]:
        """Wait until SessionStart hooks are done; gives what they said if nobody has delivered it yet."""

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """Send the call to the server and wait for its answer."""

    def answer(self, call: Call, line: bytes) -> None:
        """Send the call's answer to the agent, unless it cancelled the call."""

    def stop_others(self, call: Call, refuse: Refuse) -> None:
        """Refuse all other calls that the server does not know yet."""

    def report(self, statements: Sequence[Statement]) -> None:
        """Tell people what hooks have for them: messages, and trouble."""

    def say(self, text: str) -> None:
        """Tell people."""

    def say_once(self, text: str) -> None:
        """Tell people, unless they have been told."""

    def lost(self, call: Call) -> bytes:
        """The line that tells the agent that the server is gone."""


_NO_OUTCOME: Final = Outcome()


@dataclass(frozen=True, slots=True)
class _Reading:
    """What an answer says, in brief."""

    final: bool
    """False: the call goes on in further requests, and no hook is asked yet."""
    failed: bool = False
    outcome: Outcome = _NO_OUTCOME


async def intercept(call: Call, desk: Desk) -> None:
    """See one call through. On cancel its hooks are ended, nothing is answered, and the record is still written."""
    begun = perf_counter()
    record = Record(desk.session.id, desk.session.server, call.tool, call.id, call.arguments, desk.agent())
    record.result = "cancelled"
    answer: bytes | None = None
    try:
        answer = await _judged(call, desk, record)
    except Exception as defect:
        record.result, record.reason = "error", f"a defect of hookproxy: {defect!r}"
        raise
    finally:
        record.ms = (perf_counter() - begun) * 1000
        problem = desk.audit.write(record)
        if problem:
            desk.say(f"the audit line of {call.tool} cannot be written: {problem}")
        if answer is not None:
            if problem and desk.audit.required and record.result != "refused":
                answer = feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=True)
            desk.answer(call, answer)


async def _judged(call: Call, desk: Desk, record: Record) -> bytes | None:
    """The call's answer; None where there is to be none."""
    if desk.audit.required and (problem := desk.audit.trouble()):
        desk.say(f"a call of {call.tool} is refused because its audit line cannot be written: {problem}")
        record.decision, record.result = "deny", "refused"
        return feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=False)
    opening = await desk.opening()
    occasion = _occasion(call, desk)
    hearing = await desk.hooks.before(occasion, desk.tool(call.tool))
    record.statements += hearing.statements
    desk.report(hearing.statements)
    asked = "asked-" if hearing.decision.asked else ""
    if isinstance(hearing.decision, Refuse):
        record.decision, record.result, record.reason = f"{asked}deny", "refused", hearing.decision.reason
        if hearing.decision.stop:
            desk.stop_others(call, hearing.decision)
        return refusal(call, replace(hearing.decision, feedback=(*opening, *hearing.decision.feedback)))
    record.decision, record.final = f"{asked}allow", hearing.decision.arguments or b""
    sent = perf_counter()
    answer = await desk.forward(call, _line(call, hearing.decision))
    texts = (*opening, *hearing.decision.feedback)
    if isinstance(answer, bytes) and not (texts or desk.audit.path or desk.hooks.comments_on(call.tool)):
        return answer  # nobody wants to know what it says
    timed = Outcome(duration_ms=round((perf_counter() - sent) * 1000))
    occasion = replace(occasion, arguments=hearing.arguments, outcome=timed)
    if isinstance(answer, Ending):
        return await _ended(call, desk, record, occasion, answer)
    return await _commented(call, desk, record, occasion, answer, texts)


def refusal(call: Call, refuse: Refuse) -> bytes:
    """The line that tells the agent, and its model, that the call is refused and why."""
    return feedback.refusal(call.id, refuse, Event.PRE_TOOL_USE, stateless=call.stateless, task=call.task)


def _occasion(call: Call, desk: Desk) -> Occasion:
    listed = desk.tool(call.tool)
    named = (wire.text(bytes(call.meta.get(key, b""))) for key in _ID_IN_META)
    return Occasion(
        event=Event.PRE_TOOL_USE,
        session=desk.session,
        tool=call.tool,
        tool_name=desk.hooks.first_name(call.tool),
        tool_use_id=next((name for name in named if name), f"call_{call.key.decode(errors='replace')}"),
        arguments=call.arguments,
        annotations=listed.annotations if listed else b"",
    )


def _line(call: Call, decision: Proceed) -> bytes:
    """The agent's own bytes, or the same with only `params.arguments` replaced."""
    if decision.arguments is None:
        return call.line
    start, end = wire.members(call.line)["params"]
    params = call.line[start:end]
    rewritten = wire.with_member(params, "arguments", wire.one_line(decision.arguments.replace(b"\n", b" ")))
    return wire.splice(call.line, [((start, end), rewritten)])


async def _ended(call: Call, desk: Desk, record: Record, occasion: Occasion, ending: Ending) -> bytes | None:
    """A call without an answer: PostToolUseFailure hooks hear of it; the agent does unless it cancelled."""
    interrupted = ending is Ending.INTERRUPTED
    record.result = "cancelled" if interrupted else "lost"
    said = "The call was cancelled." if interrupted else "The server exited before it answered."
    outcome = replace(occasion.outcome or _NO_OUTCOME, error=said, interrupted=interrupted)
    happened = replace(occasion, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    _, statements = await desk.hooks.after(happened)
    record.statements += statements
    desk.report(statements)
    return None if interrupted else desk.lost(call)


async def _commented(
    call: Call, desk: Desk, record: Record, occasion: Occasion, line: bytes, texts: tuple[str, ...]
) -> bytes:
    """The server's answer as the agent gets it: with what hooks say, or as it came."""
    try:
        reading = _read(call)
    except ValueError as problem:
        desk.say(f"the answer of {call.tool} is withheld: {problem}")
        record.result, record.reason = "error", str(problem)
        return feedback.ambiguous(call.id, str(problem))
    if not reading.final:
        record.result = "pending"
        return line
    record.result = "error" if reading.failed else "ok"
    event = Event.POST_TOOL_USE_FAILURE if reading.failed else Event.POST_TOOL_USE
    outcome = replace(reading.outcome, duration_ms=(occasion.outcome or _NO_OUTCOME).duration_ms)
    happened = replace(occasion, event=event, outcome=outcome)
    comments, statements = await desk.hooks.after(happened)
    record.statements += statements
    desk.report(statements)
    if any(one.verdict.stop for one in statements):
        desk.stop_others(call, Refuse(by=_stopping(statements), reason="", stop=True))
    tool = desk.tool(call.tool)
    if call.said is not None and call.said.error is not None and not call.said.error:
        return line  # there is nothing to withhold in it, and no place for a word
    if reading.outcome.has_result:
        delivered = feedback.deliver(line, comments, texts, desk.settings.feedback, tool)
    else:
        delivered = feedback.deliver_error(line, comments, texts)
    if delivered.note is not None:
        desk.say_once(f"{call.tool}: {delivered.note.value}")
    record.result_changed = delivered.line is not line
    return delivered.line


def _stopping(statements: Sequence[Statement]) -> str:
    return next(one.spec.label for one in statements if one.verdict.stop)


def _read(call: Call) -> _Reading:
    """What the answer says. Raises Unreadable, TwinKeys: the agent could read it otherwise than hooks would."""
    if call.said is None:
        raise wire.Unreadable("readers would take it differently")
    if call.said.error is not None:
        return _Reading(True, True, Outcome(error=_error_text(call.said.error)))
    members = call.said.result or {}
    kind = wire.text(bytes(members["resultType"])) if "resultType" in members else "complete"
    handle = (call.stateless and kind in ("input_required", "task")) or (call.task and "task" in members)
    if handle and members.keys().isdisjoint({"content", "structuredContent"}):  # else an agent may show that
        return _Reading(False)
    content = legible.legible(bytes(members["content"])) if "content" in members else b"[]"
    failed = "isError" in members and bytes(members["isError"]) == b"true"
    error = (_joined_text(content) or "The tool reported an error without a text.") if failed else ""
    return _Reading(True, failed, Outcome(content=content, has_result=True, error=error))


def _error_text(error: msgspec.Raw) -> str:
    """A JSON-RPC error as Claude Code words it for hooks."""
    try:
        members = wire.fields(error)
    except wire.Unreadable:
        return "MCP error"
    message = wire.text(bytes(members.get("message", b""))) or ""
    return f"MCP error {bytes(members.get('code', b'')).decode(errors='replace')}: {message}"


def _joined_text(content: bytes) -> str:
    """All text of content blocks, a line end between each two."""
    try:
        texts = [wire.text(bytes(wire.fields(bytes(block)).get("text", b""))) for block in wire.items(content)]
    except wire.Unreadable:
        return ""
    return "\n".join(text for text in texts if text)
