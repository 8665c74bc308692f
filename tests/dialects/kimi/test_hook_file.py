"""Kimi Code's config.toml: the shapes of its page's examples, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.kimi import DIALECT as KIMI
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

GUARD: Final = '[[hooks]]\nevent = "PreToolUse"\nmatcher = "Bash|Shell"\ncommand = "./guard.sh"\ntimeout = 5\n'
FORMAT: Final = '[[hooks]]\nevent = "PostToolUse"\nmatcher = "Write"\ncommand = "./guard.sh"\n'
PUBLISHED: Final = {
    "a guard": (f'default_model = "k"\n{GUARD}', 1),
    "a formatter": (f"{FORMAT}\n[providers.kimi]\ntype = 'kimi'\n", 1),
    "a notice at the end": (f'{GUARD}{FORMAT}[[hooks]]\nevent = "Stop"\ncommand = "notify-send done"\n', 2),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    text, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".kimi-code" / "config.toml", text) == "kimi"
    found = read("kimi", text)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert len(found.remarks) == text.count('"Stop"')


def test_an_entry_is_a_hook() -> None:
    (hook,) = read("kimi", GUARD).hooks
    assert (hook.event, hook.shell, hook.timeout, hook.cwd) == (Event.PRE_TOOL_USE, "./guard.sh", 5, "/repo")
    assert hook.matches("Bashful")  # matchers are searched for
    assert not hook.matches("Read")
    assert read("kimi", FORMAT).hooks[0].timeout == KIMI.default_timeout == 30


def test_another_key_is_an_error_because_kimi_code_refuses_the_file() -> None:
    with pytest.raises(ConfigError, match=r"hooks\[0\].fail_mode is not a key of a hook, and Kimi Code refuses"):
        read("kimi", f'{GUARD}fail_mode = "closed"\n')


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('[[hooks]]\nevent = "PreToolUze"\ncommand = "x"\n', "event must be one of"),
        ('[[hooks]]\nevent = "PreToolUse"\n', "command is missing"),
        ('[[hooks]]\nevent = "PreToolUse"\nmatcher = "("\ncommand = "x"\n', "'(' cannot be used"),
    ],
)
def test_an_entry_that_cannot_run_is_left_out_and_the_others_run(text: str, note: str) -> None:
    found = read("kimi", text + GUARD)
    assert len(found.hooks) == 1
    assert "hooks[0] is left out: " in found.notes[0]
    assert note in found.notes[0]


def test_the_events_of_newer_versions_are_told_as_ones_that_cannot_fire() -> None:
    names = ("UserPromptQueued", "TurnStarted", "TaskStarted", "SessionHeartbeat", "Interrupt")
    found = read("kimi", GUARD + "".join(f'[[hooks]]\nevent = "{name}"\ncommand = "x"\n' for name in names))
    assert len(found.hooks) == 1
    assert found.notes == ()
    assert [name in remark for name, remark in zip(names, found.remarks, strict=True)] == [True] * len(names)


def test_a_file_of_another_system_is_not_kimis(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is in a folder of kimi"):
        recognised(tmp_path / ".kimi-code" / "config.toml", '[hooks]\nSessionStart = ["./x.sh"]\n')


@pytest.mark.parametrize(
    ("names", "tool", "arguments", "seen"),
    [
        (("Bash", "Shell"), "bash", {"command": "ls"}, {"command": "ls"}),
        (("Read", "ReadFile"), "read_file", {"path": "a"}, {"path": "a"}),
        (("Write", "WriteFile"), "write_file", {"path": "a", "content": "b"}, {"path": "a", "content": "b"}),
    ],
)
def test_a_hook_for_an_own_tool_of_kimi_code_or_kimi_cli_runs_for_a_servers(
    names: tuple[str, ...], tool: str, arguments: dict[str, str], seen: dict[str, str]
) -> None:
    for name in names:
        hooks = read("kimi", f'[[hooks]]\nevent = "PreToolUse"\nmatcher = "^{name}$"\ncommand = "x"\n')
        (found,) = inputs(hooks, tool, arguments)
        assert (found.tool_name, found.document["tool_input"]) == (name, seen)


def test_a_list_without_an_event_of_kimi_code_is_not_recognised_as_its_file(tmp_path: Path) -> None:
    entry = {"event": "on_compile_error", "action": "run_skill", "skill": "fixer"}
    with pytest.raises(ConfigError, match="no dialect recognises this file") as raised:
        recognised(tmp_path / "hooks.json", {"hooks": [entry]})
    assert "kimi=" not in raised.value.hint
