"""Normalised JSON for hooks: the same value, and nothing that a search of the text would miss."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from hookproxy.jsonrpc import normalize
from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable
from tests.jsonrpc.test_raw_json import DUPLICATES

READERS = (normalize.normalize, normalize.normalize_output)


@pytest.mark.parametrize("raw", DUPLICATES.values(), ids=DUPLICATES)
def test_a_duplicate_key_is_an_error_in_any_spelling(raw: bytes) -> None:
    for read in READERS:
        with pytest.raises(DuplicateKeys, match="appears twice"):
            read(raw.strip())


@pytest.mark.parametrize("raw", DUPLICATES.values(), ids=DUPLICATES)
def test_a_nested_duplicate_key_is_an_error_before_hooks_get_it(raw: bytes) -> None:
    for outer in (b'{"x":[1,%b]}', b"[[%b]]", b'{ "x" : %b }', b'[{"y":0},{"x":%b}]', b'{"\\u0078":%b}'):
        for read in READERS:
            with pytest.raises(DuplicateKeys):
                read(outer % raw.strip())


def test_duplicate_keys_are_found_after_leading_blanks_too() -> None:
    for read in READERS:
        with pytest.raises(DuplicateKeys):
            read(b' {"a":1,"a":2}')


@pytest.mark.parametrize("raw", [b'{"a":"\xff"}', b'{"\xc3":1}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}'])
def test_text_that_is_not_utf_8_is_unreadable(raw: bytes) -> None:
    for read in READERS:
        with pytest.raises(Unreadable):
            read(raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"a" : "rm\\u0020-rf \\/"}', b'{"a":"rm -rf /"}'),
        (b'{"n":[1.0,1e400,-0,1E+2,12345678901234567890123,0.10]}', None),
        (b'{"a":"\\u00e9\\ud83d\\ude00"}', '{"a":"é😀"}'.encode()),
        (b'{"a":"\\"\\\\\\n\\u0000\\u001f"}', b'{"a":"\\"\\\\\\n\\u0000\\u001f"}'),
        (b'{"z":1,"a":2}', None),
        (b"[ ]", b"[]"),
        (b'"\\u0061"', b'"a"'),
        (b"null", None),
    ],
)
def test_hooks_get_the_same_value_without_needless_escapes(raw: bytes, expected: bytes | None) -> None:
    assert normalize.normalize(raw) == (raw if expected is None else expected)


def test_half_of_a_surrogate_pair_is_an_error_or_if_lenient_a_replacement_character() -> None:
    for raw in (b'{"a":"x\\ud800y"}', b'{"\\udc00":1}', b'["\\ud83d"]'):
        with pytest.raises(Unreadable, match="surrogate"):
            normalize.normalize(raw)
    assert normalize.normalize(b'["x\\ud800y",{"\\udc00":"\\ud83d\\ude00"}]', lenient=True) == (
        '["x\ufffdy",{"\ufffd":"😀"}]'.encode()
    )


@pytest.mark.parametrize("raw", [b"", b"{", b"[NaN]", b"[Infinity]", b"1 2", b"[\x0b]", b'["\t"]', b"[1,]"])
def test_hooks_do_not_get_text_that_is_not_json(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        normalize.normalize(raw)


@pytest.mark.slow
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("one", [b"[%b]", b'{"a":%b}'], ids=["arrays", "objects"])
def test_nesting_of_any_depth_is_read_or_refused_but_never_a_crash(read: Callable[[bytes], bytes], one: bytes) -> None:
    opening, closing = one.split(b"%b")

    def is_read(depth: int) -> bool:
        raw = opening * depth + b"1" + closing * depth
        with contextlib.suppress(Unreadable):
            assert read(raw) == raw
            return True
        return False

    assert is_read(1)
    assert is_read(100)
    assert not is_read(100_000)
    coarse = range(200, 1101, step := 30)
    results = [is_read(depth) for depth in coarse]
    assert results == sorted(results, reverse=True)
    limit = coarse[results.index(False)] if False in results else coarse[-1]
    # Each depth near it.
    assert [is_read(depth) for depth in range(limit - 2 * step, limit + step)].count(True) >= step


@pytest.mark.slow
def test_arguments_at_our_own_limit_of_nesting_are_read_or_refused_but_never_a_crash() -> None:
    for depth in range(250, 350):  # where it ends depends on how deep we are called
        raw = b'{"a":' * depth + b"1" + b"}" * depth
        with contextlib.suppress(Unreadable):
            assert normalize.normalize_object(raw)[0] == raw


def test_normal_output_is_not_copied_for_hooks() -> None:
    raw = '[{"type":"text","text":"é \\n \\" 1"}, {"b" : 1.0}]'.encode()
    assert normalize.normalize_output(raw) is raw


def test_hooks_get_output_without_escapes() -> None:
    assert normalize.normalize_output(b'[{"text":"\\u0061\\/\\ud800"}]') == '[{"text":"a/\ufffd"}]'.encode()


@pytest.mark.parametrize("outer", [b"%b", b'{"a":%b}', b'{ "a" : [ 1, %b ] }', b'["\\u0061",%b]'])
@pytest.mark.parametrize("number", [b"%b", b"-%b", b"%b.5", b"0.%b", b"1e%b"])
def test_hooks_do_not_get_a_number_that_makes_readers_fail(number: bytes, outer: bytes) -> None:
    longest = number % (b"1" * (normalize.MAX_NUMBER_CHARACTERS - len(number) + 2))
    assert len(longest) == normalize.MAX_NUMBER_CHARACTERS
    assert longest in normalize.normalize(outer % longest)
    with pytest.raises(Unreadable, match="a number of 401 characters"):
        normalize.normalize(outer % (number % (b"1" * (normalize.MAX_NUMBER_CHARACTERS - len(number) + 3))))


def test_digits_in_a_text_are_not_a_number() -> None:
    raw = b'{"a":"%b"}' % (b"1" * 5000)
    assert normalize.normalize(raw) == raw


@pytest.mark.parametrize("digits", [b"1" * 127, b"12" * 64, b"0" * 400, b"9" * 401])
def test_only_a_number_that_many_readers_reject_is_refused(digits: bytes) -> None:
    number = b"[1" + digits[1:] + b"]"
    if len(digits) > normalize.MAX_NUMBER_CHARACTERS:
        with pytest.raises(Unreadable):
            normalize.normalize(number)
    else:
        assert normalize.normalize(number) == number
    text = b'["' + digits + b'"]'
    assert normalize.normalize(text) == text
