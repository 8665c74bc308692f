"""A message and its exact bytes: what is read, what is refused, and that an edit changes nothing else."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable

LOOSE = b' { "a" : 1.50 , "b" : [ 1,\t2 ] ,"c":{"d" : null}} \r\n'

DUPLICATES = {
    "dense": b'{"a":1,"a":2}',
    "equal": b'{"a":1,"a":1}',
    "as Python spells it": b'{"a": 1, "a": 2}',
    "loose": b'{ "a" :1 , "a": 2 }',
    "escaped": b'{"a":1,"\\u0061":2}',
    "escaped, as Python spells it": b'{"a": 1, "\\u0061": 2}',
    "both escaped otherwise": b'{"\\u00e9":1,"\xc3\xa9":2}',
    "a line end after it": b'{"a":1,"a":2}\n',
    "three": b'{"a":1,"b":2,"a":3}',
    "an empty key": b'{"":1,"":2}',
    "outside ASCII": '{"é":1,"é":2}'.encode(),
    "outside the BMP": '{"😀":1,"\\ud83d\\ude00":2}'.encode(),
    "a longer last value": b'{"a":1,"b":2,"a":{"b":2}}',
    "blanks of the right number": b'{"a": 1,"b":1,"c":1,"d":11,"a":{"z": 0, "b": 1, "c": 1, "d": 1}}',
    "blanks of the right number, a line end": (b'{"a": 1,"b":1,"c":1,"d":11,"a":{"z": 0, "b": 1, "c": 1, "d": 1}}\n'),
}

NOT_ONE_OBJECT = {
    "nothing": b"",
    "blank": b" ",
    "a number": b"1",
    "a string": b'"a"',
    "an array": b'[{"a":1}]',
    "no end": b'{"a":1',
    "no value": b'{"a":}',
    "no key": b"{:1}",
    "a key that is none": b"{1:1}",
    "a comma too many": b'{"a":1,}',
    "no comma": b'{"a":1 "b":2}',
    "no colon": b'{"a" 1}',
    "two objects": b'{"a":1}{"b":2}',
    "two objects, a line end between": b'{"a":1}\n{"b":2}',
    "a word after it": b'{"a":1} x',
    "NaN": b'{"a":NaN}',
    "-Infinity": b'{"a": -Infinity}',
    "a byte order mark": b'\xef\xbb\xbf{"a":1}',
    "a vertical tab": b'{"a":\x0b1}',
    "a line end in a string": b'{"a":"\n"}',
    "NUL in a string": b'{"a":"\0"}',
    "half a surrogate pair as a key": b'{"\\ud800":1}',
    "single quotes": b"{'a':1}",
    "a leading zero": b'{"a":01}',
    "UTF-16": '{"a":1}'.encode("utf-16-le"),
    "too deep": b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "too deep, loose": b'{ "a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
}


@pytest.mark.parametrize("raw", DUPLICATES.values(), ids=DUPLICATES)
def test_a_duplicate_key_is_an_error_in_any_spelling(raw: bytes) -> None:
    for read in (raw_json.fields, raw_json.members):
        with pytest.raises(DuplicateKeys, match="appears twice"):
            read(raw.strip())
        with pytest.raises(DuplicateKeys):
            read(raw)


def test_duplicate_keys_are_found_after_leading_blanks_too() -> None:
    for read in (raw_json.fields, raw_json.members):
        with pytest.raises(DuplicateKeys):
            read(b' {"a":1,"a":2}')


@pytest.mark.parametrize("raw", NOT_ONE_OBJECT.values(), ids=NOT_ONE_OBJECT)
def test_text_that_is_not_exactly_one_object_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        raw_json.fields(raw)
    with pytest.raises(Unreadable):
        raw_json.members(raw)


@pytest.mark.parametrize("raw", [b'{"a":"\xff"}', b'{"\xc3":1}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}'])
def test_text_that_is_not_utf_8_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable, match="not UTF-8"):
        raw_json.check_utf8(raw)


def test_members_are_read_as_their_exact_bytes() -> None:
    assert {key: bytes(value) for key, value in raw_json.fields(LOOSE).items()} == {
        "a": b"1.50",
        "b": b"[ 1,\t2 ]",
        "c": b'{"d" : null}',
    }
    assert {key: LOOSE[slice(*span)] for key, span in raw_json.members(LOOSE).items()} == {
        "a": b"1.50",
        "b": b"[ 1,\t2 ]",
        "c": b'{"d" : null}',
    }


@pytest.mark.parametrize("raw", [b"{}", b"{ }", b"{}\n", b" {\t} \r\n"])
def test_an_object_may_be_empty(raw: bytes) -> None:
    assert raw_json.fields(raw) == {}
    assert raw_json.members(raw) == {}


def test_half_of_a_surrogate_pair_in_a_value_hides_nothing_from_spans() -> None:
    raw = b'{"id":7,"x":"\\ud800","result":{}}'
    assert {key: raw[slice(*span)] for key, span in raw_json.members(raw).items()} == {
        "id": b"7",
        "x": b'"\\ud800"',
        "result": b"{}",
    }


@pytest.mark.parametrize(
    ("raw", "name", "value", "expected"),
    [
        (b'{"a":1,"b":2}', "a", b"[]", b'{"a":[],"b":2}'),
        (b'{"a":1,"b":2}\n', "b", b"3", b'{"a":1,"b":3}\n'),
        (b'{"a": 1, "b": 2}', "c", b"3", b'{"a": 1, "b": 2,"c":3}'),
        (b'{ "\\u0061" : 1 } ', "a", b"3", b'{ "\\u0061" : 3 } '),
        (b"{}", "a", b"1", b'{"a":1}'),
        (b" { }\n", "a", b"1", b' {"a":1 }\n'),
        (b'{"a":1e400,"a b":1.0}', "a b", b"0", b'{"a":1e400,"a b":0}'),
        ('{"é":1,"ü":2}'.encode(), "ü", b"3", '{"é":1,"ü":3}'.encode()),
    ],
)
def test_setting_a_member_changes_only_this_member(raw: bytes, name: str, value: bytes, expected: bytes) -> None:
    assert raw_json.with_member(raw, name, value) == expected


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        (b'{"a":1,"b":2,"c":3}', "a", b'{"b":2,"c":3}'),
        (b'{"a":1,"b":2,"c":3}', "b", b'{"a":1,"c":3}'),
        (b'{"a":1,"b":2,"c":3}\n', "c", b'{"a":1,"b":2}\n'),
        (b'{"a":{"b":[",}"]}}', "a", b"{}"),
        (b'{ "a" : 1 , "b":2}', "a", b'{ "b":2}'),
        (b'{"a":1}', "b", b'{"a":1}'),
        (b"{}", "a", b"{}"),
        (b'{"a":"x,y","b":2}', "a", b'{"b":2}'),
    ],
)
def test_removing_a_member_removes_its_comma_and_nothing_else(raw: bytes, name: str, expected: bytes) -> None:
    assert raw_json.without_member(raw, name) == expected


def test_a_value_that_is_not_an_array_has_no_readable_items() -> None:
    for raw in (b"{}", b"[1,]", b"1", b"", b"[" * 1_000_000 + b"]" * 1_000_000, b"[\xff"):
        with pytest.raises(Unreadable):
            raw_json.items(raw)


def test_spans_are_replaced_in_one_pass() -> None:
    assert raw_json.splice(b"0123456789", [((0, 0), b"<"), ((2, 4), b"AB!"), ((9, 10), b"")]) == b"<01AB!45678"
    long = b"x" * 100_000
    assert raw_json.splice(long, [((1, 2), b"A"), ((5, 5), b"B")]) == b"xAxxxB" + long[5:]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":1}\n', b'{"a":1}\n'),
        (b'{"a":1}\r\n', b'{"a":1}\r\n'),
        (b'{"a":1}\r\r\r\n', b'{"a":1}\r\n'),
        (b'{"a":1}', b'{"a":1}'),
        (b'{"a":\r1}\r', b'{"a": 1}\r'),
        ('{"a":"\x85\u2028\u2029"}\n'.encode(), b'{"a":"\\u0085\\u2028\\u2029"}\n'),
        ('{"a":"É \u2027"}\n'.encode(), '{"a":"É \u2027"}\n'.encode()),
    ],
)
def test_every_reader_finds_exactly_one_line_after_one_line(line: bytes, expected: bytes) -> None:
    made = raw_json.one_line(line)
    assert made == expected
    assert len(made.decode().splitlines()) == 1


def test_a_string_is_decoded_and_any_other_value_is_none() -> None:
    assert raw_json.text(b'"a\\u0062"') == "ab"
    for raw in (b"", b"1", b"null", b'"\\ud800"', b'"\xff"', b'"a', b'["a"]'):
        assert raw_json.text(raw) is None


@pytest.mark.parametrize("raw", [b"0", b"-7", b"12345678901234567890123"])
def test_integers_are_distinguished_from_similar_texts(raw: bytes) -> None:
    assert raw_json.is_integer(raw)
    for other in (raw + b".0", raw + b"e0", b"0" + raw, b"+" + raw, b'"%b"' % raw, raw + b" ", raw + b"\n"):
        assert not raw_json.is_integer(other)


def test_values_are_encoded_compactly_and_raw_json_is_copied_verbatim() -> None:
    raw = raw_json.fields(b'{"a":[ 1.0 ]}')["a"]
    assert raw_json.encode({"é": raw, "b": None}) == '{"é":[ 1.0 ],"b":null}'.encode()
