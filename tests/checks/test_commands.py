"""Commands that cannot start are findings, and those that may start are not. The folder and PATH are real."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from hookproxy.checks.commands import first_command, problems
from hookproxy.checks.report import ConfiguredHook
from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.settings import Settings

LOGIN: Final = "a login shell: it starts slowly, and what profile files print gets into the hook's output"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with scripts of all kinds, and a PATH of one program in `bin`."""
    scripts = {
        "good.sh": "#!/bin/sh\n",
        "bare.sh": "exit 0\n",  # a shell runs it
        "some where/good.sh": "#!/bin/sh\n",
        "bin/tool": "#!/usr/bin/env tool\n",
        "bin/python3": "",
        "bin/bash": "",
        "orphan.sh": "#!/no/such/interpreter -x\n",
        "windows.sh": "#!/bin/sh\r\necho\r\n",
        "lost.py": "#!/usr/bin/env no-such-python\n",
        "login.sh": "#!/bin/bash -l\n",
    }
    for name, text in scripts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o755)
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "plain.py").chmod(0o644)
    (tmp_path / "index.js").touch()
    return tmp_path


def found_problems(project: Path, shell: str = "", argv: tuple[str, ...] = (), **variables: str) -> list[str]:
    """The problems of a command, with paths relative to the project."""
    spec = HookSpec(
        dialect="claude",
        source="hooks.json: x",
        event=Event.PRE_TOOL_USE,
        label="x",
        shell=shell,
        argv=argv,
        cwd=str(project),
        env=(("CLAUDE_PROJECT_DIR", str(project)), *variables.items()),
    )
    environ = {"PATH": str(project / "bin"), "HOME": str(project), "UNSURE": "/nowhere"}
    hook = ConfiguredHook(
        spec, Group(DIALECTS["claude"], "hooks.json", (spec,), DIALECTS["claude"].tool_names), Settings(), environ
    )
    return [text.replace(f"{project}/", "") for text in problems(hook)]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("./gone.sh", "there is no file gone.sh"),
        ("./gone.sh --strict | tool", "there is no file gone.sh"),
        ('"$CLAUDE_PROJECT_DIR"/hooks/gone.sh', "there is no file hooks/gone.sh"),
        ("'some where/gone.sh'", "there is no file some where/gone.sh"),
        ("~/gone.sh", "there is no file gone.sh"),
        ("A=1 exec ./gone.sh", "there is no file gone.sh"),
        ("env A=1 ./gone.sh", "there is no file gone.sh"),
        ("./plain.py", "plain.py is not executable: chmod +x makes it executable"),
        ("./bin", "bin is a folder, not a program"),
        ("gone --strict", "there is no program 'gone' in PATH"),
        ("./orphan.sh", "orphan.sh names an interpreter that does not exist: '/no/such/interpreter'"),
        ("./windows.sh", "windows.sh names an interpreter that does not exist: '/bin/sh\\r'"),
        ("./lost.py", "lost.py names an interpreter that is not in PATH: 'no-such-python'"),
        ("python3 -u gone.py", "there is no file gone.py"),
        ("python3 gone", "there is no file gone"),
        ('python3 "$CLAUDE_PROJECT_DIR/gone.py" x', "there is no file gone.py"),
        ("bash -x gone.sh", "there is no file gone.sh"),
        ("bash -c './gone.sh || exit 2'", "there is no file gone.sh"),
    ],
)
def test_a_command_that_cannot_work_is_a_finding(project: Path, command: str, text: str) -> None:
    assert found_problems(project, command) == [text]


@pytest.mark.parametrize(
    ("program", "argument"),
    [
        ("node", "gone.js"),
        ("deno", "run -A gone.ts"),
        ("uv", "run --script gone.py"),
        ("bun", "run gone.ts"),
        ("perl", "gone.pl"),
        ("sh", "gone"),
    ],
)
def test_each_interpreter_needs_its_script(project: Path, program: str, argument: str) -> None:
    (project / "bin" / program).touch(0o755)
    assert found_problems(project, f"{program} {argument}") == [f"there is no file {argument.split()[-1]}"]


@pytest.mark.parametrize(
    "argv", [("gone.sh",), ("env", "A=1", "gone.sh"), ("gone.sh", "$CLAUDE_PROJECT_DIR")], ids=" ".join
)
def test_a_missing_program_without_a_shell_is_a_finding(project: Path, argv: tuple[str, ...]) -> None:
    assert found_problems(project, argv=argv) == ["there is no program 'gone.sh' in PATH"]
    assert found_problems(project, argv=("cd", "/")) == ["there is no program 'cd' in PATH"]
    assert found_problems(project, argv=("",)) == ["there is no program '' in PATH"]


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (("./good.sh", "gone.sh"), []),
        (("python3", "plain.py"), []),
        (("./$X*.sh",), ["there is no file $X*.sh"]),
        (("bash", "-c", "./gone.sh"), ["there is no file gone.sh"]),
        (("bash", "-c"), []),
    ],
)
def test_without_a_shell_all_characters_are_literal(project: Path, argv: tuple[str, ...], texts: list[str]) -> None:
    assert found_problems(project, argv=argv) == texts


@pytest.mark.parametrize(
    "command",
    [
        "./good.sh",
        "./bare.sh",
        "good.sh() { true; }; good.sh",
        "'some where/good.sh'",
        "tool x",
        "python3 plain.py",
        "python3 bin",
        "python3 -m gone.py",
        "python3 -c 'gone.py'",
        "python3 - gone.py",
        "python3 -W gone.py plain.py",
        "python3 <gone.py",
        "bash good.sh",
        "bash tool",  # bash looks in PATH, too
        "bash -o gone.sh",
        "bash -euo pipefail gone.sh",
        "bash -c 'cd bin && ./tool'",
        "bash -c \"$UNSURE\"",
        "cd bin && ./tool",
        "if true; then ./gone.sh; fi",
        "test -f gone.sh || exit 2",
        "[ -x ./gone.sh ] && ./gone.sh",
        "[ -f x ]",
        ". ./gone.sh",
        "$UNSURE/gone.sh",
        '"${UNSURE}"/gone.sh',
        "${X:-.}/gone.sh",
        "$(pwd)/gone.sh",
        "PATH=/elsewhere gone",
        'PATH="$PATH:/elsewhere" gone',
        "env -i ./gone.sh",
        "export A=1; gone",
        "A=1; ./gone.sh",
        "(./gone.sh)",
        "{ ./gone.sh; }",
        "! ./gone.sh",
        "~other/gone.sh",
        "# nothing",
    ],
)  # fmt: skip
def test_a_command_that_is_uncertain_without_a_shell_has_no_finding(project: Path, command: str) -> None:
    assert found_problems(project, command) == []


@pytest.mark.parametrize(
    "argument",
    ["index", "./index.js", "inspect index.js", "--import ./gone.js index.js", "https://x.org/y.js", "-e gone.js", "."],
)
def test_uncertain_arguments_of_node_have_no_finding(project: Path, argument: str) -> None:
    for program in ("node", "deno", "uv"):
        (project / "bin" / program).touch(0o755)
    assert found_problems(project, f"node {argument}") == []
    assert found_problems(project, "deno run https://x.org/y.js") == []
    assert found_problems(project, "uv run python3.12") == []


@pytest.mark.parametrize(
    "command",
    [
        "deno run npm:@scope/guard",
        "deno run -A npm:@scope/guard@1.2/bin.js",
        "deno run jsr:@std/http/file-server",
        "deno run -A jsr:@std/http/file-server.ts",
        "deno run @std/http/server.ts",
        "deno task a/b.c",
        "bun run lint.fix",
        "bun run check/all",
        "bun lint.fix",
        "bun --hot gone.ts",
        "bunx @scope/guard",
        "npx @scope/guard",
        "npx ./gone/pkg.js",
        "uvx git+https://x.org/guard.git",
        "uvx guard.tool",
        "uv run guard.tool",
        "python -m guard.tool",
        "python3 -I -m guard.tool",
    ],
)
def test_packages_tasks_and_modules_are_not_checked_as_files(project: Path, command: str) -> None:
    for program in ("deno", "bun", "bunx", "npx", "uv", "uvx", "python"):
        (project / "bin" / program).touch(0o755)
    assert found_problems(project, command) == []


@pytest.mark.parametrize(
    "command",
    [
        "sh -lc ./gone.sh",
        "bash -l good.sh",
        "bash --login -c x",
        "bash -e -l -c x",
        "exec zsh -ilc x",
        "./shell/ksh -l",
    ],
)
def test_a_login_shell_is_a_finding_and_its_commands_are_not_checked(project: Path, command: str) -> None:
    (project / "shell").mkdir()
    for program in ("shell/ksh", "bin/sh", "bin/zsh"):
        (project / program).touch(0o755)
    assert found_problems(project, command) == [f"it starts {LOGIN}"]


def test_a_script_that_starts_a_login_shell_is_a_finding(project: Path) -> None:
    assert found_problems(project, "./login.sh") == [f"login.sh starts {LOGIN}"]


@pytest.mark.parametrize(
    "command", ["bash good.sh -l", "bash -c 'x=-l'", "tool -l", "echo bash -lc", "python3 plain.py -l"]
)
def test_the_same_letters_elsewhere_do_not_mean_a_login_shell(project: Path, command: str) -> None:
    assert found_problems(project, command) == []


def test_a_missing_working_folder_is_the_only_finding(project: Path) -> None:
    gone = project / "gone"
    assert found_problems(gone, "./x.sh") == [f"the folder that it starts in does not exist: {gone}"]


def test_the_path_variable_of_a_hook_takes_precedence(project: Path) -> None:
    assert found_problems(project, "tool", PATH="/nowhere") == ["there is no program 'tool' in PATH"]


def test_a_pipe_is_not_opened_as_a_script(project: Path) -> None:
    os.mkfifo(project / "pipe", 0o755)
    assert found_problems(project, "./pipe") == []


def test_a_script_behind_endless_links_is_missing(project: Path) -> None:
    (project / "loop").symlink_to("loop")
    assert found_problems(project, "./loop") == ["there is no file loop"]


# --- the words of a command line ---

KNOWN = {"HOME": "/home/a", "DIR": "/p/some where", "PLAIN": "/p"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("./x.sh --y  z", ["./x.sh", "--y", "z"]),
        ("  ./x.sh\n", ["./x.sh"]),
        ('"$DIR"/x.sh', ["/p/some where/x.sh"]),
        ("\"${DIR}/x.sh\" '$DIR'", ["/p/some where/x.sh", "$DIR"]),
        ("$PLAIN/x.sh", ["/p/x.sh"]),
        ("~/x.sh", ["/home/a/x.sh"]),
        ("a\\ b \\\n c", ["a b", "c"]),
        ('"" a', ["", "a"]),
        ("A=1 ./x.sh", ["A=1", "./x.sh"]),
        ("./x.sh | ./y.sh", ["./x.sh"]),
        ("./x.sh && ./y.sh", ["./x.sh"]),
        ("./x.sh; ./y.sh", ["./x.sh"]),
        ("./x.sh\n./y.sh", ["./x.sh"]),
        ("./x.sh 2>/dev/null z", ["./x.sh"]),
        ("./x.sh # why", ["./x.sh"]),
    ],
)
def test_words_that_are_certain_are_found(line: str, words: list[str]) -> None:
    assert first_command(line, KNOWN) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$DIR/x.sh a", [None, "a"]),  # without quotes it is two words
        ("$OTHER/x.sh a", [None, "a"]),
        ('"$OTHER/x.sh" a', [None, "a"]),
        ("./*.sh a", [None, "a"]),
        ("./{a,b}.sh", [None]),
        ("[ -f x ] || y", [None, "-f", "x", None]),
        ("! ./x.sh", [None, "./x.sh"]),
        ("./x.sh $(date) b", ["./x.sh", None]),
        ("./x.sh `date` b", ["./x.sh", None]),
        ('./x.sh "$(date)" b', ["./x.sh", None]),
        ("${DIR:-.}/x.sh", [None]),
        ("./x.sh 'open", ["./x.sh", None]),
        ("./x#y", [None]),
        ("~other/x.sh", [None]),
    ],
)
def test_words_that_only_a_shell_can_expand_are_none(line: str, words: list[str | None]) -> None:
    assert first_command(line, KNOWN) == words


@pytest.mark.parametrize(
    "line", ["", "  ", "(cd x; ./y.sh)", "f() { ./x.sh; }", "f () { ./x.sh; }", "# only this", ">x"]
)
def test_a_line_without_a_simple_command_has_no_words(line: str) -> None:
    assert first_command(line, KNOWN) == []


def test_without_home_a_tilde_is_not_certain() -> None:
    assert first_command("~/x.sh", {}) == [None]
