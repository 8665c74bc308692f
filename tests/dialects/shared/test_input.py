"""Helpers for input documents: any text becomes UTF-8, and any document one line."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.shared import input as shared_input


@pytest.mark.parametrize("text", ["", "/repo", "/home/zoë/\U0001f980", "nul \0 and\nlines"])
def test_utf8_stays_as_it_is(text: str) -> None:
    assert shared_input.utf8(text) == text


@pytest.mark.parametrize("text", ["/h\udce9me", "\ud83d", "é\udcff"])
def test_characters_that_utf8_cannot_encode_become_question_marks(text: str) -> None:
    assert shared_input.utf8(text) == text.encode(errors="replace").decode()
    assert "?" in shared_input.utf8(text)


def test_a_document_is_one_line_in_its_own_order() -> None:
    assert shared_input.json_line({"b": "é\n", "a": [1, None]}) == b'{"b":"\xc3\xa9\\n","a":[1,null]}\n'


def test_raw_json_goes_in_as_it_is() -> None:
    assert shared_input.json_line({"tool_input": msgspec.Raw(b'{"n": 1.50}')}) == b'{"tool_input":{"n": 1.50}}\n'


@given(st.dictionaries(st.text(), st.text(st.characters()) | st.none() | st.booleans()))
def test_any_text_can_be_written(members: dict[str, str | bool | None]) -> None:
    document = {key: shared_input.utf8(value) if isinstance(value, str) else value for key, value in members.items()}
    line = shared_input.json_line(document)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == document
