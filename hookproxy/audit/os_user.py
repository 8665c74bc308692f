"""The account that hookproxy runs as: who writes audit lines, and the path of that account's audit file."""

from __future__ import annotations

import os
from typing import Final

from ..model.principal import Principal

_PER_USER: Final = "{user}"


def user() -> str:
    """The name of the account that this process runs as; its number if it has no name."""
    import pwd  # imported only if there is an audit

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def writer(principal: Principal | None = None) -> dict[str, object]:
    """The members of each audit line that say who wrote it, and for whom: the principal of a gateway's session."""
    process = {"host": os.uname().nodename, "pid": os.getpid()}
    if principal is None:
        return {"user": user(), **process}
    groups = {"groups": list(principal.groups)} if principal.groups else {}
    return {"user": principal.name, "user_id": principal.id, **groups, "account": user(), **process}


def audit_path(file: str) -> str:
    """The path of this account's audit file. `{user}` stands for its name; `FOLDER/` means `FOLDER/{user}.jsonl`."""
    if file.endswith("/"):
        file = os.path.join(file, f"{_PER_USER}.jsonl")
    return file.replace(_PER_USER, user().replace("/", "_")) if _PER_USER in file else file
