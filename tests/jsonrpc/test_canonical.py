"""Canonical JSON, with the cases of RFC 8785 that have no fractions."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc.canonical import canonical


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, False]}, '{"a":[true,null,false],"b":1}'),
        ("\u20ac$\u000f\nA'B\"\\\\\"/", '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
        (
            {"\u20ac": 1, "\r": 2, "1": 3, "\U0001f600": 4, "\ufb33": 5},
            '{"\\r":2,"1":3,"\u20ac":1,"\U0001f600":4,"\ufb33":5}',
        ),
        ({}, "{}"),
        ((), "[]"),
        (-(2**53) + 1, "-9007199254740991"),
    ],
)  # fmt: skip
def test_each_value_has_one_form(value: object, text: str) -> None:
    assert canonical(value).decode() == text


@pytest.mark.parametrize("value", [2**53, 0.5, b"x", {"x": "\ud800"}, object()])
def test_what_readers_may_take_for_something_else_has_none(value: object) -> None:
    with pytest.raises(ValueError, match=r"surrogate|no canonical form"):
        canonical(value)
