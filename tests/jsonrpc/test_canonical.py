"""Canonical JSON, with cases of RFC 8785."""

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
        # appendix B
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
    ],
)  # fmt: skip
def test_each_value_has_one_form(value: object, text: str) -> None:
    assert canonical(value).decode() == text


@pytest.mark.parametrize("value", [2**53, float("inf"), float("nan"), b"x", {"x": "\ud800"}, object()])
def test_what_readers_may_take_for_something_else_has_none(value: object) -> None:
    with pytest.raises(ValueError, match=r"surrogate|beyond 2\^53|no canonical form"):
        canonical(value)
