"""Reads where a secret is: "env:VARIABLE", "file:PATH", "keyring:SERVICE/USER" or "command:PROGRAM ARGUMENTS".

It reads no secret, and no error repeats the text: it may be the secret itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from ..model.errors import ConfigError
from ..model.secret_settings import Source
from ..trust.sources import FileContext

_Kind = Literal["env", "file", "keyring", "command"]

_FORMS: Final[Mapping[_Kind, str]] = {
    "env": "env:VARIABLE",
    "file": "file:PATH",
    "keyring": "keyring:SERVICE/USER",
    "command": "command:PROGRAM ARGUMENTS",
}
"""How each kind is written."""

_SAME_KINDS: Final = {"cmd": "command", "exec": "command", "environ": "env", "environment": "env", "path": "file"}
"""Other words for a kind."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def source_of(
    text: str, where: str, folder: str, file_context: FileContext, kinds: Sequence[_Kind] = tuple(_FORMS)
) -> Source:
    """The source of one of these kinds; `where` is its key, and relative paths start from `folder`.

    Raises ConfigError.
    """
    quoted = [f'"{_FORMS[kind]}"' for kind in kinds]
    hint = f"write {', '.join(quoted[:-1])} or {quoted[-1]}"
    word, colon, what = text.partition(":")
    kind, what = next((kind for kind in kinds if kind == word), None), what.strip()
    if not colon or kind is None or not what:
        raise ConfigError(where, "does not say where the value is", _meant(text, kinds) or hint)
    if kind == "env" and not _VARIABLE.fullmatch(what):
        raise ConfigError(where, "env: is followed by the name of a variable, not by a value", hint)
    if kind == "file":
        return Source(kind, file_context.find(what, folder))
    if kind == "keyring" and not all(what.rpartition("/")[::2]):
        raise ConfigError(where, "keyring: needs a service and a user", "write keyring:SERVICE/USER")
    if kind == "command":
        _check_command(what, where, hint)
        return Source(kind, what, folder)
    return Source(kind, what)


def _meant(text: str, kinds: Sequence[_Kind]) -> str:
    """How to write what is like one of these kinds: `$TOKEN`, `${TOKEN}`, `ENV:TOKEN`, `cmd:…`, `~/token`."""
    if re.fullmatch(r"\$\{?[A-Z_][A-Z0-9_]*\}?", text) and "env" in kinds:
        return 'write "env:…", with the name of the variable and without $'
    word, colon, what = text.partition(":")
    kind = _SAME_KINDS.get(word.strip().lower(), word.strip().lower())
    if colon and what.strip() and kind in kinds:
        return f'write "{kind}:…", with what follows the colon as it is'
    return 'write "file:…", with the path as it is' if text.startswith(("~/", "./")) and "file" in kinds else ""


def _check_command(command: str, where: str, hint: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise ConfigError(where, f"is not a command: {str(problem).lower()}", "close its quotes") from None
    if not words:
        raise ConfigError(where, "is not a command", hint)
