"""Says on a terminal what is waited for, and since when: on standard error, and gone when it is over.

Nothing is said within the first second, nor where standard error is not a terminal: what reads it gets results only.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from threading import Event, Thread
from time import monotonic
from typing import Final

from .common import visible

_FIRST_SECONDS: Final = 1.0  # what is over before needs no word
_SECONDS: Final = 1.0  # between two changes of the line
_CLEAR: Final = "\r\x1b[K"


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say that this is waited for while the block runs: `waiting for the hook guard … 3 s`."""
    stream = _terminal()
    if stream is None:
        yield
        return
    ended = Event()
    thread = Thread(target=_show, args=(stream, what, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _terminal() -> int | None:
    """A descriptor of the terminal on standard error, whatever becomes of that; None: there is none to write to."""
    try:
        usable = sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")
        return os.dup(sys.stderr.fileno()) if usable else None
    except (OSError, AttributeError, ValueError):
        return None


def _show(terminal: int, what: str, ended: Event) -> None:
    begun, shown = monotonic(), False
    try:
        columns = os.get_terminal_size(terminal).columns
        while not ended.wait(_SECONDS if shown else _FIRST_SECONDS):
            seconds = f" {monotonic() - begun:.0f} s"
            text = visible(f"waiting for {what}", "ascii")[: max(columns - len(seconds) - 4, 0)]
            os.write(terminal, f"{_CLEAR}{text} ...{seconds}\r".encode())  # whoever else writes begins a line
            shown = True
        if shown:
            os.write(terminal, _CLEAR.encode())
    except OSError:  # the terminal is gone: what is waited for goes on
        return
    finally:
        os.close(terminal)
