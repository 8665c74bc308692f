"""Patches of Codex's own tool as the writes and edits that hooks of other systems know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.codex.patch import FileChange, changes


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["*** Add File: a.py", "+x", "+", "+y"], [("Write", {"file_path": "a.py", "content": "x\n\ny\n"})]),
        (["*** Delete File: a"], [("Write", {"file_path": "a", "content": ""})]),
        (
            ["*** Update File: a", "@@ def f", " u", "-x", "+y", "", "*** End of File"],
            [("Edit", {"file_path": "a", "old_string": "u\nx\n", "new_string": "u\ny\n"})],
        ),
        (
            ["*** Update File: a", "-x", "+y", "@@", "+z"],
            [
                (
                    "MultiEdit",
                    {
                        "file_path": "a",
                        "edits": [
                            {"old_string": "x", "new_string": "y"},
                            {"old_string": "", "new_string": "z"},
                        ],
                    },
                )
            ],
        ),
        (
            ["*** Update File: a", "*** Move to: b", "@@", "-x", "+y"],
            [
                ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
                ("Write", {"file_path": "a", "content": ""}),
                ("Write", {"file_path": "b", "content": "y\n"}),
            ],
        ),
        (
            ["*** Add File: a", "+x", "*** Update File: .env", "@@", "-u", "+v"],
            [
                ("Write", {"file_path": "a", "content": "x\n"}),
                ("Edit", {"file_path": ".env", "old_string": "u", "new_string": "v"}),
            ],
        ),
    ],
)
def test_a_patch_is_its_changes(lines: list[str], expected: list[tuple[str, dict[str, object]]]) -> None:
    assert changes(patch(*lines)) == [FileChange(*one) for one in expected]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rm -rf /",
        patch(),
        patch("+x"),
        "cat <<'EOF'\n" + patch("*** Add File: a", "+x") + "\nEOF",
        patch("*** Add File: a", "x"),
        patch("*** Add File: a", "+x", "  *** Update File: .env", "-x"),
        patch("*** Delete File: a", " *** Delete File: b"),
        patch("*** Update File: a", "@@", "-x", " *** Update File: .env", "-y"),
        patch("*** Update File: a", "@@", "*** Rename File: b"),
        patch("*** Add File: a", "+x") + "\n" + "*** Add File: b",
    ],
)
def test_a_patch_that_cannot_be_read_completely_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="the patch"):
        changes(text)


LINES = st.lists(st.sampled_from([
    "*** Add File: a", "*** Update File: b", "*** Delete File: c", "*** Move to: d", "@@",
    "+x", "-x", " x", "", "z", " *** x",
]))  # fmt: skip


@given(LINES)
def test_every_file_of_a_patch_is_in_a_change(lines: list[str]) -> None:
    try:
        found = changes(patch(*lines))
    except ValueError:
        return
    named = {line.partition(": ")[2] for line in lines if line.startswith("*** ")}
    assert {one.arguments["file_path"] for one in found} == named
