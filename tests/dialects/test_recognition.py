"""Files in a folder of one system with the format of another are errors that name both."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError
from tests.dialects.calls import recognised

FOLDERS = {
    "augment": ".augment/settings.json",
    "cascade": ".windsurf/hooks.json",
    "crush": ".config/crush/crush.json",
    "goose": ".agents/plugins/one/hooks/hooks.json",
    "iflow": ".iflow/settings.json",
    "kiro": ".kiro/hooks/one.json",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_of_another_system_in_a_systems_folder_is_an_error_that_names_both(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"has the format of lime, but is in a folder of {name}"):
        recognised(tmp_path / FOLDERS[name], {"hooks": {"SessionStart": ["./x.sh"]}})


@pytest.mark.parametrize(
    ("name", "path", "event", "entry"),
    [
        ("cascade", ".windsurf/hooks.json", "pre_mcp_tool_use", {"command": "./x.sh"}),
        ("codex", ".codex/hooks.json", "PreToolUse", {"hooks": [{"type": "command", "command": "./x.sh"}]}),
        ("cursor", ".cursor/hooks.json", "preToolUse", {"command": "./x.sh"}),
        ("gemini", ".gemini/settings.json", "BeforeTool", {"hooks": [{"type": "command", "command": "./x.sh"}]}),
        ("gemini", ".gemini/settings.json", "SessionStart", {"hooks": [{"type": "command", "command": "./x.sh"}]}),
    ],
)
@pytest.mark.parametrize("other", ["PostToolUseFailure", "ofNextYear"])
def test_a_file_in_a_systems_folder_is_its_own_although_it_has_an_event_that_the_system_skips(
    name: str, path: str, event: str, entry: object, other: str, tmp_path: Path
) -> None:
    assert recognised(tmp_path / path, {"hooks": {event: [entry], other: [entry]}}) == name


def test_an_entry_with_keys_of_another_system_is_not_kiros(tmp_path: Path) -> None:
    entry = {"type": "command", "command": "./x.sh"}
    assert recognised(tmp_path / "hooks.json", {"hooks": {"preToolUse": [{"command": "./x.sh"}]}}) == "kiro"
    with pytest.raises(ConfigError, match="copilot can read none of its hooks"):
        recognised(tmp_path / "hooks.json", {"version": 1, "hooks": {"preToolUse": [entry]}})
    assert recognised(tmp_path / "hooks.json", {"hooks": {"preToolUse": [entry]}}) != "kiro"


@pytest.mark.parametrize("name", ["settings.json", "hooks.json", "guards.json"])
def test_a_link_from_elsewhere_is_recognised_by_the_folder_that_it_leads_to(name: str, tmp_path: Path) -> None:
    entry = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./x.sh"}]}]}}
    (tmp_path / ".codex").mkdir()
    (tmp_path / name).symlink_to(".codex/hooks.json")
    assert recognised(tmp_path / name, entry) == "codex"


def test_a_link_in_a_systems_own_folder_is_that_systems(tmp_path: Path) -> None:
    entry = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./x.sh"}]}]}}
    for folder in (".codex", ".claude"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".claude" / "settings.json").symlink_to("../.codex/hooks.json")
    assert recognised(tmp_path / ".claude" / "settings.json", entry) == "claude"
