"""What a server's `WWW-Authenticate` header demands (RFC 9110 section 11.6.1, RFC 6750 section 3). Pure."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PART: Final = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|({_TOKEN})|.', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")  # RFC 6749 section 3.3
_MAX_SCOPES: Final = 1000  # characters of all scopes together: they are shown to the model and to the person
_MAX_HEADER: Final = 16_384  # characters; longer ones are cut: no real challenge is as long


def parameters(challenge: str) -> dict[str, str]:
    """The parameters of the first `Bearer` challenge in the header, by their names in lower case; empty: none."""
    members: dict[str, str] = {}
    scheme = ""
    for part in _PART.finditer(challenge[:_MAX_HEADER]):
        name, quoted, plain, word = part.groups()
        if word:
            if members:
                break
            scheme = word.lower()
        elif name and scheme == "bearer":
            members.setdefault(name.lower(), _ESCAPE.sub(r"\1", quoted) if quoted is not None else plain)
    return members


def scopes(text: str) -> tuple[str, ...]:
    """The scopes in a text with blanks between them; none if there are more than can be shown."""
    return tuple(scope for scope in text.split() if _SCOPE.fullmatch(scope)) if len(text) <= _MAX_SCOPES else ()


def union(*texts: str) -> str:
    """All scopes of these texts, each once, in their order."""
    return " ".join(dict.fromkeys(scope for text in texts for scope in scopes(text)))
