"""docs/troubleshooting.md: each heading is the exact text of a message, and the steps below it cause that message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, blocks, perform

TEXT: Final = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SECTIONS: Final = [part.split("\n", 1) for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize(("heading", "text"), SECTIONS, ids=[heading for heading, _ in SECTIONS])
def test_a_heading_is_what_is_printed(heading: str, text: str, tmp_path: Path) -> None:
    printed = [perform(block, tmp_path) for block in blocks(text)]
    assert heading in printed[-1]
