"""Which of two ways this process takes where systems differ: Linux's own, or the portable one, which a Mac has as well.

`cli.main` decides once, before any module is imported that has both ways. These choose when they are imported, so that
no message and no hook pays for the choice. They look at `sys.platform` too where a name exists on Linux only, because
type checkers understand that.
"""

import sys

PORTABLE = "portable"
"""For `choose`: the portable way, also on Linux. Only tests pass it."""

linux = sys.platform == "linux"
"""This process uses what only Linux has: epoll, pidfds, /proc and the like."""


def choose(platform: str) -> None:
    """Take the way for this value of `sys.platform`, or the portable way."""
    global linux
    linux = platform == "linux"
