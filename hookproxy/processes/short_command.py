"""Runs a short command of the system to its end, for what it says by its exit status. No hook runs this way."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .service import Account


def exit_status(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], seconds: float, account: Account | None = None
) -> int | None:
    """The exit status of the command, which reads and prints nothing; None if it cannot start, or takes too long.

    It runs as `account`, or as ours. Blocks for at most `seconds`, and then kills the command.
    """
    try:
        return subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else account.groups,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
