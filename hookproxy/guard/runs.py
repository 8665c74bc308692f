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
from ..policy.sent_approvals import read_approved
from ..processes.ancestry import Process
from .agent_sessions import AgentSessions
from .limit_windows import LimitWindows
from .native_session import NativeSession
from .run_messages import Allow, Approvals, Count, Exceeded, Join, Limits, Request, Response

_DECODER: Final = Decoder(Request)
_ENCODER: Final = Encoder()


class NotARun(Exception):
    """What has connected does not speak as a run of this version does."""


class RunPeer:
    """One run of the proxy, from its first request on."""

    def __init__(self, processes: Sequence[Process], sessions: Callable[[], AgentSessions]) -> None:
        """`processes` are those that may be its agent, as `agent_process` says; `sessions` returns those
        that are known now."""
        self._processes, self._sessions = processes, sessions
        self._joined: Join | None = None

    def answer(self, line: bytes) -> bytes:
        """The response to a request, with its line end. Raises NotARun."""
        try:
            request = _DECODER.decode(line)
        except (ValueError, RecursionError) as unreadable:
            raise NotARun(str(unreadable)) from None
        if isinstance(request, Join):
            if request.version != __version__:
                raise NotARun(f"it is of version {request.version}")
            self._joined = request
        if self._joined is None:
            raise NotARun("it has not said who it is")
        session = self._sessions().of_run(self._processes, self._joined.session)
        return _ENCODER.encode(_response(session, self._joined.server, request)) + b"\n"


def _response(session: NativeSession, server: str, request: Request) -> Response:
    """Raises NotARun."""
    match request:
        case Limits():
            return Response(session.id, tuple(_exceeded(session.limits, request)))
        case Approvals():
            approved = session.approvals(server).all
            return Response(session.id, approved=tuple(Raw(_ENCODER.encode(calls)) for calls in approved))
        case Allow(calls):
            _add(session, server, calls)
        case Join():
            pass
    return Response(session.id)


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


def _add(session: NativeSession, server: str, calls: Raw) -> None:
    """Raises NotARun."""
    try:
        approved = read_approved(bytes(calls))
    except (ValueError, RecursionError) as unreadable:
        raise NotARun(str(unreadable)) from None
    if not approved.managed:
        session.approvals(server).add(approved)
