"""Diffs, from which `patch` can make the new text."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.wrapping.diff import unified
from hookproxy.wrapping.syntax_tree import Edit, apply_edits

LINES = "".join(f"line {number}\n" for number in range(30))


def patched(old: str, diff: list[str]) -> str:
    """The text after the diff: the lines of its hunks, and those between them."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", old)
    new: list[str] = []
    place = 0
    for at, line in enumerate(diff):
        if hunk := re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", line):
            start = int(hunk[1]) - (int(hunk[2]) > 0)
            new += lines[place:start]
            place = start
            assert len(new) == int(hunk[3]) - (int(hunk[4]) > 0)
        elif at >= 2 and line[0] in " -+":
            end = "" if diff[at + 1 : at + 2] == ["\\ No newline at end of file"] else "\n"
            if line[0] != "+":
                assert lines[place] == line[1:] + end
                place += 1
            if line[0] != "-":
                new.append(line[1:] + end)
    return "".join(new + lines[place:])


def test_a_diff_has_the_usual_format() -> None:
    at = LINES.index("line 9\n")
    assert unified("f", LINES, [Edit(at, at + 4, "LINE"), Edit(at + 7, at + 7, "more\n")]) == [
        "--- f", "+++ f", "@@ -7,7 +7,8 @@",
        " line 6", " line 7", " line 8", "-line 9", "+LINE 9", "+more", " line 10", " line 11", " line 12",
    ]  # fmt: skip


def test_an_unchanged_text_has_no_diff() -> None:
    assert unified("f", LINES, []) == []
    assert unified("f", LINES, [Edit(0, 4, "line")]) == []


def test_git_applies_the_diff(tmp_path: Path) -> None:
    edits = [
        Edit(0, 0, "first\n"),
        Edit(LINES.index("line 20"), LINES.index("line 22"), ""),
        Edit(len(LINES), len(LINES), "end"),
    ]
    (tmp_path / "f").write_text(LINES)
    diff = "\n".join(unified("f", LINES, edits)) + "\n"
    subprocess.run(["git", "apply", "--unidiff-zero", "-p0"], input=diff, text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_text() == apply_edits(LINES, edits)


@given(
    st.text(alphabet="ab\r\n", max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.text(alphabet="xb\n", max_size=5)), max_size=4),
)
def test_the_diff_describes_exactly_the_edits(text: str, changes: list[tuple[int, int, str]]) -> None:
    edits: list[Edit] = []
    for start, length, new in sorted(changes):
        start = min(max(start, edits[-1].end + 1 if edits else 0), len(text))
        if not edits or start > edits[-1].end:
            edits.append(Edit(start, min(start + length, len(text)), new))
    assert patched(text, unified("f", text, edits)) == apply_edits(text, edits)


def test_the_diff_of_a_large_file_is_fast() -> None:
    text = "{\n" * 1_000_000
    assert unified("f", text, [Edit(0, 1, "["), Edit(len(text) - 2, len(text) - 1, "]")])
