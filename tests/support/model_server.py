"""A language model that says what a test wants, over real HTTP, in the interfaces of OpenAI and of Anthropic."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Says:
    """One answer of the model."""

    text: str = ""
    calls: Sequence[tuple[str, object]] = ()
    """Names of tools with their arguments; a text stands for arguments that are not JSON."""
    status: int = 200
    raw: bytes | None = None
    """A body instead of the answer."""
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False


def verdict(ok: object, reason: object = "") -> Says:
    """The model calls the tool that ends its work."""
    return Says(calls=[("verdict", {"ok": ok, "reason": reason})])


@dataclass
class Asked:
    """One question as the endpoint got it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All that the model reads."""
        return json.dumps(self.body, ensure_ascii=False)


class ModelServer:
    """What a test knows of the endpoint. The last answer is repeated."""

    def __init__(self) -> None:
        self.answers: list[Says] = [verdict(True)]
        self.asked: list[Asked] = []
        self.released = threading.Event()
        """Ends the answers that hang."""
        self.url = ""

    def base(self, api: str) -> str:
        """The `url` of `[model]`."""
        return f"{self.url}/v1" if api == "openai" else self.url

    def next_answer(self) -> Says:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve until the end of the block, in threads of this process."""
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            model.asked.append(Asked(self.path, headers, body))
            says = model.next_answer()
            if says.hangs:
                model.released.wait(30)
                return
            data = _body(self.path, says) if says.raw is None else says.raw
            self.send_response(says.status)
            for name, value in {"Content-Type": "application/json", **says.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield model
    finally:
        model.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _body(path: str, says: Says) -> bytes:
    if path.endswith("/chat/completions"):
        calls = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for number, (name, given) in enumerate(says.calls)
        ]
        message = {"role": "assistant", "content": says.text or None, **({"tool_calls": calls} if calls else {})}
        return json.dumps({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    assert path.endswith("/v1/messages"), path
    blocks: list[object] = [{"type": "text", "text": says.text}] if says.text else []
    blocks += (
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(says.calls)
    )
    return json.dumps({"id": "x", "type": "message", "role": "assistant", "content": blocks}).encode()
