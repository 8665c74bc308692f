"""Hermes' configuration: words without a shell, timeouts, what fails closed, other tables, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.registry import DIALECTS
from tests.dialects.calls import inputs, read, recognised

GUARD: Final = (
    "model: x\nhooks:\n  outbound: {url: x}\n  output_spill:\n  pre_tool_call:\n    - command: ./guard.sh --x 'a b'\n"
)


def test_a_command_is_words_and_other_tables_are_not_events() -> None:
    found = read("hermes", GUARD)
    assert [hook.argv for hook in found.hooks] == [("./guard.sh", "--x", "a b")]
    assert found.notes == ()


def test_the_home_folder_is_put_in_place_of_its_sign() -> None:
    file = HookFile("/h/.hermes/config.yaml", GUARD.replace("./", "~/"), "/h", environ={"HOME": "/h"})
    assert DIALECTS["hermes"].read_hook_file(file).hooks[0].argv[0] == "/h/guard.sh"


@pytest.mark.parametrize(
    ("more", "timeout", "closed"),
    [
        ("", 60, False),
        ("timeout: 10", 10, False),
        ("timeout: 1000", 300, False),
        ("fail_closed: true", 60, True),
        ("failClosed: true", 60, True),
    ],
)
def test_a_timeout_is_at_most_five_minutes_and_an_entry_may_fail_closed(
    more: str, timeout: float, closed: bool
) -> None:
    (hook,) = read("hermes", f"{GUARD}      {more}\n").hooks
    assert (hook.timeout, hook.fails_closed) == (timeout, closed)


@pytest.mark.parametrize(
    ("matcher", "matches"), [("terminal", True), ("' term.* '", True), ("term", False), ("'te('", False)]
)
def test_a_matcher_matches_the_whole_name(matcher: str, matches: bool) -> None:
    found = read("hermes", f"{GUARD}      matcher: {matcher}\n")
    assert bool(inputs(found, "run_command", {"command": "ls"})) is matches


@pytest.mark.parametrize("matcher", ["mcp__files__query", "mcp_files_query", "mcp_files_.*", "mcp__files__.*"])
def test_a_matcher_may_have_the_name_that_older_versions_give_to_a_server_s_tool(matcher: str) -> None:
    found = read("hermes", f"{GUARD}      matcher: {matcher}\n")
    assert [one.tool_name for one in inputs(found, "query")] == ["mcp__files__query"]


def test_a_configuration_with_hooks_is_recognised(tmp_path: Path) -> None:
    assert recognised(tmp_path / ".hermes/config.yaml", GUARD) == "hermes"
    assert recognised(tmp_path / "agent.yaml", GUARD) == "hermes"


@pytest.mark.parametrize(
    "content",
    ["model: x\nplugins: {enabled: [a]}\n", GUARD.replace("  outbound", "  hooks_auto_accept: true\n  outbound")],
)
def test_in_its_folder_other_settings_and_mistakes_are_recognised_too(content: str, tmp_path: Path) -> None:
    assert recognised(tmp_path / ".hermes/config.yaml", content) == "hermes"


def test_a_list_of_edits_is_a_patch() -> None:
    found = read("hermes", f"{GUARD}      matcher: patch\n")
    arguments = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "v", "newText": "w"}]}
    assert [one.document["tool_input"]["path"] for one in inputs(found, "edit_file", arguments)] == ["a"]
