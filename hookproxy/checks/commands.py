"""What about a hook's command certainly cannot work: scripts that are missing or no programs, login shells.

Nothing is run, and of a command line only the first command is looked at: what it comes to later, only a shell knows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct

from ..processes.process import find_program
from ..runners.command import plain_words
from .report import ConfiguredHook

_PIECE: Final = re.compile(
    r"""
      (?P<plain>[A-Za-z0-9_@%+=:,./^-]+)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\`$]|\\.|\$\w+|\$\{\w+\})*)"
    | (?P<variable>\$\w+|\$\{\w+\})
    | (?P<home>~(?=/))
    | (?P<continued>\\\n)
    | \\(?P<escaped>.)
    | (?P<blank>[ \t]+)
    | (?P<unsure>[*?\[\]{}!])
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"\\(?:\n|([\\\"$`]))|\$\{?(\w+)\}?")
_SPLITS: Final = re.compile(r"[\s*?\[]|\A\Z")  # in a value that no quotes protect: it may be any number of words
_OPERATORS: Final = tuple(";|&\n<>)")


def first_command(line: str, known: Mapping[str, str]) -> list[str | None]:
    """The words of a command line's first command, as far as they can be told without a shell.

    None is a word that only a shell knows. `known` are the variables whose values are certain.
    """
    words: list[str | None] = []
    pieces: list[str | None] = []
    line = line.strip()
    at = 0
    while found := _PIECE.match(line, at):
        at = found.end()
        if found.lastgroup == "blank":
            words += _joined(pieces)
            pieces = []
        elif found.lastgroup != "continued":
            pieces.append(_value(found, known, begins=not pieces))
    return words + _last(pieces, line[at : at + 1]) if line[at : at + 1] != "(" else []


def _joined(pieces: list[str | None]) -> list[str | None]:
    """The one word that they make, if there are any."""
    if not pieces:
        return []
    certain = [piece for piece in pieces if piece is not None]
    return ["".join(certain) if len(certain) == len(pieces) else None]


def _last(pieces: list[str | None], sign: str) -> list[str | None]:
    """The word before the sign at which the reading stopped, if it is one."""
    if not sign or sign in _OPERATORS:
        word = _joined(pieces)
        return [] if sign in ("<", ">") and word and str(word[0]).isdigit() else word  # a descriptor's number
    return [] if sign == "#" and not pieces else [None]  # a comment; or what is not read here


def _value(found: re.Match[str], known: Mapping[str, str], *, begins: bool) -> str | None:
    """What a piece stands for; None: only a shell knows."""
    match found.lastgroup:
        case "plain" | "single" | "escaped":
            return found[found.lastgroup]
        case "double":
            return _unquoted(found["double"], known)
        case "variable":
            value = known.get(found["variable"].strip("${}"))
            return None if value is None or _SPLITS.search(value) else value
        case "home" if begins:
            return known.get("HOME")
        case _:
            return None


def _unquoted(text: str, known: Mapping[str, str]) -> str | None:
    if any(name and name not in known for _, name in _IN_QUOTES.findall(text)):
        return None
    return _IN_QUOTES.sub(lambda found: known[found[2]] if found[2] else found[1] or "", text)


_Words = list[str | None]  # None: only a shell knows

_ASSIGNMENT: Final = re.compile(r"\w+=")
_SHELLS: Final = re.compile(r"(?:ba|da|z|k|mk|a)?sh")
_LOGIN: Final = re.compile(r"-[a-zA-Z]*l[a-zA-Z]*|--login")
_LINE: Final = re.compile(r"-[abefhikmnpruvxBCEHPT]*c")  # what follows is a command line
_LOGIN_SHELL: Final = "a login shell: what profiles print gets into the hook's answer, and it starts slowly"
_SUFFIXES: Final = ("", ".js", ".json", ".node", ".mjs", ".cjs")  # what node finds without them
_FIRST_LINE: Final = 256  # bytes: Linux reads no more of it


class _Interpreter(NamedTuple):
    """A program that runs a script."""

    name: re.Pattern[str]
    before: re.Pattern[str]
    """Words that may stand before the script. At any other, such as `-c` or `-o`, nobody knows what follows."""
    script: re.Pattern[str] = re.compile(r"[^-+].*[/.]\w.*", re.DOTALL)
    """What can only be a file."""


_ANY: Final = re.compile(r"[^-+].*", re.DOTALL)
_MODULE: Final = re.compile(r"(?!-|@|\w\w+:).*\.[cm]?[jt]sx?", re.DOTALL)  # else a package or a task
_INTERPRETERS: Final = (
    _Interpreter(_SHELLS, re.compile(r"-[abefhiklmnpruvxBCEHPT]+|--(?:login|posix|norc|noprofile)"), _ANY),
    _Interpreter(re.compile(r"(?:python|pypy)[\d.]*"), re.compile(r"-[bBdEiIOPqsSuv]+"), _ANY),
    _Interpreter(re.compile(r"node(?:js)?"), re.compile(r"--[\w-]+=.*|--no-[\w-]+|--enable-source-maps")),
    _Interpreter(re.compile(r"deno"), re.compile(r"run|-[Aq]|--(?:allow|no)-[\w-]+(?:=.*)?|--quiet"), _MODULE),
    _Interpreter(re.compile(r"bun"), re.compile(r"run"), _MODULE),
    _Interpreter(re.compile(r"uv"), re.compile(r"run|-[qs]|--(?:quiet|script)"), re.compile(r"[^-].*\.py")),
    _Interpreter(re.compile(r"ruby|perl|php"), re.compile(r"-w")),
)


class _CommandContext(Struct, frozen=True):
    """What is certain about the surroundings of a hook's command."""

    cwd: str
    path: str | None
    """Where programs are searched; None: where the system says."""
    known: Mapping[str, str]
    """Variables whose values are the same whoever starts hookproxy."""

    def find(self, file: str) -> str:
        """The path of what the command calls so."""
        return os.path.normpath(os.path.join(self.cwd, file))

    def lacks(self, program: str) -> bool:
        """There is no such program in PATH."""
        return find_program(program, self.path, self.cwd) is None


def problems(hook: ConfiguredHook) -> Iterator[str]:
    """One sentence for each thing that is certain to be wrong when this hook starts."""
    spec, own = hook.spec, dict(hook.spec.env)
    home = {"HOME": hook.environ["HOME"]} if "HOME" in hook.environ else {}
    context = _CommandContext(spec.cwd, own.get("PATH", hook.environ.get("PATH")), {**home, **own})
    if spec.cwd and not os.path.isdir(spec.cwd):
        yield f"the folder that it starts in is not there: {spec.cwd}"
    elif spec.shell:
        yield from _of_line(spec.shell, context)
    else:
        yield from _of_words(list(spec.argv), context, in_shell=False)


def _of_line(line: str, context: _CommandContext) -> Iterator[str]:
    yield from _of_words(first_command(line, context.known), context, in_shell=True)


def _of_words(words: _Words, context: _CommandContext, *, in_shell: bool) -> Iterator[str]:
    words = _started(words, in_shell)
    program = words[0] if words else None
    if program is None or _is_shells_own(program, in_shell):
        return
    if "/" in program:
        yield from _no_program(context.find(program), context)
    elif context.lacks(program):
        yield f"there is no program {program!r} in PATH"
    for interpreter in _INTERPRETERS:
        if interpreter.name.fullmatch(os.path.basename(program)):
            yield from _interpreted(interpreter, words[1:], context)


def _started(words: _Words, in_shell: bool) -> _Words:
    """What starts, without the assignments, `env` and `exec` before it; nothing where PATH is assigned."""
    assigns = in_shell  # else only behind `env`
    while words and (word := words[0]):
        if word == "env" or (word == "exec" and in_shell):
            assigns = True
        elif not assigns or not _ASSIGNMENT.match(word):
            break
        elif word.startswith("PATH="):
            return []
        words = words[1:]
    return words


def _is_shells_own(word: str, in_shell: bool) -> bool:
    """A builtin or a reserved word, which lies in no folder; or an option of `env` or `exec`."""
    return "/" not in word and (in_shell or word.startswith("-")) and plain_words(word) is None


def _no_program(file: str, context: _CommandContext) -> Iterator[str]:
    """Why a file cannot be started."""
    if not os.path.exists(file):
        yield f"there is no file {file}"
    elif os.path.isdir(file):
        yield f"{file} is a folder, not a program"
    elif not os.access(file, os.X_OK):
        yield f"{file} is not executable: chmod +x makes it so"
    else:
        yield from _misled(file, context)


def _misled(file: str, context: _CommandContext) -> Iterator[str]:
    """What is wrong with the interpreter that a script's first line names."""
    if not os.path.isfile(file):  # whoever opens a pipe may wait for ever
        return
    try:
        with open(file, "rb") as script:
            line = script.read(_FIRST_LINE).split(b"\n")[0]
    except OSError:
        return
    if not line.startswith(b"#!"):
        return
    program, *words = os.fsdecode(line[2:]).strip(" \t").split(" ")
    name = os.path.basename(program)
    if not os.path.exists(context.find(program)):
        yield f"{file} names an interpreter that is not there: {program!r}"
    elif name == "env" and len(words) == 1 and context.lacks(words[0]):
        yield f"{file} names an interpreter that is not in PATH: {words[0]!r}"
    elif _SHELLS.fullmatch(name) and any(map(_LOGIN.fullmatch, words)):
        yield f"{file} starts {_LOGIN_SHELL}"


def _interpreted(interpreter: _Interpreter, words: _Words, context: _CommandContext) -> Iterator[str]:
    """What is wrong with what an interpreter is told."""
    skipped = list(takewhile(lambda word: word is not None and interpreter.before.fullmatch(word), words))
    script, *rest = words[len(skipped) :] or [None]
    if interpreter.name is _SHELLS and any(_LOGIN.fullmatch(word) for word in (*skipped, script) if word):
        yield f"it starts {_LOGIN_SHELL}"  # and what profiles set, nobody knows
    elif script and interpreter.script.fullmatch(script):
        if not _is_there(script, context):
            yield f"there is no file {context.find(script)}"
    elif interpreter.name is _SHELLS and script and _LINE.fullmatch(script) and rest and rest[0]:
        yield from _of_line(rest[0], context)


def _is_there(script: str, context: _CommandContext) -> bool:
    """The script, or what an interpreter may take for it: an address, a name without its ending or in PATH."""
    folders = [""] if "/" in script else ["", *(context.path or os.defpath).split(os.pathsep)]
    return "://" in script or any(
        os.path.exists(context.find(os.path.join(folder, script + suffix)))
        for folder in folders
        for suffix in _SUFFIXES
    )
