"""For verbs that run hooks and print something: hooks run as under `run`, and standard output is the verb's alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from .. import process
from .base import show


@contextmanager
def hooks_at_work() -> Iterator[None]:
    """What hooks in our own process print, and what these start, goes to standard error, as in a run."""
    process.settle()
    show("")  # what is still in the buffer is ours
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        show("")  # … and is now theirs
        os.dup2(ours, 1)
        os.close(ours)
