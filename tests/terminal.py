"""A terminal of some width, and what a command shows on it."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path


def shown(argv: Sequence[str], folder: Path, env: Mapping[str, str], columns: int) -> str:
    """What a command writes to standard output, which is a terminal."""
    ours, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    written = b""
    with subprocess.Popen(argv, cwd=folder, env={**env, "TERM": "xterm-256color"}, stdin=terminal, stdout=terminal):
        os.close(terminal)
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # so Linux says that the other side has closed
            pass
        os.close(ours)
    return written.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Without colours and weights."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
