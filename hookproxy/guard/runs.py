"""Responds to a run of the proxy that has connected, with what its session of the agent has in common (law 1).

How it works: a connection is a run from its first request on, `Join`, and its requests are judged by what judges now.
Little of what it reports is believed. Its session follows from its process alone. It can ask for and add to what is
allowed of its own server's tools, and never to what the administrator requires. It changes no policy. A server of a
run, and what that starts, is not a run of the agent, whatever it claims to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Raw
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from .. import __version__
from ..model.flow import SEVERAL_SERVERS, ClearedFlow, Reading
from ..model.reported_call import ReportedCall
from ..policy.sent_approvals import read_approved
from ..policy.shared_state import Approved, StoreUnavailable
from .agent_process import RunProcess
from .judge import Judge
from .limit_windows import LimitWindows
from .native_session import NativeSession, ServerApprovals
from .open_calls import OpenCall
from .run_messages import (
    Allow,
    Approvals,
    Claim,
    Clear,
    Count,
    Ended,
    Exceeded,
    Join,
    KeepSecrets,
    KnownNow,
    LabelKey,
    LabelRequest,
    Limits,
    Listed,
    Read,
    Request,
    Response,
    SecretKey,
    SecretOf,
    SecretRequest,
)

if TYPE_CHECKING:
    from ..flow.session_labels import KeptLabels

_DECODER: Final = Decoder(Request)
_ENCODER: Final = Encoder()

_LONGEST_NAME: Final = 256  # characters of a text about a reading: as many as a run keeps of a tool's name
_LONGEST_LABEL: Final = 64  # characters, as `model.flow.Label` has it
_MOST_LABELS: Final = 256  # of a reading: more than a configuration has


class NotARun(Exception):
    """What has connected does not speak as a run of this version does."""


class RunPeers:
    """All runs that are connected. None may stand below another one: it is a server, or what a server starts."""

    def __init__(self) -> None:
        self._joined: list[RunPeer] = []

    def join(self, peer: RunPeer) -> None:
        """A run has said who it is. What has pretended to be a run before, and stands below it, has said nothing."""
        self._joined.append(peer)
        for other in self._joined:
            if other.process.is_below(peer.process):
                other.revoke()

    def check(self, peer: RunPeer) -> None:
        """Raises NotARun if it stands below a run."""
        if peer.process.is_server or any(peer.process.is_below(other.process) for other in self._joined):
            raise NotARun("a server of another run has started it")

    def leave(self, peer: RunPeer) -> None:
        """It has gone."""
        if peer in self._joined:
            self._joined.remove(peer)


class RunPeer:
    """One run of the proxy, from its first request on."""

    def __init__(self, process: RunProcess, judge: Callable[[], Judge], peers: RunPeers) -> None:
        """`judge` returns what judges now."""
        self.process = process
        self._judge, self._peers = judge, peers
        self._run: Join | None = None
        self._taken_over: dict[str, OpenCall] = {}  # by the ids of their records
        self._allowed: list[tuple[ServerApprovals, Approved]] = []
        self._cleared: list[tuple[KeptLabels, ClearedFlow]] = []

    def respond(self, line: bytes) -> bytes:
        """The response to a request, with its line end. Raises NotARun."""
        self._peers.check(self)
        try:
            request = _DECODER.decode(line)
        except (ValueError, RecursionError) as unreadable:
            raise NotARun(str(unreadable)) from None
        if isinstance(request, Join):
            self._join(request)
        if self._run is None:
            raise NotARun("it has not said who it is")
        judge = self._judge()
        session = judge.sessions.of_run(self.process.agents, self._run.session)
        try:
            response = self._response(judge, session, self._run, request)
        except StoreUnavailable as problem:  # it gets no response, and so lets nothing pass that needs one
            raise NotARun(str(problem)) from problem
        return _ENCODER.encode(response) + b"\n"

    def _join(self, join: Join) -> None:
        if self._run is not None:
            raise NotARun("it has said before who it is")
        if join.version != __version__:
            raise NotARun(f"it is of version {join.version}")
        self._run = join
        self._peers.join(self)

    def revoke(self) -> None:
        """What it has reported that a person allows holds no longer."""
        for approvals, calls in self._allowed:
            approvals.remove(calls)
        for kept, cleared in self._cleared:
            kept.revoke(cleared)

    def close(self) -> None:
        """It has gone: how its calls end will not be known."""
        self._peers.leave(self)
        for call in self._taken_over.values():
            self._judge().calls.lost(call)

    def _response(self, judge: Judge, session: NativeSession, run: Join, request: Request) -> Response:
        """Raises NotARun."""
        match request:
            case Claim():
                return Response(session.id, reported=self._claimed(judge, run, request))
            case Ended():
                if (call := self._taken_over.pop(request.record, None)) is not None:
                    judge.calls.ended(call, request)
            case Limits():
                return Response(session.id, tuple(_exceeded(session.limits, request)))
            case Approvals() | Allow():
                return self._about_approvals(session, session.approvals(run.server), request)
            case SecretKey() | KeepSecrets() | SecretOf():
                return _about_secrets(session, request)
            case LabelKey() | KnownNow() | Read() | Clear():
                return self._about_labels(session, request)
            case _:
                _note(session, run, request)
        return Response(session.id)

    def _about_approvals(
        self, session: NativeSession, approvals: ServerApprovals, request: Approvals | Allow
    ) -> Response:
        if isinstance(request, Approvals):
            return Response(session.id, approved=tuple(Raw(_ENCODER.encode(calls)) for calls in approvals.all))
        try:
            approved = read_approved(bytes(request.calls))
        except (ValueError, RecursionError) as unreadable:
            raise NotARun(str(unreadable)) from None
        if not approved.managed and approvals.add_approved(approved):
            self._allowed.append((approvals, approved))
        return Response(session.id)

    def _about_labels(self, session: NativeSession, request: LabelRequest) -> Response:
        kept, known = session.labels.kept, None
        match request:
            case LabelKey():
                pass
            case KnownNow(prints, key):
                known = kept.known(prints if not prints or key == kept.key else None)
            case Read(reading, prints, whole, key):
                kept.add(_bounded(reading), prints, whole or (bool(prints) and key != kept.key))
            case Clear(cleared, key):
                if key == kept.key and not cleared.managed and kept.clear(cleared):
                    self._cleared.append((kept, cleared))
        return Response(session.id, label_key=kept.key, known=known)

    def _claimed(self, judge: Judge, run: Join, claim: Claim) -> ReportedCall | None:
        claimed = judge.calls.claim(judge.sessions.agent_of(self.process.agents), run, claim)
        if claimed is None:
            return None
        call, reported = claimed
        if reported.decided:
            self._taken_over[reported.record] = call
        return reported


def _bounded(reading: Reading) -> Reading:
    """The reading with texts of bounded length, as the session keeps it. Raises NotARun: no label may be left out."""
    if len(reading.labels) > _MOST_LABELS or any(len(label) > _LONGEST_LABEL for label in reading.labels):
        raise NotARun("it has read something with too many labels")
    server = reading.server if len(reading.server) <= _LONGEST_NAME else SEVERAL_SERVERS
    tool, place, call = (text[:_LONGEST_NAME] for text in (reading.tool, reading.place, reading.call))
    return replace(reading, tool=tool, server=server, place=place, call=call)


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


def _about_secrets(session: NativeSession, request: SecretRequest) -> Response:
    match request:
        case SecretKey():
            return Response(session.id, secret_key=session.secrets.key)
        case SecretOf(placeholder):
            return Response(session.id, secret=session.secrets.value_of(placeholder))
        case KeepSecrets(values):
            session.secrets.keep(values)
            return Response(session.id)


def _note(session: NativeSession, run: Join, request: Join | Listed) -> None:
    if isinstance(request, Join):
        session.begin_run(run.server, run.command)
    else:
        session.note_tools(run.server, request.tools, request.server_name)
