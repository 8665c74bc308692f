"""Where the guard of an account listens: at a socket in a folder that nobody else may enter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ..trust.sources import state_folder

NAME: Final = "guard"
"""The socket's name, without `.sock`."""


def folder(environ: Mapping[str, str], home: str) -> str:
    """The folder of the account with this home folder; empty if there is none."""
    state = state_folder(environ, home)
    return os.path.join(state, "guard") if state else ""


def socket_of(folder: str) -> str:
    """The path at which the guard of this folder listens."""
    return os.path.join(folder, f"{NAME}.sock")


def socket_for_run(environ: Mapping[str, str], *, managed: bool) -> str:
    """The path at which a run of the proxy looks for the guard; empty: nowhere.

    Where the administrator has a policy, the environment does not say it: it is the agent's, and may come from the
    project in which that works.
    """
    if managed:
        import pwd

        try:
            return socket_of(folder({}, pwd.getpwuid(os.geteuid()).pw_dir))
        except KeyError:  # the account has no entry
            return ""
    here = folder(environ, os.path.expanduser("~"))
    return socket_of(here) if here else ""
