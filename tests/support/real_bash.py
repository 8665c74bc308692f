"""Runs lines by the real bash, with programs that do nothing but say that they ran.

Each line runs in an empty folder of its own. Its PATH has stubs, launchers (which run their arguments) and links to
the programs that a caller names. A line must not name a program by an absolute path, except below `BIN`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hookproxy.shell.words import GLOB, HOLE, SPLIT, Word

BIN: Final = "@BIN@"
"""In a line: the folder with its programs."""

_STUB: Final = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" >>"${0%/*}/../ran"; printf '\\n\\0' >>"${0%/*}/../ran"
"""
_LAUNCHER: Final = '#!/bin/sh\nexec "$@"\n'
_LIMITS: Final = "ulimit -t 5 -f 100; FUNCNEST=4; export FUNCNEST"
"""Seconds of processor time, blocks of files, functions that call each other: a random line must not run away."""


def programs_run(
    lines: Sequence[str],
    folder: Path,
    stubs: Sequence[str],
    *,
    launchers: Sequence[str] = (),
    real: Sequence[str] = (),
    seconds: float = 60,
    shell: str = "bash",
) -> list[list[list[str]]]:
    """Run the lines one after another in one process; return the argument lists of the stubs that ran, by line.

    After so many seconds, it returns what has run by then.
    `launchers` are programs that run the words behind them; `real` are programs of this machine.
    """
    script = [_LIMITS]
    for number, line in enumerate(lines):
        home = folder / str(number)
        _make(home, stubs, launchers, real)
        (home / "line").write_text(line.replace(BIN, str(home / "bin")) + "\n", "utf-8", newline="")
        script.append(f"( cd {home}/work; PATH={home}/bin; . ../line )")
    (folder / "script").write_text("\n".join(script))
    _run([shell, str(folder / "script")], folder, seconds)
    return [_recorded(folder / str(number) / "ran") for number in range(len(lines))]


def _make(home: Path, stubs: Sequence[str], launchers: Sequence[str], real: Sequence[str]) -> None:
    shared = home.parent / "shared"
    if not shared.exists():
        shared.mkdir()
        for name, text in (("stub", _STUB), ("launcher", _LAUNCHER)):
            (shared / name).write_text(text)
            (shared / name).chmod(0o755)
    (home / "bin").mkdir(parents=True)
    (home / "work").mkdir()
    for name in stubs:
        (home / "bin" / name).symlink_to(shared / "stub")
    for name in launchers:
        (home / "bin" / name).symlink_to(shared / "launcher")
    for name in real:
        (home / "bin" / name).symlink_to(shutil.which(name) or name)


def _run(argv: Sequence[str], folder: Path, seconds: float) -> None:
    """Run it until it and all that it started have ended, or the time is over: then they are ended."""
    environment = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _recorded(file: Path) -> list[list[str]]:
    if not file.exists():
        return []
    runs = file.read_bytes().decode("utf-8", "surrogateescape").split("\n\0")
    return [run.split("\0")[:-1] for run in runs if run]


def is_among(ran: Sequence[str], commands: Sequence[Sequence[Word]]) -> bool:
    """True if a command with these arguments is one of those that were read, whose holes may be anything."""
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
