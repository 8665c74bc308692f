"""What is reported of a guard that cannot be asked."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread

import pytest

from hookproxy.guard import controls
from hookproxy.guard.exchange import write_failure
from hookproxy.model.errors import UserError


@pytest.mark.parametrize(
    ("response", "message", "hint"),
    [
        (write_failure(str(UserError("h.toml: line 1: no", "mend it"))), "asked: h.toml: line 1: no", "mend it"),
        (b"nonsense\n", "asked: its response cannot be read", "end its process, whose name has guard"),
    ],
)
def test_a_guard_that_cannot_start_says_what_to_do(response: bytes, message: str, hint: str, short_path: Path) -> None:
    path = str(short_path / "guard.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def respond() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(response)

        thread = Thread(target=respond)
        thread.start()
        with pytest.raises(UserError) as refused:
            controls.ask(path, "status")
        thread.join()
    assert refused.value.message.endswith(message)
    assert refused.value.hint == hint
