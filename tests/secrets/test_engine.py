"""Patterns in linear time, and what holds when the engine cannot answer."""

from __future__ import annotations

import pytest

from hookproxy.secrets.engine import PatternError, PatternSet, compiled, quoted


def test_a_set_says_which_patterns_match_somewhere() -> None:
    patterns = PatternSet([b"a+", b"b", b"^c"])
    assert list(patterns.matching(b"xxaac")) == [0]
    assert list(patterns.matching(b"cba")) == [0, 1, 2]
    assert list(patterns.matching(b"xyz")) == []
    assert list(patterns.matching(b"")) == []


def test_all_patterns_may_match_where_the_engine_has_no_memory_for_an_answer() -> None:
    class OutOfMemory:
        def Match(self, text: bytes, /) -> None:
            return None

    patterns = PatternSet([b"a", b"b"])
    vars(patterns)["_set"] = OutOfMemory()
    assert list(patterns.matching(b"xyz")) == [0, 1]


@pytest.mark.parametrize("pattern", [b"(", b"(?=a)", rb"(a)\1", b"a{2000}", b"*"])
def test_a_pattern_that_cannot_be_used_is_an_error_that_says_why(pattern: bytes) -> None:
    with pytest.raises(PatternError, match=r"\S"):
        compiled(pattern)
    with pytest.raises(PatternError):
        PatternSet([pattern])


def test_a_byte_is_a_character() -> None:
    pattern = compiled(b"a(.)b")
    match = pattern.search(b"a\xffb")
    assert match is not None
    assert match.span(1) == (1, 2)


def test_a_quoted_text_matches_itself_only() -> None:
    text = bytes(range(256))
    assert compiled(quoted(text)).fullmatch(text) is not None
    assert compiled(quoted(b"a.b")).fullmatch(b"axb") is None
