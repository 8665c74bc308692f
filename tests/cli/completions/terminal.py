"""A person at a terminal with a real shell: types a line, presses Tab, and looks at the completed line."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Final

from tests.support.terminal import everything

PATIENCE: Final = 60.0  # seconds until a test gives up on a shell, which a busy machine may start slowly


class Terminal:
    """A shell that waits for keys. Its screen output is read and discarded, so that it does not block."""

    def __init__(self, keys: int, pipe: Path) -> None:
        self._keyboard = keys
        self._replies = os.open(pipe, os.O_RDWR)  # also opened for writing, so that it never ends

    def close(self) -> None:
        os.close(self._replies)

    def enter(self, line: str) -> str:
        """Let the shell run a line. Returns the output."""
        os.write(self._keyboard, f"{{ {line}; }} >$pipe\n".encode())
        return self._read_reply()

    def completed(self, typed: str) -> str:
        """The line after Tab. In this shell, Control-T must report the line, and Control-U must clear it."""
        os.write(self._keyboard, typed.encode() + b"\t\x14\x15")
        return self._read_reply()

    def _read_reply(self) -> str:
        text = b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self._replies], [], [], PATIENCE)
            assert ready, f"only {text!r} arrived"
            text += os.read(self._replies, 65536)
        return text.decode().removesuffix("\n")


@contextmanager
def terminal(shell: list[str], folder: Path) -> Iterator[Terminal]:
    """A shell in the folder, with the `hookproxy` of the interpreter that runs the tests, and with a pipe `$pipe`."""
    pipe = folder.parent / f"{folder.name}-pipe"
    os.mkfifo(pipe)
    master, slave = pty.openpty()
    tty.setraw(slave)  # otherwise the system handles keys such as Control-U that arrive before the shell reads them
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    env = {"HOME": str(folder), "PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8", "pipe": str(pipe)}
    with subprocess.Popen(
        shell, cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as running:
        os.close(slave)
        reader = Thread(target=everything, args=(master,))
        reader.start()
        person = Terminal(master, pipe)
        try:
            yield person
        finally:
            running.kill()
            running.wait()
            reader.join(PATIENCE)
            person.close()
            os.close(master)
