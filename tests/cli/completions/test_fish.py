"""Completion in a real fish, asked by its own command `complete`, where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def offered(folder: Path, typed: str) -> set[str]:
    """The words that fish offers for the last word of a line."""
    if shutil.which("fish") is None:
        pytest.skip("there is no fish here: its completion is NOT tested")
    for name in ("hookproxy.toml", ".claude/settings.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / ".mcp.json").write_text('{"mcpServers": {"shelly": {"command": "a"}, "x$(touch x)": {"command": "a"}}}')
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    env = {"HOME": str(folder), "PATH": path, "LC_ALL": "C.UTF-8"}
    script = "hookproxy completion fish | source; complete -C $argv[1]"
    ended = subprocess.run(
        ["fish", "--no-config", "-c", script, typed], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return {line.partition("\t")[0] for line in ended.stdout.splitlines()}


@pytest.mark.parametrize(
    ("typed", "some"),
    [
        ("hookproxy che", {"check"}),
        ("hookproxy run --conf", {"--config"}),
        ("hookproxy run --config hookp", {"hookproxy.toml"}),
        ("hookproxy run --hooks clau", {"claude="}),
        ("hookproxy run --hooks docker-agent@c", {"docker-agent@current="}),
        ("hookproxy run --hooks claude=.claude/s", {"claude=.claude/settings.json"}),
        ("hookproxy run --hooks .claude/s", {".claude/settings.json"}),
        ("hookproxy init gu", {"guard"}),
        ("hookproxy audit st", {"stats"}),
        ("hookproxy audit hookp", {"hookproxy.toml"}),
        ("hookproxy audit --fol", {"--follow"}),
        ("hookproxy audit verify --hea", {"--head"}),
        ("hookproxy audit stats hookp", {"hookproxy.toml"}),
        ("hookproxy completion f", {"fish"}),
        ("hookproxy convert x --to curs", {"cursor"}),
        ("hookproxy audit --decision asked-", {"asked-allow", "asked-deny"}),
        ("hookproxy wrap cursor --server ", {"shelly"}),
        ("hookproxy help wra", {"wrap"}),
    ],
)
def test_it_offers_known_words(tmp_path: Path, typed: str, some: set[str]) -> None:
    assert offered(tmp_path, typed) == some


@pytest.mark.parametrize(
    "typed",
    [
        "hookproxy init --conf",
        "hookproxy audit stats --fol",
        "hookproxy run -- cat --conf",
        "hookproxy nonsense --conf",
    ],
)
def test_it_offers_nothing_else(tmp_path: Path, typed: str) -> None:
    assert offered(tmp_path, typed) == set()


def test_the_servers_command_line_is_completed(tmp_path: Path) -> None:
    assert "mkfifo" in offered(tmp_path, "hookproxy run --name x -- mkfif")
    assert "hookproxy.toml" in offered(tmp_path, "hookproxy run -- cat hookp")
