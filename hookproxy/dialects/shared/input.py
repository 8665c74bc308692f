"""What all dialects' documents have in common: text that is UTF-8, and one line of JSON. On the path of each hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()


def utf8(text: str) -> str:
    """Text that came from the operating system or out of JSON, with `?` for what UTF-8 cannot spell."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def line(document: Mapping[str, object]) -> bytearray:
    """The document as one line with its end; `msgspec.Raw` in it goes in as it is. All text in it must be UTF-8."""
    written = bytearray()
    _ENCODER.encode_into(document, written)  # not through bytes: a result may be large, and is copied once
    written += b"\n"
    return written
