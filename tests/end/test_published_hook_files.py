"""Files of the shapes that people publish, each in front of a real process."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.dialects.cascade.test_hook_file import PUBLISHED as CASCADE
from tests.dialects.codex.test_hook_file import PUBLISHED as CODEX
from tests.dialects.crush.test_hook_file import PUBLISHED as CRUSH
from tests.dialects.droid.test_hook_file import PUBLISHED as DROID
from tests.dialects.gemini.test_hook_file import PUBLISHED as GEMINI
from tests.dialects.goose.test_hook_file import PUBLISHED as GOOSE
from tests.dialects.iflow.test_hook_file import PUBLISHED as IFLOW
from tests.dialects.kimi.test_hook_file import PUBLISHED as KIMI
from tests.dialects.qwen.test_hook_file import PUBLISHED as QWEN
from tests.dialects.vscode.test_hook_file import PUBLISHED as VSCODE
from tests.end.agent import Scene, call, text_of

FILES: Final[dict[str, tuple[str, Any]]] = {
    **{f"cascade: {name}": (".windsurf/hooks.json", content) for name, (content, _) in CASCADE.items()},
    **{f"codex: {name}": (".codex/hooks.json", content) for name, (content, _) in CODEX.items()},
    **{f"crush: {name}": ("crush.json", content) for name, (content, _) in CRUSH.items()},
    **{f"droid: {name}": (f".factory/{file}", content) for name, (file, content, _) in DROID.items()},
    **{f"gemini: {name}": (".gemini/settings.json", content) for name, (content, _) in GEMINI.items()},
    **{f"goose: {name}": (".agents/plugins/one/hooks/hooks.json", content) for name, (content, _) in GOOSE.items()},
    **{f"iflow: {name}": (".iflow/settings.json", content) for name, (content, _) in IFLOW.items()},
    **{f"kimi: {name}": (".kimi-code/config.toml", text) for name, (text, _) in KIMI.items()},
    **{f"qwen: {name}": (".qwen/settings.json", content) for name, (content, _) in QWEN.items()},
    **{f"vscode: {name}": (".github/hooks/hooks.json", content) for name, (content, _) in VSCODE.items()},
}
QUIET: Final = (
    "crush: compaction",
    "droid: notifications",
    "goose: edits",
    "goose: session logger",
    "iflow: summary",
    "qwen: audit",
)
"""Those whose hooks are not about these calls, or are posted to a server on the web."""


@pytest.mark.parametrize("name", FILES)
async def test_the_hooks_of_a_published_file_run(scene: Scene, name: str) -> None:
    place, content = FILES[name]
    project = scene.folder / "project"
    file = project / place
    file.parent.mkdir(parents=True)
    file.write_text(
        content
        if isinstance(content, str)
        else json.dumps(content).replace("https://audit.example", "http://localhost:1")
    )
    log = scene.folder / "ran"
    script = f"#!/bin/sh\njq -r '.hook_event_name // .agent_action_name' >>'{log}'\n"
    for program in ("guard.py", "x.py"):
        (project / program).write_text(f"import json, sys; open({str(log)!r}, 'a').write(sys.stdin.read())")
    for program in ("guard.sh", "b.sh", "no.sh", "x.sh", ".agents/plugins/one/scripts/x.sh"):
        (project / program).parent.mkdir(parents=True, exist_ok=True)
        (project / program).write_text(script)
        (project / program).chmod(0o700)
    agent = scene.run("--name=s", f"--hooks={file}", f"--project={project}")
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "bash", command="ls"))) == "ran bash"
    assert text_of(await agent.ask(call(2, "write_file", path="a", content="b"))) == "ran write_file"
    assert text_of(await agent.ask(call(3, "read_file", path="a"))) == "ran read_file"
    assert log.exists() is (name not in QUIET)
    if name not in QUIET:
        assert "exited with" not in agent.standard_error()
        assert "could not" not in agent.standard_error()
