"""The ASGI middleware that lets a request pass to the pages only after `access` has checked it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from .access import SECURITY_HEADERS, Access, Refused
from .html import render

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Guard:
    """Checks each request, and gives each response the headers that keep a browser from doing what no page needs."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or let it pass."""
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
        response = HTMLResponse(render("first.html", address=f"/{self._access.folder}/"))
        response.headers["Set-Cookie"] = self._access.set_cookie
        return response
