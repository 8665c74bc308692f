"""Which files a hook starts or names, as far as the words of its command tell; nothing is run.

What a program does inside, what it imports and what a shell puts together, nobody can tell from outside: whoever relies
on this says so to people. `unknown` has it in words.
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

from ..model.hooks import HookSpec
from ..processes.process import find_program

MODULES: Final = (".py", ".pyc", ".so", ".pyd")
"""How the files of modules end."""

_IMPORT: Final = re.compile(r"^[ \t]*(?:import|from)\b(.*)", re.MULTILINE)
_NAME: Final = re.compile(r"\w+")
_MAX_SCRIPT_LENGTH: Final = 1024 * 1024  # characters of a script in which imports are looked for


def module_files(folder: str, names: Collection[str]) -> list[str]:
    """The files in a folder that Python may take for a module of one of these names, and those in packages."""
    found: list[str] = []
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            if entry.name.partition(".")[0] not in names:
                continue
            if entry.name.endswith(MODULES):
                found.append(entry.path)
            elif entry.is_dir() and any(name.startswith("__init__.") for name in os.listdir(entry.path)):
                found += (os.path.join(at, name) for at, _, files in os.walk(entry.path) for name in files)
    return [path for path in found if path.endswith(MODULES) and "/__pycache__/" not in path]


def imported_names(path: str) -> frozenset[str]:
    """All names that stand in the import statements of a Python file, and some that do not: more do no harm."""
    if not os.path.isfile(path):  # a pipe would be waited for
        return frozenset()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return frozenset(_NAME.findall(" ".join(_IMPORT.findall(file.read(_MAX_SCRIPT_LENGTH)))))
    except OSError:
        return frozenset()


_OPERATOR: Final = re.compile(r"[();<>|&]+")
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_SHELL: Final = re.compile(r"(?:ba|da|z|k|mk|a)?sh")
_INTERPRETER: Final = re.compile(r"python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun|ruby|perl|php|lua|awk|osascript|tclsh")
_PREFIX_WORDS: Final = frozenset(
    "if then else elif do while until ! { time env exec command builtin nohup nice sudo timeout".split()  # noqa: SIM905 - for the eye
)
"""Words before a command that are none, or that run what follows."""

_SOURCE_COMMANDS: Final = (".", "source")
_CD_COMMANDS: Final = ("cd", "pushd")
_CODE: Final = re.compile(r"-[a-zA-Z]*[ce]|--eval|--print|-p")
_SHELL_CODE: Final = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")  # -e is another thing to a shell: its script comes next
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]+)\)|`([^`]+)`")  # what is run for what it prints
_FIRST_LINE_BYTES: Final = 256  # bytes of a script in which the system looks for its interpreter
_MAX_FOLDERS: Final = 16  # folders that a line may go to: each word is looked for in all of them
_WRITING_COMMANDS: Final = ("tee",)  # its words are files that it writes
_NUMBER: Final = re.compile(r"[\d.]+[smhd]?")
_ISOLATED: Final = re.compile(r"-[a-zA-Z]*[IP][a-zA-Z]*")  # Python looks for no module beside its script
_MAX_DEPTH: Final = 4  # shells within shells


class CommandFiles(Struct):
    """What a hook's words name, as absolute paths."""

    programs: list[str] = field(default_factory=list)
    """Programs and scripts that are run; those that cannot be found are here, too, under the path they would have."""
    named: list[str] = field(default_factory=list)
    """Other files that are there."""
    missing_programs: list[str] = field(default_factory=list)
    """Where PATH has no such program yet: one that appears there would be run in another's place."""
    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    """The folders in which Python scripts find modules first, with the names that they, or Python itself, import."""
    unresolved_programs: list[str] = field(default_factory=list)
    """Those of `unknown` that are a program whose name stands nowhere."""
    not_covered: list[str] = field(default_factory=list)
    """What else it runs, in a few words."""

    @property
    def all(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys((*self.programs, *self.named)))


def program_path(word: str, cwd: str, environ: Mapping[str, str]) -> str:
    """The path of the program that `word` starts; empty where none in PATH has this name."""
    found = word if "/" in word else find_program(word, environ.get("PATH"), cwd)
    return os.path.normpath(os.path.join(cwd, found)) if found else ""


def files_of_hook(spec: HookSpec, environ: Mapping[str, str]) -> CommandFiles:
    """The files of a hook that inherits these variables."""
    context = _CommandContext(spec.cwd or "/", {**environ, **dict(spec.env)})
    if spec.call:
        context.module(spec.call.partition(":")[0])
    elif spec.url:
        context.files.not_covered.append(f"the service at {spec.runs}")
    elif spec.shell:
        context.line(spec.shell, 0)
    elif not spec.argv:
        context.files.not_covered.append(spec.runs)
    else:
        context.command(list(spec.argv), 0)
    return context.files


def files_of_command(words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> CommandFiles:
    """The files of a program with its arguments."""
    context = _CommandContext(cwd, environ)
    context.command(list(words), 0)
    return context.files


class _CommandContext:
    """Where a command starts, and what it has been found to name."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        self.files = CommandFiles()
        self._cwd = cwd
        self._folders = [cwd]  # where a line may have gone
        self._environ = dict(environ)

    def module(self, name: str) -> None:
        """A Python function: its module, and the packages that it is in."""
        parts = name.split(".")
        folder = self._cwd
        for part in parts:
            self._modules(folder, part)
            folder = os.path.join(folder, part)
            self._modules(folder, "__init__")
        for path in list(self.files.programs):
            self._add_imports(path, self._cwd)
        self.files.not_covered.append(f"what {name} imports")

    def _modules(self, folder: str, name: str) -> None:
        """All that Python may take for this module: what is compiled comes before what is written."""
        try:
            files = sorted(os.listdir(folder))
        except OSError:
            return
        found = [file for file in files if file.partition(".")[0] == name and file.endswith(MODULES)]
        self.files.programs += [os.path.normpath(os.path.join(folder, file)) for file in found]

    def line(self, line: str, depth: int) -> None:
        """A command line for a shell."""
        for words in _commands(line):
            self.command([self._expanded(word) for word in words], depth)
            for inner in (found[1] or found[2] for word in words for found in _SUBSTITUTION.finditer(word)):
                if depth < _MAX_DEPTH:
                    self.line(inner, depth + 1)

    def command(self, words: list[str], depth: int) -> None:
        """One program and its arguments, with what runs it before it."""
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
        """What follows may be in this folder, or where it was: how long a shell stays there, nobody can tell."""
        for word in [word for word in words if not _is_option(word)][:1]:
            places = [*self._folders, *(os.path.normpath(os.path.join(place, word)) for place in self._folders)]
            self._folders = list(dict.fromkeys(places))[:_MAX_FOLDERS]

    def _add_program_word(self, word: str) -> None:
        """A program as the system or a shell finds it; what none in PATH has is the shell's own."""
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
        """With the interpreter that its first line names."""
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
        """What an interpreter runs; gives the words that are left."""
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
                    for place in self._folders:
                        script = os.path.realpath(os.path.join(place, word))
                        self._add_imports(script, os.path.dirname(script))
                return words[at + 1 :]
        return words

    def _add_imports(self, script: str, folder: str) -> None:
        """The modules in the folder that the script imports, as far as its text and theirs tell."""
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
            self.files.unresolved_programs.append(f"{word}, which the shell puts together")
            self.files.not_covered.append(self.files.unresolved_programs[-1])
            return
        for place in self._folders:
            self._add_program(os.path.normpath(os.path.join(place, word)))

    def _add_named(self, words: list[str]) -> None:
        for part in (part for word in words for part in (word, word.partition("=")[2])):
            for place in self._folders:
                path = os.path.normpath(os.path.join(place, part))
                if part and "\0" not in part and os.path.isfile(path):
                    self.files.named.append(path)

    def _expanded(self, word: str) -> str:
        if word == "~" or word.startswith("~/"):
            word = self._environ.get("HOME", "~") + word[1:]
        return _VARIABLE.sub(lambda name: self._environ.get(name[1] or name[2], name[0]), word)


def _first_line(path: str) -> str:
    """What follows `#!`; empty where nothing does."""
    with suppress(OSError, ValueError):
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)  # a pipe is not waited for
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
    """The words of each command of a line, without what its output goes to."""
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
    reading = shlex.shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    reading.whitespace_split = True
    reading.commenters = ""
    try:
        return list(reading)
    except ValueError:  # an open quotation mark, as in a here-document
        return line.split()
