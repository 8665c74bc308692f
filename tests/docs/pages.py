"""Plays a page as its reader would: makes the files that it shows, types its commands, and compares what they print.

`<!-- block: KIND [NAME] -->` before a block says what it is. A page is played from top to bottom in one folder. In what
is shown, `…` replaces whatever is not the same everywhere: paths, times, what is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE: Final = 60.0  # seconds for one command of a page

KINDS: Final = {
    "picture",  # drawn
    "example",  # made by scripts/docs
    "dialect",  # is played by tests/dialects/test_guide.py
    "file",  # is written to NAME
    "append",  # is added to NAME
    "run",  # commands after "$ ", which succeed, and what they print
    "fails",  # the same, but the last one fails
    "entry",  # a server's entry in an agent's file, before and after
    "calls",  # what an agent does: SERVER TOOL ARGUMENTS
}

_FENCED: Final = re.compile(
    r"(?:<!-- block: (?P<kind>\w+) ?(?P<name>\S*) -->\n)?```\w*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    kind: str
    """Empty if there is no comment before the block."""
    name: str
    text: str

    def commands(self) -> list[tuple[str, str]]:
        """Each command, and what it must print."""
        parts = re.split(r"^\$ (.*)\n", self.text, flags=re.MULTILINE)
        assert parts[0] == "", f"before the first command: {parts[0]}"
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks(text: str) -> list[Block]:
    return [Block(match["kind"] or "", match["name"] or "", match["text"]) for match in _FENCED.finditer(text)]


def play(text: str, folder: Path) -> None:
    """All of a page, or of a part of it."""
    for block in blocks(text):
        perform(block, folder)


def perform(block: Block, folder: Path) -> str:
    """Perform a block; returns what its commands print."""
    match block.kind:
        case "file" | "append":
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w" if block.kind == "file" else "a", encoding="utf-8") as file:
                file.write(block.text)
        case "run" | "fails":
            commands = block.commands()
            printed = [type_in(*each, folder) for each in commands]
            statuses = [status for status, _ in printed]
            assert not any(statuses[:-1]), printed
            assert bool(statuses[-1]) is (block.kind == "fails"), printed
            return "".join(text for _, text in printed)
        case _:  # to be looked at
            pass
    return ""


def type_in(command: str, shown: str, folder: Path) -> tuple[int, str]:
    """Run one command; returns its status and its output, which must be what is shown."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    pattern = re.escape(shown).replace("…", ".*?")
    assert re.fullmatch(pattern, ended.stdout, re.DOTALL), f"$ {command}\n{ended.stdout}"
    return ended.returncode, ended.stdout
