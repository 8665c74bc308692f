"""Mistral Vibe's hook files: names, what a match is, strict entries, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.dialect import HookList
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

GUARD: Final = '[[hooks]]\nname = "a"\ntype = "pre_tool"\ncommand = "./guard.sh"\n'


def entry(more: str) -> HookList:
    return read("vibe", GUARD + more)


@pytest.mark.parametrize("match", ["", "*", "bash", "BASH", "b*", "re:bash", "re:B.*", "re:read|bash"])
def test_a_match_is_a_pattern_or_an_expression_for_the_whole_name_in_any_case(match: str) -> None:
    assert "bash" in [one.tool_name for one in inputs(entry(f'match = "{match}"\n'), "run_command", {"command": "ls"})]


@pytest.mark.parametrize("match", ["bas", "re:bas", "bash|read", "ash*"])
def test_a_match_of_a_part_does_not_match(match: str) -> None:
    assert inputs(entry(f'match = "{match}"\n'), "run_command", {"command": "ls"}) == []


def test_an_invalid_expression_is_left_out_and_said() -> None:
    found = entry('match = "re:("\n')
    assert found.hooks == ()
    assert "hooks[0] is left out: match 're:(' cannot be used" in found.notes[0]


def test_a_second_entry_of_one_name_is_left_out_and_said() -> None:
    found = read("vibe", GUARD + GUARD.replace("guard.sh", "log.sh"))
    assert [hook.shell for hook in found.hooks] == ["./guard.sh"]
    assert "'a' is used twice" in found.notes[0]


@pytest.mark.parametrize(("kind", "closed", "withholds"), [("pre_tool", True, False), ("post_tool", False, True)])
def test_a_strict_entry_refuses_or_withholds_when_it_fails(kind: str, closed: bool, withholds: bool) -> None:
    found = read("vibe", GUARD.replace("pre_tool", kind) + "strict = true\n")
    assert {(hook.fails_closed, hook.withholds) for hook in found.hooks} == {(closed, withholds)}


def test_an_entry_that_is_not_strict_fails_open() -> None:
    (hook,) = entry("timeout = 30\n").hooks
    assert (hook.event, hook.fails_closed, hook.timeout) == (Event.PRE_TOOL_USE, False, 30)


def test_a_hook_after_a_turn_cannot_fire_and_is_said() -> None:
    found = read("vibe", GUARD + GUARD.replace("pre_tool", "post_agent").replace('"a"', '"b"'))
    assert len(found.hooks) == 1
    assert "(post_agent) cannot fire" in found.remarks[0]


def test_a_file_is_recognised_by_its_types(tmp_path: Path) -> None:
    assert recognised(tmp_path / ".vibe/hooks.toml", GUARD) == "vibe"
    assert recognised(tmp_path / "guards.toml", GUARD) == "vibe"
