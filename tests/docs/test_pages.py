"""Everything that is generated from the code is current: pages, tables, the JSON Schema."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from hookproxy.dialects.registry import DIALECTS

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted((ROOT / "docs").rglob("*.md"))


def test_generated_pages_are_current() -> None:
    ended = subprocess.run([sys.executable, ROOT / "scripts" / "pages"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_each_dialect_has_a_page_that_names_it() -> None:
    for name in DIALECTS:
        page = ROOT / "docs" / "dialects" / f"{name.partition('@')[0]}.md"
        assert f"<!-- made: {name} -->\n`--hooks {name}=FILE`" in page.read_text("utf-8")


def test_the_targets_of_links_exist() -> None:
    for page in [ROOT / "README.md", *PAGES]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
