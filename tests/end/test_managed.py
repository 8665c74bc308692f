"""The administrator's files behind a real `hookproxy run`, in an /etc of its own, for root and for another user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY, SERVER, Agent, Scene, call, text_of
from tests.support.managed_folder import (
    NOBODY,
    ROOT_ONLY,
    as_user,
    in_private_etc,
    python_for_user,
    root_only_folder,
    write,
)

pytestmark = [ROOT_ONLY, pytest.mark.anyio]

GUARD = """#!/bin/sh
# denies what has `secret` in its arguments, as the managed hook sees them
grep -q secret && { echo 'managed: no secrets' >&2; exit 2; }
exit 0
"""
MANAGED_FOLDER = """
on_failure = "deny"
on_ask = "deny"
[permissions]
deny = ["die"]
[[limits]]
tool = "e*"
calls = 9
per = "day"
[[hooks.PreToolUse]]
command = "./guard.sh"
"""


class Box:
    """A private /etc, a folder that nobody else writes, and the program behind it."""

    def __init__(self, scene: Scene, etc: Path, user: int) -> None:
        self.scene, self.etc, self.user = scene, etc, user
        self.server = (python_for_user(user), *SERVER[1:])
        write(etc / "hookproxy" / "guard.sh", GUARD, 0o755)
        write(etc / "hookproxy" / "managed.toml", MANAGED_FOLDER)
        scene.log.touch()
        scene.log.chmod(0o666)

    @property
    def _quiet(self) -> dict[str, str]:
        """The audit is kept in a folder of the test. `nobody` may not write coverage data, and would report that."""
        state = {"XDG_STATE_HOME": str(self.scene.folder / f"state-{self.user}")}
        return {"COVERAGE_PROCESS_CONFIG": "", **state} if self.user else state

    def run(self, *options: str, **environ: str) -> Agent:
        words = [HOOKPROXY, "run", *options, "--", *self.server]
        return self.scene.start(
            in_private_etc(self.etc, *words, user=self.user), {"HOME": "/", **self._quiet, **environ}
        )

    def complete(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = in_private_etc(self.etc, HOOKPROXY, *words, user=self.user)
        env = {**self.scene.env, "HOME": "/", **self._quiet, **environ}
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=30)


@pytest.fixture
async def scene(home: Path) -> AsyncIterator[Scene]:
    """A scene in a folder that everybody can enter."""
    folder = root_only_folder()
    folder.chmod(0o777)
    scene = Scene(folder, home)
    try:
        yield scene
        await scene.close()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["root", "nobody"])
def box(scene: Scene, private_etc: Path, request: pytest.FixtureRequest) -> Box:
    user = request.getfixturevalue("nobody") if request.param == "nobody" else 0
    return Box(scene, private_etc, user)


def users(box: Box, text: str) -> str:
    path = write(box.scene.folder / "users.toml", text)
    return f"--config={path}"


async def test_a_managed_hook_refuses_what_a_users_hook_has_rewritten_after_it_was_harmless(box: Box) -> None:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"text": "secret"}}}
    path = write(box.scene.folder / "answer.json", json.dumps(answer))
    config = users(box, f'[[hooks.PreToolUse]]\nargv = ["cat", "{path}"]\n')
    agent = box.run(config)
    await agent.initialize()
    assert "managed: no secrets" in text_of(await agent.ask(call(1, "echo", text="harmless")))
    assert box.scene.calls_received() == []


async def test_a_managed_rule_holds_whatever_the_user_allows(box: Box) -> None:
    agent = box.run(users(box, 'on_failure = "allow"\non_ask = "allow"\n[permissions]\nallow = ["*"]\n'))
    await agent.initialize()
    answer = await agent.ask(call(1, "die"))
    assert answer["result"]["isError"]
    assert box.scene.calls_received() == []
    text = agent.standard_error()
    assert "users.toml: on_failure is not used: /etc/hookproxy/managed.toml: on_failure takes precedence" in text
    assert "users.toml: on_ask is not used: /etc/hookproxy/managed.toml: on_ask takes precedence" in text


@pytest.mark.parametrize(
    "environ",
    [
        {
            **{"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere", "XDG_CONFIG_DIRS": "/nowhere"},
            **{"HOOKPROXY_MANAGED": "/nowhere", "HOOKPROXY_CONFIG": "/dev/null", "CLAUDE_PROJECT_DIR": "/nowhere"},
        },
        {"PATH": "/nowhere"},
        {"BASH_ENV": "/nowhere", "ENV": "/nowhere", "LD_LIBRARY_PATH": "/nowhere", "GREP_OPTIONS": "-v"},
    ],
)
async def test_no_environment_and_no_option_switches_it_off(box: Box, environ: dict[str, str]) -> None:
    own = {name: value for name, value in environ.items() if name != "PATH"}
    prefix = ["env", f"PATH={environ['PATH']}"] if "PATH" in environ else []  # here, or mount would not be found
    program = [HOOKPROXY, "run", "--config=/dev/null", "--name=other", "--", *box.server]
    words = in_private_etc(box.etc, *prefix, *as_user(box.user), *program)
    agent = box.scene.start(words, {"HOME": "/", "XDG_STATE_HOME": str(box.scene.folder / "state"), **own})
    await agent.initialize()
    assert "managed: no secrets" in text_of(await agent.ask(call(1, "echo", text="secret")))
    assert "error" not in await agent.ask(call(2, "echo", text="harmless"))


async def test_the_refusal_names_the_owner_of_the_rule(box: Box) -> None:
    agent = box.run()
    await agent.initialize()
    text = text_of(await agent.ask(call(1, "die")))
    rule = "the permission rule die of the managed configuration: it is about every call of this tool"
    assert text.startswith(f"Blocked by {rule}. The tool was not run. ")


async def test_check_shows_what_is_managed(box: Box) -> None:
    ended = box.complete("check", "--json")
    report = json.loads(ended.stdout)
    assert report["managed"]["files"] == ["/etc/hookproxy/managed.toml"]
    assert report["managed"]["settings"]["on_failure"] == "/etc/hookproxy/managed.toml: on_failure"
    assert report["settings"]["managed"]["deny"] == ["die"]
    assert [hook["managed"] for hook in report["hooks"]] == [True]
    assert "; managed)\n" in box.complete("check").stdout
    shown = box.complete("check", "--verbose").stdout
    assert "  managed  runs last, on the final arguments; cannot be switched off\n" in shown
    assert "managed permission rules\n  deny     die\n" in shown
    assert "managed tools\n  limit    e*: 9 calls per day\n" in shown
    assert '  setting  on_ask = "deny" (/etc/hookproxy/managed.toml: on_ask)\n' in shown


async def test_check_reports_a_users_hook_that_would_stop_the_start(box: Box) -> None:
    tool_call = {"type": "mcp_tool", "server": "any", "tool": "die", "input": {}}
    file = write(box.scene.folder / "tool-hook.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [tool_call]}]}}))
    for verb in (("check",), ("run", "--name", "any")):
        ended = box.complete(*verb, f"--hooks=claude={file}", *(("--", *box.server) if verb[0] == "run" else ()))
        assert (ended.returncode, "calls the tool die" in ended.stderr) == (2, True)


async def test_a_file_that_is_not_roots_stops_the_start_and_names_the_fix(box: Box) -> None:
    script = box.etc / "hookproxy" / "guard.sh"
    os.chown(script, NOBODY, NOBODY)
    ended = box.complete("run", "--", box.server[0], "-c", "input()")
    assert ended.returncode == 2
    assert "belongs to user 65534 and not to root" in ended.stderr
    assert ended.stderr.endswith("hint: chown root: /etc/hookproxy/guard.sh\n")


async def test_files_that_the_administrator_requires_to_be_trusted_are_checked(box: Box) -> None:
    write(box.etc / "hookproxy" / "managed.d" / "trust.toml", "require_trust = true\n")
    assert box.complete("check").returncode == 0  # the managed files belong to root, so they are trusted
    config = users(box, "require_trust = false\n")
    ended = box.complete("check", config)
    assert (ended.returncode, "users.toml: is not trusted yet" in ended.stderr) == (2, True)
    state = box.scene.folder / "state"
    assert box.complete("trust", config.partition("=")[2], XDG_STATE_HOME=str(state)).returncode == 0
    assert box.complete("check", config, XDG_STATE_HOME=str(state)).returncode == 0


async def test_what_whoever_starts_it_has_set_does_not_reach_managed_hooks(box: Box) -> None:
    shown = "#!/bin/sh\necho $(umask) $(ulimit -f) $(grep SigIgn /proc/self/status) >&2\nexit 2\n"
    write(box.etc / "hookproxy" / "guard.sh", shown, 0o755)
    setting = "umask 077; trap '' USR1 ALRM; ulimit -S -f 1; exec \"$@\""
    words = in_private_etc(box.etc, HOOKPROXY, "run", "--", *box.server, user=box.user)
    # Python does not notice that the limit cuts off the modules that it compiles
    environ = {"HOME": "/", "COVERAGE_PROCESS_CONFIG": "", "PYTHONDONTWRITEBYTECODE": "1"}
    agent = box.scene.start(["sh", "-c", setting, "sh", *words], environ)
    await agent.initialize()
    umask, limit, _, ignored = text_of(await agent.ask(call(1, "echo"))).split(": ", 1)[1].split()[:4]
    # glibc ignores 32 and 33, its own signals, in what `posix_spawn` starts, as Python 3.13's subprocess does
    assert (umask, limit, int(ignored, 16) & ~0x180000000) == ("0022", "unlimited", 0)


async def test_the_administrator_alone_watches_managed_rules_and_hooks_instead_of_enforcing_them(box: Box) -> None:
    """A user's `[monitor]` and `mode` are about the user's own file."""
    following = write(box.scene.folder / "next.toml", '[permissions]\nallow = ["*"]\n')
    config = users(box, '[permissions]\nmode = "monitor"\n[[limits]]\ntool = "*"\ncalls = 1\nper = "hour"\n')
    agent = box.run(config)
    await agent.initialize()
    assert "permission rule die" in text_of(await agent.ask(call(1, "die")))
    second = box.run(users(box, f'[monitor]\nfile = "{following}"\n'))
    await second.initialize()
    assert "permission rule die" in text_of(await second.ask(call(1, "die")))
    watched = MANAGED_FOLDER.replace("[permissions]", '[permissions]\nmode = "monitor"') + 'mode = "monitor"\n'
    write(box.etc / "hookproxy" / "managed.toml", watched)
    third = box.run(users(box, ""))
    await third.initialize()
    assert "secret" in text_of(await third.ask(call(1, "echo", text="secret")))
    ended = box.complete("check", users(box, ""))
    assert "only watched" in ended.stdout
    assert "deny die (managed)" in ended.stdout
