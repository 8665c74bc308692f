"""Each page of docs/ is correct: its files are made and its commands run, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import KINDS, ROOT, blocks, play

PAGES: Final = sorted((ROOT / "docs").rglob("*.md"))

ELSEWHERE: Final = {"troubleshooting", "first-day", "existing-hooks"}
"""Pages that need servers and repositories: they have tests of their own."""


def name(page: Path) -> str:
    return page.relative_to(ROOT / "docs").with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_block_says_how_it_is_tested(page: Path) -> None:
    text = page.read_text("utf-8")
    assert len(blocks(text)) * 2 == len(re.findall("^```", text, re.MULTILINE))
    for block in blocks(text):
        assert block.kind in KINDS, block.text
        assert block.kind != "example" or f"{block.text}```" in "".join(re.findall(r"(?s)<!-- made: .*?<!-- end", text))


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ELSEWHERE], ids=name)
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    play(page.read_text("utf-8"), tmp_path)
