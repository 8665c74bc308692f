"""Puts the values of secrets in the place of their placeholders, in the arguments of a call that may have them.

A placeholder that stands for nothing, or may not be restored here, stays as it is (fails closed). A value is spelled as
the place needs it: in a string of JSON with its escapes, in JSON within such a string with the escapes of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from .secret_masks import Edit, depths_of

if TYPE_CHECKING:
    from ..secrets.placeholders import Restored

BEGINNING: Final = b"{{secret:"
"""What every placeholder begins with. One whose signs are escaped in JSON is not restored: no agent writes it so."""

ValueOf = Callable[[str], "Restored | None"]
"""What a placeholder stands for here; None: it stays as it is."""


def placeholders_in(raw: bytes) -> Iterator[tuple[int, int, str]]:
    """What looks like a placeholder in JSON: where, and its text."""
    from ..secrets.placeholders import PLACEHOLDER  # for sessions with secrets only

    text = raw.decode("latin-1")  # a character for each byte
    yield from ((match.start(), match.end(), match[0]) for match in PLACEHOLDER.finditer(text))


def restored(raw: bytes, value_of: ValueOf) -> bytes:
    """The JSON value with values in the place of their placeholders; `raw` itself if there is none."""
    secrets = [
        ((start, end), secret.value)
        for start, end, placeholder in (placeholders_in(raw) if BEGINNING in raw else ())
        if (secret := value_of(placeholder)) is not None
    ]
    depths = depths_of(raw, [start for (start, _), _ in secrets])
    edits: list[Edit] = [
        (span, content)
        for (span, value), depth in zip(secrets, depths, strict=True)
        if depth and (content := _content(value, depth)) is not None
    ]
    return raw_json.splice(raw, edits) if edits else raw


def _content(value: bytes, depth: int) -> bytes | None:
    """The value as it stands in that many strings of JSON around each other; None: it is not a text."""
    try:
        for _ in range(depth):
            value = raw_json.one_line(raw_json.encode(value.decode())[1:-1])
    except UnicodeError:
        return None
    return value
