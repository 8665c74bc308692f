"""The shell commands that set the limits of a server, and become it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .table import DESCRIPTORS, Sandbox

SHELL: Final = "/bin/sh"


_MAKES_TEMPORARY: Final = '[ -d "$TMPDIR" ] || mkdir -m 700 "$TMPDIR"; '
"""By the server itself: what we made in a folder of another account would be ours, and links there lead anywhere."""


def limited(
    sandbox: Sandbox, command: Sequence[str], *, makes_temporary: bool = False, in_group: bool = False
) -> tuple[str, ...]:
    """The command with its limits. Where one cannot be set, it does not start.

    `makes_temporary` is for a server without a /tmp of its own, which has TMPDIR. One that is `in_group` has a cgroup
    that counts its processes.

    `data` counts what a process has written or may write of its own memory: unlike the size of its addresses, of which
    Node and Go reserve many times what they use. Shells call the number of processes u or p. In a user namespace of its
    own it counts those of the server, else those of its account; and none of root's.
    """
    data = max(sandbox.memory // 1024, 1)
    processes = f"ulimit -u {sandbox.processes} 2>/dev/null || ulimit -p {sandbox.processes} || exit 126; "
    script = (
        f"ulimit -c 0; ulimit -d {data} || exit 126; ulimit -n {DESCRIPTORS} 2>/dev/null; "
        f"{'' if in_group else processes}"
        f"{_MAKES_TEMPORARY if makes_temporary else ''}"
        'exec "$@"'
    )
    return (SHELL, "-c", script, SHELL, *command)
