"""The nesting of JSON text in pieces, compared with what a reader that goes sign by sign finds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc import nesting
from hookproxy.jsonrpc.nesting import Nesting
from tests.random.documents import documents, members_of


def depth_of(value: Any) -> int:  # noqa: ANN401  # any JSON
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def count_of(value: Any) -> int:  # noqa: ANN401  # any JSON
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count_of, inner))


@pytest.mark.parametrize("member", [b'"k%d":1', b' "k%d" : "x"\n', b'"k%d":[{},{"a":[1,2]}]', b'"k%d":"a,b,{\\""'])
def test_members_are_counted_in_a_long_text(member: bytes) -> None:
    raw = b"{" + b",".join(member % number for number in range(20_000)) + b"}"
    assert nesting.has_more_members(raw, 19_999)
    assert not nesting.has_more_members(raw, 20_000)


TREES = st.recursive(
    st.sampled_from((1, "a", '"[{,', "\\", '\\"', None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("a{[\\"), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(("a", "{", "[", ",", "\\", '"')), TREES, max_size=6), st.booleans())
def test_the_members_of_an_object_are_counted(tree: dict[str, Any], blanks: bool) -> None:
    raw = json.dumps(tree, separators=None if blanks else (",", ":")).encode()
    assert [nesting.has_more_members(raw, limit) for limit in range(1, 8)] == [len(tree) > n for n in range(1, 8)]


@given(TREES)
def test_the_depth_of_a_document_is_known(tree: Any) -> None:  # noqa: ANN401  # any JSON
    raw = json.dumps(tree).encode()
    depth = depth_of(tree)
    assert [nesting.is_deeper(raw, limit) for limit in (depth - 1, depth)] == [True, False] or depth == 0


@given(TREES)
@pytest.mark.slow
def test_no_document_has_more_values_than_it_has(tree: Any) -> None:  # noqa: ANN401  # any JSON
    raw = json.dumps(tree).encode()
    count = count_of(tree)
    assert not nesting.has_more_values(raw, 2 * count)
    assert nesting.has_more_values(raw, count // 2 - 1) or count < 4


@pytest.mark.parametrize("size", [10, 65_535, 65_536, 200_000])
def test_pieces_end_anywhere(size: int) -> None:
    text = b'{"a":"%b\\"[[[","b":[[1]]}' % (b"\\\\" * size)
    assert nesting.is_deeper(text, 2)
    assert not nesting.is_deeper(text, 3)
    assert nesting.has_more_values(b"[%b]" % b",".join([b"1"] * size), size - 2)
    assert not nesting.has_more_values(b'["%b"]' % (b"," * size), 2)


@given(documents(), documents(), st.lists(st.integers(1, 7), min_size=1))
@pytest.mark.slow
def test_the_end_of_a_value_is_found_however_the_text_is_cut(first: bytes, second: bytes, sizes: list[int]) -> None:
    text = first + b',"x":' + second + b"}"
    follower, at, number = Nesting(1), 0, 0
    while at < len(text):
        piece = text[at : at + sizes[number % len(sizes)]]
        end = follower.find_end(piece)
        if end >= 0:
            assert at + end == len(first)
            break
        at, number = at + len(piece), number + 1
    else:
        pytest.fail("the end was not found")
    assert follower.is_plain is (b"\r" not in first.replace(b"\\r", b""))
    assert members_of(b'{"a":' + text)[0][0] == "a"


@pytest.mark.parametrize(
    "text", [b"/* x */1", b"[1/**/]", b"'a'", b"[1,\x0b2]", b"\x00", b'\\"', b"i", b"\xff", b"\xc2\x85"]
)
def test_what_is_not_json_outside_of_strings_is_noticed(text: bytes) -> None:
    follower = Nesting(1)
    follower.find_end(text + b" ")
    assert not follower.is_plain
