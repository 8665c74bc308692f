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

if sys.platform == "darwin":
    SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"  # Homebrew gives /usr/local to a user on Macs with Intel processors
    UTF_8 = {"LANG": "C", "LC_CTYPE": "UTF-8"}
else:
    SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    UTF_8 = {"LANG": "C.UTF-8"}
"""The folders of programs that only root can change, and the locale of UTF-8 that every machine has: for environments
that contain nothing of the user's."""


def choose(platform: str) -> None:
    """Take the way for this value of `sys.platform`, or the portable way."""
    global linux
    linux = platform == "linux"
