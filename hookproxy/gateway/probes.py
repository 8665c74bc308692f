"""What operators ask of a gateway over HTTP: whether it lives, whether it takes new sessions, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..transports.http.request_reader import Request
from ..transports.http.responder import Headers, Responder
from .http_listeners import is_trusted

if TYPE_CHECKING:
    from .gateway import Gateway

PATHS: Final = (b"/healthz", b"/readyz", b"/metrics")

_TEXT: Final[Headers] = ((b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"))
_METRICS: Final[Headers] = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


def respond(gateway: Gateway, request: Request, responder: Responder) -> None:
    """Respond to a request for one of these paths."""
    if request.method not in (b"GET", b"HEAD"):
        responder.respond(405, (*_TEXT, (b"allow", b"GET, HEAD")), b"")
    elif request.target == b"/healthz":
        responder.respond(200, _TEXT, b"ok\n")
    elif request.target == b"/readyz":
        why_not = "ending" if gateway.leaving else gateway.config.closed and f"closed: {gateway.config.closed}"
        responder.respond(*(503, _TEXT, f"{why_not}\n".encode()) if why_not else (200, _TEXT, b"ready\n"))
    elif request.target == b"/metrics":
        responder.respond(200, _METRICS, gateway.metrics_text().encode())
    else:
        responder.respond(404, _TEXT, b"there is /healthz, /readyz and /metrics\n")


def may_ask(request: Request) -> bool:
    """On a listener for agents, only this machine may ask."""
    return is_trusted(request.peer.address, ())
