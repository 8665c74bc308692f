"""Runs lines by the real bash, with programs that do nothing but say that they ran.

Each line runs in an empty folder of its own. Its PATH has stubs, launchers (which run their arguments) and links to
the programs that a caller names. A line must not name a program by an absolute path, except below `BIN`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hookproxy.shell.program_table import is_shell
from hookproxy.shell.words import GLOB, HOLE, SPLIT, Word

BIN: Final = "@BIN@"
"""In a line: the folder with its stubs."""

_END: Final = "=END="
"""The last argument that a stub notes."""
_STUB: Final = f"""#!/bin/sh
printf '%s\\0' "${{0##*/}}" "$@" {_END} >>"${{0%/*}}/../ran"
"""
_LAUNCHER: Final = '#!/bin/sh\nexec "$@"\n'
_LIMITS: Final = "ulimit -t 5 -f 100; FUNCNEST=4; export FUNCNEST"
"""Seconds of processor time, blocks of files, functions that call each other: a random line must not run away."""


_REAPER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
shell = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
signal.signal(signal.SIGALRM, lambda *_: os.kill(shell, signal.SIGKILL))
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
os.waitpid(shell, 0)
signal.setitimer(signal.ITIMER_REAL, 0)
while True:
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
    try:
        os.wait()
    except ChildProcessError:
        break
"""
"""Runs a command, and ends everything that it leaves behind, also in sessions of its own (`ssh-agent`, `coproc`)."""


class Programs(NamedTuple):
    """What a line can run."""

    stubs: Sequence[str]
    """Programs that say that they ran."""
    real: Sequence[str]
    """Programs of this machine."""
    launchers: Sequence[str] = ()
    """Programs that run the words behind them."""


def programs_run(lines: Sequence[str], folder: Path, programs: Programs, seconds: float = 60) -> list[list[list[str]]]:
    """Run the lines one after another in one process; return the argument lists of the stubs that ran, by line.

    After so many seconds, it returns what has run by then.
    """
    tools = folder / "tools"
    tools.mkdir()
    for name, text in [("=stub", _STUB), *((launcher, _LAUNCHER) for launcher in programs.launchers)]:
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    for name in programs.real:
        found = sys.executable if name == "python3" else shutil.which(name)
        (tools / name).symlink_to(found or name)
    script = [_LIMITS]
    for number, line in enumerate(lines):
        home = folder / str(number)
        (home / "bin").mkdir(parents=True)
        (home / "work").mkdir()
        for name in programs.stubs:
            (home / "bin" / name).symlink_to(tools / "=stub")
        (home / "line").write_text(line.replace(BIN, str(home / "bin")) + "\n", "utf-8", newline="")
        script.append(f"( cd {home}/work; PATH={home}/bin:{tools}; . ../line )")
    (folder / "script").write_text("\n".join(script))
    _run(["bash", str(folder / "script")], folder, seconds)
    return [_recorded(folder / str(number) / "ran") for number in range(len(lines))]


def _run(argv: Sequence[str], folder: Path, seconds: float) -> None:
    """Run it until it and all that it started have ended, or the time is over: then they are ended."""
    subprocess.run(
        [sys.executable, "-S", "-E", "-c", _REAPER, str(seconds), *argv],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"HOME": str(folder), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        cwd=folder,
        start_new_session=True,
    )


def _recorded(file: Path) -> list[list[str]]:
    if not file.exists():
        return []
    runs = file.read_bytes().decode("utf-8", "surrogateescape").split(f"{_END}\0")
    return [run.split("\0")[:-1] for run in runs if run]


def is_among(ran: Sequence[str], commands: Sequence[Sequence[Word]]) -> bool:
    """True if a command with these arguments is one of those that were read, whose holes may be anything.

    A script that a shell is told to run by its name is not read.
    """
    if any(ran[0] == word.text.rpartition("/")[2] for words in commands if is_shell(words[0].text) for word in words):
        return True
    return any(_expression(words).fullmatch("\0".join((*ran, ""))) for words in commands)


def _expression(words: Sequence[Word]) -> re.Pattern[str]:
    return re.compile("".join(_word_expression(word, at == 0) for at, word in enumerate(words)), re.DOTALL)


def _word_expression(word: Word, is_program: bool) -> str:
    text = word.text.rpartition("/")[2] if is_program else word.text
    if text.startswith("~"):
        text = HOLE
    if SPLIT in text or GLOB in text:
        return ".*" + "".join(f"{re.escape(part)}.*" for part in re.split(f"[{SPLIT}{GLOB}{HOLE}]", text))
    return "[^\0]*".join(map(re.escape, text.split(HOLE))) + "\0"
