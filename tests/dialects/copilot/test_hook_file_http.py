"""Copilot CLI's HTTP hooks: where their documents go, and what the reference forbids."""

import json

import pytest

from hookproxy.dialects.copilot import CURRENT as COPILOT_CURRENT
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.model.hooks import Ended, HookResult, HookSpec, Permission

LOCAL = {"COPILOT_HOOK_ALLOW_LOCALHOST": "1"}


def read(url: str, event: str = "postToolUse", environ: dict[str, str] = LOCAL, **more: object) -> HookList:
    text = json.dumps({"version": 1, "hooks": {event: [{"type": "http", "url": url, **more}]}})
    return COPILOT_CURRENT.read_hook_file(HookFile("/repo/.github/hooks/a.json", text, "/repo", {}, environ))


def posts(url: str, event: str = "postToolUse", environ: dict[str, str] = LOCAL, **more: object) -> HookSpec:
    (hook,) = read(url, event, environ, **more).hooks
    return hook


def left_out(url: str, event: str = "postToolUse", environ: dict[str, str] = LOCAL, **more: object) -> str:
    found = read(url, event, environ, **more)
    assert found.hooks == ()
    return found.notes[0]


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
    assert "is not an https:// URL: set COPILOT_HOOK_ALLOW_LOCALHOST=1" in left_out(url, environ={})
    assert "because allowedEnvVars is set" in left_out(url, allowedEnvVars=["T"])
    for event in ("preToolUse", "PermissionRequest"):
        assert "must begin with https://" in left_out(url, event)


@pytest.mark.parametrize("url", ["http://example.com/", "http://10.0.0.1/", "http://localhost.example/"])
def test_plain_http_never_leaves_this_machine(url: str) -> None:
    assert "is not an https:// URL" in left_out(url)


def test_a_variable_that_is_not_allowed_is_empty_with_a_note() -> None:
    found = read("https://h.example/x", headers={"A": "Bearer $T"})
    assert found.hooks[0].headers == (("A", "Bearer "),)
    assert found.notes[0].endswith("the header A uses $T, which is not in allowedEnvVars, so it is empty")


@pytest.mark.parametrize("ended", [Ended.FAILED, Ended.TIMED_OUT])
def test_a_web_service_that_fails_denies_nothing(ended: Ended) -> None:
    hook = posts("https://h.example/x", "preToolUse")
    verdict = COPILOT_CURRENT.read_output(hook, HookResult(ended, detail="answered with status 500"))
    assert verdict.failure
    assert (verdict.permission, verdict.fails_closed) == (None, False)
    denied = COPILOT_CURRENT.read_output(hook, HookResult(Ended.EXITED, stdout=b'{"permissionDecision":"deny"}'))
    assert denied.permission is Permission.DENY
