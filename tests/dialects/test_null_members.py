"""A member that is null counts as absent, where the system itself reads it so: programs write such members."""

from __future__ import annotations

from typing import Final

import pytest

from tests.dialects.calls import read

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
ENTRIES: Final[dict[str, tuple[str, dict[str, object]]]] = {
    "cascade": ("pre_mcp_tool_use", {"command": "./guard.sh", "powershell": None, "working_directory": None}),
    "codex": (
        "PreToolUse",
        {"matcher": None, "hooks": [{**COMMAND, "timeout": None, "statusMessage": None, "commandWindows": None}]},
    ),
    "cursor": ("preToolUse", {"command": "./guard.sh", "matcher": None, "timeout": None, "failClosed": None}),
    "gemini": ("BeforeTool", {"matcher": None, "hooks": [{**COMMAND, "name": None, "timeout": None, "env": None}]}),
    "vscode": ("PreToolUse", {**COMMAND, "bash": None, "cwd": None, "env": None, "timeout": None}),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_with_members_that_are_null_runs_for_every_tool(name: str) -> None:
    event, entry = ENTRIES[name]
    found = read(name, {"version": 1, "hooks": {event: [entry]}} if name == "cursor" else {"hooks": {event: [entry]}})
    assert [hook.matches("any_tool") for hook in found.hooks] == [True]
    assert found.notes == ()
