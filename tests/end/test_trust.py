"""A guard behind a real `hookproxy run` that is swapped between `hookproxy trust` and the call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY, Scene, call, text_of

pytestmark = pytest.mark.anyio

GUARD = "#!/bin/sh\ngrep -q secret && { echo 'no secrets' >&2; exit 2; }\nexit 0\n"


def guarded(scene: Scene) -> tuple[str, Path]:
    """A configuration that requires trust and is otherwise as permissive as possible; and its guard."""
    guard = Path(scene.file("guard.sh", GUARD, 0o755))
    config = scene.config(
        f'require_trust = true\non_trouble = "allow"\n[[hooks.PreToolUse]]\nargv = ["{guard}"]\non_trouble = "allow"\n'
    )
    return config, guard


def trust(scene: Scene, config: str) -> str:
    ended = scene.complete([HOOKPROXY, "trust", config.partition("=")[2]])
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode()


async def test_files_that_are_not_trusted_stop_the_start(scene: Scene) -> None:
    config, _ = guarded(scene)
    agent = scene.run(config)
    assert await agent.ended() == 2
    assert "hookproxy.toml: is not trusted yet (and 1 more)" in agent.standard_error()


async def test_a_guard_swapped_between_trust_and_call_denies_until_it_is_trusted_again(scene: Scene) -> None:
    config, guard = guarded(scene)
    trust(scene, config)
    agent = scene.run(config)
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo", text="harmless"))) == '{"text": "harmless"}'
    assert "no secrets" in text_of(await agent.ask(call(2, "echo", text="secret")))
    guard.with_name("soft.sh").write_text("#!/bin/sh\nexit 0\n")
    guard.with_name("soft.sh").chmod(0o755)
    guard.with_name("soft.sh").replace(guard)
    for number, text in ((3, "secret"), (4, "harmless")):
        assert "has changed since it was trusted" in text_of(await agent.ask(call(number, "echo", text=text)))
    assert len(scene.calls_received()) == 1
    assert "-grep -q secret" in trust(scene, config)
    assert (
        text_of(await agent.ask(call(5, "echo", text="secret"))) == '{"text": "secret"}'
    )  # as the person has seen and trusted it


async def test_check_reports_that_trust_is_required_and_for_which_files(scene: Scene) -> None:
    config, guard = guarded(scene)
    trust(scene, config)
    text = json.loads(scene.complete([HOOKPROXY, "check", config, "--json"]).stdout)
    assert text["trust"]["files"] == [config.partition("=")[2], str(guard)]
    assert text["trust"]["not_covered"]
    shown = scene.complete([HOOKPROXY, "check", config]).stdout.decode()
    assert "trust: required; these files are used only while they are unchanged\n  file" in shown


async def test_no_other_configuration_lifts_what_the_users_own_requires(scene: Scene, home: Path) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text("require_trust = true\n")
    agent = scene.run(scene.config("require_trust = false\n"))
    assert await agent.ended() == 2
    assert "is not trusted yet" in agent.standard_error()
