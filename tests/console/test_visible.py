"""Text for a terminal in which each character can be seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hookproxy.console import visible


@pytest.mark.parametrize(
    "sign", ["\u202e", "\x1b", "\x9b", "\u3164", "\u2800", "\u200b", "\ufe0f", "\r", "\x00", "\ud800"]
)
def test_what_a_terminal_would_not_show_is_an_escape(sign: str) -> None:
    assert visible.visible(f"a{sign}b\nc") == f"a{sign.encode('unicode_escape').decode()}b\nc"


@given(st.text(), st.integers(min_value=2, max_value=20))
def test_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    lines = visible.lines(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines) == visible.visible(text).replace("\n", "")
