"""Gemini CLI's settings files: the shapes of published ones, recognition, matchers, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.gemini.hook_file import compile_matcher, mcp_tool_name
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from hookproxy.trust.sources import FileContext
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "guard"}
SCRIPT: Final = {"type": "command", "command": "./guard.sh"}
PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the shapes of the example extension, of the page on writing hooks, and of a repository's settings
    "extension": ({"hooks": {"SessionStart": [{"hooks": [{**SCRIPT, "name": "hello"}]}]}}, 1),
    "secrets": (
        {
            "hooks": {
                "BeforeTool": [
                    {
                        "matcher": "write_file|replace",
                        "hooks": [{**SCRIPT, "name": "scan", "description": "no secrets", "timeout": 5000}],
                    }
                ]
            }
        },
        1,
    ),
    "planning": (
        {
            "hooks": {
                "SessionStart": [{"hooks": [{**SCRIPT, "timeout": 10000}]}],
                "BeforeTool": [{"matcher": "write_file|replace|run_shell_command", "hooks": [SCRIPT]}],
                "AfterTool": [{"matcher": "write_file", "hooks": [SCRIPT]}],
                "BeforeModel": [{"hooks": [SCRIPT]}],
            },
            "mcpServers": {},
        },
        4,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    found = read("gemini", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert recognised(tmp_path / ".gemini/settings.json", content) == "gemini"


def one(**entry: object) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": [{**COMMAND, **entry}]}]}}


def test_timeouts_are_in_milliseconds() -> None:
    assert [hook.timeout for hook in read("gemini", one(timeout=2500)).hooks] == [2.5]
    assert [hook.timeout for hook in read("gemini", one()).hooks] == [60.0]
    (note,) = read("gemini", one(timeout=30)).notes
    assert "`timeout` is in milliseconds" in note


def test_a_hook_has_its_name_its_shell_and_its_variables() -> None:
    (hook,) = read("gemini", one(name="scan", env={"MODE": "x"})).hooks
    assert (hook.label, hook.argv, hook.env) == ("scan", ("bash", "-c", "guard"), (("MODE", "x"),))


def test_comments_in_a_settings_file_are_read_over() -> None:
    text = '{\n// hooks\n"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "guard"}],}]}}'
    assert len(read("gemini", text).hooks) == 1


def test_a_sequential_group_makes_the_hooks_sequential_that_run_together_with_it_and_no_others() -> None:
    groups = [{"hooks": [COMMAND]}, {"matcher": "write", "sequential": True, "hooks": [COMMAND]}]
    found = read("gemini", {"hooks": {"BeforeTool": groups}})
    assert ([hook.sequential for hook in found.hooks], found.notes) == ([False, True], ())
    assert [one.spec.sequential for one in inputs(found, "other")] == [False]


def test_what_is_switched_off_does_not_run_and_is_reported() -> None:
    found = read("gemini", one(name="scan") | {"hooksConfig": {"disabled": ["scan"]}})
    assert (found.hooks, found.remarks) == (
        (),
        ("/repo/hooks.json: hooksConfig.disabled names scan, so it does not run",),
    )
    assert read("gemini", one() | {"hooksConfig": {"disabled": ["guard"]}}).hooks == ()
    assert read("gemini", one() | {"hooksConfig": {"enabled": False}}).hooks == ()


def test_only_its_name_or_else_its_whole_command_switches_a_hook_off() -> None:
    def running(disabled: str, **entry: object) -> int:
        return len(read("gemini", one(**entry) | {"hooksConfig": {"disabled": [disabled]}}).hooks)

    assert running("guard.sh", command="./guard.sh") == 1
    assert running("./guard.sh", command="./guard.sh") == 0
    assert running("./guard.sh", command="./guard.sh", name="scan") == 1


def test_an_unknown_event_is_reported_and_the_others_run() -> None:
    found = read("gemini", one() | {"hooks": {**one()["hooks"], "PreToolUse": []}})
    assert len(found.hooks) == 1
    (note,) = found.notes
    assert "PreToolUse is not an event" in note


@pytest.mark.parametrize(
    ("matcher", "name", "matches"),
    [
        ("", "x", True),
        (" * ", "x", True),
        ("read", "mcp_files_read", True),
        ("^read", "mcp_files_read", False),
        ("Read", "mcp_files_read", False),
        ("mcp_files_.*", "mcp_files_read", True),
        ("[", "[", True),
        ("[", "x", False),
        ("(?<=mcp|tool)_x", "y", True),  # JavaScript can read it, and hookproxy cannot
    ],
)
def test_a_matcher_is_an_unanchored_expression_or_else_a_name(matcher: str, name: str, matches: bool) -> None:
    assert compile_matcher(matcher)(name) is matches


@pytest.mark.parametrize(
    ("event", "matcher", "note"),
    [
        ("BeforeTool", "[", "is not a regular expression (unterminated character set), so it only matches"),
        ("BeforeTool", "(?<=mcp|tool)_x", "so the hook runs for every tool"),
        ("BeforeTool", "mcp__files__.*", "Gemini CLI's names are mcp_SERVER_TOOL"),
        ("SessionStart", "startup|resume", "never matches: behind MCP, it is only ever 'startup'"),
        ("SessionEnd", "exit", "never matches: behind MCP, it is only ever 'other'"),
    ],
)
def test_a_matcher_that_does_not_do_what_it_seems_to_is_reported(event: str, matcher: str, note: str) -> None:
    (found,) = read("gemini", {"hooks": {event: [{"matcher": matcher, "hooks": [COMMAND]}]}}).notes
    assert note in found


@pytest.mark.parametrize("matcher", ["", "*", " startup ", "resume", "startup|resume", "start"])
def test_a_matcher_of_a_session_is_compared_exactly(matcher: str) -> None:
    found = read("gemini", {"hooks": {"SessionStart": [{"matcher": matcher, "hooks": [COMMAND]}]}})
    runs = inputs(found, "", event=Event.SESSION_START, trigger="startup")
    assert len(runs) == (matcher.strip() in ("", "*", "startup"))


def test_names_of_servers_tools_are_composed_and_cut_as_gemini_cli_does() -> None:
    assert mcp_tool_name("my files", "read/it") == "mcp_my_files_read_it"
    long = mcp_tool_name("server", "t" * 70)
    assert (len(long), long[:30], long[30:33]) == (63, "mcp_server_" + "t" * 19, "...")


@pytest.mark.parametrize(
    ("tool", "arguments", "seen", "given"),
    [
        ("run_command", {"command": "ls"}, "run_shell_command", {"command": "ls"}),
        ("read_text_file", {"path": "a"}, "read_file", {"file_path": "a"}),
        ("write_file", {"path": "a", "content": "b"}, "write_file", {"file_path": "a", "content": "b"}),
    ],
)
def test_hooks_for_the_agents_own_tools_run_for_tools_that_do_the_same(
    tool: str, arguments: dict[str, str], seen: str, given: dict[str, str]
) -> None:
    matched = {"matcher": f"^{seen}$", "hooks": [COMMAND]}
    (found,) = inputs(read("gemini", {"hooks": {"BeforeTool": [matched]}}), tool, arguments)
    assert (found.tool_name, found.document["tool_input"]) == (seen, given)


def test_a_file_of_gemini_in_another_systems_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has the format of gemini, but is in a folder of claude"):
        recognised(tmp_path / ".claude/settings.json", one())


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ('node "${extensionPath}/scripts/x.js"', 'node "{root}/scripts/x.js"'),
        ("${extensionPath}${/}x${pathSeparator}y", "{root}/x/y"),
        ("${workspacePath}/x ${HOME}", "{cwd}/x ${HOME}"),
    ],
)
def test_the_hooks_of_an_extension_find_its_files(command: str, run: str, tmp_path: Path) -> None:
    root = tmp_path / "extension"
    (root / "hooks").mkdir(parents=True)
    (root / "gemini-extension.json").write_text("{}")
    (root / "hooks/hooks.json").write_text(json.dumps(one(command=command)))
    context = FileContext({}, str(tmp_path))
    (loaded,) = read_use(parse_option(f"gemini={root / 'hooks/hooks.json'}", str(tmp_path)), context)
    (hook,) = loaded.group.hooks
    assert hook.argv[-1] == run.replace("{root}", str(root)).replace("{cwd}", str(tmp_path))


def test_the_hooks_of_an_installed_extension_are_recognised(tmp_path: Path) -> None:
    content, _ = PUBLISHED["extension"]
    assert recognised(tmp_path / ".gemini/extensions/hello/hooks/hooks.json", content) == "gemini"


def test_a_command_that_names_an_extensions_folder_outside_of_one_is_left_out_with_a_note() -> None:
    found = read("gemini", one(command="${extensionPath}/x"))
    assert found.hooks == ()
    assert "command names ${extensionPath}: the file must be in an extension" in found.notes[0]
