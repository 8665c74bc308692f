"""What a PermissionRequest hook of Claude Code decides; the table of cases/claude.toml has the rest."""

import json

import msgspec
import pytest

from hookproxy.dialects.claude.output import Decision, verdict
from hookproxy.model.hooks import Permission


def allowing(**change: object) -> Decision:
    text = json.dumps({"behavior": "allow", "updatedPermissions": [change]})
    return msgspec.json.decode(text, type=Decision)


def test_a_flood_of_rules_is_trouble() -> None:
    said = verdict(allowing(type="addRules", behavior="allow", rules=[{"toolName": "a"}] * 1001))
    assert (said.allows, said.failure) == ((), "gave 1001 permission rules, more than 1000")


@pytest.mark.parametrize("change_type", ["setMode", "addDirectories", "removeDirectories"])
def test_what_is_the_agents_own_matter_is_told(change_type: str) -> None:
    said = verdict(allowing(type=change_type, mode="plan"))
    assert (said.permission, said.failure) == (Permission.ALLOW, "")
    assert said.messages == (f"without effect behind MCP: {change_type}",)


@pytest.mark.parametrize("change_type", ["replaceRules", "removeRules", "whatever"])
def test_what_cannot_be_followed_is_trouble(change_type: str) -> None:
    said = verdict(allowing(type=change_type, behavior="allow"))
    assert said.failure == f"gave an updatedPermissions entry that cannot be followed here: {change_type} allow"
