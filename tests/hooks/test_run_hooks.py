"""Hooks that must be trusted are checked before and after they run: one that has changed blocks."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import anyio
import pytest

from hookproxy.cli.main import main
from hookproxy.config.load import load
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.decision import Proceed, Refuse
from hookproxy.model.hooks import Event, EventContext, HookRun, Outcome
from hookproxy.policy.decide import comments
from tests.support.proxy_rig import SESSION

pytestmark = pytest.mark.anyio

PRE = EventContext(Event.PRE_TOOL_USE, SESSION, tool="write", arguments=b"{}")
POST = EventContext(Event.POST_TOOL_USE, SESSION, tool="write", outcome=Outcome(content=b"[]", has_result=True))
SCRIPT = "#!/bin/sh\ncat >/dev/null\necho >>ran\n"
WORKER = "#!/bin/sh\nwhile read -r _; do echo $$ >>ran; echo '{}'; done\n"


class Project:
    """A folder with one hook of each of these events, on_failure as lax as it can be, and trust required."""

    def __init__(self, folder: Path, table: str = "", script: str = SCRIPT) -> None:
        self.folder = folder
        self.guard = folder / "guard.sh"
        self.guard.write_text(script)
        self.guard.chmod(0o755)
        hook = f'argv = ["./guard.sh"]\non_trouble = "allow"\n{table}\n'
        self.config = folder / "hookproxy.toml"
        self.config.write_text(
            f'require_trust = true\non_trouble = "allow"\n[[hooks.PreToolUse]]\n{hook}[[hooks.PostToolUse]]\n{hook}'
        )
        assert main(["trust", str(self.config)]) == 0
        loaded = load(str(self.config), (), None, os.environ, str(folder))
        self.settings = loaded.settings
        self.hooks = Hooks(loaded.groups, loaded.settings, "files", dict(os.environ), loaded.trust)

    @property
    def ran(self) -> list[str]:
        path = self.folder / "ran"
        return path.read_text().splitlines() if path.exists() else []

    async def decide(self) -> Proceed | Refuse:
        with anyio.fail_after(30):
            return (await self.hooks.run_pre_hooks(PRE, None, [])).decision


async def test_a_trusted_script_runs(tmp_path: Path) -> None:
    assert await Project(tmp_path).decide() == Proceed()


async def test_a_script_swapped_between_trust_and_call_is_not_run_and_denies_whatever_is_configured(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    project.guard.write_text(SCRIPT + "exit 0 # softer\n")
    decision = await project.decide()
    assert isinstance(decision, Refuse)
    assert f"{project.guard} has changed since it was trusted" in decision.reason
    assert project.ran == []
    assert main(["trust", str(project.config)]) == 0
    assert await project.decide() == Proceed()


async def test_a_result_is_withheld_if_its_hook_has_changed_since_it_was_trusted(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.guard.write_text("")
    hook_runs: list[HookRun] = []
    with anyio.fail_after(30):
        found = await project.hooks.run_post_hooks(POST, hook_runs)
    assert [one.verdict.untrusted for one in hook_runs] == [True]
    assert found.withheld == comments(hook_runs, project.settings, None).withheld == tuple(hook_runs)


async def test_the_output_of_a_script_that_is_swapped_while_it_runs_is_ignored(tmp_path: Path) -> None:
    swapping = f"#!/bin/sh\ncp -p guard.sh kept; mv kept guard.sh\necho {shlex.quote(json.dumps({}))}\n"
    decision = await Project(tmp_path, script=swapping).decide()
    assert isinstance(decision, Refuse)
    assert "changed while it ran" in decision.reason


@pytest.mark.parametrize("table", ["warm = true", 'type = "worker"'])
async def test_no_process_of_a_script_that_has_changed_since_is_used(tmp_path: Path, table: str) -> None:
    project = Project(tmp_path, table, WORKER if "worker" in table else SCRIPT)
    async with project.hooks.runners:
        assert await project.decide() == Proceed()
        project.guard.write_text(SCRIPT + "echo softer\n")
        ran = project.ran
        assert isinstance(await project.decide(), Refuse)
        assert project.ran == ran


async def test_a_worker_whose_script_was_written_and_put_back_is_started_anew(tmp_path: Path) -> None:
    project = Project(tmp_path, 'type = "worker"', WORKER)
    async with project.hooks.runners:
        assert await project.decide() == Proceed()
        assert await project.decide() == Proceed()
        project.guard.write_text("#!/bin/sh\nexit 1\n")
        project.guard.write_text(WORKER)
        assert await project.decide() == Proceed()
    assert len(project.ran) == 3
    assert len(set(project.ran)) == 2


async def test_a_prompter_that_has_changed_is_not_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert project.hooks.prompter_failure(managed=False) == ""
    project.config.write_text("")
    assert "has changed" in project.hooks.prompter_failure(managed=False)
    assert project.hooks.prompter_failure(managed=True) == ""
