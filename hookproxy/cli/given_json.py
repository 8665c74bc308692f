"""JSON that is given on the command line, in a file, or on standard input: a message is seldom a word."""

from __future__ import annotations

import os
from typing import Final

from ..model.errors import UserError, file_hint

_MAX_JSON_BYTES: Final = 64 * 1024 * 1024  # the longest message that is judged, by default


def read_given(name: str, value: str) -> bytes:
    """The value itself, or the content of the file (`@FILE`) or standard input (`-`) that it names.

    Raises UserError.
    """
    if value != "-" and not value.startswith("@"):
        return os.fsencode(value).strip()
    source = "standard input" if value == "-" else value[1:]
    if not source:
        raise UserError(f"{name}: no file is named", "write @FILE to read a file, or - to read standard input")
    try:
        with open(0 if value == "-" else source, "rb", closefd=value != "-") as file:
            raw = file.read(_MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise UserError(f"{name}: {source} cannot be read: {error.strerror}", file_hint(source, error)) from None
        raise UserError(f"{name}: {source} cannot be read: {error}", "give a valid path") from None
    if len(raw) > _MAX_JSON_BYTES:
        raise UserError(
            f"{name}: {source} is longer than {_MAX_JSON_BYTES} bytes", "make it shorter: no agent can send that much"
        )
    return raw.removeprefix(b"\xef\xbb\xbf").strip()
