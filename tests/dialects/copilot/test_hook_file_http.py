"""Copilot CLI's HTTP hooks: where their documents go, and what the reference forbids."""

import json

import pytest

from hookproxy.dialects.copilot import COPILOT_CURRENT
from hookproxy.dialects.dialect import HookFile
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Ended, HookResult, HookSpec, Permission

LOCAL = {"COPILOT_HOOK_ALLOW_LOCALHOST": "1"}


def posts(url: str, event: str = "postToolUse", environ: dict[str, str] = LOCAL, **more: object) -> HookSpec:
    text = json.dumps({"version": 1, "hooks": {event: [{"type": "http", "url": url, **more}]}})
    (hook,) = COPILOT_CURRENT.read_hook_file(HookFile("/repo/.github/hooks/a.json", text, "/repo", {}, environ)).hooks
    return hook


def test_an_http_entry_is_a_web_service() -> None:
    hook = posts("https://h.example/x", "preToolUse", headers={"A": "Bearer $T"}, allowedEnvVars=["T"], timeout=3)
    assert (hook.type, hook.url, hook.label, hook.timeout) == ("http", "https://h.example/x", "h.example", 3.0)
    assert (hook.headers, hook.allowed_env_vars) == ((("A", "Bearer $T"),), ("T",))
    assert (hook.argv, hook.env, hook.event_name) == ((), (), "preToolUse")


@pytest.mark.parametrize("url", ["http://localhost:8/x", "http://127.0.0.2/", "http://[::1]:80/"])
def test_plain_http_is_only_for_this_machine_if_the_environment_allows_it_and_the_event_grants_nothing(
    url: str,
) -> None:
    assert posts(url).url == url
    with pytest.raises(ConfigError, match="is not an https:// URL") as problem:
        posts(url, environ={})
    assert "COPILOT_HOOK_ALLOW_LOCALHOST=1" in problem.value.hint
    with pytest.raises(ConfigError, match="because allowedEnvVars is set"):
        posts(url, allowedEnvVars=["T"])
    for event in ("preToolUse", "PermissionRequest"):
        with pytest.raises(ConfigError, match="must begin with https://"):
            posts(url, event)


@pytest.mark.parametrize("ended", [Ended.FAILED, Ended.TIMED_OUT])
def test_a_web_service_that_fails_denies_nothing(ended: Ended) -> None:
    hook = posts("https://h.example/x", "preToolUse")
    verdict = COPILOT_CURRENT.read_output(hook, HookResult(ended, detail="answered with status 500"))
    assert verdict.failure
    assert (verdict.permission, verdict.fails_closed) == (None, False)
    denied = COPILOT_CURRENT.read_output(hook, HookResult(Ended.EXITED, stdout=b'{"permissionDecision":"deny"}'))
    assert denied.permission is Permission.DENY
