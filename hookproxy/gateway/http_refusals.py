"""What is written down of requests that a gateway refuses over HTTP: in its log, its metrics, and the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..audit.call_record import RefusedMessage
from ..transports.http.peers import network_of
from .http_senders import PREFIX
from .refusal_log import RefusalLog

if TYPE_CHECKING:
    from ..authorization.authenticate import Challenge
    from ..model.principal import Principal
    from ..transports.http.agent_requests import Rejected
    from ..transports.http.request_reader import Peer, Request
    from .gateway import Gateway
    from .session import GatewaySession


class HttpRefusals:
    """Notes each of them."""

    def __init__(
        self,
        gateway: Gateway,
        report: Callable[[str], None],
        session_of: Callable[[str, Principal, str], GatewaySession | None],
    ) -> None:
        """`session_of` finds the session of a user at a server, by an id that a request names, or without one."""
        self._gateway = gateway
        self._session_of = session_of
        self._log = RefusalLog(report)
        self.keep_reporting = self._log.keep_reporting

    def unread(self, peer: Peer, status: int, why: str) -> None:
        """The listener has refused a request or a connection."""
        self._gateway.metrics.refused_requests[str(status)] += 1
        self._log.note(network_of(peer.address), why, f"{peer.address}: refused with {status}: {why}")

    def in_the_clear(self, request: Request) -> None:
        """Others could have read it."""
        self._log.note(request.peer.address, "it is not a trusted proxy")

    def challenged(self, challenge: Challenge, address: str) -> None:
        """Nobody knows who has sent a request from this address."""
        self._gateway.metrics.refused_requests[str(challenge.status)] += 1
        text = f"a request from {address} was refused: {challenge.reason}"
        self._log.note(network_of(address), challenge.message, text)

    def rejected(self, sender: Principal, reason: str) -> None:
        """A request of a known user, for the log."""
        self._log.note(sender.name, reason, f"a request of {sender.name} was refused: {reason}")

    def write(self, rejected: Rejected, request: Request, sender: Principal) -> None:
        """A request of a known user, for the metrics and the audit."""
        self._gateway.metrics.refused_requests[str(int(rejected.status))] += 1
        server = request.target.removeprefix(PREFIX).decode("latin-1")
        session_id = dict(request.headers).get(b"mcp-session-id", b"").decode("latin-1")
        own = self._session_of(session_id, sender, server)
        refused = RefusedMessage(rejected.reason, rejected.id, request.body)
        self._gateway.note_refusal(sender, server, own, refused)
