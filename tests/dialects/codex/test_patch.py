"""The patch that Codex's hooks get for a server's edits, and rewrites of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.codex.input import patch_text, real_arguments
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event, EventContext, HookSpec
from tests.dialects.calls import SESSION, inputs, read

SPEC = HookSpec("codex", "f", Event.PRE_TOOL_USE, "guard", shell="guard")
EDIT = b'{"file_path":"a.py","old_string":"x","new_string":"y"}'
HOOKS = {"hooks": {"PreToolUse": [{"matcher": "apply_patch", "hooks": [{"type": "command", "command": "x"}]}]}}


def context(arguments: bytes, name: str = "apply_patch") -> EventContext:
    alias = Alias("edit_file", name, automatic=True)
    return EventContext(Event.PRE_TOOL_USE, SESSION, "edit_file", "apply_patch", "call_1", arguments, alias)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"file_path": "a", "old_string": "x\ny", "new_string": "z"}, ["*** Update File: a", "@@", "-x", "-y", "+z"]),
        ({"file_path": "a", "old_string": "x", "new_string": "x"}, ["*** Update File: a", "@@", "-x", "+x"]),
        ({"file_path": "a", "content": "x\ny\n"}, ["*** Add File: a", "+x", "+y"]),
        ({"file_path": "a", "content": ""}, ["*** Add File: a"]),
        (
            {"file_path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"old_string": "u", "new_string": ""}]},
            ["*** Update File: a", "@@", "-x", "+y", "@@", "-u"],
        ),
        (
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            ["*** Update File: a", "@@", "-x", "+y"],
        ),
        ({"file_path": "a", "old_string": "x", "mode": 7}, ["*** Update File: a", "@@", "-x", "+mode: 7"]),
        ({"file_path": "a", "content": "x", "command": "rm"}, ["*** Add File: a", "+x", "+command: rm"]),
        ({"file_path": "a", "edits": "x"}, ["*** Update File: a", "@@", "+edits: x"]),
        ({"file_path": ["a"], "content": "x"}, ['*** Add File: ["a"]', "+x"]),
        ({"content": "x"}, ["*** Add File: ", "+x"]),
    ],
)  # fmt: skip
def test_a_call_is_shown_as_a_patch_with_all_that_it_has(arguments: object, lines: list[str]) -> None:
    patch = patch_text(json.dumps(arguments, separators=(",", ":")).encode())
    assert patch.split("\n") == ["*** Begin Patch", *lines, "*** End Patch"]


TEXT = st.text(alphabet=st.sampled_from("ab*+-@ \n\r\v\f\x1c\x85\u2028")) | st.just("\n*** Update File: b\n")
ARGUMENTS = st.fixed_dictionaries(
    {"file_path": TEXT}, optional={"content": TEXT, "old_string": TEXT, "new_string": TEXT}
)


@given(ARGUMENTS)
def test_no_text_of_a_call_makes_lines_of_the_patch(arguments: dict[str, str]) -> None:
    lines = patch_text(json.dumps(arguments).encode()).splitlines()
    assert (lines[0], lines[-1]) == ("*** Begin Patch", "*** End Patch")
    assert len([line for line in lines if line.startswith("***")]) == 3


def test_a_hook_that_leaves_the_patch_leaves_the_arguments() -> None:
    same = json.dumps({"command": patch_text(EDIT)}).encode()
    assert real_arguments(SPEC, context(EDIT), same) == EDIT


@pytest.mark.parametrize("rewritten", [b'{"command":"*** Begin Patch\\n*** End Patch"}', b'{"command":1}', b"{}"])
def test_a_changed_patch_cannot_be_sent(rewritten: bytes) -> None:
    with pytest.raises(ValueError, match="they are a patch, and this tool takes none"):
        real_arguments(SPEC, context(EDIT), rewritten)


def test_arguments_of_other_tools_are_what_the_hook_wrote() -> None:
    assert real_arguments(SPEC, EventContext(Event.PRE_TOOL_USE, SESSION, "t", "t"), b'{"a":1}') == b'{"a":1}'


def test_a_tool_that_takes_patches_gets_its_own_arguments() -> None:
    arguments = b'{"command":"*** Begin Patch"}'
    assert real_arguments(SPEC, context(arguments), b'{"command":"x"}') == b'{"command":"x"}'


@pytest.mark.parametrize("tool", ["create_issue", "send_patch"])
def test_a_tool_that_edits_no_files_does_not_run_hooks_for_patches(tool: str) -> None:
    assert inputs(read("codex", HOOKS), tool, {"title": "x"}) == []
