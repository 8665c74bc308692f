"""Reads the exit code, standard output and standard error of a Qwen Code hook into a verdict; it never raises."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...jsonrpc import raw_json
from ..shared import claude_envelope as envelope
from ..shared.output import BLOCKS

FIELDS: Final = envelope.FIELDS
"""What each member of the JSON output does here."""


def _answer(code: int, stdout: str, stderr: str) -> str:
    """The stream that Qwen Code reads; if that one is empty, the other.

    With exit code 2, newer versions read standard error alone, and whether they block if it is empty is in doubt. The
    examples of the page print the reason on standard output: it is read.
    """
    text = stderr or stdout if code == BLOCKS else stdout or stderr
    if text.startswith('"') and (inner := raw_json.text(text.encode())):  # JSON as a JSON string
        return inner.strip()
    return text


read_output = partial(envelope.read_output, envelope.Rules(answer=_answer, any_exit_code=True, shows_text=True))
