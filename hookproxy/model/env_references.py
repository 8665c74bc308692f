"""References to environment variables in `--url` and `--header`: pure, and the same for the verbs that read them.

Credentials must not be on a command line, where every user of the machine can read them. `${NAME}` is what people
know. `%{NAME}` means the same: several agents replace `${NAME}` in their configurations themselves, and one of them
drops a server whose `${NAME}` is not set in the agent's own environment, so `wrap` writes a form that none replaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .errors import UserError

TOKEN_VARIABLE: Final = "HOOKPROXY_TOKEN"
"""The variable of an agent's environment that has the user's token of a gateway. (Its name, not its value.)"""

ENTRY_VARIABLE: Final = "HOOKPROXY_ENTRY"
"""The variable in which `wrap` keeps what an entry was."""

URL_VARIABLE: Final = "HOOKPROXY_URL"
HEADER_VARIABLE: Final = "HOOKPROXY_HEADER_"
"""The variables in which `wrap` puts what no command line may show; the second one is the beginning of names."""

REFERENCE: Final = re.compile(r"[$%]\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(option: str, text: str, environ: Mapping[str, str]) -> str:
    """Replace each reference, once. Raises UserError, without a value in it, for a variable that is not set."""
    for name in REFERENCE.findall(text):
        if name not in environ:
            raise UserError(
                f"{option}: the environment variable {name} is not set",
                "set it where the agent is started, or in the `env` of the server's entry",
            )
    return REFERENCE.sub(lambda match: environ[match[1]], text)


def is_of_wrap(name: str) -> bool:
    """True if `wrap` sets the variable for hookproxy alone: hooks do not inherit it."""
    return name in (ENTRY_VARIABLE, URL_VARIABLE) or name.startswith(HEADER_VARIABLE)
