"""The ASGI middleware that lets a request pass to the pages only after `access` has checked it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from .access import SECURITY_HEADERS, Access, Refused
from .html import el

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Guard:
    """Checks each request, and gives each response the headers that keep a browser from doing what no page needs."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI says."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        try:
            app = self._app
            if self._access.check(request.method, scope["path"], request.headers, request.query_params):
                app = self._first_page()
        except Refused as refused:
            app = PlainTextResponse(f"{refused.why}\n", refused.status)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await app(scope, receive, send_with_headers)

    def _first_page(self) -> HTMLResponse:
        """A page that goes on by itself: a redirect would count as sent by whoever made the link, without a cookie."""
        address = f"/{self._access.folder}/"
        content = el(
            "html",
            el(
                "head",
                el("meta", charset="utf-8"),
                el("meta", http_equiv="refresh", content=f"0; url={address}"),
                el("title", "hookproxy"),
            ),
            el("body", el("p", el("a", "Open the console", href=address))),
            lang="en",
        )
        response = HTMLResponse(f"<!doctype html>{content}")
        response.headers["Set-Cookie"] = self._access.set_cookie
        return response
