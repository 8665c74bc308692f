"""Paths in the command lines of hooks: absolute for this machine, or relative for a file to commit."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hookproxy.convert import paths
from hookproxy.model.hooks import Event, HookSpec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with some scripts."""
    for name in ("hooks/guard.sh", "guard.py", "two words/guard.sh", "README"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def spec(shell: str = "", argv: tuple[str, ...] = ()) -> HookSpec:
    return HookSpec("claude", "x", Event.PRE_TOOL_USE, "x", shell=shell, argv=argv)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hooks/guard.sh", "@/hooks/guard.sh"),
        ("./hooks/guard.sh --strict", "@/hooks/guard.sh --strict"),
        ("python3 guard.py", "python3 @/guard.py"),
        ("python3 'guard.py' | cat", "python3 @/guard.py | cat"),
        ('sh "two words/guard.sh"', "sh '@/two words/guard.sh'"),
        ("cd /; true && hooks/guard.sh; hooks/guard.sh", "cd /; true && @/hooks/guard.sh; @/hooks/guard.sh"),
        ("(hooks/guard.sh)", "(@/hooks/guard.sh)"),
        ("echo README", "echo README"),  # a text, as far as anybody can see
        ("hooks/missing.sh", "hooks/missing.sh"),
        ('"$CLAUDE_PROJECT_DIR"/hooks/guard.sh', '"$CLAUDE_PROJECT_DIR"/hooks/guard.sh'),
        ("$(pwd)/hooks/guard.sh", "$(pwd)/hooks/guard.sh"),
        ("/usr/bin/env -S hooks", "/usr/bin/env -S hooks"),
        ("x=hooks/guard.sh", "x=hooks/guard.sh"),
        ("~/hooks/guard.sh", "~/hooks/guard.sh"),
    ],
)
def test_literal_words_that_are_files_become_absolute_and_nothing_else_does(
    line: str, expected: str, folder: Path
) -> None:
    assert paths.absolute(spec(line), str(folder)) == expected.replace("@", str(folder))


def test_a_program_with_arguments_is_made_absolute_word_by_word(folder: Path) -> None:
    words = shlex.split(paths.absolute(spec(argv=("bash", "-c", "hooks/guard.sh; true", "README")), str(folder)))
    assert words == ["bash", "-c", f"{folder}/hooks/guard.sh; true", "README"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/p/hooks/guard.sh x", "./hooks/guard.sh x"),
        ("python3 '/p/guard.py'", "python3 './guard.py'"),
        ("cd /p/tools || exit 2", "cd ./tools || exit 2"),
        ("/p2/guard.sh /x/p/guard.sh ./p/guard.sh", "/p2/guard.sh /x/p/guard.sh ./p/guard.sh"),
    ],
)
def test_paths_in_the_project_become_relative_to_it(line: str, expected: str) -> None:
    assert paths.relative(line, "/p") == expected


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("/home/a/x.sh", True),
        ("sh '/home/a/x.sh'", True),
        ("/home/ab/x", False),
        ("/srv/home/a/x", False),
        ("x", False),
    ],
)
def test_a_path_in_the_home_folder_is_noticed(line: str, named: bool) -> None:
    assert paths.names_machine(line, "/home/a") is named
