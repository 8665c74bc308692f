"""Crush's crush.json: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.errors import ConfigError
from tests.dialects.calls import inputs, read, recognised

PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the README's examples, with comments; a rewriter; an own configuration with a hook for everything
    "first hook": ('{ // hooks\n "hooks": {"PreToolUse": [{"matcher": "^bash$", "command": "./no.sh",},],},}', 1),
    "named": ({"hooks": {"PreToolUse": [{"name": "n", "matcher": "bash", "command": "./x.sh", "timeout": 10}]}}, 1),
    "log all": ({"$schema": "https://charm.land/crush.json", "hooks": {"PRETOOLUSE": [{"command": "./x.sh"}]}}, 1),
    "of version 0.99": (
        {"hooks": {"PreToolUse": [{"matcher": "^bash$", "command": "./x.sh"}], "TurnEnd": [{"command": "./bell.sh"}]}},
        1,
    ),
    "compaction": ({"hooks": {"PRECOMPACT": [{"matcher": "compact", "command": "./x.sh"}]}}, 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_without_a_warning(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / "crush.json", content) == "crush"
    found = read("crush", content, "/repo/crush.json")
    assert (len(found.hooks), found.notes) == (hooks, ())


def test_a_file_that_could_be_code_assists_must_be_named(tmp_path: Path) -> None:
    content = {"hooks": {"PreToolUse": [{"command": "./x.sh"}]}}
    assert recognised(tmp_path / "hooks.json", content) == "code-assist"
    assert len(read("crush", content).hooks) == 1


def test_a_file_that_could_be_docker_agents_is_an_error_that_names_both(tmp_path: Path) -> None:
    content = {"hooks": {"pre_tool_use": [{"matcher": "^bash$", "command": "./x.sh"}]}}
    with pytest.raises(ConfigError, match="could be a hook file of crush or docker-agent"):
        recognised(tmp_path / "hooks.json", content)
    assert recognised(tmp_path / ".config" / "crush" / "crush.json", content) == "crush"


@pytest.mark.parametrize("name", ["crush.json", ".crush.json", ".config/crush/crush.json"])
@pytest.mark.parametrize("event", ["PreToolUse", "pre_tool_use"])
def test_a_file_with_crushs_name_is_crushs(event: str, name: str, tmp_path: Path) -> None:
    assert recognised(tmp_path / name, {"hooks": {event: [{"command": "./x.sh"}]}}) == "crush"


def test_a_file_with_crushs_name_and_the_format_of_another_system_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has the format of claude, but has the name of a file of crush"):
        recognised(
            tmp_path / "crush.json", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}
        )


def test_an_entry_is_a_hook() -> None:
    (hook,) = read("crush", PUBLISHED["named"][0]).hooks
    assert (hook.label, hook.timeout, hook.shell, hook.cwd) == ("n", 10.0, "./x.sh", "/repo")
    assert hook.matches("mcp_x_bash")
    assert not hook.matches("edit")


def test_an_event_in_two_spellings_is_an_error() -> None:
    with pytest.raises(ConfigError, match="has one event in two spellings"):
        read("crush", {"hooks": {"PreToolUse": [], "pre_tool_use": []}})


@pytest.mark.parametrize("matcher", ["*", "(?!x)"])
def test_a_matcher_that_crush_cannot_use_leaves_its_entry_out(matcher: str) -> None:
    found = read("crush", {"hooks": {"PreToolUse": [{"matcher": matcher, "command": "x"}]}})
    assert (found.hooks, len(found.notes)) == ((), 1)


def test_a_command_that_is_too_long_for_a_variable_is_cut_there_and_said_to_be() -> None:
    from hookproxy.dialects.crush import DIALECT as CRUSH
    from hookproxy.model.hooks import Event, EventContext
    from tests.dialects.calls import SESSION

    (hook,) = read("crush", {"hooks": {"PreToolUse": [{"command": "x"}]}}).hooks
    arguments = b'{"command":"%b"}' % (b"x" * 200_000)
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "t", "mcp_files_t", "c", arguments)
    document = CRUSH.write_input(hook, context)
    assert document.cut
    assert len(document.stdin) > 200_000
    assert (
        inputs(read("crush", {"hooks": {"PreToolUse": [{"command": "x"}]}}), "t", {"command": 1})[0].env["CRUSH"] == "1"
    )


@pytest.mark.parametrize("matcher", ["a(?i)b", r"^\pL+$", "(?U)x+"])
def test_a_matcher_that_only_crush_can_read_runs_its_hook_for_every_tool(matcher: str) -> None:
    found = read("crush", {"hooks": {"PreToolUse": [{"matcher": matcher, "command": "x"}]}})
    assert found.hooks[0].matches("anything")
    assert "cannot be read here, so the hook runs for every tool" in found.notes[0]


def test_events_after_a_call_get_a_note_and_a_file_with_nothing_else_is_refused(tmp_path: Path) -> None:
    after = {"post_tool_use": [{"command": "./x.sh"}]}
    found = read("crush", {"hooks": {"PreToolUse": [{"command": "./x.sh"}], **after}})
    assert (len(found.hooks), len(found.notes)) == (1, 1)
    assert "Crush has it since 0.99" in found.notes[0]
    with pytest.raises(ConfigError):
        recognised(tmp_path / "crush.json", {"hooks": after})


def test_flat_entries_after_a_call_in_another_file_are_not_taken_for_crushs(tmp_path: Path) -> None:
    entries = [{"matcher": "bash", "command": "./x.sh"}]
    content = {"hooks": {"PreToolUse": entries, "PostToolUse": entries}}
    with pytest.raises(ConfigError, match="no dialect recognises this file"):
        recognised(tmp_path / "hooks.json", content)
    assert recognised(tmp_path / "crush.json", content) == "crush"
