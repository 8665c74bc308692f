"""Runs a short command to its end, for what it says by its exit status or prints. No hook of a call runs this way."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

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


class Output(Struct, frozen=True):
    """What a command printed, and how it ended."""

    status: int
    stdout: bytes
    stderr: bytes


def output_of(argv: Sequence[str], stdin: bytes, cwd: str, env: Mapping[str, str], seconds: float) -> Output | None:
    """What the command prints for this input; None if it takes too long: then it is killed with all that it started.

    Raises OSError if it cannot start.
    """
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(stdin, seconds)
        except BaseException as error:  # the person may interrupt it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    return Output(process.returncode, stdout, stderr)
