"""A service that is told about approvals: a real HTTP server in threads of its own."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from hookproxy.approvals import webhook

SECRET: Final = b"a secret of the webhook 0123456789"
_DIRECT: Final = build_opener(ProxyHandler({}))


class Receiver:
    """What it was sent; `status` and `headers` are its responses."""

    def __init__(self) -> None:
        self.bodies: Queue[bytes] = Queue()
        self.headers: Queue[Mapping[str, str]] = Queue()
        self.status = 200
        self.location = ""
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""

    def message(self) -> dict[str, Any]:
        """The next message, whose signature is right."""
        body, headers = self.bodies.get(timeout=30), self.headers.get(timeout=30)
        signed = f"{headers[webhook.TIMESTAMP]}.".encode() + body
        assert headers[webhook.SIGNATURE] == f"v1={hmac.digest(SECRET, signed, 'sha256').hex()}"
        document: dict[str, Any] = json.loads(body)
        return document


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver at a free port of this machine."""
    one = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            one.headers.put(dict(self.headers))
            one.bodies.put(body)
            one.gate.wait(30)
            self.send_response(one.status)
            if one.location:
                self.send_header("Location", one.location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield one
    finally:
        one.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


def send(url: str, body: bytes | object, method: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
    """Answer, as a service does: the status, and what is said."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = Request(url, data if method == "POST" else None, head, method=method)
    try:
        with _DIRECT.open(request, timeout=30) as response:
            return response.status, json.loads(response.read() or b"{}")
    except HTTPError as refused:
        with refused:
            text = refused.read() or b"{}"
        return refused.code, json.loads(text) if text.startswith(b"{") else {"why": text.decode()}
