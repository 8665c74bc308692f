"""Finds where the program of a server is installed: what it must be able to read, and no more.

A program is followed through its links and the interpreter that its first line names, as the kernel does. Of each of
these the folder is found that belongs to it alone: a Python environment, a Node package with its modules, a prefix
with `bin` and `lib`. Where there is no such folder, or others' files lie in it, the file alone is readable.

Law: nothing that a server can write decides what it, or another one, reads. A link in a folder that servers write, the
first line of a script there, and all that these lead to, may only name what is shown anyway: the system's programs,
what lies in that folder, and what the server's own table names. The rest is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from ..model.errors import UserError
from ..processes.process import find_program
from .folders import SYSTEM, SYSTEM_FILES, is_common, is_within, overlaps, within_any

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
    shown: Sequence[str] = ()
    """Real paths of what this server sees whatever its program is."""


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
    search = _Search(Installation(), search_path, folder, surroundings)
    path = os.path.normpath(os.path.join(folder, program))
    search.add_program(path)
    is_interpreter = bool(_INTERPRETER.fullmatch(os.path.basename(path)))
    words = [path]
    for word in command[1:]:
        option = _OPTION_VALUE.fullmatch(word)
        value = option[1] if option else word
        named = os.path.normpath(os.path.join(folder, value))
        if not value or (value.startswith("-") and not option):
            pass
        elif os.path.isdir(named) and "/" in value:
            search.installation.folders_named.append(os.path.realpath(named))
        elif os.path.isfile(named):
            if is_interpreter:  # which reads the file itself: the kernel does not look at its first line
                search.add_script(named)
                is_interpreter = False
            else:
                search.add_file(named)
            word = named if not option else word
        words.append(word)
    search.installation.command = tuple(words)
    return search.installation


def check_layout(shown: Iterable[str], protected: Iterable[str], own: Iterable[str]) -> None:
    """Raise UserError if something that is shown overlaps with what no server may see, but for a server's own folders.

    It is asked of what is finally shown, whoever has put that together.
    """
    places = list(protected)
    for path in shown:
        if not within_any(path, own) and (place := next((place for place in places if overlaps(path, place)), "")):
            problem = f"its sandbox would show {path}, and what no server may see is in {place}"
            raise UserError(problem, "look at its program, and at the folders of its sandbox")


class _Search(Struct):
    """A search, and what it has found so far."""

    installation: Installation
    search_path: str | None
    folder: str
    surroundings: Surroundings
    within: str = ""
    """The folder that servers may write and that the way to where we are leads through; empty: none."""

    def add_program(self, path: str) -> None:
        """Add the program at this path, and what runs it."""
        self.within = ""
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

    def add_script(self, path: str) -> None:
        """Add the script that the command line gives to its interpreter."""
        self.within = ""
        self._follow(path, self._root_of)

    def add_file(self, path: str) -> None:
        """Add a file that the command line names."""
        self.within = ""
        self._follow(path, lambda _folder, file: file)

    def _follow(self, path: str, root_of: Callable[[str, str], str]) -> str:
        """Add this path, and each link on the way to its real path, which is returned."""
        for _ in range(_MOST_LINKS):
            folder = self._real_folder(os.path.dirname(path))
            path = os.path.join(folder, os.path.basename(path))
            self._note_step(path)
            root = root_of(folder, path)
            if self.within and not within_any(root, self._allowed()):
                root = path
            self._check_protected(root)
            target = _target(path)
            if within_any(root, SYSTEM):
                pass
            elif target and root == path:  # a link is shown as one: nobody opens through it
                self.installation.links[path] = target
            elif root not in self.installation.paths:
                self.installation.paths.append(root)
            if not target:
                return path
            path = target
        raise UserError(f"too many links: {path}", "name the program itself")

    def _real_folder(self, folder: str) -> str:
        """The real path of a folder; the links on the way are noted."""
        for _ in range(_MOST_LINKS):
            folder = os.path.normpath(folder)
            parts = [at for at, character in enumerate(f"{folder}/") if character == os.sep and at]
            link, target = next(((folder[:at], target) for at in parts if (target := _target(folder[:at]))), ("", ""))
            if not link:
                return folder
            self._note_step(link)
            if not within_any(link, SYSTEM):
                self.installation.links[link] = target
            folder = target + folder[len(link) :]
        raise UserError(f"too many links: {folder}", "name the program itself")

    def _check_protected(self, path: str) -> None:
        """Raise UserError for a file that no server may see: a script could name it as its interpreter."""
        if within_any(path, self.surroundings.protected) and not within_any(path, self.surroundings.writable):
            problem = f"the server's program leads to {path}, which no server may see"
            raise UserError(problem, "look at the program: its links and its first line name that file")

    def _note_step(self, path: str) -> None:
        """Note a step on the way to a program, by its real path but for its last name.

        Raises UserError if what a server can write leads to something that it would see only because of that.
        """
        if self.within and not within_any(path, self._allowed()):
            way = f"by a link or a first line in {self.within}, which servers may write"
            root = self._root_of(os.path.dirname(path), path)
            hint = f"if it should see {root}, name that in read (--sandbox-read); else install the program elsewhere"
            raise UserError(f"the server's program leads to {path}, {way}", hint)
        if not self.within:
            self.within = next((folder for folder in self.surroundings.writable if is_within(path, folder)), "")

    def _allowed(self) -> Iterator[str]:
        yield from (*SYSTEM, *SYSTEM_FILES, *self.surroundings.shown, self.within)

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


def _target(path: str) -> str:
    """Where a link leads to; empty: this is not one."""
    try:
        return os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    except OSError:
        return ""


def _after_env(arguments: Sequence[str]) -> str:
    """The program that `env` starts."""
    return next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
