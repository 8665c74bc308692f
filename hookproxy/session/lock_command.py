"""The command line by which a person records, sees or accepts what the server of a session says of itself."""

from __future__ import annotations

import re
import shlex
from typing import Final

from ..model.hooks import Session

_LONGEST: Final = 200  # characters of a command line in a message: a longer one is known to whoever wrote it
_MAY_BE_SECRET: Final = re.compile(
    r"(?i:key|token|secret|passw|auth|credential)|[=@?]|(?=[^/.]*\d)(?=[^/.]*[A-Za-z])[^/.]{20,}"
)
"""In a word of a command line: messages end in logs, which people show to others."""


def lock_command(session: Session, file: str = "", *options: str) -> str:
    """Return the command line as it works when it is pasted into a shell; `file` is the lock, empty: the default.

    What is long or may be secret is a word in capitals. At a gateway it names no file and no server: the gateway's own
    command line has them.
    """
    words = ["hookproxy", "lock", *options]
    if session.principal is not None or not (session.command or session.url):
        return " ".join(words)
    words += [*(["--file", file] if file else []), "--name", session.server]
    server = ["--url", session.url] if session.url else ["--", *session.command]
    line = shlex.join([*words, *server])
    if len(line) > _LONGEST or not line.isprintable() or any(map(_MAY_BE_SECRET.search, server[1:])):
        return f"{shlex.join(words)} {'--url URL' if session.url else '-- COMMAND'}"
    return line
