"""The settings beside the hooks of a settings file that limit its hooks."""

from __future__ import annotations

import json

import pytest

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList

PATH = "/repo/.claude/settings.json"
WHERE = f"{PATH}: hooks.PreToolUse[0].hooks[0]"


def read(**settings: object) -> HookList:
    hook = {
        "type": "http",
        "url": "https://hooks.example.com/a",
        "headers": {"X": "$A ${B}$AB"},
        "allowedEnvVars": ["A", "B", "AB"],
    }
    hooks = {"PreToolUse": [{"hooks": [hook, {"type": "command", "command": "true"}]}]}
    return CLAUDE.read_hook_file(HookFile(PATH, json.dumps({**settings, "hooks": hooks}), "/repo"))


@pytest.mark.parametrize("urls", [[], ["https://other.example.com/*"], ["https://hooks.example.com"], ["http://*"]])
def test_an_http_hook_whose_address_is_not_allowed_does_not_run(urls: list[str]) -> None:
    found = read(allowedHttpHookUrls=urls)
    assert [hook.type for hook in found.hooks] == ["command"]
    assert found.notes == (f"{WHERE} does not run: allowedHttpHookUrls does not allow https://hooks.example.com/a",)


@pytest.mark.parametrize("urls", [["https://hooks.example.com/*"], ["*"], ["x", "https://hooks.*/a"]])
def test_an_http_hook_whose_address_is_allowed_runs(urls: list[str]) -> None:
    found = read(allowedHttpHookUrls=urls)
    assert [hook.type for hook in found.hooks] == ["http", "command"]
    assert found.notes == ()


def test_a_variable_that_is_not_allowed_is_empty() -> None:
    found = read(httpHookAllowedEnvVars=["AB", "C"])
    assert found.hooks[0].allowed_env_vars == ("AB",)
    assert found.hooks[0].headers == (("X", " $AB"),)
    assert found.notes == tuple(
        f"{WHERE}: httpHookAllowedEnvVars does not allow {name}, so its value is empty" for name in ("A", "B")
    )


def test_without_these_settings_everything_is_allowed() -> None:
    assert read().hooks[0].allowed_env_vars == ("A", "B", "AB")
