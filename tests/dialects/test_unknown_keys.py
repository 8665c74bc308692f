"""Keys of hook files that their system does not know: each mistake is reported, and no published file has one."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.hook_file import meant
from tests.end.test_published_hook_files import FILES
from tests.support.hook_files import HOOK_FILES

WRITTEN: Final = [name for name in HOOK_FILES if name in DIALECTS and DIALECTS[name].suffixes[0] == ".json"]


def notes_of(dialect: str, members: object) -> str:
    file = HookFile(f"/p/{dialect}.json", json.dumps(members), "/p")
    found = DIALECTS[dialect].read_hook_file(file)
    return "\n".join((*found.notes, *found.remarks))


@pytest.mark.parametrize("name", [name for name, (_, content) in FILES.items() if isinstance(content, str | dict)])
def test_no_published_file_has_a_key_that_is_reported(name: str) -> None:
    dialect, (place, content) = name.partition(":")[0], FILES[name]
    text = content if isinstance(content, str) else json.dumps(content)
    found = DIALECTS[dialect].read_hook_file(HookFile(f"/p/{place}", text, "/p"))
    assert not [note for note in (*found.notes, *found.remarks) if "is unknown" in note]


@pytest.mark.parametrize(
    "dialect", ["claude", "codex", "droid", "qwen", "vscode", "goose", "gemini", "augment", "devin"]
)
@pytest.mark.parametrize("key", ["tools", "tool_name", "matchers", "macther", "pattern"])
def test_another_name_for_the_matcher_of_a_group_is_reported(dialect: str, key: str) -> None:
    event = next(name for name in DIALECTS[dialect].events if "re" in name)
    group = {key: "Bash", "hooks": [{"type": "command", "command": "x"}]}
    assert f"{key} is unknown and ignored: did you mean 'matcher'?" in notes_of(dialect, {"hooks": {event: [group]}})


def test_any_unknown_key_of_a_group_is_reported_and_comments_are_not() -> None:
    group: dict[str, Any] = {"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}
    for key in ("description", "_note", "$comment", "//", "comment"):
        assert notes_of("claude", {"hooks": {"PreToolUse": [{**group, key: "x"}]}}) == ""
    assert "hooks.PreToolUse[0].allow is unknown" in notes_of(
        "claude", {"hooks": {"PreToolUse": [{**group, "allow": "x"}]}}
    )


@pytest.mark.parametrize(
    ("key", "known", "present", "expected"),
    [
        ("tools", ("matcher", "hooks"), ("tools", "hooks"), "did you mean 'matcher'?"),
        ("cmd", ("type", "command"), ("cmd",), "did you mean 'command'?"),
        ("timeout_ms", ("timeout",), (), "did you mean 'timeout'?"),
        ("run", ("matcher",), (), ""),
        ("bash", ("type", "command"), ("bash", "command"), ""),  # a file for two systems
        ("note", ("matcher", "command"), (), ""),
    ],
)
def test_a_key_of_another_system_means_the_one_that_says_the_same(
    key: str, known: tuple[str, ...], present: tuple[str, ...], expected: str
) -> None:
    assert meant(key, known, present) == expected
