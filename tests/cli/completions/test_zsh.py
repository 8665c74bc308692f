"""Completion in a real zsh, at a real terminal, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

import pytest

from tests.cli.completions.terminal import Terminal, terminal

pytestmark = pytest.mark.slow

START: Final = (
    "autoload -Uz compinit; compinit -D -u; bindkey -e; report() { print -r -- $BUFFER >$pipe }; zle -N report; "
    "bindkey '^T' report; bindkey '^U' kill-whole-line; source <(hookproxy completion zsh); "
    "zle-line-init() { print ready >$pipe }; zle -N zle-line-init"  # keys that arrive earlier would be lost
)


@pytest.fixture(scope="module")
def zsh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh here: its completion is NOT tested")
    folder = tmp_path_factory.mktemp("zsh")
    for name in ("hookproxy.toml", ".claude/settings.json", "deep/hooks.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / ".mcp.json").write_text('{"mcpServers": {"shelly": {"command": "a"}, "x$(touch x)": {"command": "a"}}}')
    with terminal(["zsh", "-f", "-i"], folder) as person:
        person.enter(START)
        yield person


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("hookproxy che", "hookproxy check "),
        ("hookproxy run --conf", "hookproxy run --config "),
        ("hookproxy run --config hookp", "hookproxy run --config hookproxy.toml "),
        ("hookproxy run --hooks clau", "hookproxy run --hooks claude="),
        ("hookproxy run --hooks docker-agent@c", "hookproxy run --hooks docker-agent@current="),
        ("hookproxy run --hooks claude=.claude/s", "hookproxy run --hooks claude=.claude/settings.json "),
        ("hookproxy run --name hookp", "hookproxy run --name hookp"),
        ("hookproxy run --name x -- mkfif", "hookproxy run --name x -- mkfifo "),
        ("hookproxy run -- cat hookp", "hookproxy run -- cat hookproxy.toml "),
        ("hookproxy init gu", "hookproxy init guard "),
        ("hookproxy init --folder dee", "hookproxy init --folder deep/"),
        ("hookproxy audit st", "hookproxy audit stats "),
        ("hookproxy audit hookp", "hookproxy audit hookproxy.toml "),
        ("hookproxy audit --fol", "hookproxy audit --follow "),
        ("hookproxy audit stats --fol", "hookproxy audit stats --fol"),
        ("hookproxy audit verify --hea", "hookproxy audit verify --head "),
        ("hookproxy audit stats hookp", "hookproxy audit stats hookproxy.toml "),
        ("hookproxy completion f", "hookproxy completion fish "),
        ("hookproxy convert x --to curs", "hookproxy convert x --to cursor "),
        ("hookproxy audit --decision asked-d", "hookproxy audit --decision asked-deny "),
        ("hookproxy check --project dee", "hookproxy check --project deep/"),
        ("hookproxy check .claude/s", "hookproxy check .claude/settings.json "),
        ("hookproxy check claude=.claude/s", "hookproxy check claude=.claude/settings.json "),
        ("hookproxy check -- mkfif", "hookproxy check -- mkfifo "),
        ("hookproxy check x --strict -- cat hookp", "hookproxy check x --strict -- cat hookproxy.toml "),
        ("hookproxy wrap cursor --server she", "hookproxy wrap cursor --server shelly "),
        ("hookproxy wrap cursor --server x", "hookproxy wrap cursor --server x"),
        ("hookproxy help wra", "hookproxy help wrap "),
    ],
)
def test_tab_completes_known_words_and_nothing_else(zsh: Terminal, typed: str, completed: str) -> None:
    assert zsh.completed(typed) == completed
