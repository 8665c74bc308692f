"""Files of the shapes that people publish, each in front of a real process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.dialects.augment.test_hook_file import PUBLISHED as AUGMENT
from tests.dialects.cascade.test_hook_file import PUBLISHED as CASCADE
from tests.dialects.cline.test_hook_file import PUBLISHED as CLINE
from tests.dialects.codex.test_hook_file import PUBLISHED as CODEX
from tests.dialects.crush.test_hook_file import PUBLISHED as CRUSH
from tests.dialects.droid.test_hook_file import PUBLISHED as DROID
from tests.dialects.gemini.test_hook_file import PUBLISHED as GEMINI
from tests.dialects.goose.test_hook_file import PUBLISHED as GOOSE
from tests.dialects.iflow.test_hook_file import PUBLISHED as IFLOW
from tests.dialects.kimi.test_hook_file import PUBLISHED as KIMI
from tests.dialects.kiro.test_hook_file import PUBLISHED as KIRO
from tests.dialects.qwen.test_hook_file import PUBLISHED as QWEN
from tests.dialects.vscode.test_hook_file import PUBLISHED as VSCODE
from tests.end.agent import Scene, call, text_of

FILES: Final[dict[str, tuple[str, Any]]] = {
    **{f"augment: {name}": (".augment/settings.json", content) for name, (content, _) in AUGMENT.items()},
    **{f"cascade: {name}": (".windsurf/hooks.json", content) for name, (content, _) in CASCADE.items()},
    **{f"cline: {place}": (place, names) for place, (names, _) in CLINE.items()},
    **{f"codex: {name}": (".codex/hooks.json", content) for name, (content, _) in CODEX.items()},
    **{f"crush: {name}": ("crush.json", content) for name, (content, _) in CRUSH.items()},
    **{f"droid: {name}": (f".factory/{file}", content) for name, (file, content, _) in DROID.items()},
    **{f"gemini: {name}": (".gemini/settings.json", content) for name, (content, _) in GEMINI.items()},
    **{f"goose: {name}": (".agents/plugins/one/hooks/hooks.json", content) for name, (content, _) in GOOSE.items()},
    **{f"iflow: {name}": (".iflow/settings.json", content) for name, (content, _) in IFLOW.items()},
    **{f"kimi: {name}": (".kimi-code/config.toml", text) for name, (text, _) in KIMI.items()},
    **{f"kiro: {name}": (place, content) for name, (place, content, _) in KIRO.items()},
    **{f"qwen: {name}": (".qwen/settings.json", content) for name, (content, _) in QWEN.items()},
    **{f"vscode: {name}": (".github/hooks/hooks.json", content) for name, (content, _) in VSCODE.items()},
}
QUIET: Final = (
    "crush: compaction",
    "droid: notifications",
    "goose: edits",
    "goose: session logger",
    "iflow: summary",
    "kiro: Amazon Q agent",
    "kiro: IDE 0.x edit",
    "kiro: agent without hooks",
    "qwen: audit",
)
"""Those whose hooks are not about these calls, or are posted to a server on the web."""
AT_THE_END: Final = ("goose: session logger",)
"""Those of them whose hooks run when the agent has disconnected."""
REFUSED: Final = {
    "augment: analytics": "bash write_file read_file",
    "augment: lock": "write_file",
    "cascade: command guard": "bash",
    "cascade: read guard": "read_file",
    "cascade: worktree": "bash write_file read_file",
    "cline: .cline/hooks": "bash write_file read_file",
    "cline: .clinerules/hooks": "bash write_file read_file",
    "cline: Documents/Cline/Hooks": "bash write_file read_file",
    "codex: framework": "bash write_file",
    "codex: planner": "bash write_file",
    "codex: schema": "bash write_file read_file",
    "crush: first hook": "bash",
    "crush: log all": "bash write_file read_file",
    "crush: named": "bash",
    "crush: of version 0.99": "bash",
    "droid: git": "bash",
    "droid: logging": "bash",
    "gemini: planning": "bash write_file",
    "gemini: secrets": "write_file",
    "goose: policy": "bash",
    "iflow: file protection": "write_file",
    "kimi: a guard": "bash",
    "kimi: a notice at the end": "bash",
    "kiro: IDE 0.x guard": "bash",
    "kiro: version 1": "bash",
    "qwen: judgment": "bash write_file",
    "qwen: security": "bash",
    "vscode: by system": "bash write_file read_file",
    "vscode: without types": "bash write_file read_file",
}
"""The calls that are refused if the programs of a file refuse. The hooks of all others observe, or print what the file
says."""
FAILURE_REFUSES: Final = ("goose: policy", "iflow: file protection", "kiro: IDE 0.x guard")
"""Those whose failure refuses the call, too."""


_PROGRAMS: Final = ("guard.sh", "b.sh", "no.sh", "x.sh", ".agents/plugins/one/scripts/x.sh", ".augment/hooks/x.sh")
"""The programs that the files name."""


def write_project(project: Path, place: str, content: object, log: Path) -> None:
    """The hook file, and its programs: each notes its event, and ends with the status in a file beside the log."""
    status = Path(f"{log}.status")
    status.write_text("0")
    script = (
        f"#!/bin/sh\njq -r '.hook_event_name // .agent_action_name // .hookName' >>'{log}'\nstatus=$(cat '{status}')\n"
    )
    note = f"open({str(log)!r}, 'a').write(sys.stdin.read())"
    code = f"import sys\n{note}\nstatus = int(open({str(status)!r}).read())\nif status: print('no', file=sys.stderr)\n"
    for program in ("guard.py", "x.py"):
        (project / program).write_text(f"{code}sys.exit(status)\n")
    for program in _PROGRAMS:
        (project / program).parent.mkdir(parents=True, exist_ok=True)
        (project / program).write_text(f"{script}[ $status = 0 ] || echo no >&2\nexit $status\n")
        (project / program).chmod(0o700)
    if isinstance(content, tuple):  # a folder of programs, whose exit status says nothing
        cancels = '{"cancel":true,"errorMessage":"no"}'
        for name in content:
            (project / place / name).write_text(f"{script}[ $status != 2 ] || echo '{cancels}'\nexit $((status % 2))\n")
            (project / place / name).chmod(0o700)
        return
    text = content if isinstance(content, str) else json.dumps(content)
    moved = text.replace("https://audit.example", "http://localhost:1").replace("/etc/augment", f"{project}/.augment")
    (project / place).write_text(moved)


@pytest.mark.parametrize("name", FILES)
async def test_the_hooks_of_a_published_file_run(scene: Scene, name: str) -> None:
    place, content = FILES[name]
    project, log, status = scene.folder / "project", scene.folder / "ran", scene.folder / "ran.status"
    file = project / place
    (file if isinstance(content, tuple) else file.parent).mkdir(parents=True)
    write_project(project, place, content, log)
    agent = scene.run("--name=s", f"--hooks={file}", f"--project={project}")
    await agent.initialize()
    calls = {"bash": {"command": "ls"}, "write_file": {"path": "a", "content": "b"}, "read_file": {"path": "a"}}

    async def refused() -> str:
        answers = {tool: await agent.ask(call(tool, tool, **arguments)) for tool, arguments in calls.items()}
        assert all("no" in text_of(one) or "ran" in text_of(one) for one in answers.values())
        return " ".join(tool for tool, one in answers.items() if not text_of(one).startswith(f"ran {tool}"))

    assert await refused() == ""
    assert log.exists() is (name not in QUIET)
    assert name in QUIET or not re.search("exited with|could not", agent.standard_error())
    status.write_text("2")
    assert await refused() == REFUSED.get(name, "")
    status.write_text("1")
    assert await refused() == (REFUSED[name] if name in FAILURE_REFUSES else "")
    assert name not in REFUSED or name in FAILURE_REFUSES or "exited with status 1" in agent.standard_error()
    agent.end_input()
    await agent.ended()
    assert log.exists() is (name not in QUIET or name in AT_THE_END)
    assert (name == "qwen: audit") is ("nothing listens there" in agent.standard_error())
