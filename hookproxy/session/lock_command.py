"""The command line by which a person records, sees or accepts what the server of a session says of itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from ..model.hooks import Session

_LONGEST: Final = 200  # characters of a command line in a message: a longer one is known to whoever wrote it
_OTHER_HTTP: Final = re.compile(r"http://(?!(?:localhost|127\.0\.0\.1|\[::1\])[:/])", re.IGNORECASE)
"""An address that needs a word of its own, because everybody may read along."""
_MAY_BE_SECRET: Final = re.compile(
    r"(?i:key|token|secret|passw|auth|credential)|[=@?]|(?=[^/.]*\d)(?=[^/.]*[A-Za-z])[^/.]{20,}"
)
"""In a word of a command line: messages end in logs, which people show to others."""


def lock_command(session: Session, *options: str, file: str = "", config: str = "") -> str:
    """Return the command line as it works when it is pasted into a shell; `file` is the lock, empty: the default.

    What is long or may be secret is a word in capitals. At a gateway it names the server in the gateway's own file,
    `config`, if that is known, and not how the server is started.
    """
    words = ["hookproxy", "lock", *options]
    if session.principal is not None and config:
        return shlex.join([*words, "--config", config, "--server", session.server])
    if session.principal is not None or not (session.command or session.url):
        return " ".join(words)
    words += [*(["--file", file] if file else []), "--name", session.server]
    return with_server(words, session.url, session.command)


def with_server(words: Sequence[str], url: str, command: Sequence[str]) -> str:
    """Return the command line of these words and a server, as a shell reads it."""
    server = ["--url", url, *(["--allow-http"] if _OTHER_HTTP.match(url) else [])] if url else ["--", *command]
    line = shlex.join([*words, *server])
    if len(line) > _LONGEST or not line.isprintable() or any(map(_MAY_BE_SECRET.search, [url] if url else command)):
        return f"{shlex.join(words)} {'--url URL' if url else '-- COMMAND'}"
    return line
