"""Runs a short command to its end, for what it says by its exit status or prints. No hook of a call runs this way."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from .service import Account


_CHECK_SECONDS: Final = 0.2  # from one check to the next: nobody notices that an end takes so long


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


def output_of(  # as `exit_status`
    argv: Sequence[str],
    stdin: bytes,
    cwd: str,
    env: Mapping[str, str],
    seconds: float,
    check: Callable[[], None] | None = None,
) -> Output | None:
    """What the command prints for this input; None if it takes too long: then it is killed with all that it started.

    So it is if `check`, which is called again and again, raises something. Raises OSError if it cannot start.
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
            stdout, stderr = _communicate(process, stdin, seconds, check)
        except BaseException as error:  # the person may interrupt it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    return Output(process.returncode, stdout, stderr)


def _communicate(
    process: subprocess.Popen[bytes], stdin: bytes, seconds: float, check: Callable[[], None] | None
) -> tuple[bytes, bytes]:
    if check is None:
        return process.communicate(stdin, seconds)
    end, rest = time.monotonic() + seconds, stdin or None
    while True:
        check()
        try:
            return process.communicate(rest, min(_CHECK_SECONDS, max(end - time.monotonic(), 0)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
        rest = None  # it is being written already
