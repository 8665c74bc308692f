"""The presets: names that hooks for Claude Code know, and no tool twice."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.config.models import ConfigFile, ToolTable
from hookproxy.policy.matchers import JUDGED_ARGUMENT
from hookproxy.policy.presets import PRESETS

CLAUDE: Final = {
    "Bash": {"command", "timeout"},
    "Edit": {"file_path", "old_string", "new_string"},
    "Glob": {"pattern", "path"},
    "Grep": {"pattern", "path", "glob"},
    "LS": {"path"},
    "Read": {"file_path", "offset", "limit"},
    "WebFetch": {"url"},
    "Write": {"file_path", "content"},
}
"""Claude Code's own tools and what guards read of them."""

OWN: Final = {"Bash": "command", "Edit": "file_path", "Read": "file_path", "WebFetch": "url", "Write": "file_path"}
SAME: Final = {"start_process", "execute_command", "edit_block", "fetch", "browser_navigate"}
"""Tools whose servers call the argument that counts as Claude Code does."""


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_names_that_hooks_know(name: str) -> None:
    for one in PRESETS[name].tools:
        ToolTable.model_validate({"as": one.name or None, "arguments": dict(one.arguments)})
        assert not one.name or set(one.arguments) <= CLAUDE[one.name]
        assert all(known != own for known, own in one.arguments.items())
        assert len(set(one.arguments.values())) == len(one.arguments)


@pytest.mark.parametrize("name", PRESETS)
def test_each_tool_is_in_a_preset_once(name: str) -> None:
    tools = [one.tool for one in PRESETS[name].tools]
    assert len({*tools, *PRESETS[name].others}) == len(tools) + len(PRESETS[name].others)


def test_an_argument_that_permission_rules_judge_has_the_judged_name() -> None:
    assert {name: JUDGED_ARGUMENT[name] for name in OWN} == OWN
    for preset in PRESETS.values():
        for one in preset.tools:
            if one.name in OWN:
                assert OWN[one.name] in one.arguments or one.tool in SAME, one.tool


def test_the_documentation_of_the_key_names_all_presets() -> None:
    text = ConfigFile.model_fields["preset"].description or ""
    assert all(f'"{name}"' in text for name in PRESETS)
