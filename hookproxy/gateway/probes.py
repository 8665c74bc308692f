"""What operators ask of a gateway over HTTP: whether it lives, whether it takes new sessions, and its metrics.

Law: no web page learns anything of it. A page can give its own name our address, so names count only if they are ours.
"""

from __future__ import annotations

import ipaddress
import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..transports.http.listener_limits import ListenerLimits
from ..transports.http.request_reader import Request
from ..transports.http.responder import Headers, Responder
from .http_listeners import is_trusted

if TYPE_CHECKING:
    from ..config.gateway_models import GatewayTable
    from .gateway import Gateway

PATHS: Final = (b"/healthz", b"/readyz", b"/metrics")

_NOT_RECORDED: Final = b"the audit cannot be written, and calls are refused\n"  # the log says why
LIMITS: Final = ListenerLimits(
    connections=64, strangers=64, strangers_of_network=16, body_bytes=0, head_bytes=8192, pipelined_requests=1
)
"""Of a listener for these alone: its peers are a few monitors and balancers."""

_TEXT: Final[Headers] = ((b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"))
_METRICS: Final[Headers] = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)
_HOST: Final = re.compile(rb"(\[[0-9a-f:.]+\]|[a-z0-9._\-]+)(?::[0-9]{1,5})?")
_OTHER_HOST: Final = b"The header Host names another host. Ask by an address, or add the name to gateway.probe_hosts.\n"


def respond_at_own_address(gateway: Gateway, request: Request, responder: Responder) -> None:
    """Respond to a request at `gateway.probes`: as `respond`, if no web page can have sent it."""
    headers = dict(request.headers)
    if b"origin" in headers or not is_own_host(headers.get(b"host", b""), gateway.config.gateway):
        responder.respond(421, _TEXT, _OTHER_HOST)
    else:
        respond(gateway, request, responder)


def is_own_host(host: bytes, table: GatewayTable) -> bool:
    """True for a `Host` that names no machine but this one: any address, which no page can call its own, or our names.

    Its port does not count: others forward to this one.
    """
    match = _HOST.fullmatch(host.lower())
    name = match[1].strip(b"[]").decode() if match else ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        own = (urlsplit(url).hostname or "" for url in (table.probes, table.public_url) if url)
        return bool(name) and name in {
            "localhost",
            os.uname().nodename.lower(),
            *own,
            *map(str.lower, table.probe_hosts),
        }
    return True


def respond(gateway: Gateway, request: Request, responder: Responder) -> None:
    """Respond to a request for one of these paths."""
    if request.method not in (b"GET", b"HEAD"):
        responder.respond(405, (*_TEXT, (b"allow", b"GET, HEAD")), b"")
    elif request.target == b"/healthz":
        responder.respond(200, _TEXT, b"ok\n")
    elif request.target == b"/readyz":
        problem = _why_not_ready(gateway)
        responder.respond(*(503, _TEXT, problem) if problem else (200, _TEXT, b"ready\n"))
    elif request.target == b"/metrics":
        responder.respond(200, _METRICS, gateway.metrics_text().encode())
    else:
        responder.respond(404, _TEXT, b"there is /healthz, /readyz and /metrics\n")


def _why_not_ready(gateway: Gateway) -> bytes:
    """Why no new session should come here, as a line; empty: it may."""
    if gateway.leaving:
        return b"ending\n"
    if gateway.config.closed:
        return f"closed: {gateway.config.closed}\n".encode()
    return _NOT_RECORDED if gateway.health.problem() else b""


def may_ask(request: Request) -> bool:
    """On a listener for agents, only this machine may ask."""
    return is_trusted(request.peer.address, ())
