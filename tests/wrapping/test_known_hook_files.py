"""The hook files that `setup` proposes: the person's own, and those of a project."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Final

import pytest

from hookproxy.wrapping.known_hook_files import find

GROUP: Final = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}})
CLAW: Final = json.dumps({"hooks": {"PreToolUse": ["true"]}})
CASCADE: Final = json.dumps({"hooks": {"pre_mcp_tool_use": [{"command": "true"}]}})
KIMI: Final = "[[hooks]]\nevent = 'PreToolUse'\ncommand = 'true'\n"
TOML: Final = "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = 'true'\n"
FLAT: Final = json.dumps({"hooks": {"PreToolUse": [{"command": "true"}]}})
KIRO: Final = json.dumps({"hooks": {"preToolUse": [{"command": "true"}]}})
CURSOR: Final = json.dumps({"version": 1, "hooks": {"beforeMCPExecution": [{"command": "true"}]}})
COPILOT: Final = json.dumps({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true"}]}})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_the_hook_files_of_every_system_are_found_in_their_places(home: Path, project: Path) -> None:
    own = [
        ("claude", str(Path(write(home / ".claude" / "settings.json", GROUP)).parent)),
        ("claw@current", write(home / ".claw" / "settings.json", CLAW)),
        ("codex", write(home / ".codex" / "hooks.json", GROUP)),
        ("codex", write(home / ".codex" / "config.toml", TOML)),
        ("copilot@current", write(home / ".copilot" / "hooks" / "a.json", COPILOT)),
        ("cursor", write(home / ".cursor" / "hooks.json", CURSOR)),
        ("droid", write(home / ".factory" / "hooks.json", GROUP)),
        ("kimi", write(home / ".kimi-code" / "config.toml", KIMI)),
        ("lime", write(home / ".lime" / "settings.json", CLAW)),
        ("qwen", write(home / ".qwen" / "settings.json", GROUP)),
        ("cascade", write(home / ".codeium" / "windsurf" / "hooks.json", CASCADE)),
        ("augment", write(home / ".augment" / "settings.json", GROUP)),
        ("cline", str(Path(write(home / "Documents" / "Cline" / "Hooks" / "TaskStart", "")).parent)),
        ("cline", str(Path(write(home / ".cline" / "hooks" / "TaskStart.sh", "")).parent)),
        ("crush", write(home / ".config" / "crush" / "crush.json", FLAT)),
        ("goose", write(home / ".agents" / "plugins" / "a" / "hooks" / "hooks.json", GROUP)),
        ("iflow", write(home / ".iflow" / "settings.json", GROUP)),
        ("kiro", write(home / ".kiro" / "hooks" / "a.json", KIRO)),
        ("kiro", write(home / ".kiro" / "agents" / "a.json", KIRO)),
        ("kiro", write(home / ".aws" / "amazonq" / "cli-agents" / "a.json", KIRO)),
    ]
    of_project = [
        ("claude", write(project / ".claude" / "settings.json", GROUP)),
        ("claude", write(project / ".claude" / "settings.local.json", GROUP)),
        ("claw@current", write(project / ".claw.json", CLAW)),
        ("claw@current", write(project / ".claw" / "settings.json", CLAW)),
        ("codex", write(project / ".codex" / "hooks.json", GROUP)),
        ("codex", write(project / ".codex" / "config.toml", TOML)),
        ("copilot@current", write(project / ".github" / "hooks" / "a.json", COPILOT)),
        ("copilot@current", write(project / ".github" / "hooks" / "b.json", COPILOT)),
        ("cursor", write(project / ".cursor" / "hooks.json", CURSOR)),
        ("droid", write(project / ".factory" / "settings.json", GROUP)),
        ("droid", write(project / ".factory" / "settings.local.json", GROUP)),
        ("lime", write(project / ".lime" / "settings.local.json", CLAW)),
        ("qwen", write(project / ".qwen" / "settings.json", GROUP)),
        ("cascade", write(project / ".windsurf" / "hooks.json", CASCADE)),
        ("augment", write(project / ".augment" / "settings.json", GROUP)),
        ("augment", write(project / ".augment" / "settings.local.json", GROUP)),
        ("cline", str(Path(write(project / ".clinerules" / "hooks" / "TaskStart", "")).parent)),
        ("cline", str(Path(write(project / ".cline" / "hooks" / "TaskStart", "")).parent)),
        ("crush", write(project / "crush.json", FLAT)),
        ("crush", write(project / ".crush.json", FLAT)),
        ("goose", write(project / ".agents" / "plugins" / "a" / "hooks" / "hooks.json", GROUP)),
        ("iflow", write(project / ".iflow" / "settings.json", GROUP)),
        ("kiro", write(project / ".kiro" / "hooks" / "a.json", KIRO)),
        ("kiro", write(project / ".kiro" / "hooks" / "a.kiro.hook", KIRO)),
        ("kiro", write(project / ".kiro" / "agents" / "a.json", KIRO)),
        ("kiro", write(project / ".amazonq" / "cli-agents" / "a.json", KIRO)),
    ]
    found = find({}, str(home), str(project))
    in_order = sorted(own, key=itemgetter(0)) + sorted(of_project, key=itemgetter(0))
    assert [(file.dialect, file.path) for file in found] == in_order
    assert [file.in_project for file in found] == [False] * len(own) + [True] * len(of_project)
    assert {file.hooks for file in found} == {1}


def test_variables_move_the_folders(home: Path, project: Path, tmp_path: Path) -> None:
    moved = write(tmp_path / "[c]*" / "settings.json", GROUP)  # no pattern, but a name
    write(home / ".claude" / "settings.json", GROUP)
    assert [file.path for file in find({"CLAUDE_CONFIG_DIR": str(tmp_path / "[c]*")}, str(home), str(project))] == [
        moved
    ]
    assert len(find({"CLAUDE_CONFIG_DIR": "relative"}, str(home), str(project))) == 1


def test_in_the_home_folder_the_persons_own_files_are_not_a_projects(home: Path) -> None:
    write(home / ".claude" / "settings.json", GROUP)
    (file,) = find({}, str(home), str(home))
    assert not file.in_project


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(home: Path, project: Path) -> None:
    write(home / ".claude" / "settings.json", "{")
    write(home / ".lime" / "settings.json", CLAW)
    broken, good = find({}, str(home), str(project))
    assert broken.error is not None
    assert "not JSON" in broken.error.message
    assert good.hooks == 1
