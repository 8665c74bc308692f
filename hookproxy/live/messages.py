"""The lines between a run and a console: each is one JSON object, whose `type` names it. Pure.

A console that connects gets a Run and then Changes, of which the first has all calls in flight. It sends Answers, and
gets an AnswerTaken for each. Both ignore members and types that they do not know, so that versions can be mixed.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from ..model.principal import Principal

VERSION: Final = 1
"""The format's number: `v` in the first line."""

LONGEST_EDIT: Final = 256 * 1024
"""Characters of arguments that a person has changed: nobody reads more of them in a form."""

LONGEST_ANSWER: Final = 2 * 1024 * 1024
"""Bytes of the longest line that a run accepts: an answer with its reason and changed arguments, all of it escaped."""

LONGEST_REASON: Final = 4000
"""Characters of a reason that a person gives to the model."""

Action = Literal["allow", "allow_session", "allow_similar", "deny"]
"""What a person answers: this call, all calls of this tool in this session, those that are like this one, or no."""

Stage = Literal["hooks", "approval", "sent", "after"]
"""What a call waits for: hooks before it, a person, the server, or hooks after it."""


NOTHING: Final = Raw(b"null")
"""In place of arguments that a line does not have."""


class RunSession(Struct, frozen=True):
    """One agent and one server."""

    session: str
    """The id that the audit has."""
    server: str
    agent: str = ""
    """Name and version as the agent gave them; empty until it has."""
    user: str = ""
    """At a gateway, who has opened it."""


class Run(Struct, frozen=True, tag="run"):
    """Who runs: the first line."""

    v: int
    run: str
    """Unlike that of any other run."""
    pid: int
    started: float
    """In seconds since 1970."""
    command: tuple[str, ...] = ()
    """The server's command line."""
    url: str = ""
    """The address of a server that is not started."""
    cwd: str = ""
    config: str = ""
    """The path of the configuration; empty: there is none."""
    judges: bool = True
    """False: no hook, rule or audit needs the lines, so that calls pass unread."""


class Counts(Struct, frozen=True):
    """How many calls there were since the run began. These are exact, however many calls are listed."""

    calls: int = 0
    """Those that have ended."""
    refused: int = 0
    rewritten: int = 0
    failed: int = 0
    """Those that ended with an error, or without a response."""
    asked: int = 0
    """Those about which a person was asked."""


class RunningHook(Struct, frozen=True):
    """A hook that a call waits for."""

    source: str
    event: str
    since: float
    """In seconds since 1970."""


class CallInFlight(Struct, frozen=True):
    """A call that has not ended."""

    call: str
    """Its id in the audit."""
    session: str
    at: float
    """When it came, in seconds since 1970."""
    tool: str
    stage: Stage
    since: float
    """When this stage began, in seconds since 1970."""
    arguments: Raw = NOTHING
    """As the agent sent them; NOTHING in later lines about the same call, and if they are too long to be shown live."""
    arguments_bytes: int = 0
    rewritten: Raw = NOTHING
    """The arguments that were sent, if hooks have rewritten them."""
    alias: str = ""
    hooks: tuple[RunningHook, ...] = ()


class WaitingApproval(Struct, frozen=True):
    """An approval that waits for a person."""

    id: str
    """Its id, which an Answer names."""
    call: str
    session: str
    server: str
    tool: str
    arguments: Raw
    """All arguments that will run, after every rewrite."""
    reason: str
    asked_by: str
    """The hook or rule that wants it."""
    at: float
    until: float
    """When the call is denied if nobody has answered. Both in seconds since 1970."""
    alias: str = ""
    place: str = ""
    """Where the rule is configured: file, line and key."""
    may_allow_session: bool = True
    """Whether `allow_session` is possible."""
    user: str = ""
    """Whose call it is, at a gateway."""
    user_id: str = ""
    """The id of that user."""
    agent: str = ""
    """Name and version of the agent whose call it is; empty: not known."""
    similar: str = ""
    """The calls like this one, as a permission rule; empty: `allow_similar` is not possible."""
    may_edit: bool = False
    """Whether a person may change the arguments before allowing the call."""
    recorded: Raw = NOTHING
    """Of a question that is not about a call: what is recorded of the tool in hookproxy.lock."""
    now: Raw = NOTHING
    """What the server says now; NOTHING: it is about a call."""

    @property
    def is_about_lock(self) -> bool:
        """It asks whether what a server says of itself is accepted."""
        return bytes(self.now) != b"null"


class Settled(Struct, frozen=True):
    """An approval that no longer waits."""

    approval: str
    action: Action | Literal["expired", "withdrawn"]
    by: str = ""
    """Who answered, and from where."""


class Changes(Struct, frozen=True, tag="changes", omit_defaults=True):
    """What has changed since the last such line."""

    counts: Counts = Counts()
    sessions: tuple[RunSession, ...] = ()
    """New sessions, and those whose agent is known now."""
    ended_sessions: tuple[str, ...] = ()
    calls: tuple[CallInFlight, ...] = ()
    """New calls, and those in another stage."""
    ended: tuple[Raw, ...] = ()
    """Calls that have ended, each as the audit records it (`audit.records.CallRecord`), with all its arguments."""
    gone: tuple[str, ...] = ()
    """Ids of further calls that have ended, which are too many or too long to be listed."""
    asked: tuple[WaitingApproval, ...] = ()
    settled: tuple[Settled, ...] = ()


class Answer(Struct, frozen=True, tag="answer"):
    """A person's answer to an approval, from a console."""

    approval: str
    action: Action
    reason: str = ""
    """For the model, with `deny`."""
    place: str = ""
    """Where the person is: the console's kind and address, such as `web console, 127.0.0.1`."""
    arguments: str = ""
    """With `allow`: all arguments as JSON, as the person has changed them; empty: they stay as they are."""
    token: str = ""
    """What proves that the answer came by the webhook's message; empty: a console gives it."""


class AnswerTaken(Struct, frozen=True, tag="answer_taken"):
    """What became of an answer."""

    approval: str
    accepted: bool
    why: str = ""
    """A sentence for the person, if it was not accepted."""
    found: bool = True
    """There was such an approval, and the answer's token was its own."""


class GivenAnswer(Struct, frozen=True):
    """An answer, as the process that has asked takes it."""

    answer: Answer
    by: str
    """Who, and from where."""
    who: Principal | None = None
    """The person, at a gateway that looks at who may answer."""
    arguments: bytes = b""
    """The changed arguments as they were read when the answer was taken; empty: they stay as they are."""


FromRun = Run | Changes | AnswerTaken

_Message = TypeVar("_Message")
_ENCODER: Final = msgspec.json.Encoder()


@cache  # a run that no console connects to needs none
def _from_run() -> msgspec.json.Decoder[FromRun]:
    return msgspec.json.Decoder(FromRun)


@cache
def _from_console() -> msgspec.json.Decoder[Answer]:
    return msgspec.json.Decoder(Answer)


class Unreadable(ValueError):
    """A line that is none of these messages."""


def _read(decoder: msgspec.json.Decoder[_Message], line: bytes) -> _Message:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Unreadable(str(problem)) from None


def encode(message: FromRun | Answer) -> bytes:
    """The message as a line."""
    return _ENCODER.encode(message) + b"\n"


def from_run(line: bytes) -> FromRun:
    """What a run says. Raises Unreadable."""
    return _read(_from_run(), line)


def from_console(line: bytes) -> Answer:
    """What a console says. Raises Unreadable, also for a reason or arguments that are too long."""
    answer = _read(_from_console(), line)
    if len(answer.reason) > LONGEST_REASON:
        raise Unreadable(f"a reason may have {LONGEST_REASON} characters")
    if len(answer.arguments) > LONGEST_EDIT:
        raise Unreadable(f"changed arguments may have {LONGEST_EDIT} characters")
    return answer
