"""A terminal of some width, and what a command shows on it."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import Final

PATIENCE: Final = 60.0  # seconds until a test gives up on a command, on a busy machine
INTERRUPT: Final = b"\x03"
IMPATIENCE: Final = 2.0  # seconds after which a person presses Ctrl-C once more


def shown(argv: Sequence[str], folder: Path, env: Mapping[str, str], columns: int) -> str:
    """What a command writes to its terminal."""
    return run(argv, folder, env, columns).stdout


def run(argv: Sequence[str], folder: Path, env: Mapping[str, str], columns: int) -> subprocess.CompletedProcess[str]:
    """A command that has ended; the terminal was its input, its output and its errors, all of which is in `stdout`."""
    ours, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {**env, "TERM": "xterm-256color"}
    with subprocess.Popen(argv, cwd=folder, env=env, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        try:
            written = everything(ours)
            status = process.wait()
        finally:
            process.kill()  # else a test that is given up would wait for it
            os.close(ours)
    return subprocess.CompletedProcess(argv, status, written.decode().replace("\r\n", "\n"))


def converse(
    argv: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    columns: int,
    answers: Sequence[tuple[str, bytes | Callable[[], object]]],
) -> subprocess.CompletedProcess[str]:
    """A command that has ended; it was given each answer when the text before that had appeared on its terminal.

    b"\\x03" is Ctrl-C, and b"\\x04" the end of the input; a function is called instead.
    """
    ours, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        argv,
        cwd=folder,
        env={"TERM": "xterm-256color", **env},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_take_terminal,
    ) as process:
        os.close(terminal)
        written = b""
        try:
            for prompt, answer in answers:
                begin = len(written)
                while prompt.encode() not in written[begin:]:
                    assert select.select([ours], [], [], PATIENCE)[0], f"no {prompt!r} in {written!r}"
                    written += os.read(ours, 65536)
                if callable(answer):
                    answer()
                else:
                    os.write(ours, answer)
                if answer == INTERRUPT:
                    written += interrupted(ours)
            written += everything(ours)
            status = process.wait(PATIENCE)
        finally:
            process.kill()
            os.close(ours)
    return subprocess.CompletedProcess(argv, status, written.decode().replace("\r\n", "\n"))


def _take_terminal() -> None:
    """Make standard input the terminal that Ctrl-C in it interrupts us."""
    ioctl(0, termios.TIOCSCTTY, 0)


def interrupted(ours: int) -> bytes:
    """The output of a command that Ctrl-C has interrupted.

    It echoes the key. A signal that comes between Python's last look and its wait for a line is only seen with the next
    one: whoever sits there presses the key once more.
    """
    written = b""
    for _ in range(int(PATIENCE / IMPATIENCE)):
        while select.select([ours], [], [], IMPATIENCE)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:
                return written
            if written.strip(b"^C\r\n"):
                return written
        os.write(ours, INTERRUPT)
    return written


def everything(number: int) -> bytes:
    """What is written to the other side of a terminal until nobody has that open any more."""
    written = b""
    try:
        while piece := os.read(number, 65536):
            written += piece
    except OSError:  # so Linux says that the other side has closed
        pass
    return written


def plain(text: str) -> str:
    """Without colours and weights."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
