"""The account that we run as: what lines say of who wrote them, and where its audit lies."""

from __future__ import annotations

import os
from typing import Final

_PER_USER: Final = "{user}"


def user() -> str:
    """The name of the account we run as; its number where it has no name."""
    import pwd  # only where an audit is kept

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def writer() -> dict[str, object]:
    """Who writes a line: members of each."""
    return {"user": user(), "host": os.uname().nodename, "pid": os.getpid()}


def place(file: str) -> str:
    """The path of the audit file for the account we run as: with a slash at its end, `USER.jsonl` in that folder."""
    if file.endswith("/"):
        file = os.path.join(file, f"{_PER_USER}.jsonl")
    return file.replace(_PER_USER, user().replace("/", "_")) if _PER_USER in file else file
