"""Finds out which sandbox works on this machine. It tries them: what is installed may still be forbidden.

Law: a server that should run in a sandbox does not run without one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import UserError
from ..processes import platforms
from ..processes.confined import Confinement, landlock_abi, status_of
from ..processes.platforms import SYSTEM_PATH
from ..processes.process import find_program
from ..processes.short_command import Output, output_of
from . import modes
from .bubblewrap import Tools, arguments
from .folders import SYSTEM, SYSTEM_FILES
from .landlock import HANDLED, OLDEST_ABI, SCOPES, rights
from .places import close_all, open_rules
from .system_calls import shared
from .table import Layout, Sandbox

_SECONDS: Final = 10.0  # a try takes some milliseconds; a machine that is this slow could not start servers
_ENVIRONMENT: Final = {"PATH": SYSTEM_PATH}
_TRY: Final = ("/bin/sh", "-c", "exit 0")


class Landlock(Struct, frozen=True):
    """Landlock works here."""

    filters: Mapping[bool, bytes]
    """The program for seccomp with and without the network."""
    asking: Mapping[bool, bytes] = {}
    """The same, which asks about modes of files."""


def find_sandbox(wanted: str) -> Tools | Landlock:
    """What confines servers: "bubblewrap", "landlock", or "auto" for the first of them that works. Raises UserError."""
    if not platforms.linux:
        problem = "this system has none: bubblewrap and Landlock are parts of Linux"
        raise UserError(problem, "run it on Linux, in a virtual machine for example")
    if wanted == "landlock":
        return find_landlock()
    try:
        return find_bubblewrap()
    except UserError as problem:
        if wanted == "bubblewrap":
            raise
        try:
            return find_landlock()
        except UserError as other:
            raise UserError(f"{problem.message}, and {other.message}", problem.hint) from None


def find_landlock() -> Landlock:
    """Whether Landlock can be used here. Raises UserError that says why not."""
    abi = landlock_abi()
    if abi < OLDEST_ABI:
        problem = f"Landlock of this kernel is too old (ABI {abi})" if abi else "this kernel has no Landlock"
        raise UserError(problem, "Linux 6.12 or newer has what is needed; bubblewrap needs less")
    machine = os.uname().machine
    filters = {network: shared(machine, network=network) for network in (True, False)}
    if not filters[True]:
        raise UserError(f"Landlock alone does not suffice on {machine}", "install bubblewrap")
    try:
        rules = open_rules(rights(Layout("/", (), ())))
        try:
            for name in filters.values():
                confinement = Confinement(HANDLED, SCOPES, rules, name)
                if (status := status_of(confinement, _TRY, _ENVIRONMENT, _SECONDS)) != 0:
                    raise UserError(f"Landlock cannot be used here: a program ends with {status}", "install bubblewrap")
        finally:
            close_all(descriptor for descriptor, _ in rules)
    except OSError as error:
        raise UserError(f"Landlock cannot be used here: {error}", "install bubblewrap") from None
    asking = {network: shared(machine, network=network, asks=modes.CALLS) for network in (True, False)}
    return Landlock(filters, asking)


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
