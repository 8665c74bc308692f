"""How much of a text is read to follow its nesting: in proportion to its size, whatever its shape is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

import pytest

from hookproxy.jsonrpc import nesting

PIECES: Final = 8  # of the longer texts: work that grows with the square would be eight times as much for each byte
LONG: Final = PIECES * nesting.PIECE_BYTES

SHAPES: Final[dict[str, bytes]] = {
    "only opening": b"[",
    "only closing": b"]",
    "closing before opening": b"][",
    "pairs": b"[],",
    "closing runs and opening runs": b"]" * 97 + b"[" * 97,
    "nested runs": b"[" * 100 + b"]" * 100 + b",",
    "nests of twelve": b"[" * 12 + b"]" * 12 + b",",
    "one pair in nine brackets": b"[" * 7 + b"[]",
    "records": b'{"a":[{"b":[]}]},',
    "arrays in objects in arrays": b'[{"a":',
    "empty texts": b'"",',
    "one bracket in each text": b'"[",',
    "quotes": b'"',
    "escaped quotes": b'\\"',
    "backslashes": b"\\",
    "unicode escapes": b"\\u005b",
    "digits": b"1",
    "numbers": b"1,",
    "twin keys": b'"a":1,',
    "blanks": b" ",
    "line ends": b"\r\n",
    "not UTF-8": b"\xff[\xc3",
}


class Counted(bytes):
    """Bytes that count how many of them their methods read, as all that is made of them does."""

    read: int = 0

    @classmethod
    def note(cls, size: int) -> None:
        Counted.read += size


def _counting(name: str) -> Callable[..., Any]:
    method = getattr(bytes, name)

    def counted(self: Counted, *args: Any) -> Any:  # noqa: ANN401  # as the method
        Counted.note(len(self))
        result = method(self, *args)
        if isinstance(result, bytes):
            return Counted(result)
        return [Counted(part) for part in result] if isinstance(result, list) else result

    return counted


for _name in ("count", "replace", "translate", "split", "strip", "rstrip", "find", "__contains__", "__getitem__"):
    setattr(Counted, _name, _counting(_name))


def work(function: Callable[[bytes, int], bool], text: bytes, limit: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many bytes are read, and how many steps are counted one by one."""

    def counted(steps: Any, **options: Any) -> Any:  # noqa: ANN401  # as accumulate
        Counted.note(len(steps))
        return accumulate(steps, **options)

    monkeypatch.setattr(nesting, "accumulate", counted)
    Counted.read = 0
    function(Counted(text), limit)
    return Counted.read


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2, 128])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", [nesting.is_deeper, nesting.has_more_values])
def test_the_work_is_in_proportion_to_the_text(
    function: Callable[[bytes, int], bool], shape: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = SHAPES[shape]
    text = b'{"a":[' + unit * (LONG // len(unit))
    assert work(function, text, limit, monkeypatch) <= 24 * len(text)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_round_that_removes_little_is_the_last(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rounds as anybody allows read no more than a few times the brackets."""
    steps = nesting._steps(SHAPES[shape] * (LONG // len(SHAPES[shape])))
    Counted.read = 0
    nesting._without_pairs(Counted(steps), 10_000)
    assert Counted.read <= 2 * nesting._MIN_SHARE * len(steps) + 10_000 * nesting._FEW_BRACKETS


def test_depth_is_followed_through_pieces_that_close_more_than_they_open() -> None:
    text = b"[" * 100 + b"1," * 40_000 + b"]" * 50 + b"[],[[]]," * 20_000 + b"[" * 78
    assert not nesting.is_deeper(text, 128)
    assert nesting.is_deeper(text + b"[", 128)
    assert nesting.is_deeper(text + b"[]", 128)
