"""Completion in a real bash, at a real terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.cli.completions.terminal import Terminal, terminal

pytestmark = pytest.mark.slow

KEY_BINDINGS: Final = """bind -x '"\\C-t": printf "%s\\n" "$READLINE_LINE" >$pipe'; bind '"\\C-u": kill-whole-line'"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("bash")
    for name in ("hookproxy.toml", ".claude/settings.json", "a b.json", "deep/hooks.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / ".mcp.json").write_text('{"mcpServers": {"shelly": {"command": "a"}, "x$(touch x)": {"command": "a"}}}')
    with terminal(["bash", "--norc", "--noprofile", "-i"], folder) as person:
        person.enter(f"source <(hookproxy completion bash); {KEY_BINDINGS}; echo ready")
        yield person


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("hookproxy che", "hookproxy check "),
        ("A=1 hookproxy che", "A=1 hookproxy check "),
        ("true; hookproxy che", "true; hookproxy check "),
        ("hookproxy run --conf", "hookproxy run --config "),
        ("hookproxy run --config hookp", "hookproxy run --config hookproxy.toml "),
        ("hookproxy run --hooks clau", "hookproxy run --hooks claude="),
        ("hookproxy run --hooks docker-agent@c", "hookproxy run --hooks docker-agent@current="),
        ("hookproxy run --hooks claude=.cl", "hookproxy run --hooks claude=.claude/"),
        ("hookproxy run --hooks claude=.claude/s", "hookproxy run --hooks claude=.claude/settings.json "),
        ("hookproxy run --hooks copilot@current=dee", "hookproxy run --hooks copilot@current=deep/"),
        ("hookproxy run --hooks .claude/s", "hookproxy run --hooks .claude/settings.json "),
        ("hookproxy run --config a", r"hookproxy run --config a\ b.json "),
        ("hookproxy run --name hookp", "hookproxy run --name hookp"),
        ("hookproxy run -- mkfif", "hookproxy run -- mkfifo "),
        ("hookproxy run --name check -- cat --conf", "hookproxy run --name check -- cat --conf"),
        ("hookproxy run -- cat hookp", "hookproxy run -- cat hookproxy.toml "),
        ("hookproxy wrap curs", "hookproxy wrap cursor "),
        ("hookproxy wrap hookp", "hookproxy wrap hookproxy.toml "),
        ("hookproxy unwrap windsu", "hookproxy unwrap windsurf "),
        ("hookproxy setup zed cod", "hookproxy setup zed codex "),
        ("hookproxy init gu", "hookproxy init guard "),
        ("hookproxy init --folder dee", "hookproxy init --folder deep/"),
        ("hookproxy completion f", "hookproxy completion fish "),
        ("hookproxy audit st", "hookproxy audit stats "),
        ("hookproxy audit hookp", "hookproxy audit hookproxy.toml "),
        ("hookproxy audit --fol", "hookproxy audit --follow "),
        ("hookproxy audit stats --fol", "hookproxy audit stats --fol"),
        ("hookproxy audit verify --he", "hookproxy audit verify --he"),
        ("hookproxy audit verify --hea", "hookproxy audit verify --head "),
        ("hookproxy audit stats hookp", "hookproxy audit stats hookproxy.toml "),
        ("hookproxy nonsense --conf", "hookproxy nonsense --conf"),
        ("hookproxy convert x --to curs", "hookproxy convert x --to cursor "),
        ("hookproxy convert x --from docker-agent@", "hookproxy convert x --from docker-agent@current "),
        ("hookproxy hook --as cascad", "hookproxy hook --as cascade "),
        ("hookproxy audit --decision asked-d", "hookproxy audit --decision asked-deny "),
        ("hookproxy audit stats --decision asked-d", "hookproxy audit stats --decision asked-deny "),
        ("hookproxy top --decision ref", "hookproxy top --decision refused "),
        ("hookproxy try x --event PostToolUseF", "hookproxy try x --event PostToolUseFailure "),
        ("hookproxy check --project dee", "hookproxy check --project deep/"),
        ("hookproxy wrap cursor --server she", "hookproxy wrap cursor --server shelly "),
        ("hookproxy unwrap cursor --server she", "hookproxy unwrap cursor --server shelly "),
        ("hookproxy top --server she", "hookproxy top --server shelly "),
        ("hookproxy wrap cursor --server x", "hookproxy wrap cursor --server x"),
        ("hookproxy help wra", "hookproxy help wrap "),
        ("hookproxy words hookp", "hookproxy words hookp"),
    ],
)
def test_tab_completes_known_words_and_nothing_else(bash: Terminal, typed: str, completed: str) -> None:
    assert bash.completed(typed) == completed


def test_a_typed_command_substitution_is_not_run(bash: Terminal) -> None:
    assert bash.completed("hookproxy run --hooks $(touch x)").endswith("--hooks $(touch x)")
    assert bash.enter("echo [x]") == "[x]"  # unchanged: no file matches this pattern
