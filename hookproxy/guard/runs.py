"""Answers a run of the proxy that has connected: what its session of the agent has in common (law 1).

What a run may say is little: which session it is in follows from its process, whatever it says; it can ask for and add
to what is allowed of its own server's tools alone, and never to what the administrator requires. It changes no policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder, Encoder

from .. import __version__
from ..model.told_call import ToldCall
from ..policy.sent_approvals import read_approved
from ..processes.ancestry import Process
from .judge import Judge
from .limit_windows import LimitWindows
from .native_session import NativeSession
from .open_calls import OpenCall
from .run_messages import (
    Allow,
    Approvals,
    Claim,
    Count,
    Ended,
    Exceeded,
    Join,
    KeepSecrets,
    Limits,
    Listed,
    Request,
    Response,
    SecretKey,
    SecretOf,
)

_DECODER: Final = Decoder(Request)
_ENCODER: Final = Encoder()


class NotARun(Exception):
    """What has connected does not speak as a run of this version does."""


class RunPeer:
    """One run of the proxy, from its first request on."""

    def __init__(self, processes: Sequence[Process], judge: Callable[[], Judge]) -> None:
        """`processes` are those that may be its agent, as `agent_process` says; `judge` returns what judges now."""
        self._processes, self._judge = processes, judge
        self._joined: Join | None = None
        self._taken_over: dict[str, OpenCall] = {}  # by the ids of their records

    def answer(self, line: bytes) -> bytes:
        """The response to a request, with its line end. Raises NotARun."""
        try:
            request = _DECODER.decode(line)
        except (ValueError, RecursionError) as unreadable:
            raise NotARun(str(unreadable)) from None
        judge = self._judge()
        if isinstance(request, Join):
            if request.version != __version__:
                raise NotARun(f"it is of version {request.version}")
            self._joined = request
        if self._joined is None:
            raise NotARun("it has not said who it is")
        session = judge.sessions.of_run(self._processes, self._joined.session)
        return _ENCODER.encode(self._response(judge, session, self._joined, request)) + b"\n"

    def close(self) -> None:
        """It has gone: how its calls end will not be known."""
        for call in self._taken_over.values():
            self._judge().calls.lost(call)

    def _response(self, judge: Judge, session: NativeSession, run: Join, request: Request) -> Response:
        """Raises NotARun."""
        match request:
            case Claim():
                return Response(session.id, told=self._claimed(judge, run, request))
            case Ended(record, size, seconds):
                if (call := self._taken_over.pop(record, None)) is not None:
                    judge.calls.ended(call, size, seconds)
            case Limits():
                return Response(session.id, tuple(_exceeded(session.limits, request)))
            case Approvals():
                approved = session.approvals(run.server).all
                return Response(session.id, approved=tuple(Raw(_ENCODER.encode(calls)) for calls in approved))
            case SecretKey() | KeepSecrets() | SecretOf():
                return _about_secrets(session, request)
            case _:
                _note(session, run, request)
        return Response(session.id)

    def _claimed(self, judge: Judge, run: Join, claim: Claim) -> ToldCall | None:
        claimed = judge.calls.claim(judge.sessions.agent_of(self._processes), run, claim)
        if claimed is None:
            return None
        call, told = claimed
        if told.decided:
            self._taken_over[told.record] = call
        return told


def _exceeded(windows: LimitWindows, request: Limits) -> Iterator[Exceeded]:
    """Raises NotARun."""
    limits = request.limits
    try:
        if not isinstance(request, Count):
            exceeded = windows.exceeded(limits, request.keys)
        else:
            refusing = windows.count(limits, request.keys, request.approved)
            exceeded = [] if refusing is None else [refusing]
    except ValueError as problem:
        raise NotARun(str(problem)) from None
    return (Exceeded(limits.index(reached.limit), reached.retry_after) for reached in exceeded)


def _about_secrets(session: NativeSession, request: SecretKey | KeepSecrets | SecretOf) -> Response:
    match request:
        case SecretKey():
            return Response(session.id, secret_key=session.secrets.key)
        case SecretOf(placeholder):
            return Response(session.id, secret=session.secrets.value_of(placeholder))
        case KeepSecrets(values):
            session.secrets.keep(values)
            return Response(session.id)


def _note(session: NativeSession, run: Join, request: Join | Listed | Allow) -> None:
    """Note what a run says. Raises NotARun."""
    match request:
        case Join():
            session.begin_run(run.server, run.command)
        case Listed(tools, server_name):
            session.note_tools(run.server, tools, server_name)
        case Allow(calls):
            try:
                approved = read_approved(bytes(calls))
            except (ValueError, RecursionError) as unreadable:
                raise NotARun(str(unreadable)) from None
            if not approved.managed:
                session.approvals(run.server).add(approved)
