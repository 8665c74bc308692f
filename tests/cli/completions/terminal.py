"""A person at a terminal with a real shell: types, presses Tab, and looks at what the line has become."""

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
    """A shell that waits for keys; what it shows is read, so that it can go on, and thrown away."""

    def __init__(self, keys: int, told: Path) -> None:
        self._keys = keys
        self._answers = os.open(told, os.O_RDWR)  # also writable: so it never comes to an end

    def close(self) -> None:
        os.close(self._answers)

    def enter(self, line: str) -> str:
        """Have the shell perform a line, and give what it prints into the pipe `told`."""
        os.write(self._keys, f"{{ {line}; }} >$told\n".encode())
        return self._answer()

    def completed(self, typed: str) -> str:
        """What a line is after Tab. In this shell Control-T must tell the line, and Control-U remove it."""
        os.write(self._keys, typed.encode() + b"\t\x14\x15")
        return self._answer()

    def _answer(self) -> str:
        text = b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            assert ready, f"nothing but {text!r}"
            text += os.read(self._answers, 65536)
        return text.decode().removesuffix("\n")


@contextmanager
def terminal(shell: list[str], folder: Path) -> Iterator[Terminal]:
    """A shell in the folder, with the command `hookproxy` of the interpreter that runs the tests, and `$told`."""
    told = folder.parent / f"{folder.name}-told"
    os.mkfifo(told)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # else the system itself obeys keys, such as Control-U, that come before the shell looks at them
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    env = {"HOME": str(folder), "PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8", "told": str(told)}
    with subprocess.Popen(
        shell, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as running:
        os.close(theirs)
        reader = Thread(target=everything, args=(ours,))
        reader.start()
        person = Terminal(ours, told)
        try:
            yield person
        finally:
            running.kill()
            running.wait()
            reader.join(PATIENCE)
            person.close()
            os.close(ours)
