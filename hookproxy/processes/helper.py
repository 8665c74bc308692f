"""Starts a process of our own program that does one thing for us, and has nothing of ours but a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Final

from .platforms import SYSTEM_PATH
from .process import prepare_for_children

_ROOT: Final = __file__.rsplit(os.sep, 3)[0]  # the folder of this package
_STANDARD: Final = 3  # entries of an isolated Python's path that are its own: an archive, a folder, and `lib-dynload`


def start_helper(module: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start `main` of a module of this package with a socket as its standard input. Raises OSError.

    It has no other descriptor of ours, no variable, and its own session. It ends when the socket is closed. It finds
    this package where it lies, whatever hooks in Python have made of our own `sys.path`: after Python's own modules,
    before all others.
    """
    prepare_for_children()
    ours, theirs = socket.socketpair()
    path = f"sys.path[{_STANDARD}:{_STANDARD}] = [{_ROOT!r}]; sys.path += {sys.path!r}"
    code = f"import sys; {path}; from {module} import main; main()"
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", code],
                env={"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"},
                cwd=os.sep,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    ours.setblocking(False)
    return process, ours
