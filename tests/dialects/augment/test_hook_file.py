"""Augment's settings files: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.augment import compile_matcher
from tests.dialects.calls import read, recognised

HOOK: Final = {"type": "command", "command": "/etc/augment/hooks/x.sh"}
PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the page's analytics and session examples, a managed file of a vendor, a lock for writes
    "analytics": (
        {"hooks": {"PreToolUse": [{"matcher": ".*", "hooks": [HOOK], "metadata": {"includeMCPMetadata": True}}]}},
        1,
    ),
    "session": ({"hooks": {"SessionStart": [{"hooks": [HOOK]}], "Stop": [{"hooks": [HOOK]}]}}, 1),
    "managed": (
        {
            "toolPermissions": [{"toolName": "view", "permission": {"type": "deny"}}],
            "hooks": {
                "PostToolUse": [{"matcher": "mcp:*", "hooks": [{**HOOK, "timeout": 10000, "args": ["one"]}]}],
                "SessionEnd": [{"hooks": [{**HOOK, "timeout": 10000}]}],
            },
        },
        3,
    ),
    "lock": (
        {"hooks": {"PreToolUse": [{"matcher": "str-replace-editor|save-file", "hooks": [{**HOOK, "timeout": 5000}]}]}},
        1,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_without_a_warning(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".augment" / "settings.json", content) == "augment"
    found = read("augment", content)
    assert (len(found.hooks), found.notes) == (hooks, ())


def test_elsewhere_the_file_is_taken_for_claudes(tmp_path: Path) -> None:
    assert recognised(tmp_path / "settings.json", PUBLISHED["lock"][0]) == "claude"


def test_a_timeout_is_in_milliseconds_and_arguments_are_words() -> None:
    one, other, _ = read("augment", PUBLISHED["managed"][0]).hooks
    assert (one.timeout, one.argv[2]) == (10.0, "/etc/augment/hooks/x.sh one")
    assert one.event is not other.event
    (lock,) = read("augment", PUBLISHED["lock"][0]).hooks
    assert (lock.timeout, lock.shell) == (5.0, HOOK["command"])


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("", ""),
        ("it's; $HOME `id` $(id) \\ x", "it's; $HOME `id` $(id) \\ x"),
        ("--in=${SET}/x", "--in=a 'b' $(id)/x"),
        ("${EMPTY:-other}", ""),
        ("${UNSET}", "${UNSET}"),
        ("${UNSET:-a \"b\" $SET `id` \\ 'c'}d", "a \"b\" $SET `id` \\ 'c'd"),
        ("\\${SET}", "${SET}"),
        ("${UNSET:-}${SET}", "a 'b' $(id)"),
        ("${not a name}", "${not a name}"),
    ],
)
def test_variables_in_an_argument_are_replaced_when_the_hook_runs(argument: str, word: str) -> None:
    entry = {"type": "command", "command": "printf '[%s]'", "args": [argument, "last"]}
    (hook,) = read("augment", {"hooks": {"SessionStart": [{"hooks": [entry]}]}}).hooks
    env = {"PATH": os.environ["PATH"], "SET": "a 'b' $(id)", "EMPTY": ""}
    assert subprocess.run(hook.argv, env=env, capture_output=True, check=True, text=True).stdout == f"[{word}][last]"


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("", "view x_files", ""),
        (".*", "view x_files", ""),
        ("launch-process", "launch-process", "view"),
        ("str-replace-editor|save-file", "save-file", "view"),
        ("mcp:*", "x_files", "view launch-process"),
        ("mcp:.*_my-server$", "x_my-server", "x_my-server2 view"),
        ("view|mcp:*", "view x_files", "save-file"),
    ],
)
def test_matchers(pattern: str, names: str, others: str) -> None:
    matches = compile_matcher(pattern)
    assert [name for name in names.split() if not matches(name)] == []
    assert [name for name in others.split() if matches(name)] == []


def test_what_cannot_be_used_is_reported() -> None:
    content = {"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [HOOK]}, {"hooks": [{**HOOK, "timeout": 5}]}]}}
    found = read("augment", content)
    assert [("cannot be used" in note, "5 ms end the hook" in note) for note in found.notes] == [
        (True, False),
        (False, True),
    ]
