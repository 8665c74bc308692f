"""A file that holds hooks, and from which the named system reads none, stops the start; one without hooks does not.

The files of systems without a dialect have the shapes of files that are published: ste163/runner and
rohaquinlop/complexipy `.pi/hooks.json`, 01builds/cloudflare-native-template.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.config.hook_files import LoadedHookFile, parse_option, read_use
from hookproxy.config.load import load
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.trust.sources import FileContext

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "run_command", "hooks": [COMMAND]}]
ANTIGRAVITY: Final = {"team-guard": {"enabled": True, "PreToolUse": GROUP, "PreInvocation": [COMMAND]}}
PI: Final = {"tool_call": {"command": "sh guard.sh", "tools": ["bash"]}}
FOREIGN: Final[dict[str, tuple[str, Any, str]]] = {
    "Pi, by tool": (".pi/hooks.json", PI, "Pi"),
    "Pi, a list": (
        ".pi/hooks.json",
        {"version": 1, "hooks": [{"id": "a", "event": "preToolUse", "command": ["sh", "guard.sh"]}]},
        "Pi",
    ),
    "git hooks": (".agents/hooks.json", {"hooks": {"pre-commit": [{"name": "a", "command": "make check"}]}}, "hooks"),
    "Amp": (
        ".amp/settings.json",
        {"amp.hooks": [{"on": {"event": "tool:pre-execute"}, "action": {"type": "run", "command": "./guard.sh"}}]},
        "Amp",
    ),
    "an unknown system": ("x.json", {"on": {"beforeEveryToolCall": {"run": "./guard.sh"}}}, ""),
}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read(folder: Path, option: str) -> list[LoadedHookFile]:
    return list(read_use(parse_option(option, str(folder)), FileContext({"HOME": "/nowhere"}, str(folder))))


@pytest.mark.parametrize("system", FOREIGN)
def test_a_file_of_an_unknown_system_stops_the_start_whatever_dialect_is_named(system: str, tmp_path: Path) -> None:
    place, content, looks_like = FOREIGN[system]
    path = write(tmp_path / place, content)
    wrong = []
    for dialect in ("", *DIALECTS):
        try:
            read(tmp_path, f"{dialect}={path}" if dialect else str(path))
        except ConfigError as error:
            has_json = path.suffix == ".json" or ".toml" in (DIALECTS[dialect].suffixes if dialect else (".toml",))
            is_recognised = has_json and dialect != "cline" and (dialect or not system.startswith("Pi, a"))
            names_it = looks_like in error.message or not is_recognised
            if not (str(path) in error.message and error.hint and names_it):
                wrong.append(f"{dialect or 'no dialect'}: {error.message}; hint: {error.hint}")
        else:
            wrong.append(f"{dialect or 'no dialect'}: it starts")
    assert not wrong, "\n".join(wrong)


OWN_FILES: Final[dict[str, Any]] = {
    "antigravity": ANTIGRAVITY,
    "augment": {"hooks": {"PreToolUse": GROUP}},
    "cascade": {"hooks": {"pre_run_command": [{"command": "./guard.sh"}]}},
    "claude": {"hooks": {"PreToolUse": GROUP}},
    "claw": {"hooks": {"PreToolUse": ["./guard.sh"]}},
    "copilot": {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "./guard.sh"}]}},
    "cursor": {"version": 1, "hooks": {"beforeMCPExecution": [{"command": "./guard.sh"}]}},
    "devin": {"PreToolUse": GROUP, "Stop": [{"hooks": [COMMAND]}]},
    "docker-agent": {"hooks": {"pre_tool_use": [{"matcher": "*", "hooks": [COMMAND]}]}},
    "droid": {"PreToolUse": GROUP},
    "gemini": {"hooks": {"BeforeTool": GROUP}},
    "kimi": {"hooks": [{"event": "PreToolUse", "command": "./guard.sh"}]},
    "kiro": {"version": "v1", "hooks": [{"trigger": "PreToolUse", "action": COMMAND}]},
    "crush": {"hooks": {"PreToolUse": [{"command": "./guard.sh"}]}},
    "lime": {"hooks": {"PreToolUse": ["./guard.sh"]}},
    "openhands": {"pre_tool_use": [{"matcher": "terminal", "hooks": [{"command": "./guard.sh", "timeout": 10}]}]},
    "trae": {"version": 1, "hooks": {"PreToolUse": GROUP}},
    "code-assist": {"hooks": {"PreToolUse": [{"command": "./guard.sh", "timeout": 5000, "name": "guard"}]}},
}


@pytest.mark.parametrize("owner", OWN_FILES)
def test_a_guard_of_one_system_is_read_as_another_ones_or_stops_the_start(owner: str, tmp_path: Path) -> None:
    path = write(tmp_path / "file.json", OWN_FILES[owner])
    readers = set()
    for dialect in DIALECTS:
        with suppress(ConfigError):  # of the file that is named: the test above
            assert read(tmp_path, f"{dialect}={path}")[0].group.hooks, dialect
            readers.add(dialect)
    assert owner in readers


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name not in ("kiro", "cline")])
def test_a_hook_of_kiros_ide_that_is_named_as_another_systems_stops_the_start(dialect: str, tmp_path: Path) -> None:
    hook = {"enabled": True, "name": "guard", "when": {"type": "preToolUse", "toolTypes": ["shell"]},
            "then": {"type": "runCommand", "command": "./guard.sh"}}  # fmt: skip
    path = write(tmp_path / "guard.kiro.json", hook)
    with pytest.raises(ConfigError, match="looks like hooks of kiro"):
        read(tmp_path, f"{dialect}={path}")


def test_the_hint_names_the_dialect_that_reads_the_file_and_works_as_typed(tmp_path: Path) -> None:
    path = write(tmp_path / "file.json", OWN_FILES["cursor"])
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, f"claude={path}")
    assert "hooks.beforeMCPExecution is not an event" in raised.value.message
    assert raised.value.message.endswith("; the file looks like hooks of cursor")
    option = raised.value.hint.rpartition("--hooks ")[2]
    assert read(tmp_path, option)[0].group.dialect.name == "cursor"


def test_the_error_about_a_systems_own_file_does_not_guess_whose_it_is(tmp_path: Path) -> None:
    """Claude Code's form is that of many systems; the hint must not be `check`, which ends with the same error."""
    path = write(tmp_path / "bad.json", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "comand": "x"}]}]}})
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, f"claude={path}")
    assert raised.value.message.endswith("is left out: command is missing: write command for comand")
    assert raised.value.hint == "correct it, or leave the file out if it is of another system than claude"


UNREADABLE: Final[dict[str, tuple[str, Any]]] = {
    "an entry without a command": ("claude", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}),
    "an entry of another type": ("claude", {"hooks": {"PreToolUse": [{"hooks": [{"type": "lua", "command": "x"}]}]}}),
    "no list": ("claude", {"hooks": {"PreToolUse": {"hooks": [COMMAND]}}}),
    "no group": ("claude", {"hooks": {"PreToolUse": [COMMAND]}}),
    "a matcher that is a list": ("claude", {"hooks": {"PreToolUse": [{"matcher": ["a"], "hooks": [COMMAND]}]}}),
    "a misspelt event": ("claude", {"hooks": {"PretoolUse": [{"hooks": [COMMAND]}]}}),
    "an event at the top": ("claude", {"PreToolUse": [{"hooks": [COMMAND]}]}),
    "an unreadable guard beside a hook that cannot fire": (
        "claude",
        {"hooks": {"PreToolUse": [COMMAND], "Stop": [{"hooks": [COMMAND]}]}},
    ),
    "an unknown guard beside a hook that cannot fire": (
        "claude",
        {"hooks": {"BeforeTool": [{"hooks": [COMMAND]}], "Stop": [{"hooks": [COMMAND]}]}},
    ),
    "cursor: an entry without a command": ("cursor", {"version": 1, "hooks": {"preToolUse": [{"cmd": "x"}]}}),
    "claw: an object": ("claw", {"hooks": {"PreToolUse": [{"command": "x"}]}}),
    "gemini: a misspelt event": ("gemini", {"hooks": {"beforeTool": [{"hooks": [COMMAND]}]}}),
    "kiro: an unknown trigger": ("kiro", {"version": "v1", "hooks": [{"trigger": "preTool", "action": COMMAND}]}),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_of_which_every_guard_is_dropped_stops_the_start(what: str, tmp_path: Path) -> None:
    dialect, content = UNREADABLE[what]
    path = write(tmp_path / "settings.json", content)
    with pytest.raises(ConfigError, match=f"{dialect} (can read none of its hooks|reads no hooks from this file)") as e:
        read(tmp_path, f"{dialect}={path}")
    assert e.value.hint


STARTS: Final[dict[str, tuple[str, Any, str]]] = {
    "nothing": ("claude", {}, "contains no hooks"),
    "only permissions": ("claude", {"permissions": {"deny": ["Bash"]}}, "contains no hooks"),
    "servers and a status line": (
        "claude",
        {"mcpServers": {"hooks": {"command": "x"}}, "statusLine": COMMAND, "env": {"PRE_TOOL_USE": "1"}},
        "contains no hooks",
    ),
    "no events": ("claude", {"hooks": {}}, "none of its hooks can run here"),
    "an empty event": ("claude", {"hooks": {"PreToolUse": []}}, "none of its hooks can run here"),
    "an event of next year, empty": ("claude", {"hooks": {"PreThing": []}}, "none of its hooks can run here"),
    "hooks of a prompt's events": ("claude", {"hooks": {"Stop": [{"hooks": [COMMAND]}]}}, "cannot fire behind MCP"),
    "a prompt": (
        "claude",
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}},
        "none of its hooks can run here",
    ),
    "switched off": ("claude", {"disableAllHooks": True, "hooks": {"PreToolUse": GROUP}}, "disableAllHooks is true"),
    "droid, switched off": ("droid", {"hooksDisabled": True, "hooks": {"PreToolUse": GROUP}}, "hooksDisabled is true"),
    "gemini, switched off": (
        "gemini",
        {"hooksConfig": {"enabled": False}, "hooks": {"BeforeTool": GROUP}},
        "enabled is false",
    ),
    "kiro, switched off": (
        "kiro",
        {"version": "v1", "hooks": [{"trigger": "PreToolUse", "enabled": False, "action": COMMAND}]},
        "is not enabled",
    ),
    "a stop hook and an event of next year": (
        "claude",
        {"hooks": {"Stop": [{"hooks": [COMMAND]}], "OfNextYear": [{"hooks": [COMMAND]}]}},
        "cannot fire behind MCP",
    ),
}


@pytest.mark.parametrize("what", STARTS)
def test_a_file_without_hooks_or_with_hooks_that_cannot_fire_starts_with_a_line(what: str, tmp_path: Path) -> None:
    dialect, content, line = STARTS[what]
    path = write(tmp_path / "settings.json", content)
    loaded = read(tmp_path, f"{dialect}={path}")
    assert line in "\n".join(text for one in loaded for text in (*one.notes, *one.remarks))
    assert not any(one.group.hooks for one in loaded)


def test_hooks_of_the_session_alone_start(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.json", {"hooks": {"SessionStart": [{"hooks": [COMMAND]}]}})
    assert read(tmp_path, f"claude={path}")[0].group.hooks


OF_DOCUMENTS = [name for name, dialect in DIALECTS.items() if not (dialect.executables or dialect.modules)]


@pytest.mark.parametrize("dialect", OF_DOCUMENTS)
def test_an_empty_settings_file_starts_with_a_line_in_every_dialect(dialect: str, tmp_path: Path) -> None:
    content = {"version": 1} if dialect.startswith("copilot") else {}
    path = write(tmp_path / "settings.json", content)
    (loaded,) = read(tmp_path, f"{dialect}={path}")
    assert any("no hooks" in text or "none of its hooks" in text for text in (*loaded.notes, *loaded.remarks))


# --- however the file is named ---


def test_a_folder_a_pattern_and_a_table_of_the_configuration_stop_the_start(tmp_path: Path) -> None:
    write(tmp_path / "hooks/a.json", OWN_FILES["claude"])
    path = write(tmp_path / "hooks/b.json", ANTIGRAVITY)
    for option in ("claude=hooks", "claude=hooks/*.json"):
        with pytest.raises(ConfigError, match="hooks of antigravity"):
            read(tmp_path, option)
    write(tmp_path / "more/b.json", PI)
    with pytest.raises(ConfigError, match="no dialect recognises this file"):
        read(tmp_path, "more")
    config = tmp_path / "hookproxy.toml"
    config.write_text(f'use = [{{ file = "{path}", dialect = "claude" }}]\n')
    with pytest.raises(ConfigError, match="hooks of antigravity"):
        load(str(config), (), None, os.environ, str(tmp_path))


def test_the_configuration_of_a_gateway_stops_the_start(tmp_path: Path) -> None:
    path = write(tmp_path / "hooks.json", ANTIGRAVITY)
    for table in (
        f'use = [{{ file = "{path}", dialect = "claude" }}]\n[servers.a]\ncommand = ["cat"]\n',
        f'[servers.a]\ncommand = ["cat"]\nuse = [{{ file = "{path}", dialect = "claude" }}]\n',
    ):
        config = tmp_path / "gateway.toml"
        config.write_text(table)
        with pytest.raises(ConfigError, match="hooks of antigravity"):
            load_gateway(str(config), os.environ, str(tmp_path))


def test_permission_rules_of_the_file_do_not_make_up_for_its_hooks(tmp_path: Path) -> None:
    content = {"permissions": {"deny": ["Bash"]}, "hooks": {"PreToolUse": [COMMAND]}}
    path = write(tmp_path / "settings.json", content)
    config = tmp_path / "hookproxy.toml"
    config.write_text(f'use = [{{ file = "{path}", dialect = "claude", permissions = true }}]\n')
    with pytest.raises(ConfigError, match="claude can read none of its hooks"):
        load(str(config), (), None, os.environ, str(tmp_path))


def test_a_plugin_all_of_whose_files_are_unreadable_stops_the_start(tmp_path: Path) -> None:
    write(tmp_path / "p/.claude-plugin/plugin.json", {"name": "p"})
    write(tmp_path / "p/hooks/hooks.json", ANTIGRAVITY)
    with pytest.raises(ConfigError, match="hooks of antigravity"):
        read(tmp_path, f"claude={tmp_path}/p")
