"""Finds the files that a hook starts or names, as far as its command line and its Python imports show. Runs nothing.

What a program does, what it loads and what a shell computes cannot be determined from outside. `not_covered` describes
it, and callers must report it to people.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field

from ..model.errors import ConfigError
from ..model.hooks import HookSpec
from ..processes.process import find_program

MODULES: Final = (".py", ".pyc", ".so", ".pyd")
"""The suffixes of files that Python imports."""

ANY_NAME: Final = "*"
"""In a set of module names: every name, because a script computes what it imports."""

NO_PYCACHE: Final = "/dev/null/hookproxy"
"""Cannot exist: with it, Python neither reads nor writes compiled modules."""

_MAX_PACKAGE_FOLDERS: Final = 1000  # more than a package has; they are listed before each run of a hook
_MAX_SCRIPT_LENGTH: Final = 1024 * 1024  # bytes of a script that are searched for imports
_DYNAMIC: Final = frozenset(
    {"__import__", "importlib", "import_module", "exec", "eval", "runpy", "imp", "pkgutil", "zipimport", "__builtins__"}
)
"""Names by which Python code imports modules, or runs code, that its import statements do not show."""

_OPERATOR: Final = re.compile(r"[();<>|&]+")
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_SHELL: Final = re.compile(r"(?:ba|da|z|k|mk|a)?sh")
_INTERPRETER: Final = re.compile(r"python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun|ruby|perl|php|lua|awk|osascript|tclsh")
_PREFIX_WORDS: Final = frozenset(
    "if then else elif do while until ! { time env exec command builtin nohup nice sudo timeout".split()  # noqa: SIM905 - easier to read
)
"""Words that may come before a command: keywords of the shell, and programs that run the command after them."""

_SOURCE_COMMANDS: Final = (".", "source")
_CD_COMMANDS: Final = ("cd", "pushd")
_CODE: Final = re.compile(r"-[a-zA-Z]*[ce]|--eval|--print|-p")
_SHELL_CODE: Final = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")  # for a shell, -e is an option without a value
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]+)\)|`([^`]+)`")  # a command whose output is inserted
_FIRST_LINE_BYTES: Final = 256  # bytes: the kernel looks no further for the interpreter
_MAX_FOLDERS: Final = 16  # folders that a line may change to: each word is looked for in all of them
_WRITING_COMMANDS: Final = ("tee",)  # their arguments are files that they write
_NUMBER: Final = re.compile(r"[\d.]+[smhd]?")
_ISOLATED: Final = re.compile(r"-[a-zA-Z]*[IP][a-zA-Z]*")  # Python imports no module from the folder of its script
_MAX_DEPTH: Final = 4  # of shells that start shells


class CommandFiles(Struct):
    """The files that a command names, as absolute paths."""

    programs: list[str] = field(default_factory=list)
    """Programs and scripts that run. Those that do not exist are included, with the path that they would have."""
    named: list[str] = field(default_factory=list)
    """Other files that exist."""
    missing_programs: list[str] = field(default_factory=list)
    """Paths where PATH has no such program yet. A program that appears there would run instead."""
    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    """The folders in which Python scripts find modules first, with the names that they or Python itself import."""
    unresolved_programs: list[str] = field(default_factory=list)
    """Descriptions of programs whose path only a shell can compute. They are also in `not_covered`."""
    not_covered: list[str] = field(default_factory=list)
    """Descriptions of what else runs and cannot be found here."""

    @property
    def all(self) -> tuple[str, ...]:
        """Programs and named files, each one once."""
        return tuple(dict.fromkeys((*self.programs, *self.named)))


def program_path(word: str, cwd: str, environ: Mapping[str, str]) -> str:
    """The path of the program that `word` starts; empty if PATH has no such program."""
    path = word if "/" in word else find_program(word, environ.get("PATH"), cwd)
    return os.path.normpath(os.path.join(cwd, path)) if path else ""


def files_of_hook(spec: HookSpec, environ: Mapping[str, str]) -> CommandFiles:
    """Find the files of a hook that inherits these variables. Raises ConfigError if its scripts have too many."""
    context = _CommandContext(spec.cwd or "/", {**environ, **dict(spec.env)})
    if spec.call:
        context.module(spec.call.partition(":")[0])
    elif spec.url:
        context.files.not_covered.append(f"the service at {spec.target}")
    elif spec.expression or spec.policy:
        pass  # it was read with the configuration, and nothing is read again
    elif spec.shell:
        context.line(spec.shell, 0)
    elif not spec.argv:
        context.files.not_covered.append(spec.target)
    else:
        context.command(list(spec.argv), 0)
    return context.files


def files_of_command(words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> CommandFiles:
    """Find the files of a program with its arguments. Raises ConfigError as `files_of_hook`."""
    context = _CommandContext(cwd, environ)
    context.command(list(words), 0)
    return context.files


class _CommandContext:
    """Where a command starts, and the files found so far."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        self.files = CommandFiles()
        self._cwd = cwd
        self._folders = [cwd]  # the current folder, and folders that the line may change to
        self._environ = dict(environ)

    def module(self, name: str) -> None:
        """Add the module of a Python function, and the packages that contain it."""
        parts = name.split(".")
        folder = self._cwd
        for part in parts:
            self._add_module(folder, part)
            folder = os.path.join(folder, part)
            self._add_module(folder, "__init__")
        for path in list(self.files.programs):
            self._add_imports(path, self._cwd)
        self.files.not_covered.append(f"what {name} imports")

    def _add_module(self, folder: str, name: str) -> None:
        """Add all files that Python may import for this module: a compiled one takes precedence over a .py file."""
        try:
            files = sorted(os.listdir(folder))
        except OSError:
            return
        found = [file for file in files if file.partition(".")[0] == name and file.endswith(MODULES)]
        self.files.programs += [os.path.normpath(os.path.join(folder, file)) for file in found]

    def line(self, line: str, depth: int) -> None:
        """Add the files of a command line for a shell."""
        for words in _commands(line):
            self.command([self._expanded(word) for word in words], depth)
            for inner in (found[1] or found[2] for word in words for found in _SUBSTITUTION.finditer(word)):
                if depth < _MAX_DEPTH:
                    self.line(inner, depth + 1)

    def command(self, words: list[str], depth: int) -> None:
        """Add the files of one program and its arguments, and of the words before it."""
        while words and (words[0] in _PREFIX_WORDS or _ASSIGNMENT.fullmatch(words[0]) or _is_option(words[0])):
            if _ASSIGNMENT.fullmatch(words[0]):
                key, _, value = words[0].partition("=")
                self._environ[key] = value
            words = words[1:]
        if not words:
            return
        program, *rest = words
        name = os.path.basename(program)
        if program in _SOURCE_COMMANDS and rest:
            self._add_script(rest[0])
            return
        if program in _CD_COMMANDS:
            self._change_folder(rest)
            return
        self._add_program_word(program)
        if _SHELL.fullmatch(name) or _INTERPRETER.fullmatch(name):
            rest = self._script(name, rest, depth)
        if name not in _WRITING_COMMANDS:
            self._add_named(rest)

    def _change_folder(self, words: list[str]) -> None:
        """Handle `cd`: the commands after it may run in the new folder or in the old one, depending on the shell."""
        for word in [word for word in words if not _is_option(word)][:1]:
            folders = [*self._folders, *(os.path.normpath(os.path.join(folder, word)) for folder in self._folders)]
            self._folders = list(dict.fromkeys(folders))[:_MAX_FOLDERS]

    def _add_program_word(self, word: str) -> None:
        """Add the program that a word starts. A name that is not in PATH is a builtin of the shell."""
        if "/" in word or "$" in word or "`" in word:
            self._add_script(word)
            return
        path = program_path(word, self._cwd, self._environ)
        for folder in self._environ.get("PATH", os.defpath).split(os.pathsep):
            place = os.path.normpath(os.path.join(self._cwd, folder, word))
            if place == path:
                break
            self.files.missing_programs.append(place)
        if path:
            self._add_program(path)

    def _add_program(self, path: str) -> None:
        """Add a program, and the interpreter that its first line names."""
        if path in self.files.programs:
            return
        self.files.programs.append(path)
        interpreter, *words = _first_line(path).split() or [""]
        if os.path.basename(interpreter) == "env":
            self._add_program(interpreter)
            self.command([*words, path], 0)
        elif interpreter:
            self.command([interpreter, *words, path], 0)

    def _script(self, name: str, words: list[str], depth: int) -> list[str]:
        """Add the script that an interpreter runs; returns the remaining arguments."""
        for at, word in enumerate(words):
            if (_SHELL_CODE if _SHELL.fullmatch(name) else _CODE).fullmatch(word):
                code = words[at + 1 : at + 2]
                if _SHELL.fullmatch(name) and code and depth < _MAX_DEPTH:
                    self.line(code[0], depth + 1)
                else:
                    self.files.not_covered.append(f"the code after {name} {word}")
                return words[at + 2 :]
            if word == "-m":
                self.files.not_covered.append(f"the module {' '.join(words[at + 1 : at + 2])}")
                return words[at + 2 :]
            if not _is_option(word):
                self._add_script(word)
                if name.startswith("py") and not any(_ISOLATED.fullmatch(option) for option in words[:at]):
                    for folder in self._folders:
                        script = os.path.realpath(os.path.join(folder, word))
                        self._add_imports(script, os.path.dirname(script))
                return words[at + 1 :]
        return words

    def _add_imports(self, script: str, folder: str) -> None:
        """Add the modules in the folder that the script imports, directly or through each other."""
        names = self.files.imports.get(folder, sys.stdlib_module_names) | imported_names(script)
        found: set[str] = set()
        while new := set(module_files(folder, names)) - found:
            found |= new
            names = names.union(*map(imported_names, new))
        if found or os.path.isfile(script):
            self.files.imports[folder] = names
            self.files.named += sorted(found - {script})

    def _add_script(self, word: str) -> None:
        if "$" in word or "`" in word:
            self.files.unresolved_programs.append(f"{word}, which only a shell can expand")
            self.files.not_covered.append(self.files.unresolved_programs[-1])
            return
        for folder in self._folders:
            self._add_program(os.path.normpath(os.path.join(folder, word)))

    def _add_named(self, words: list[str]) -> None:
        """Add the arguments, and the values of options, that are files."""
        for part in (part for word in words for part in (word, word.partition("=")[2])):
            for folder in self._folders:
                path = os.path.normpath(os.path.join(folder, part))
                if part and "\0" not in part and os.path.isfile(path):
                    self.files.named.append(path)

    def _expanded(self, word: str) -> str:
        """The word with `~` and variables replaced; unknown variables stay."""
        if word == "~" or word.startswith("~/"):
            word = self._environ.get("HOME", "~") + word[1:]
        return _VARIABLE.sub(lambda name: self._environ.get(name[1] or name[2], name[0]), word)


def _first_line(path: str) -> str:
    """The text after `#!` in the first line; empty if the file does not start with it."""
    with suppress(OSError, ValueError):
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)  # does not wait for a pipe
        try:
            head = os.read(opened, _FIRST_LINE_BYTES)
        finally:
            os.close(opened)
        if head.startswith(b"#!"):
            return os.fsdecode(head[2:].partition(b"\n")[0])
    return ""


def _is_option(word: str) -> bool:
    return word.startswith(("-", "+")) or bool(_NUMBER.fullmatch(word))


def _commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a line, without the files that output is redirected to."""
    words: list[str] = []
    skip = False
    for token in _tokens(line):
        if not _OPERATOR.fullmatch(token):
            words += [] if skip else [token]
            skip = False
        elif "<" in token or ">" in token:
            skip = ">" in token
        elif words:
            yield words
            words = []
    if words:
        yield words


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an unclosed quotation mark, as in a here-document
        return line.split()


# --- Python modules ---


def module_files(folder: str, names: Collection[str]) -> list[str]:
    """The files in a folder that Python may import under one of these names, and all files of such packages.

    A folder without `__init__.py` is a package as well, but Python prefers its own modules to it. Raises ConfigError if
    there are too many folders.
    """
    found: list[str] = []
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            name = entry.name.partition(".")[0]
            if ANY_NAME not in names and name not in names:
                continue
            if not entry.is_dir():
                found.append(entry.path)
            elif name not in sys.stdlib_module_names or _is_regular_package(entry.path):
                found += _files_below(entry.path)
    return [path for path in found if path.endswith(MODULES) and "/__pycache__/" not in path]


def _is_regular_package(folder: str) -> bool:
    return any(name.startswith("__init__.") for name in os.listdir(folder))


def _files_below(folder: str) -> Iterator[str]:
    """All files in a folder and its subfolders; links to folders are followed, each folder once."""
    seen: set[str] = set()
    for at, subfolders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        if len(seen) > _MAX_PACKAGE_FOLDERS:
            problem = f"has more than {_MAX_PACKAGE_FOLDERS} folders, and a trusted script may import from each of them"
            raise ConfigError(folder, problem, "put the script into a folder of its own")
        yield from (os.path.join(at, name) for name in files)


def imported_names(path: str) -> frozenset[str]:
    """The first parts of the names in the import statements of a Python file, wherever these are.

    ANY_NAME if the file may import others: it computes their names, or cannot be read as Python.
    """
    if not os.path.isfile(path):  # opening a pipe would wait
        return frozenset()
    import ast  # 3 ms, only where trust is required

    try:
        with open(path, "rb") as file:
            source = file.read(_MAX_SCRIPT_LENGTH + 1)
        tree = ast.parse(source) if len(source) <= _MAX_SCRIPT_LENGTH else None
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return frozenset({ANY_NAME})
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=modules):
                names.update(module.name.partition(".")[0] for module in modules)
            case ast.ImportFrom(module=module, names=members):
                names.update(member.name for member in members)
                names.add((module or "").partition(".")[0])
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _DYNAMIC:
                names.add(ANY_NAME)
    return frozenset(names | {ANY_NAME}) if names & _DYNAMIC else frozenset(names)
