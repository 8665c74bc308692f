"""Cursor's hooks.json: the shapes of published files, recognition, matchers, folders, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.cursor import DIALECT as CURSOR
from hookproxy.dialects.cursor.hook_file import MCP
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec
from tests.dialects.calls import inputs, read, recognised, text_outcome

GUARD: Final = {"command": "./guard.sh"}
PUBLISHED: Final[dict[str, tuple[Any, int, int]]] = {
    # the shapes of a collection of rules for agents, of a vendor's secret checks, of a memory plugin, of a repository
    # whose author took Claude Code's name for an event, and of the page's own examples: hooks that run, and notes
    "collection": (
        {
            "version": 1,
            "hooks": {
                "sessionStart": [{**GUARD, "event": "sessionStart"}],
                "beforeShellExecution": [{**GUARD, "event": "beforeShellExecution", "description": "no force push"}],
                "beforeMCPExecution": [{**GUARD, "event": "beforeMCPExecution", "description": "audit"}],
                "afterMCPExecution": [{**GUARD, "event": "afterMCPExecution"}],
                "stop": [GUARD],
            },
        },
        5,  # afterMCPExecution is for failed calls, too
        0,
    ),
    "secrets": ({"version": 1, "hooks": {"beforeShellExecution": [GUARD]}}, 1, 0),
    "memory": (
        {"version": 1, "hooks": {name: [GUARD] for name in ("beforeSubmitPrompt", "afterFileEdit", "stop")}},
        1,
        0,
    ),
    "wrong event": (
        {"version": 1, "hooks": {"userPromptSubmit": [GUARD], "preToolUse": [{**GUARD, "matcher": "Write|Shell"}]}},
        1,
        1,
    ),
    "the page's network guard": (
        {"hooks": {"beforeShellExecution": [{**GUARD, "timeout": 30, "matcher": "curl|wget|nc "}]}},
        1,
        1,  # without a version
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks, notes = PUBLISHED[name]
    assert recognised(tmp_path / ".cursor" / "hooks.json", content) == "cursor"
    found = read("cursor", content)
    assert len(found.hooks) == hooks
    assert len(found.notes) == notes
    assert len(found.remarks) == len(CURSOR.unavailable.keys() & content["hooks"].keys())


def of(event: str, **entry: object) -> HookList:
    return read("cursor", {"version": 1, "hooks": {event: [{**GUARD, **entry}]}})


def one(event: str = "preToolUse", **entry: object) -> HookSpec:
    found = of(event, **entry)
    assert found.notes == ()
    return found.hooks[0]


def test_an_entry_is_a_hook() -> None:
    hook = one("beforeMCPExecution", type="command", timeout=30, matcher="read", failClosed=True)
    assert (hook.event, hook.event_name, hook.label) == (Event.PRE_TOOL_USE, "beforeMCPExecution", "guard.sh")
    assert (hook.shell, hook.cwd, hook.timeout, hook.matcher) == ("./guard.sh", "/repo", 30.0, "read")
    assert hook.fails_closed


def test_an_entry_has_the_documented_defaults() -> None:
    hook = one()
    assert (hook.timeout, hook.fails_closed, hook.background, hook.accepts) == (60.0, False, False, None)
    assert hook.matches("MCP:anything")


def test_the_general_event_comes_first_before_a_call_and_last_after_it() -> None:
    stages = {name: of(name).hooks[0].stage for name in CURSOR.events}
    assert stages["preToolUse"] < stages["beforeMCPExecution"] == stages["beforeShellExecution"]
    assert stages["beforeMCPExecution"] == stages["beforeReadFile"]
    assert stages["afterMCPExecution"] == stages["afterShellExecution"] < stages["postToolUse"]
    assert stages["afterMCPExecution"] < stages["postToolUseFailure"]


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("postToolUseFailure", [Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_DENIED]),
        ("afterMCPExecution", [Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE]),
        ("afterShellExecution", [Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE]),
        ("postToolUse", [Event.POST_TOOL_USE]),
        ("afterFileEdit", [Event.POST_TOOL_USE]),
    ],
)
def test_an_event_occurs_for_each_outcome_that_it_is_documented_for(name: str, events: list[Event]) -> None:
    assert [hook.event for hook in of(name).hooks] == events


# --- matchers ---


@pytest.mark.parametrize(
    ("event", "matcher", "tool", "arguments", "runs"),
    [
        ("preToolUse", "", "echo", {}, True),
        ("preToolUse", "*", "echo", {}, True),
        ("preToolUse", "MCP:echo", "echo", {}, True),
        ("preToolUse", "^MCP:", "echo", {}, True),
        ("preToolUse", "^echo", "echo", {}, False),  # the page: MCP:<tool_name>
        ("preToolUse", "^echo$", "echo", {}, False),
        ("preToolUse", "echo$", "echo", {}, True),
        ("preToolUse", "mcp:echo", "echo", {}, False),
        ("preToolUse", "Shell|Read|Write|Grep|Delete|Task", "run_command", {"command": "ls"}, True),
        ("preToolUse", "^Shell$", "run_command", {"command": "ls"}, True),
        ("preToolUse", "^Read$", "read_file", {"path": "a"}, True),
        ("preToolUse", "^Grep$", "grep", {"pattern": "a", "path": "b"}, True),
        ("preToolUse", "^Write$", "write_file", {"path": "a", "content": "b"}, True),
        ("preToolUse", "^Write$", "edit_file", {"path": "a", "old_string": "b", "new_string": "c"}, True),
        ("preToolUse", "^StrReplace$", "edit_file", {"path": "a", "old_string": "b", "new_string": "c"}, True),
        ("preToolUse", "^Write$", "read_file", {"path": "a"}, False),
        ("preToolUse", "Cursor", "run_command", {"command": "ls"}, False),
        ("beforeMCPExecution", "^echo$", "echo", {}, True),
        ("beforeMCPExecution", "^MCP:echo$", "echo", {}, True),
        ("beforeMCPExecution", "^Shell$", "run_command", {"command": "ls"}, False),
        ("beforeMCPExecution", "^Shell$", "Shell", {"command": "ls"}, True),
        ("beforeShellExecution", "", "echo", {}, False),
        ("beforeShellExecution", "", "Shell", {"x": 1}, False),
        ("beforeShellExecution", "curl|wget", "run_command", {"command": "x; curl y"}, True),
        ("beforeShellExecution", "curl|wget", "run_command", {"command": "ls"}, False),
        ("beforeShellExecution", "curl|wget", "run_command", {"cmd": "curl y"}, True),
        ("beforeShellExecution", "^rm -rf", "run_command", {"command": "rm", "args": ["-rf", "x"]}, True),
        ("beforeShellExecution", "Shell", "run_command", {"command": "ls"}, False),
        ("beforeReadFile", "Read", "read_file", {"path": "a"}, True),
        ("beforeReadFile", "TabRead", "read_file", {"path": "a"}, False),
    ],
)
def test_a_matcher_is_tried_on_what_its_event_is_about(
    event: str, matcher: str, tool: str, arguments: dict[str, Any], runs: bool
) -> None:
    found = inputs(of(event, matcher=matcher), tool, arguments)
    raw = json.dumps(found[0].document.get("tool_input", found[0].document)).encode() if found else b""
    accepted = [each for each in found if each.spec.accepts is None or each.spec.accepts(raw)]
    assert bool(accepted) is runs


def test_a_command_that_is_no_text_is_accepted_if_the_matcher_is_anywhere_in_it() -> None:
    accepts = one("beforeShellExecution", matcher="curl").accepts
    assert accepts is not None
    assert accepts(b'{"command":["curl","x"]}')
    assert not accepts(b'{"command":["ls"]}')


@pytest.mark.parametrize(
    ("event", "names"), [("preToolUse", 2), ("beforeMCPExecution", 1), ("beforeShellExecution", 1)]
)
def test_a_matcher_that_is_no_expression_matches_all_and_is_reported(event: str, names: int) -> None:
    found = of(event, matcher="(")
    assert len(inputs(found, "run_command", {"command": "ls"})) == names
    assert found.hooks[0].accepts is None
    (note,) = found.notes
    assert "is not a regular expression, so the hook runs for every call" in note


def test_a_tool_of_cursors_own_name_is_a_servers_tool() -> None:
    document = inputs(of("preToolUse"), "Shell", {"x": 1})[0].document
    assert (document["tool_name"], document["tool_input"]) == ("MCP:Shell", {"x": 1})
    document = inputs(of("beforeMCPExecution"), "Shell", {"x": 1})[0].document
    assert document["tool_name"] == "Shell"


def test_a_hook_without_a_matcher_sees_the_servers_own_names() -> None:
    document = inputs(of("preToolUse"), "run_command", {"cmd": "ls"})[0].document
    assert (document["tool_name"], document["tool_input"]) == (f"{MCP}run_command", {"cmd": "ls"})


@pytest.mark.parametrize(("path", "seen"), [("../x", "/repo/../x"), ("~/x", "~/x"), ("/a//b", "/a/b")])
def test_paths_are_absolute_and_never_resolved_wrongly(path: str, seen: str) -> None:
    (found,) = inputs(of("beforeReadFile"), "read_file", {"path": path})
    assert found.document["file_path"] == seen


def test_a_tool_without_a_result_has_one_that_says_why() -> None:
    (found,) = inputs(of("afterMCPExecution"), "echo", {}, Event.POST_TOOL_USE_FAILURE, text_outcome("x", failed=True))
    assert json.loads(found.document["result_json"])["isError"] is True


# --- what is reported ---


def test_a_hook_before_reads_is_told_that_it_gets_no_content() -> None:
    (note,) = of("beforeReadFile").notes
    assert "it gets an empty `content`" in note


@pytest.mark.parametrize(("version", "what"), [(2, "is 2, not 1"), ("1", "is '1', not 1"), (True, "is True, not 1")])
def test_a_file_that_cursor_may_reject_for_its_version_is_read_with_a_note(version: object, what: str) -> None:
    found = read("cursor", {"version": version, "hooks": {"preToolUse": [GUARD]}})
    assert len(found.hooks) == 1
    (note,) = found.notes
    assert what in note


def test_prompt_hooks_and_wrong_entries_are_left_out_with_a_note_and_the_others_run() -> None:
    entries = [{"type": "prompt", "prompt": "Is it safe?"}, {"command": " "}, {"failClosed": "yes", **GUARD}, 5, GUARD]
    found = read("cursor", {"version": 1, "hooks": {"preToolUse": entries, "postToolUse": {}}})
    assert len(found.hooks) == 1
    assert len(found.notes) == 5


def test_a_misspelt_event_is_reported_with_the_right_one() -> None:
    (note,) = of("beforeShellExecutions").notes
    assert "did you mean 'beforeShellExecution'?" in note


def test_comments_are_read_over_and_slashes_in_strings_kept() -> None:
    text = '{"version": 1, // ours\n"hooks": {"preToolUse": [{"command": "curl http://localhost/guard"},]}}'
    (hook,) = read("cursor", text).hooks
    assert hook.shell == "curl http://localhost/guard"


def test_a_file_without_hooks_says_so() -> None:
    assert read("cursor", {"version": 1}).remarks == ("/repo/hooks.json: contains no hooks",)


# --- folders and variables ---


@pytest.mark.parametrize(
    ("path", "cwd"),
    [
        ("/repo/.cursor/hooks.json", "/repo"),
        ("/home/me/.cursor/hooks.json", "/home/me/.cursor"),
        ("/home/me/.cursor/managed/team_7/hooks/hooks.json", "/home/me/.cursor/managed/team_7/hooks"),
        ("/etc/cursor/hooks.json", "/etc/cursor"),
    ],
)
def test_a_hook_runs_in_the_folder_of_its_scope(path: str, cwd: str) -> None:
    text = json.dumps({"version": 1, "hooks": {"preToolUse": [GUARD]}})
    (hook,) = CURSOR.read_hook_file(HookFile(path, text, "/repo", environ={"HOME": "/home/me"})).hooks
    assert hook.cwd == cwd


def test_a_plugins_hooks_get_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".cursor-plugin").mkdir()
    (tmp_path / ".cursor-plugin/plugin.json").write_text("{}")
    path = str(tmp_path / "hooks/hooks.json")
    plugin = CURSOR.find_plugin(path, None)  # type: ignore[arg-type]  # it reads no files of the session
    assert plugin is not None
    text = json.dumps({"version": 1, "hooks": {"preToolUse": [GUARD]}})
    (hook,) = CURSOR.read_hook_file(HookFile(path, text, "/repo", plugin=plugin)).hooks
    assert dict(hook.env) == {"CURSOR_PLUGIN_ROOT": str(tmp_path), "CLAUDE_PLUGIN_ROOT": str(tmp_path)}
    assert hook.cwd == "/repo"


# --- recognition ---


def test_a_file_with_events_of_cursor_alone_is_recognised_anywhere(tmp_path: Path) -> None:
    content = {"version": 1, "hooks": {"beforeMCPExecution": [GUARD]}}
    assert recognised(tmp_path / "hooks.json", content) == "cursor"


def test_a_file_of_cursor_in_another_systems_folder_is_an_error(tmp_path: Path) -> None:
    content = {"version": 1, "hooks": {"beforeMCPExecution": [GUARD]}}
    with pytest.raises(ConfigError, match="has the format of cursor, but is in a folder of claude"):
        recognised(tmp_path / ".claude/settings.json", content)


def test_a_file_of_another_system_in_cursors_folder_is_an_error(tmp_path: Path) -> None:
    content = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    with pytest.raises(ConfigError, match="but is in a folder of cursor"):
        recognised(tmp_path / ".cursor/hooks.json", content)


def test_a_file_with_events_that_copilot_has_too_is_cursors_in_its_folder_and_an_error_elsewhere(
    tmp_path: Path,
) -> None:
    content = {"version": 1, "hooks": {"preToolUse": [GUARD], "sessionStart": [GUARD]}}
    assert recognised(tmp_path / ".cursor/hooks.json", content) == "cursor"
    with pytest.raises(ConfigError, match="no dialect recognises this file"):
        recognised(tmp_path / "hooks.json", content)


def test_people_read_what_a_hook_is_matched_by() -> None:
    shell, read_guard = one("beforeShellExecution", matcher="curl"), of("beforeReadFile").hooks[0]
    assert (shell.matched_by, shell.condition) == ("its event beforeShellExecution", "its matcher 'curl'")
    assert read_guard.matched_by == "its event beforeReadFile"
    assert one(matcher="Shell").matched_by == "its matcher 'Shell'"
