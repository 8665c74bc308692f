"""What was found in a JSON text is cut to its strings and numbers, and a place is in a member."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hookproxy.secrets.literals import Found, in_literals, member_at, strings

VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_strings_are_those_of_the_text(value: object, plain: bool) -> None:
    raw = json.dumps(value, ensure_ascii=plain).encode(errors="surrogatepass")
    read: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            read.append(value)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, dict):
            for name, item in value.items():
                read.append(name)
                collect(item)

    collect(value)
    assert [json.loads(b'"' + raw[start:end] + b'"') for start, end in strings(raw)] == read


@given(VALUES, st.booleans(), st.data())
def test_with_what_is_found_replaced_the_text_is_json_of_the_same_shape(
    value: object, plain: bool, data: st.DataObject
) -> None:
    raw = json.dumps(value, ensure_ascii=plain).encode(errors="surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    assume(all(at == len(raw) or not 0x80 <= raw[at] < 0xC0 for at in cuts))  # finders cut no character
    found = [Found(start, end, f"r{start}") for start, end in zip(cuts[::2], cuts[1::2], strict=False) if start < end]
    secrets = in_literals(raw, found)
    parts = sorted((*part, secret.is_number) for secret in secrets for part in secret.parts)
    assert all(first[1] <= second[0] for first, second in pairwise(parts))
    changed = raw
    for start, end, is_number in reversed(parts):
        changed = changed[:start] + (b'"*"' if is_number else b"*") + changed[end:]
    assert _shape(json.loads(changed)) == _shape(value)


def _shape(value: object) -> object:
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()] if len(value) < 2 else len(value)
    return value is None or isinstance(value, bool)


def test_the_value_of_a_secret_is_what_its_parts_say_together() -> None:
    raw = rb'["a\"b", 12, "c\u00e9"]'
    text, number = in_literals(raw, [Found(3, len(raw) - 4, "r")])
    assert (text.value, text.is_number) == ('"bcé'.encode(), False)
    assert [raw[start:end] for start, end in text.parts] == [rb"\"b", rb"c\u00e9"]
    assert (number.value, number.is_number) == (b"12", True)
    assert [raw[start:end] for start, end in number.parts] == [b"12"]


@pytest.mark.parametrize(
    ("raw", "member"),
    [
        ('{"a": "!"}', "a"),
        ('{"a": [], "b": {"c": [[0], [1, "!"]]}}', "b.c[1][1]"),
        ('{"a": {"b": 1}, "c": "x", "d": "!"}', "d"),
        ('{"a": {"b": 1}, "!": "x"}', "!"),
        ('["a", "!"]', "[1]"),
        ('"!"', ""),
        ('{"a": "{\\"b\\": [\\"!\\"]}"}', "a"),
        ('{"a": {"b": 1}, "c": [2, "{", 3, !]}', "c[3]"),
    ],
)
def test_the_member_of_a_place_is_named_as_in_a_program(raw: str, member: str) -> None:
    assert member_at(raw.encode(), raw.index("!"), str) == member
