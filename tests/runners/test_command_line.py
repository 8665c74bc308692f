"""Which commands run without a shell, held against what a real shell does with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.hooks import Event, HookSpec
from hookproxy.processes.process import SHELL
from hookproxy.runners.command import start_candidates
from hookproxy.runners.plain_commands import plain_words

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that prints its arguments, each ended by a NUL."""
    program = tmp_path_factory.mktemp("bin") / "show"
    program.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./guard.sh", ("./guard.sh",)),
        ("  python3 -m guards.paths\t--level=2 \n", ("python3", "-m", "guards.paths", "--level=2")),
        ("uv run a@b c%d e+f g,h i:j", ("uv", "run", "a@b", "c%d", "e+f", "g,h", "i:j")),
        ("/bin/true", ("/bin/true",)),
        ("true", None),  # a builtin
        ("echo hello", None),
        ("if", None),
        (". ./profile", None),
        ("KEY=value program", None),
        ("program KEY=value", ("program", "KEY=value")),
        ("program ~/file", None),
        ("program $HOME", None),
        ("program 'a b'", None),
        ('program "a"', None),
        ("program *.py", None),
        ("program a\\ b", None),
        ("program < file", None),
        ("program; other", None),
        ("program\nother", None),
        ("program & ", None),
        ("program # comment", None),
        ("program {a,b}", None),
        ("program !", None),
        ("program é", None),  # what is a blank depends on the locale
        ("program\x0bother", None),
        ("-x", None),
        ("%1", None),
        ("", None),
        ("  ", None),
    ],
)
def test_only_commands_without_shell_syntax_are_plain(command: str, words: tuple[str, ...] | None) -> None:
    assert plain_words(command) == words


@given(words=st.lists(st.text("abzAZ09_@%+=:,./-~$*?[]{}()!#&|;<>^'\"\\ \t\n", max_size=6), max_size=4))
def test_plain_words_are_what_the_shell_makes_of_the_command(words: list[str], show: str) -> None:
    command = " ".join([show, *words])
    plain = plain_words(command)
    if plain is not None:
        printed = subprocess.run([SHELL, "-c", command], stdout=subprocess.PIPE, check=True, timeout=30).stdout
        assert ("\0".join([*plain[1:], ""])).encode() == (printed if plain[1:] else b"")


@pytest.mark.parametrize("words", ["compgen -k", "compgen -b"])
@pytest.mark.skipif("bash" not in SHELLS, reason="there is no bash")
def test_no_keyword_or_builtin_of_bash_is_plain(words: str) -> None:
    shell_words = subprocess.run(["bash", "-c", words], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    assert "case" in shell_words or "cd" in shell_words
    assert [word for word in shell_words if plain_words(f"{word} argument")] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_no_command_that_a_shell_has_without_a_path_is_plain(shell: str) -> None:
    """`type` tells what a name is to a shell that finds no programs."""
    names = {path.name for folder in ("/bin", "/usr/bin") for path in Path(folder).iterdir()}
    plain = sorted(name for name in names if plain_words(name))
    shell_argv = [str(shutil.which(shell)), *(["sh"] if shell == "busybox" else [])]
    script = 'for name do PATH=/nowhere command -v "$name"; done; :'
    done = subprocess.run(
        [*shell_argv, "-c", script, "sh", *plain],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert [line for line in done.stdout.split() if "/" not in line] == []


def spec(shell: str = "", argv: tuple[str, ...] = (), cwd: str = "") -> HookSpec:
    return HookSpec("claude", "file: key", Event.PRE_TOOL_USE, "hook", shell=shell, argv=argv, cwd=cwd)


def test_a_plain_command_is_tried_without_the_shell_first(show: str) -> None:
    env = {"PATH": os.path.dirname(show)}
    shell = (SHELL, (SHELL, "-c", "show a"))
    assert list(start_candidates(spec(shell="show a"), env)) == [(show, ("show", "a")), shell]
    assert next(start_candidates(spec(shell="./show a"), env)) == ("./show", ("./show", "a"))
    assert list(start_candidates(spec(shell="show $a"), env)) == [(SHELL, (SHELL, "-c", "show $a"))]


def test_words_of_an_argv_never_go_through_a_shell(show: str) -> None:
    env = {"PATH": os.path.dirname(show)}
    assert list(start_candidates(spec(argv=("show", "$a b")), env)) == [(show, ("show", "$a b"))]
    assert list(start_candidates(spec(argv=("no-such-program",)), env)) == []


def test_a_program_that_moved_is_found_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "tool").write_text("")
        (folder / "tool").chmod(0o755)
    env = {"PATH": f"{old}:{new}"}
    tool = spec(argv=("tool",))
    assert [program for program, _ in start_candidates(tool, env)] == [f"{old}/tool"]
    (old / "tool").unlink()
    assert [program for program, _ in start_candidates(tool, env)] == [f"{old}/tool", f"{new}/tool"]
    assert next(start_candidates(tool, env))[0] == f"{new}/tool"
