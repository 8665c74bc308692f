"""Finds out which sandbox works on this machine. It tries them: what is installed may still be forbidden.

Law: a server that should run in a sandbox does not run without one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ..model.errors import UserError
from ..processes.platforms import SYSTEM_PATH
from ..processes.process import find_program
from ..processes.short_command import Output, output_of
from .bubblewrap import Tools, arguments
from .folders import SYSTEM, SYSTEM_FILES
from .table import Layout, Sandbox

_SECONDS: Final = 10.0  # a try takes some milliseconds; a machine that is this slow could not start servers
_ENVIRONMENT: Final = {"PATH": SYSTEM_PATH}
_TRY: Final = ("/bin/sh", "-c", "exit 0")


def find_bubblewrap() -> Tools:
    """What bubblewrap can do here. Raises UserError that says why it cannot be used."""
    bwrap = find_program("bwrap", SYSTEM_PATH)
    if bwrap is None:
        raise UserError("bubblewrap is not installed", "apt-get install bubblewrap")
    usage = _output((bwrap, "--help"))
    env = find_program("env", SYSTEM_PATH)
    keeps_signals = env is not None and _output((env, "--default-signal=TERM,HUP,INT", *_TRY)).status == 0
    tools = Tools(
        bwrap,
        takes_descriptors=b"--bind-fd " in usage.stdout + usage.stderr,
        env=env if env is not None and keeps_signals else "",
        system=[folder for folder in SYSTEM if os.path.isdir(folder) and not os.path.islink(folder)],
        system_links={folder: os.readlink(folder) for folder in SYSTEM if os.path.islink(folder)},
        system_files={path: os.path.realpath(path) for path in SYSTEM_FILES if os.path.exists(path)},
    )
    why = b""
    for with_proc in (True, False):  # in many containers a /proc of its own is forbidden
        tools = replace(tools, mounts_proc=with_proc)
        ended = _output(arguments(tools, Layout("/", (), ()), Sandbox(), {}, _TRY))
        if ended.status == 0:
            return tools
        why = why or ended.stderr.strip().rpartition(b"\n")[2]
    hint = "allow unprivileged user namespaces: /proc/sys/user/max_user_namespaces, AppArmor, or seccomp of a container"
    raise UserError(f"bubblewrap cannot be used here: {why.decode(errors='replace') or 'it fails'}", hint)


def _output(command: tuple[str, ...]) -> Output:
    with suppress(OSError):
        return output_of(command, b"", "/", _ENVIRONMENT, _SECONDS) or Output(-1, b"", b"it takes too long")
    return Output(-1, b"", b"it cannot be started")
