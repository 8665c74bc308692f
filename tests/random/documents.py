"""Random JSON documents in random spelling, and the plain reader with which they are compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

_BLANKS: Final = (b"", b"", b"", b" ", b"\t", b"  ", b"\r", b" \t ")
_NUMBERS: Final = (b"0", b"-0", b"1.0", b"1e400", b"-12.50", b"1E+2", b"9" * 30, b"0.1", b"7")
_WORDS: Final = (b"null", b"true", b"false")


@dataclass(frozen=True)
class Number:
    """A number as it is spelled."""

    lexeme: str


class Pairs(list[tuple[str, Any]]):
    """An object with all its members in order, duplicates too."""


def read(raw: bytes) -> Any:  # noqa: ANN401  # any JSON
    """What Python's reader makes of it, with nothing lost."""
    return json.loads(raw.decode("utf-8"), object_pairs_hook=Pairs, parse_int=Number, parse_float=Number)


def members_of(raw: bytes) -> list[tuple[str, Any]]:
    value = read(raw)
    assert isinstance(value, Pairs)
    return list(value)


def blanks() -> st.SearchStrategy[bytes]:
    """Blanks that may stand between tokens."""
    return st.sampled_from(_BLANKS)


def texts() -> st.SearchStrategy[str]:
    """Keys and strings: short, so that they meet; with what needs escapes, and what lies outside ASCII."""
    return st.text(st.sampled_from('ab"\\/é\u2028😀\x85 ,:{}[]\n\0'), max_size=4)


def spelled(text: str, escape: bool = False) -> bytes:
    """A JSON string, with every character by its number if so asked."""
    if not escape:
        return json.dumps(text, ensure_ascii=False).encode()
    units = text.encode("utf-16-be")
    return b'"%b"' % b"".join(b"\\u%b" % units[at : at + 2].hex().encode() for at in range(0, len(units), 2))


@st.composite
def strings(draw: st.DrawFn, splitting: bool = False) -> bytes:
    """A JSON string in some spelling; now and then with half a surrogate pair."""
    raw = spelled(draw(texts()), draw(st.booleans()))
    if not splitting and draw(st.integers(0, 15)) == 0:
        return raw[:-1] + draw(st.sampled_from((b'\\ud800"', b'\\udc00x"', b'\\uD83D"')))
    return raw


def _arrays(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(_array, st.lists(items, max_size=3), blanks(), blanks())


def _array(items: list[bytes], inner: bytes, outer: bytes) -> bytes:
    return b"[%b%b%b]" % (inner, (inner + b"," + outer).join(items), outer)


@st.composite
def _objects(draw: st.DrawFn, values: st.SearchStrategy[bytes], duplicates: bool = False) -> bytes:
    """An object as Python, JavaScript or nobody spells it."""
    keys = draw(st.lists(texts(), max_size=4, unique=True))
    if duplicates:
        keys = keys or [draw(texts())]
        keys.insert(draw(st.integers(0, len(keys))), draw(st.sampled_from(keys)))
    style = draw(st.sampled_from(("dense", "python", "loose")))
    between = {"dense": (b":", b","), "python": (b": ", b", ")}
    members = []
    for key in keys:
        colon = between[style][0] if style in between else draw(blanks()) + b":" + draw(blanks())
        members.append(spelled(key, draw(st.integers(0, 3)) == 0) + colon + draw(values))
    if style in between:
        return b"{%b}" % between[style][1].join(members)
    return b"{%b%b%b}" % (draw(blanks()), (draw(blanks()) + b"," + draw(blanks())).join(members), draw(blanks()))


def _values(splitting: bool = False) -> st.SearchStrategy[bytes]:
    leaves = st.one_of(st.sampled_from(_NUMBERS), st.sampled_from(_WORDS), strings(splitting))
    return st.recursive(leaves, lambda inner: st.one_of(_arrays(inner), _objects(inner)), max_leaves=6)


def objects(duplicates: bool = False, splitting: bool = False) -> st.SearchStrategy[bytes]:
    """JSON objects; with `duplicates`, each has one key twice."""
    return _objects(_values(splitting), duplicates)


@st.composite
def documents(draw: st.DrawFn, duplicates: bool = False) -> bytes:
    """JSON values of any kind, perhaps between blanks; with `duplicates`, an object somewhere has one key twice."""
    inner = draw(objects(duplicates=True)) if duplicates else draw(_values())
    for _ in range(draw(st.integers(0, 3)) if duplicates else 0):
        wrap = draw(st.sampled_from((b"[1,%b]", b'{"x":%b}', b'{ "x" : [ %b ] }', b"[[],%b , null]")))
        inner = wrap % inner
    return draw(blanks()) + inner + draw(blanks())


@st.composite
def envelopes(draw: st.DrawFn, members: tuple[str, ...]) -> bytes:
    """A line with an object of some of these members, in some spelling."""
    chosen = draw(st.lists(st.sampled_from(members), max_size=5))
    comma, end = draw(st.sampled_from(((",", ""), (", ", ""), (",", " "), (" ,", "\r"))))
    return ("{" + comma.join(chosen) + "}" + end + "\n").encode()
