"""The command line as a user sees it: the real program in its own process, mostly a forked one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from hookproxy import __version__
from hookproxy.cli import main
from hookproxy.model.errors import UserError
from hookproxy.processes import platforms
from tests.support import preloaded_program

pytestmark = pytest.mark.slow


def hookproxy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return preloaded_program.run(arguments, Path.cwd())


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that `hookproxy run` runs instead of the real one, to try what a verb may do."""
    module = tmp_path / "a_verb.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(main.VERBS, "run", "a_verb")
    monkeypatch.delitem(sys.modules, "a_verb", raising=False)
    return module


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_goes_to_standard_output_and_names_every_verb(words: list[str]) -> None:
    ended = hookproxy(*words)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(f"\n  {verb} " in ended.stdout for verb in main.VERBS)


@pytest.mark.parametrize(
    "words", [[verb] for verb in main.VERBS] + [["audit", "show"], ["audit", "stats"], ["token", "new"]]
)
def test_help_with_a_verb_prints_what_the_verb_prints_with_the_option_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main.main([*words, "--help"])
    wanted = capsys.readouterr().out
    assert wanted.startswith(f"usage: hookproxy {' '.join(words)}")
    more = [[*words, "help"]] if words in (["audit"], ["token"], ["wrap"], ["check"]) else []
    for spelling in (["help", *words], ["--help", *words], ["help", *words, "--help"], *more):
        assert main.main(spelling) == 0
        assert capsys.readouterr().out == wanted


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_that_of_the_package(option: str) -> None:
    ended = hookproxy(option)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"hookproxy {__version__}\n", "")


def test_the_installed_command_is_the_module() -> None:
    command = Path(sys.executable).with_name("hookproxy")
    if not command.exists():
        pytest.skip("hookproxy is not installed beside this interpreter")
    ended = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30, check=False)
    assert ended.stdout == f"hookproxy {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["stats"], "there is no verb 'stats'", "did you mean 'audit stats'?"),
        (["verify"], "there is no verb 'verify'", "did you mean 'audit verify'?"),
        (["log"], "there is no verb 'log'", "did you mean 'audit'?"),
        (["doctor"], "there is no verb 'doctor'", "did you mean 'check'?"),
        (["tset"], "there is no verb 'tset'", "did you mean 'test'?"),
        (["rnu"], "there is no verb 'rnu'", "did you mean 'run'?"),
        (["npx", "server"], "there is no verb 'npx'", "hookproxy run -- npx"),
        (["/bin/sh", "-c"], "there is no verb '/bin/sh'", "hookproxy run -- /bin/sh …"),
        (["init", "gaurd"], "argument NAME: there is no 'gaurd'", "did you mean 'guard'?"),
        (["init", "zzz"], "argument NAME: there is no 'zzz'", "one of guard, audit, rewrite, lint"),
        (["top", "--decision", "refuse"], "argument --decision: there is no 'refuse'", "did you mean 'refused'?"),
        (["try", 't {"a": 1}'], "TOOL and ARGUMENTS are in one word", """hookproxy try t '{"a": 1}'"""),
        (["try", "t", "{command:", "git push}"], "the shell has divided ARGUMENTS into several words", "single quotes"),
        (["try", '{"a": 1}'], "no tool is named before ARGUMENTS", """hookproxy try TOOL '{"a": 1}'"""),
        (["frobnicate", "x"], "there is no verb 'frobnicate'", "hookproxy --help lists the verbs"),
        (["hepl", "wrap"], "there is no verb 'hepl'", "did you mean 'help'?"),
        (["help", "warp"], "there is no verb 'warp'", "did you mean 'wrap'?"),
        (["help", "stats"], "there is no verb 'stats'", "did you mean 'audit stats'?"),
        (["help", "audit", "shw"], "there is no verb 'audit shw'", "did you mean 'show'?"),
        (["help", "wrap", "zed"], "there is no verb 'wrap zed'", "hookproxy help wrap"),
        (["--config", "x.toml", "run"], "'--config' is before the verb", "come after the verb"),
        (["--hooks", "x"], "'--hooks' is before the verb", "options come after the verb: "),
        (["--verison"], "there is no option '--verison'", "did you mean '--version'?"),
        (["version"], "there is no verb 'version'", "did you mean '--version'?"),
        (["check", "--confg", "x"], "there is no option --confg", "did you mean '--config'?"),
        (["check", "--hoks=x"], "there is no option --hoks", "did you mean '--hooks'?"),
        (["check", "--config"], "argument --config: expected one argument", "usage: hookproxy check"),
        (["check", "--config", ""], "argument --config: is empty", "usage: hookproxy check"),
        (["check", "/gone"], "/gone: there is no such file", "--hooks /gone names it"),
        (["run", "--confg", "x", "--", "true"], "there is no option --confg", "did you mean '--config'?"),
        (["run", "--name", "", "--", "true"], "argument --name: is empty", "hookproxy run [--config FILE]"),
        (["run", "--audit", "", "--", "true"], "argument --audit: is empty", "hookproxy run [--config FILE]"),
        (["try", "sh", "--name="], "argument --name: is empty", "usage: hookproxy try"),
        (["trust", "--list", "x"], "--list does not take a file", "hookproxy trust --dry-run x"),
        (["trust", ""], "argument [DIALECT=]FILE: is empty", "usage: hookproxy trust"),
        (["trust", "cluade=x"], "hookproxy trust cluade=x: there is no dialect 'cluade'", "did you mean 'claude'?"),
        (["trust", "/gone.json"], "/gone.json: there is no such file", "name a hookproxy.toml or a hook file"),
        (["console", "--port", "x"], "argument --port: 'x' is not a whole number", "usage: hookproxy console"),
        (["wrap", ""], "argument AGENT|FILE: is empty", "hookproxy wrap [AGENT|FILE]"),
        (["unwrap", ""], "argument AGENT|FILE: is empty", "hookproxy unwrap [AGENT|FILE]"),
        (["replay", ""], "argument AUDIT: is empty", "hookproxy replay AUDIT"),
        (["replay", "x", "--since", ""], "argument --since: is empty", "usage: hookproxy replay"),
        (["replay", "x", "--tool", ""], "argument --tool: is empty", "usage: hookproxy replay"),
        (["audit", ""], "argument FILE: is empty", "usage: hookproxy audit"),
        (["audit", "stat"], "stat: there is no such file", "did you mean `hookproxy audit stats`?"),
        (["audit", "verfy"], "verfy: there is no such file", "did you mean `hookproxy audit verify`?"),
        (["audit", "verfy", "x"], "verfy: there is no such file", "did you mean `hookproxy audit verify`?"),
        (["audit", "x", "--since", ""], "argument --since: is empty", "usage: hookproxy audit"),
        (["audit", "x", "--decision", ""], "argument --decision: is empty", "usage: hookproxy audit"),
        (["audit", "x", "--tool", ""], "argument --tool: is empty", "usage: hookproxy audit"),
        (["audit", "x", "--session", ""], "argument --session: is empty", "usage: hookproxy audit"),
        (
            ["audit", "verify", "x", "--head", ""],
            "argument --head/--expect-head: is empty",
            "usage: hookproxy audit verify",
        ),
        (["--", "npx"], "'--' is before the verb", "come after the verb"),
    ],
)
def test_a_wrong_command_line_is_an_error_with_a_hint(arguments: list[str], message: str, hint: str) -> None:
    ended = hookproxy(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    first, second = ended.stderr.splitlines()
    assert first.startswith(f"error: {message}")
    assert second.startswith("hint: ")
    assert hint in second


def subverbs() -> list[tuple[str, str]]:
    modules = {verb: import_module(name) for verb, name in main.VERBS.items()}
    return [(verb, word) for verb in modules for word in getattr(modules[verb], "subverb_parsers", dict)()]


@pytest.mark.parametrize(("verb", "word"), subverbs())
@pytest.mark.parametrize("more", [[], ["x"]])
def test_a_misspelled_subverb_gets_a_suggestion(
    verb: str, word: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([verb, f"{word}{word[-1]}", *more]) == 2
    assert re.search(f"hint: did you mean ['`](hookproxy {verb} )?{word}['`]", capsys.readouterr().err)


@pytest.mark.parametrize(("words", "option"), [(["lock", "chek"], "--check"), (["guard", "forground"], "--foreground")])
def test_a_word_that_is_nearly_an_option_gets_a_suggestion(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == 2
    assert f"hint: did you mean '{option}'?\n" in capsys.readouterr().err


def test_it_ends_as_by_sigpipe_if_nobody_reads_the_output() -> None:
    command = [sys.executable, "-m", "hookproxy", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_a_full_disk_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "hookproxy", "--help"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        b"error: cannot write to standard output: No space left on device\n"
        b"hint: the output is incomplete: write it to a place with enough room\n"
    )


def test_closed_standard_streams_are_not_an_error_of_the_program() -> None:
    script = f"{sys.executable} -m hookproxy --help >&-; test $? = 0 && {sys.executable} -m hookproxy rnu 2>&-"
    assert subprocess.run(["sh", "-c", script], timeout=30, check=False).returncode == 2


@pytest.mark.parametrize(
    ("begun", "imported"),
    [
        (
            "hookproxy.cli.main",
            ["gc", "hookproxy.cli.late_tls", "hookproxy.processes", "hookproxy.processes.platforms"],
        ),
        (
            "hookproxy.cli.run",
            [
                "__future__",
                "errno",
                "hookproxy.cli.late_tls",
                "hookproxy.model",
                "hookproxy.model.errors",
                "hookproxy.processes",
                "hookproxy.processes.guardian",
                "hookproxy.processes.platforms",
                "hookproxy.processes.process",
            ],
        ),
    ],
)
def test_the_start_imports_nothing_that_would_delay_the_server(begun: str, imported: list[str]) -> None:
    script = f"import os, sys; old = set(sys.modules); import {begun}; print(*set(sys.modules) - old)"
    command = [sys.executable, "-S", "-c", script]  # -S: what .pth files of other packages import is not ours
    folder = Path(main.__file__).parents[2]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    assert set(ended.stdout.split()) == {"hookproxy", "hookproxy.cli", "hookproxy.cli.common", begun, *imported}


def test_a_verb_gets_its_arguments_and_returns_the_status(verb: Path) -> None:
    verb.write_text("def main(arguments): return len(arguments)")
    assert main.main(["run", "--name", "x", "--", "y"]) == 4


def test_an_error_of_the_user_is_two_lines_and_its_status(verb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb.write_text(
        "from hookproxy.model.errors import UserError\n"
        "def main(arguments): raise UserError('no such command: x', 'is it in PATH?', 127)\n"
    )
    assert main.main(["run"]) == 127
    assert capsys.readouterr() == ("", "error: no such command: x\nhint: is it in PATH?\n")


def test_an_error_of_the_user_is_found_in_exception_groups(verb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb.write_text(
        "from hookproxy.model.errors import UserError\n"
        "def main(arguments):\n"
        "    raise ExceptionGroup('tasks', [ExceptionGroup('tasks', [UserError('broken', 'mend it')])])\n"
    )
    assert main.main(["run"]) == UserError("", "").status
    assert capsys.readouterr().err == "error: broken\nhint: mend it\n"


@pytest.mark.parametrize(
    "statement", ["raise KeyboardInterrupt", "raise BaseExceptionGroup('', [KeyboardInterrupt()])"]
)
def test_an_interrupt_prints_nothing_and_ends_as_by_sigint(
    verb: Path, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb.write_text(f"def main(arguments): {statement}")
    assert main.main(["run"]) == 130
    assert capsys.readouterr() == ("", "")


def test_any_other_error_is_reported_as_a_defect(verb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb.write_text("def main(arguments): return 1 // 0")
    assert main.main(["run"]) == 3
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "error: integer division or modulo by zero (a defect of hookproxy)"
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1].startswith("ZeroDivisionError")


def test_a_resource_shortage_is_not_reported_as_a_defect(verb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb.write_text(
        "import errno, os\ndef main(arguments): raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), 'x')"
    )
    assert main.main(["run"]) == 2
    assert capsys.readouterr().err == (
        "error: the system is short of resources: Too many open files\n"
        f"hint: ulimit -n, the limit of open files, is {os.sysconf('SC_OPEN_MAX')}: raise it\n"
    )


def test_an_exit_status_of_argparse_is_kept(verb: Path) -> None:
    verb.write_text("import argparse\ndef main(arguments): argparse.ArgumentParser().parse_args(arguments)")
    with pytest.raises(SystemExit) as ended:
        main.main(["run", "--nonsense"])
    assert ended.value.code == 2


@pytest.mark.parametrize("platform", main.WINDOWS)
def test_on_windows_one_sentence_says_where_it_runs(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert main.main(["run", "--", "server"], platform) == 2
    finally:
        platforms.choose(sys.platform)
    printed = capsys.readouterr()
    assert printed.err == (
        "error: hookproxy runs on Linux and macOS, and not on Windows itself\n"
        "hint: run it, its servers and its hooks inside WSL: wsl --install\n"
    )
    assert printed.out == ""


@pytest.mark.parametrize(
    ("verb", "not_imported"),
    [
        ("check", {"asyncio", "anyio", "ssl", "pydantic", "subprocess", "difflib"}),
        ("hook", {"asyncio", "anyio", "msgspec", "shlex", "typing_extensions"}),
        ("run", {"argparse", "asyncio", "anyio", "msgspec", "typing", "re", "enum"}),
    ],
)
def test_a_verb_imports_at_its_start_nothing_that_it_may_not_need(verb: str, not_imported: set[str]) -> None:
    script = f"import sys, hookproxy.cli.{verb}; print(*sys.modules)"
    folder = Path(main.__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not_imported.isdisjoint(ended.stdout.split())
