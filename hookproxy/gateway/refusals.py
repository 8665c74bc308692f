"""Audit lines of requests that were refused before a session could take them: no refusal of a known user is silent.

A request whose sender is not known, or that names no server which its sender may use, is in the log alone: there is no
policy that would say where its line belongs, and anybody could fill the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..audit.log import NOT_WRITTEN
from ..model.hooks import Session
from .metered_audit import MeteredAudit
from .secrets import secrets_redacted

if TYPE_CHECKING:
    from ..audit.call_record import RefusedMessage
    from ..config.gateway import GatewayServer
    from ..model.principal import Principal
    from ..session.proxy import Report
    from .metrics import Metrics


def note_refusal(  # noqa: PLR0913  # whose audit it is, and what goes into it
    server: GatewayServer,
    principal: Principal,
    version: str,
    metrics: Metrics,
    report: Report,
    refused: RefusedMessage,
    session_id: str = "",
) -> None:
    """Write the line to the audit that holds for this user at this server. `version` is that of the policy."""
    settings = secrets_redacted(server, server.settings_for(principal))
    audit = MeteredAudit(settings, principal, version, metrics)
    session = Session(session_id, server.name, server.cwd, server.cwd, principal=principal)
    if problem := audit.note_refusal(session, refused) or audit.close():
        report(f"{NOT_WRITTEN}: {problem}")
