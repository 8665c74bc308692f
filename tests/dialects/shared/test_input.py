"""Helpers for input documents: any text becomes UTF-8, and any document one line."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.shared import input as shared_input
from hookproxy.jsonrpc import normalize
from hookproxy.processes import environment


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


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(["command", "url", "x"]), st.text(max_size=8), max_size=5))
def test_a_variable_that_is_cut_has_the_same_arguments_and_begins_with_what_guards_look_at(
    given: dict[str, str],
) -> None:
    arguments = json.dumps({**given, "long": "x" * 131_072}, ensure_ascii=False).encode()
    text, cut = shared_input.tool_input_variable(normalize.normalize(arguments))
    assert cut
    assert json.loads(text) == json.loads(arguments)
    guarded = [name for name in ("command", "url") if name in given]
    assert list(json.loads(text))[: len(guarded)] == guarded


def test_a_variable_that_fits_has_the_arguments_in_the_agents_order() -> None:
    assert shared_input.tool_input_variable(b'{"x":1,"command":2}') == ('{"x":1,"command":2}', False)
    longest = 131_072 - len("HOOK_TOOL_INPUT=\0")
    for length, cut in ((longest, False), (longest + 1, True)):
        text = '{"x":"%s"}' % ("é" * ((length - 8) // 2) + "y" * ((length - 8) % 2))
        assert shared_input.tool_input_variable(text.encode()) == (text, cut)
        assert ("HOOK_TRUNCATED" in environment.fit({"HOOK_TOOL_INPUT": text})) == cut


NAMES = st.sampled_from(["content", "text", "text_", "text__", "path", "mode"])


@given(st.dictionaries(NAMES, st.integers()), st.dictionaries(st.just("mode"), st.integers()))
def test_renaming_arguments_loses_none_and_hides_none(members: dict[str, int], added: dict[str, int]) -> None:
    found = shared_input.renamed(members, {"content": "text"}, added)
    assert sorted(found.values()) == sorted([*members.values(), *added.values()])
    assert added.items() <= found.items()
    assert "content" not in members or found["text"] == members["content"]
