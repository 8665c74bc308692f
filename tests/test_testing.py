"""`hookproxy.testing`: hooks and policies as tests in Python run them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from hookproxy.hooks.api import HookInput
from hookproxy.model.errors import EXIT_NO_POLICY, ConfigError, UserError
from hookproxy.testing import PolicyTester

GUARD = """
from hookproxy.hooks.api import HookInput, deny, rewrite
def check(hook_input: HookInput):
    if hook_input.tool_input.get("path") == "/etc":
        return deny("not there")
    return rewrite({"path": "b"}) if hook_input.tool_input.get("path") == "a" else None
"""


@pytest.fixture
def tester(tmp_path: Path) -> PolicyTester:
    return PolicyTester(str(tmp_path / "state"))


def test_a_test_of_a_function_needs_only_what_the_function_reads() -> None:
    read = HookInput(tool_name="read", tool_input={"path": "/etc"})
    assert (read.tool_input["path"], read.hook_event_name, read.session_id) == ("/etc", "PreToolUse", "")
    assert abs((read.time - datetime.now(UTC)).total_seconds()) < 60


def test_a_python_hook_is_run(tester: PolicyTester, tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text(GUARD)
    hook = tester.hook("guard:check", folder=tmp_path)
    refused = hook.call("read", {"path": "/etc"})
    assert (refused.decision, refused.reason, refused.arguments, refused.failures) == ("deny", "not there", None, ())
    assert refused.reads == "Blocked by the PreToolUse hook guard:check: not there"
    assert hook.call("read", {"path": "a"}).arguments == {"path": "b"}
    assert hook.call("read", {"path": "c"}).decision == "allow"


def test_a_module_of_the_same_name_is_not_the_hooks(tester: PolicyTester, tmp_path: Path) -> None:
    other = ModuleType("guard")
    sys.modules["guard"] = other
    try:
        (tmp_path / "guard.py").write_text(GUARD)
        assert tester.hook("guard:check", folder=tmp_path).call("read", {"path": "/etc"}).decision == "deny"
        assert sys.modules["guard"] is other
    finally:
        del sys.modules["guard"]


@pytest.mark.parametrize("hook", ["echo no >&2; exit 2", ["sh", "-c", "echo no >&2; exit 2"]])
def test_a_command_is_run(tester: PolicyTester, hook: str | list[str]) -> None:
    outcome = tester.hook(hook, matcher="read").call("read", {})
    assert (outcome.decision, outcome.reason) == ("deny", "no")
    assert tester.hook(hook, matcher="read").call("write", {}).decision == "allow"


def test_a_hook_after_a_call_is_run(tester: PolicyTester) -> None:
    hide = """echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "beware"}}'"""
    outcome = tester.hook(hide, event="PostToolUse").call("read", {}, result="secret")
    assert outcome.reads == "secret\nbeware"


def test_a_hook_that_fails_says_how(tester: PolicyTester) -> None:
    [failure] = tester.hook("exit 7").call("read").failures
    assert "7" in failure


def test_a_hook_that_cannot_be_found_is_an_error(tester: PolicyTester, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot import absent"):
        tester.hook("absent:check", folder=tmp_path).call("read")


def test_a_policy_is_run(tester: PolicyTester, tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[permissions]\nask = ["send"]\n')
    policy = tester.policy(tmp_path / "hookproxy.toml")
    assert policy.call("send").decision == "ask"
    answered = policy.call("send", {"to": "ann"}, answer="allow", result="sent")
    assert (answered.decision, answered.asked, answered.arguments) == ("allow", True, {"to": "ann"})
    assert (answered.reads, policy.call("send", answer="deny").decision) == ("sent", "deny")
    assert policy.call("resources/read", {"uri": "file:///a"}).decision == "allow"


def test_a_file_with_cases_is_run(tester: PolicyTester, tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[permissions]\nask = ["send"]\n')
    (tmp_path / "tests.toml").write_text('[[case]]\ncall = { tool = "send" }\nexpect = { decision = "ask" }\n')
    tester.policy(tmp_path / "hookproxy.toml").run_cases(tmp_path / "tests.toml", mutate=True)
    (tmp_path / "hookproxy.toml").write_text('[permissions]\ndeny = ["send", "drop"]\n')
    policy = tester.policy(tmp_path / "hookproxy.toml")
    with pytest.raises(AssertionError, match="decision: expected ask, was deny"):
        policy.run_cases(tmp_path / "tests.toml")
    (tmp_path / "tests.toml").write_text('[[case]]\ncall = { tool = "send" }\nexpect = { decision = "deny" }\n')
    policy.run_cases(tmp_path / "tests.toml")
    with pytest.raises(AssertionError, match=r"deny drop .*taken out: no case notices it"):
        policy.run_cases(tmp_path / "tests.toml", mutate=True)


def test_a_policy_or_a_file_without_anything_is_an_error(tester: PolicyTester, tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text("# nothing yet\n")
    (tmp_path / "gateway.toml").write_text("[gateway]\n[servers.a]\ncommand = ['cat']\n")
    for name in ("hookproxy.toml", "gateway.toml", None):
        with pytest.raises(UserError, match="no policy is loaded") as raised:
            tester.policy(None if name is None else tmp_path / name)
        assert raised.value.status == EXIT_NO_POLICY
    (tmp_path / "tests.toml").write_text("# nothing yet\n")
    with pytest.raises(UserError, match="has no cases"):
        tester.hook("exit 2").run_cases(tmp_path / "tests.toml")


def test_a_policy_may_have_secrets_alone(tester: PolicyTester, tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text("[secrets]\n")
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    assert token not in tester.policy(tmp_path / "hookproxy.toml").call("read", result=f"it is {token}").reads


def test_a_time_has_a_time_zone(tester: PolicyTester) -> None:
    with pytest.raises(UserError, match="has no time zone"):
        tester.hook("exit 2").call("read", time=datetime(2026, 11, 23))  # that is what is wrong


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_coroutines_can_use_it_too(tester: PolicyTester) -> None:
    assert tester.hook("exit 2").call("read").decision == "deny"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conftest", "test"),
    [
        (
            'pytest_plugins = ["hookproxy.testing"]',
            'def test_it(hookproxy):\n    assert hookproxy.hook("exit 2").call("read").decision == "deny"\n',
        ),
        ("", 'import sys\ndef test_it():\n    assert "hookproxy" not in sys.modules\n'),
    ],
    ids=["named", "not named"],
)
def test_the_fixture_is_there_for_those_who_name_it(tmp_path: Path, conftest: str, test: str) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout
