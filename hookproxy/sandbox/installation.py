"""Finds where the program of a server is installed: what it must be able to read, and no more.

A program is followed through its links and the interpreter that its first line names, as the kernel does. Of each of
these the folder is found that belongs to it alone: a Python environment, a Node package with its modules, a prefix
with `bin` and `lib`. Where there is no such folder, or others' files lie in it, the file alone is readable.

Law: nothing that a server can write decides what another one reads. A link in a folder that servers write is followed
only within that folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from ..model.errors import UserError
from ..processes.process import find_program
from .folders import SYSTEM, is_common, is_within, overlaps, within_any

_MOST_LINKS: Final = 40  # as in the kernel
_FIRST_LINE: Final = 256  # bytes: the kernel looks no further for the interpreter
_MOST_INTERPRETERS: Final = 5  # scripts that run scripts, as in the kernel
_INTERPRETER: Final = re.compile(
    r"python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun|tsx|ts-node|ruby|perl|php|lua|java|[a-z]*sh"
)
"""Programs whose first file in the command line is the program that counts."""

_PREFIX_SIGNS: Final = ("pyvenv.cfg", "lib", "lib64", "libexec")
"""What lies beside the `bin` of one installation."""

_PACKAGE_SIGNS: Final = ("package.json", "node_modules")
"""What lies at the head of a Node package: its modules, and whether its files are modules."""

_OPTION_VALUE: Final = re.compile(r"--?[\w.\-]+=(.+)", re.DOTALL)


class Surroundings(Struct, frozen=True):
    """What an installation must not contain."""

    homes: Sequence[str]
    """Home folders, by their real paths."""
    protected: Sequence[str]
    """Real paths of what no server may see."""
    writable: Sequence[str]
    """Real paths of the folders that servers may write."""


class Installation(Struct):
    """What a command needs."""

    command: tuple[str, ...] = ()
    """The command with absolute paths."""
    paths: list[str] = field(default_factory=list)
    """Real paths of folders and files that it reads. None is one of the system's."""
    links: dict[str, str] = field(default_factory=dict)
    """Links to folders on the way to them, each with its target."""
    folders_named: list[str] = field(default_factory=list)
    """Folders that the command line names; they are not readable because of that."""


def find_installation(
    command: Sequence[str], search_path: str | None, folder: str, surroundings: Surroundings
) -> Installation:
    """What this command needs, whose relative words start from a folder. Raises UserError if there is no program."""
    program = find_program(command[0], search_path, folder)
    if program is None:
        raise UserError(f"command not found: {command[0]}", "its administrator must install it, or give its full path")
    found = _Search(Installation(), search_path, folder, surroundings)
    path = os.path.normpath(os.path.join(folder, program))
    found.add_program(path)
    is_interpreter = bool(_INTERPRETER.fullmatch(os.path.basename(path)))
    words = [path]
    for word in command[1:]:
        option = _OPTION_VALUE.fullmatch(word)
        value = option[1] if option else word
        named = os.path.normpath(os.path.join(folder, value))
        if not value or (value.startswith("-") and not option):
            pass
        elif os.path.isdir(named) and "/" in value:
            found.installation.folders_named.append(os.path.realpath(named))
        elif os.path.isfile(named):
            if is_interpreter:
                found.add_program(named)
                is_interpreter = False
            else:
                found.add_file(named)
            word = named if not option else word
        words.append(word)
    found.installation.command = tuple(words)
    return found.installation


class _Search(Struct):
    """A search, and what it has found so far."""

    installation: Installation
    search_path: str | None
    folder: str
    surroundings: Surroundings

    def add_program(self, path: str) -> None:
        """Add the program at this path, and what runs it."""
        for _ in range(_MOST_INTERPRETERS):
            path = self._follow(path, self._root_of)
            line = _first_line(path)
            if line is None:
                return
            path, *arguments = line
            if os.path.basename(path) == "env" and (program := _after_env(arguments)):
                self._follow(path, self._root_of)
                path = find_program(program, self.search_path, self.folder) or path
            path = os.path.join(self.folder, path)

    def add_file(self, path: str) -> None:
        """Add a file that the command line names."""
        self._follow(path, lambda _folder, file: file)

    def _follow(self, path: str, root_of: Callable[[str, str], str]) -> str:
        """Add this path, and each link on the way to its real path, which is returned."""
        for _ in range(_MOST_LINKS):
            folder = self._real_folder(os.path.dirname(path))
            path = os.path.join(folder, os.path.basename(path))
            root = root_of(folder, path)
            self._check_protected(root)
            if not within_any(root, SYSTEM) and root not in self.installation.paths:
                self.installation.paths.append(root)
            if not os.path.islink(path):
                return path
            target = os.path.normpath(os.path.join(folder, os.readlink(path)))
            self._check_link(path, target)
            path = target
        raise UserError(f"too many links: {path}", "name the program itself")

    def _real_folder(self, folder: str) -> str:
        """The real path of a folder; the links on the way are noted."""
        real = os.path.realpath(folder)
        if real == os.path.normpath(folder):
            return real
        at = ""
        for name in [name for name in os.path.normpath(folder).split(os.sep) if name]:
            at = f"{at}/{name}"
            if os.path.islink(at):
                target = os.path.realpath(at)
                self._check_link(at, target)
                if not within_any(at, SYSTEM):
                    self.installation.links[at] = target
                return self._real_folder(os.path.normpath(target + folder[len(at) :]))
        return real

    def _check_protected(self, path: str) -> None:
        """Raise UserError for a file that no server may see: a script could name it as its interpreter."""
        if within_any(path, self.surroundings.protected) and not within_any(path, self.surroundings.writable):
            problem = f"the server's program leads to {path}, which no server may see"
            raise UserError(problem, "look at the program: its links and its first line name that file")

    def _check_link(self, link: str, target: str) -> None:
        for folder in self.surroundings.writable:
            if is_within(link, folder) and not is_within(os.path.realpath(target), folder):
                problem = f"{link} is a link to {target}, and lies in {folder}, which servers may write"
                raise UserError(problem, "install the program elsewhere, or name the file that the link leads to")

    def _root_of(self, folder: str, path: str) -> str:
        """The folder of the installation that a file belongs to, or the file itself."""
        for root in _roots(folder):
            home = os.path.dirname(root) in self.surroundings.homes
            own = os.path.basename(folder) == "shims" or os.path.exists(f"{root}/pyvenv.cfg")
            if home and os.path.basename(root).startswith(".") and not own:
                continue  # ~/.local, ~/.cargo: of many programs, with what they keep secret
            if not self._contains_others(root):
                return root
        return path

    def _contains_others(self, folder: str) -> bool:
        return is_common(folder, self.surroundings.homes) or any(
            overlaps(folder, path) for path in self.surroundings.protected
        )


def _roots(folder: str) -> Iterator[str]:
    """Folders that may be those of the installation, the best one first."""
    parts = folder.split(os.sep)
    if "node_modules" in parts:
        yield os.sep.join(parts[: parts.index("node_modules") + 1])
    parent = os.path.dirname(folder)
    if os.path.basename(folder) in ("bin", "sbin", "shims"):
        if os.path.basename(folder) == "shims" or any(os.path.exists(f"{parent}/{sign}") for sign in _PREFIX_SIGNS):
            yield parent
        return
    at = folder
    while at != os.path.dirname(at):
        if any(os.path.exists(f"{at}/{sign}") for sign in _PACKAGE_SIGNS):
            yield at
            break
        at = os.path.dirname(at)
    yield folder


def _first_line(path: str) -> list[str] | None:
    """The interpreter of a script, and its argument; None: the file names none."""
    try:
        with open(path, "rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError:
        return None
    if not start.startswith(b"#!"):
        return None
    words = os.fsdecode(start[2:].partition(b"\n")[0].strip()).split()
    return words if words and os.path.isabs(words[0]) else None


def _after_env(arguments: Sequence[str]) -> str:
    """The program that `env` starts."""
    return next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
