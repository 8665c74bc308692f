"""JSON in its canonical form (JCS, RFC 8785): the same value is the same bytes for all who sign or verify it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

_LARGEST: Final = 2**53 - 1
"""The largest integer that every reader of JSON has exactly (RFC 7493)."""

_PLAIN_DIGITS: Final = 21  # before the point: ECMAScript writes no exponent up to here
_PLAIN_ZEROS: Final = -5  # zeros after it: the same


def canonical(value: object) -> bytes:
    """The canonical form. Raises ValueError for what has none: large integers, infinity, lone surrogates."""
    try:
        return _text(value).encode()
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair") from None


def _text(value: object) -> str:
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() if abs(value) <= _LARGEST:
            return str(value)
        case int():
            raise ValueError("an integer is beyond 2^53, which not every reader has exactly; write it as a text")
        case float() if math.isfinite(value):
            return _fraction(value)
        case Mapping():
            members = sorted(value.items(), key=lambda member: str(member[0]).encode("utf-16-be", "surrogatepass"))
            return "{" + ",".join(f"{_text(str(name))}:{_text(member)}" for name, member in members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            raise ValueError(f"{value!r} has no canonical form here")


def _fraction(value: float) -> str:
    """The number as ECMAScript spells it (Number::toString): its shortest digits, with an exponent from 1e21 on."""
    if not value:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - len(whole + rest) + len(digits)  # digits before the point
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= _PLAIN_DIGITS:
        return sign + digits.ljust(point, "0")
    if 0 < point <= _PLAIN_DIGITS:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _PLAIN_ZEROS <= point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    more = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{more}e{point - 1:+d}"
