"""Goose's hooks.json: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.dialect import HookFile, Plugin
from hookproxy.dialects.goose import DIALECT as GOOSE
from hookproxy.dialects.goose import mcp_tool_name
from hookproxy.model.hooks import Event
from tests.dialects.calls import read, recognised

HOOK: Final = {"type": "command", "command": "${PLUGIN_ROOT}/scripts/x.sh"}


def content(event: str = "PreToolUse", matcher: str | None = None, **members: object) -> dict[str, Any]:
    group: dict[str, Any] = {"hooks": [{**HOOK, **members}]}
    return {"hooks": {event: [group if matcher is None else {"matcher": matcher, **group}]}}


PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the page's examples: a logger of sessions, of tools, a policy that fails closed; and a plugin for edits
    "session logger": (content("SessionEnd"), 1),
    "tool logger": (content("PostToolUse", "developer__shell|developer__text_editor", timeout=10), 1),
    "policy": (content(matcher="developer__shell", on_failure="block"), 1),
    "edits": (content("AfterFileEdit", "\\.rs$"), 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_without_a_warning(name: str, tmp_path: Path) -> None:
    file, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".agents" / "plugins" / "one" / "hooks" / "hooks.json", file) == "goose"
    found = read("goose", file)
    assert (len(found.hooks), found.notes) == (hooks, ())


def test_elsewhere_the_file_is_taken_for_claudes(tmp_path: Path) -> None:
    assert recognised(tmp_path / "hooks.json", content()) == "claude"


def test_a_plugins_hooks_find_its_folder() -> None:
    (hook,) = read("goose", content(), "/p/one/hooks/hooks.json").hooks
    assert (hook.env, hook.timeout, hook.shell) == ((("PLUGIN_ROOT", "/p/one/hooks"),), 30.0, HOOK["command"])
    assert GOOSE.find_plugin("/p/one/hooks/hooks.json", None) == Plugin("/p/one")  # type: ignore[arg-type]  # unused
    file = HookFile("/p/one/hooks/hooks.json", '{"hooks":{"SessionStart":[{"hooks":[{"command":"x"}]}]}}', "/repo")
    file = HookFile(file.path, file.text, "/repo", plugin=Plugin("/p/one"))
    assert GOOSE.read_hook_file(file).hooks[0].env == (("PLUGIN_ROOT", "/p/one"),)


@pytest.mark.parametrize(("written", "closed"), [("block", True), ("allow", False), ("blok", True)])
def test_on_failure_says_what_a_missing_decision_means(written: str, closed: bool) -> None:
    assert read("goose", content(on_failure=written)).hooks[0].fails_closed is closed
    assert read("goose", content("PostToolUse", on_failure=written)).hooks[0].fails_closed is False


@pytest.mark.parametrize("matcher", ["*", "(?=x)", "("])
def test_a_matcher_that_goose_cannot_use_leaves_its_rule_out(matcher: str) -> None:
    found = read("goose", content(matcher=matcher))
    assert found.hooks == ()
    assert "cannot be used" in found.notes[0]


def test_a_matcher_is_not_anchored() -> None:
    (hook,) = read("goose", content(matcher="developer__shell")).hooks
    assert hook.matches("developer__shell_foo")
    assert not hook.matches("developer__write")
    assert hook.event is Event.PRE_TOOL_USE


@pytest.mark.parametrize(("server", "name"), [("fs", "fs__t"), ("My Files", "myfiles__t"), ("a.b", "a_b__t")])
def test_the_name_of_a_servers_tool(server: str, name: str) -> None:
    assert mcp_tool_name(server, "t") == name


@pytest.mark.parametrize("matcher", ["a(?i)b", r"^\pL+$", "(?U)x+"])
def test_a_matcher_that_only_goose_can_read_runs_its_hook_for_every_tool(matcher: str) -> None:
    found = read("goose", content(matcher=matcher))
    assert found.hooks[0].matches("anything")
    assert "cannot be read here, so the hook runs for every tool" in found.notes[0]
