"""Random JSON in random spelling against Python's own reader: edits touch one span, duplicates are always found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hookproxy.jsonrpc import normalize, raw_json
from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable
from tests.random.documents import Pairs, blanks, documents, members_of, objects, read, spelled, texts


@given(objects())
def test_members_are_the_bytes_at_their_spans(raw: bytes) -> None:
    pairs = members_of(raw)
    assume(len({key for key, _ in pairs}) == len(pairs))
    spans = raw_json.members(raw)
    assert [(key, read(raw[slice(*span)])) for key, span in spans.items()] == pairs
    assert {key: bytes(value) for key, value in raw_json.fields(raw).items()} == {
        key: raw[slice(*span)] for key, span in spans.items()
    }


@given(objects(duplicates=True))
def test_duplicate_keys_are_found_in_any_spelling(raw: bytes) -> None:
    pairs = members_of(raw)
    assert len({key for key, _ in pairs}) < len(pairs)
    for look in (raw_json.members, raw_json.fields, normalize.normalize):
        with pytest.raises(DuplicateKeys):
            look(raw)


@given(documents(duplicates=True))
def test_hooks_never_get_duplicate_keys_at_any_depth(raw: bytes) -> None:
    with pytest.raises(DuplicateKeys):
        normalize.normalize(raw, lenient=True)
    with pytest.raises(DuplicateKeys):
        normalize.normalize_output(raw.strip())


@given(st.data())
def test_a_duplicate_key_is_found_even_if_the_lengths_fit(data: st.DataObject) -> None:
    """The last value of the duplicate is as long as it takes for the whole to look like another object."""
    keys = [f"k{number}" for number in range(data.draw(st.integers(3, 7)))]
    small = [str(data.draw(st.integers(0, 99))) for _ in keys]
    inside = ", ".join(f'"{key}": {value}' for key, value in zip(keys, small, strict=True))
    dense = ",".join(f'"{key}":{value}' for key, value in zip(keys, small, strict=True))
    pad = data.draw(st.text(" 1", max_size=8))
    raw = f'{{"t": 1,{dense}{pad},"t":{{"z": 0, {inside}}}}}'.encode()
    try:
        json.loads(raw)
    except ValueError:
        assume(False)
    with pytest.raises(DuplicateKeys):
        raw_json.members(raw)
    with pytest.raises(DuplicateKeys):
        raw_json.fields(raw)


@given(objects(), texts(), documents())
def test_setting_a_member_keeps_every_other_byte(raw: bytes, name: str, value: bytes) -> None:
    pairs = members_of(raw)
    assume(len(dict(pairs)) == len(pairs))
    new = value.strip()
    edited = raw_json.with_member(raw, name, new)
    spans = raw_json.members(raw)
    if name in spans:
        start, end = spans[name]
        assert edited == raw[:start] + new + raw[end:]
    else:
        assert edited.replace(raw_json.encode(name) + b":" + new, b"", 1).count(b"}") >= 1
        expected = [*pairs, (name, read(new))]
        assert members_of(edited) == expected
        added = len(edited) - len(raw)
        assert any(edited[:at] + edited[at + added :] == raw for at in range(len(raw) + 1))


@given(objects(), st.data())
def test_removing_a_member_keeps_the_spelling_of_all_others(raw: bytes, data: st.DataObject) -> None:
    pairs = members_of(raw)
    assume(pairs)
    assume(len(dict(pairs)) == len(pairs))
    name = data.draw(st.sampled_from([key for key, _ in pairs]))
    before = {key: raw[slice(*span)] for key, span in raw_json.members(raw).items() if key != name}
    edited = raw_json.without_member(raw, name)
    assert {key: edited[slice(*span)] for key, span in raw_json.members(edited).items()} == before
    removed = len(raw) - len(edited)
    assert any(raw[:at] + raw[at + removed :] == edited for at in range(len(raw)))
    assert raw_json.without_member(edited, name) == edited


@given(documents())
def test_hooks_get_the_same_value_without_escapes_that_hide_text(raw: bytes) -> None:
    try:
        shown = normalize.normalize(raw)
    except Unreadable as problem:
        assert "surrogate" in str(problem)  # noqa: PT017  # the only thing that cannot be shown
        assert "\\u" in raw.decode() or "\\U" in raw.decode()
        return
    assert read(shown) == read(raw)
    assert b"\\/" not in shown.replace(b"\\\\", b"")
    assert normalize.normalize(shown) == shown
    assert normalize.normalize_output(shown) in (shown, normalize.normalize(shown, lenient=True))


@given(documents())
def test_hooks_get_numbers_as_they_were_spelled(raw: bytes) -> None:
    shown = normalize.normalize(raw, lenient=True)
    assert numbers_of(read(shown)) == numbers_of(read(raw))


def numbers_of(value: Any) -> list[str]:  # noqa: ANN401  # any JSON
    if isinstance(value, Pairs):
        return [number for _, item in value for number in numbers_of(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers_of(item)]
    return [value.lexeme] if hasattr(value, "lexeme") else []


@given(objects(splitting=True))
def test_one_line_is_one_line_to_every_reader_and_has_the_same_meaning(raw: bytes) -> None:
    made = raw_json.one_line(raw + b"\n")
    assert len(made.decode().splitlines()) == 1
    assert read(made) == read(raw)
    assert raw_json.one_line(made) == made


@given(st.binary(max_size=60))
def test_random_bytes_are_read_as_in_python_or_not_at_all(raw: bytes) -> None:
    for look in (raw_json.fields, raw_json.members):
        try:
            found = look(raw)
        except (Unreadable, DuplicateKeys):
            continue
        assert set(found) == {key for key, _ in members_of(raw)}


@given(objects(), st.data())
def test_a_damaged_object_is_never_read_as_another_object(raw: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw) - 1))
    damaged = raw[:at] + data.draw(st.binary(max_size=2)) + raw[at + data.draw(st.integers(0, 2)) :]
    for look in (raw_json.fields, raw_json.members):
        try:
            found = look(damaged)
            raw_json.check_utf8(damaged)
        except (Unreadable, DuplicateKeys):
            continue
        pairs = members_of(damaged)
        assert set(found) == {key for key, _ in pairs}
        assert len(pairs) == len(found)


@given(st.lists(st.tuples(texts(), documents()), max_size=4), blanks(), st.booleans())
def test_readable_output_is_the_same_object_or_the_same_value(
    members: list[tuple[str, bytes]], blank: bytes, escape: bool
) -> None:
    assume(len({key for key, _ in members}) == len(members))
    raw = b"{%b}" % (b"," + blank).join(spelled(key, escape) + blank + b":" + value for key, value in members)
    shown = normalize.normalize_output(raw)
    assert shown is raw or shown == normalize.normalize(raw, lenient=True)
