"""Kiro's three forms of hook files: the shapes of published files, matchers, and what is told about the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.kiro.matchers import agent_matcher, any_of, regex_matcher
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from hookproxy.trust.sources import FileContext
from tests.dialects.calls import read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}


def version_1(**members: object) -> dict[str, Any]:
    return {"version": "v1", "hooks": [{"name": "one", "trigger": "PreToolUse", "action": COMMAND, **members}]}


def agent(**members: object) -> dict[str, Any]:
    return {"name": "dev", "tools": ["*"], "hooks": {"preToolUse": [{"command": "./guard.sh", **members}]}}


def ide_0(kind: str = "preToolUse", action: str = "runCommand", **when: object) -> dict[str, Any]:
    then = {"type": action, "command" if action == "runCommand" else "prompt": "./guard.sh", "timeout": 10}
    return {"name": "one", "version": "1.0.0", "enabled": True, "when": {"type": kind, **when}, "then": then}


PUBLISHED: Final[dict[str, tuple[str, Any, int]]] = {
    # file name, content, hooks: of agent files with all five events, of a converted file of version 1, and of 0.x files
    "agent": (
        ".kiro/agents/dev.json",
        {
            "name": "dev",
            "description": "d",
            "prompt": "p",
            "tools": ["fs_read", "@git"],
            "hooks": {
                "agentSpawn": [{"command": "./x.sh status"}],
                "userPromptSubmit": [{"command": "ls -la"}],
                "preToolUse": [{"matcher": "execute_bash", "command": "echo >> log"}],
                "postToolUse": [{"matcher": "fs_write", "command": "./x.sh fmt --all", "timeout_ms": 9000}],
                "stop": [{"command": "npm test"}],
            },
        },
        4,
    ),
    "Amazon Q agent": (".amazonq/cli-agents/dev.json", agent(matcher="@git/status", timeout_ms=5000), 1),
    "agent without hooks": (".kiro/agents/a.json", {"name": "a", "tools": ["read"], "prompt": "p"}, 0),
    "version 1": (
        ".kiro/hooks/safety.json",
        {
            "version": "v1",
            "hooks": [
                {
                    "name": "a",
                    "description": "d",
                    "trigger": "PreToolUse",
                    "matcher": "execute_bash",
                    "action": COMMAND,
                },
                {"name": "b", "trigger": "PostFileSave", "matcher": "\\.ts$", "action": COMMAND, "timeout": 30},
                {"name": "c", "trigger": "Stop", "action": {"type": "agent", "prompt": "p"}, "enabled": True},
                {"name": "d", "trigger": "PostToolUse", "matcher": "write", "action": COMMAND, "enabled": False},
            ],
        },
        1,
    ),
    "IDE 0.x guard": (".kiro/hooks/git-guard.kiro.hook", ide_0(toolTypes=["shell"]), 1),
    "IDE 0.x edit": (".kiro/hooks/format.kiro.hook", ide_0("fileEdited", "askAgent", patterns=["**/*.ts"]), 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_without_a_warning(name: str, tmp_path: Path) -> None:
    path, content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / path, content) == "kiro"
    found = read("kiro", content, f"/repo/{path}")
    assert len(found.hooks) == hooks
    assert found.notes == ()


def test_a_folder_of_kiros_is_read_with_its_old_files(tmp_path: Path) -> None:
    folder = tmp_path / ".kiro" / "hooks"
    folder.mkdir(parents=True)
    (folder / "b.kiro.hook").write_text(json.dumps(ide_0()))
    (folder / "a.json").write_text(json.dumps(version_1()))
    (folder / "README.md").write_text("no hook")
    loaded = list(read_use(parse_option(str(folder), str(tmp_path)), FileContext({}, str(tmp_path))))
    assert [(one.group.dialect.name, len(one.group.hooks)) for one in loaded] == [("kiro", 0), ("kiro", 1), ("kiro", 1)]


def test_an_entry_of_an_agent_file_is_a_hook_for_both_outcomes() -> None:
    content = {"hooks": {"postToolUse": [{"command": "x", "matcher": "fs_write", "timeout_ms": 1500}]}}
    one, other = read("kiro", content).hooks
    assert (one.event, other.event) == (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
    assert (one.argv, one.timeout, one.cwd, one.sequential) == (("bash", "-c", "x"), 1.5, "/repo", False)
    assert read("kiro", agent()).hooks[0].timeout == 30.0


@pytest.mark.parametrize(("written", "seconds"), [({}, 60.0), ({"timeout": 5}, 5.0), ({"timeout": 0}, 3600.0)])
def test_an_entry_of_version_1_is_a_hook_with_its_name(written: dict[str, object], seconds: float) -> None:
    found = read("kiro", version_1(description="guards", **written))
    assert [(hook.label, hook.timeout, hook.sequential) for hook in found.hooks] == [("one", seconds, True)]
    assert found.notes == ()


def test_a_hook_of_ide_0_is_a_hook_with_its_name() -> None:
    (hook,) = read("kiro", ide_0(toolTypes=["shell", "@mcp"])).hooks
    assert (hook.label, hook.timeout, hook.matcher, hook.source) == (
        "one",
        10.0,
        "shell|@mcp",
        "/repo/hooks.json: then",
    )


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (agent(cache_ttl_seconds=60), "cache_ttl_seconds is ignored: the hook runs for each call"),
        (agent(only_when_turn_complete=True), "is left out: waits for the end of the agent's turn"),
        (agent(timeout=5), "timeout is unknown and ignored"),
        (agent(timeout_ms=5), "5 ms end the hook at once"),
        (agent(timeout_ms="5"), "timeout_ms must be a number of milliseconds"),
        ({"hooks": {"preToolUse": [{"matcher": "x"}]}}, "command is missing"),
        ({"hooks": {"PreToolUse": [{"command": "x"}]}}, "PreToolUse is not an event"),
        (version_1(action={"type": "agent", "prompt": "p"}), "'agent' cannot run behind MCP"),
        (version_1(action={"type": "command"}), "action.command is missing"),
        (version_1(trigger="PreToolUsed"), "trigger must be one of"),
        (version_1(matcher="("), "'(' cannot be used"),
        (version_1(timeout=-1), "timeout must be more than 0 seconds"),
        (version_1(confirm=True), "confirm is ignored"),
        (version_1(confirm={"prompt": "Run it?"}), "confirm is ignored"),
        (version_1(timout=5), "timout is unknown and ignored: did you mean 'timeout'?"),
        (ide_0(action="askAgent"), "'askAgent' cannot run behind MCP"),
        (ide_0(toolTypes=["("]), "'(' cannot be used"),
        (ide_0("preTool"), "when.type must be one of"),
    ],
)
def test_what_does_not_do_what_it_says_is_reported(content: object, note: str) -> None:
    found = read("kiro", content)
    assert len(found.notes) == 1
    assert note in found.notes[0]
    assert len(found.hooks) == (1 if "ignored" in note or "at once" in note else 0)


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (version_1(enabled=False), "hooks[0] is not enabled"),
        (version_1(trigger="Manual"), "cannot fire behind MCP: a person starts it in Kiro"),
        (ide_0() | {"enabled": False}, "is not enabled"),
        (ide_0("promptSubmit"), "cannot fire behind MCP: prompts never pass through MCP"),
        ({"name": "x", "tools": []}, "contains no hooks"),
    ],
)
def test_what_cannot_happen_is_a_remark(content: object, remark: str) -> None:
    found = read("kiro", content)
    assert (found.hooks, found.notes, len(found.remarks)) == ((), (), 1)
    assert remark in found.remarks[0]


@pytest.mark.parametrize("content", ["[]", '{"hooks":1}', "{", '{"version":"v2","hooks":[]}'])
def test_a_file_that_cannot_be_read_is_an_error(content: str) -> None:
    with pytest.raises(ConfigError):
        read("kiro", content)


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("", "@git/status fs_write", ""),
        ("*", "@git/status fs_write", ""),
        ("@builtin", "fs_write", "@git/status"),
        ("@git", "@git/status @git/push", "@github/status fs_write"),
        ("@git/status", "@git/status", "@git/status2 @git/push"),
        ("@git/s*", "@git/status", "@git/push"),
        ("@git-?/x", "@git-1/x", "@git/x"),
        ("@git/{push,merge}*", "@git/push @git/merge_all", "@git/status @git/{push,merge}"),
        ("@git/[^s]*", "@git/push", "@git/status"),
        ("@git/[!a-r]*", "@git/status", "@git/push"),
        ("@git/[]x]?", "@git/]1 @git/x1", "@git/a1"),
        (r"@git/\*_*", "@git/*_all", "@git/push_all"),
        ("**/push", "@git/push push", "@git/status"),
        ("@git/**", "@git/push", "@github/push"),
        ("fs_*", "fs_write fs_read", "execute_bash @x/fs_write"),
        ("fs_write", "fs_write", "fs_write2 FS_WRITE fs_read"),
        ("fs_write|fs_read", "", "fs_write"),
    ],
)
def test_matchers_of_agent_files(pattern: str, names: str, others: str) -> None:
    matches = agent_matcher(pattern)
    assert all(map(matches, names.split()))
    assert not any(map(matches, others.split()))


@pytest.mark.parametrize("pattern", ["@git/{push,*", "@git/push}*", "@git/[pu*", "@git/*\\"])
def test_a_glob_that_is_not_valid_is_an_error(pattern: str) -> None:
    with pytest.raises(re.error):
        agent_matcher(pattern)


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("", "@git/status fs_write", ""),
        ("*", "@git/status fs_write", ""),
        (".*", "@git/status fs_write", ""),
        ("shell", "execute_bash execute_pwsh shell", "fs_write @x/shell"),
        ("read|write", "fs_read fs_write str_replace read_file", "execute_bash @x/read"),
        ("web", "web_fetch", "fs_write"),
        ("spec", "", "fs_write @x/spec"),
        ("shell|@mcp.*sql.*", "execute_bash @pg/sql_query @mysql/q", "fs_read @git/status"),
        ("fs_write|str_replace", "fs_write str_replace", "fs_read"),
        ("^query$", "@pg/query", "@pg/query2"),
        ("@mcp", "@git/status", "fs_write"),
        ("@mcp.*sql.*", "@pg/sql_query @mysql/q", "@git/status fs_write"),
        ("@powers", "@git/status", "fs_write"),
        ("@builtin", "fs_write", "@git/status"),
        ("@git/.*", "@git/status", "@github/status"),
        ("mcp_git_.*", "@git/status", "@github/status"),
        ("(read|write)_file", "@fs/read_file read_file", "fs_read"),
    ],
)
def test_matchers_of_the_other_forms(pattern: str, names: str, others: str) -> None:
    matches = regex_matcher(pattern)
    assert [name for name in names.split() if not matches(name)] == []
    assert [name for name in others.split() if matches(name)] == []


def test_a_list_of_tool_types_matches_any_of_them_and_an_empty_one_all() -> None:
    assert any_of(("shell", "@mcp"))("@git/status")
    assert not any_of(("shell",))("@git/status")
    assert any_of(())("@git/status")
