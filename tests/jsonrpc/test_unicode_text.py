"""Forms of Unicode in time that no peer can make long."""

from __future__ import annotations

import unicodedata
from itertools import groupby

import pytest

from hookproxy.jsonrpc.raw_json import folded_key
from hookproxy.jsonrpc.unicode_text import Form, normalized
from hookproxy.lock.names import fold, skeleton

FORMS: list[Form] = ["NFC", "NFKC", "NFKD"]
MARKS = ["\u0307\u0323", "\u0f73", "\u0344\u0323", "e\u0301\u0323\u0307" * 2 + "\u0323" * 40, "%\u0307\u0323"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    ["", "abc" * 40, "é" * 90, "e\u0301\u0323" * 60, "ﬁ\u1e9b\u0323" * 60, "한글\u2025/\u0f73" * 40, "\u0323" * 30],
)
def test_a_text_of_any_language_is_what_unicode_says(form: Form, text: str) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("shift", [0, 1, 29])
def test_no_run_of_marks_that_is_sorted_is_long(form: Form, marks: str, shift: int) -> None:
    came = normalized(form, "x" * shift + marks * 2000)
    runs = [len([*run]) for is_mark, run in groupby(came, lambda sign: unicodedata.combining(sign) != 0) if is_mark]
    assert max(runs, default=0) <= 4 * 30


@pytest.mark.slow
def test_names_and_keys_of_many_marks_are_read() -> None:
    name = "x" + "\u0307\u0323" * 100_000
    assert folded_key(name)[0] == fold(name)[0] == "\u1e8b"
    assert skeleton(name) == "x"
