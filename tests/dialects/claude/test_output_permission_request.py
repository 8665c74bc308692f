"""The decisions of Claude Code's PermissionRequest hooks that are not in cases/claude.toml."""

import json

import msgspec
import pytest

from hookproxy.dialects.shared.claude_envelope import RequestDecision, request_verdict
from hookproxy.model.hooks import Permission


def allowing(**change: object) -> RequestDecision:
    text = json.dumps({"behavior": "allow", "updatedPermissions": [change]})
    return msgspec.json.decode(text, type=RequestDecision)


def test_too_many_rules_are_a_failure() -> None:
    verdict = request_verdict(allowing(type="addRules", behavior="allow", rules=[{"toolName": "a"}] * 1001))
    assert (verdict.allows, verdict.failure) == ((), "gave 1001 permission rules, more than 1000")


@pytest.mark.parametrize("change_type", ["setMode", "addDirectories", "removeDirectories"])
def test_a_change_that_only_concerns_the_agent_gets_a_message(change_type: str) -> None:
    verdict = request_verdict(allowing(type=change_type, mode="plan"))
    assert (verdict.permission, verdict.failure) == (Permission.ALLOW, "")
    assert verdict.messages == (f"gave an updatedPermissions entry that has no effect behind MCP: {change_type}",)


@pytest.mark.parametrize("change_type", ["replaceRules", "removeRules", "whatever"])
def test_a_change_that_cannot_be_followed_is_a_failure(change_type: str) -> None:
    verdict = request_verdict(allowing(type=change_type, behavior="allow"))
    assert verdict.failure == f"gave an updatedPermissions entry that is not supported: {change_type} allow"
