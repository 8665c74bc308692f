"""Finds problems in a hook's command: missing scripts, files that are not executable, login shells. Runs nothing.

Of a command line only the first command is checked: only a shell knows whether and how it reaches the others.
Only what is certain is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct

from ..dialects.shared.hook_file import suggestion
from ..processes.process import find_program
from ..runners.plain_commands import plain_words
from .report import ConfiguredHook

_CommandWords = list[str | None]
"""The words of a command. None: a word that only a shell can expand."""

_ASSIGNMENT: Final = re.compile(r"\w+=")
_SHELLS: Final = re.compile(r"(?:ba|da|z|k|mk|a)?sh")
_LOGIN_OPTION: Final = re.compile(r"-[a-zA-Z]*l[a-zA-Z]*|--login")
_COMMAND_STRING_OPTION: Final = re.compile(r"-[abefhikmnpruvxBCEHPT]*c")  # its value is a command line
_LOGIN_SHELL: Final = "a login shell: it starts slowly, and what profile files print gets into the hook's output"
_SUFFIXES: Final = ("", ".js", ".json", ".node", ".mjs", ".cjs")  # node finds a script without its suffix
_FIRST_LINE: Final = 256  # bytes: Linux reads no more


class _Interpreter(NamedTuple):
    """A program that runs a script."""

    name: re.Pattern[str]
    before: re.Pattern[str]
    """Options that may come before the script. After any other option, such as `-c` or `-o`, nothing is certain."""
    script: re.Pattern[str] = re.compile(r"[^-+].*[/.]\w.*", re.DOTALL)
    """Matches arguments that can only be files."""


_ANY_FILE: Final = re.compile(r"[^-+].*", re.DOTALL)
_MODULE: Final = re.compile(r"(?!-|@|\w\w+:).*\.[cm]?[jt]sx?", re.DOTALL)  # anything else is a package or a task
_USUAL_PROGRAMS: Final = (
    "bash",
    "sh",
    "python3",
    "python",
    "node",
    "jq",
    "uv",
    "uvx",
    "npx",
    "ruby",
    "perl",
    "deno",
    "bun",
)
_SIMILAR_FILE: Final = 0.8  # `gaurd.sh` and `guard.sh`, but not `gone.sh` and `good.sh`
_SIMILAR_PROGRAM: Final = 0.7  # `pyhton3` and `python3`, but not `fish` and `sh`
_INTERPRETERS: Final = (
    _Interpreter(_SHELLS, re.compile(r"-[abefhiklmnpruvxBCEHPT]+|--(?:login|posix|norc|noprofile)"), _ANY_FILE),
    _Interpreter(re.compile(r"(?:python|pypy)[\d.]*"), re.compile(r"-[bBdEiIOPqsSuv]+"), _ANY_FILE),
    _Interpreter(re.compile(r"node(?:js)?"), re.compile(r"--[\w-]+=.*|--no-[\w-]+|--enable-source-maps")),
    _Interpreter(re.compile(r"deno"), re.compile(r"run|-[Aq]|--(?:allow|no)-[\w-]+(?:=.*)?|--quiet"), _MODULE),
    _Interpreter(re.compile(r"bun"), re.compile(r"run"), _MODULE),
    _Interpreter(re.compile(r"uv"), re.compile(r"run|-[qs]|--(?:quiet|script)"), re.compile(r"[^-].*\.py")),
    _Interpreter(re.compile(r"ruby|perl|php"), re.compile(r"-w")),
)


class _CommandContext(Struct, frozen=True):
    """What is certain about the environment of a hook's command."""

    cwd: str
    path: str | None
    """Where programs are searched; None: in the default folders of the system."""
    known: Mapping[str, str]
    """Variables whose values do not depend on who starts hookproxy."""

    def find(self, file: str) -> str:
        """The absolute path of a file that the command names."""
        return os.path.normpath(os.path.join(self.cwd, file))

    def lacks(self, program: str) -> bool:
        """Whether PATH has no such program."""
        return find_program(program, self.path, self.cwd) is None


def problems(hook: ConfiguredHook) -> Iterator[str]:
    """One sentence for each problem that is certain to occur when this hook starts."""
    spec, own = hook.spec, dict(hook.spec.env)
    home = {"HOME": hook.environ["HOME"]} if "HOME" in hook.environ else {}
    context = _CommandContext(spec.cwd, own.get("PATH", hook.environ.get("PATH")), {**home, **own})
    if spec.cwd and not os.path.isdir(spec.cwd):
        yield f"the folder that it starts in does not exist: {spec.cwd}"
    elif spec.shell:
        yield from _line_problems(spec.shell, context)
    else:
        yield from _words_problems(list(spec.argv), context, in_shell=False)


def _line_problems(line: str, context: _CommandContext) -> Iterator[str]:
    yield from _words_problems(first_command(line, context.known), context, in_shell=True)


def _words_problems(words: _CommandWords, context: _CommandContext, *, in_shell: bool) -> Iterator[str]:
    words = _without_prefix(words, in_shell)
    program = words[0] if words else None
    if program is None or _is_builtin(program, in_shell):
        return
    if "/" in program:
        yield from _program_file_problems(context.find(program), context)
    elif context.lacks(program):
        yield f"there is no program {program!r} in PATH{_near_program(program, context)}"
    for interpreter in _INTERPRETERS:
        if interpreter.name.fullmatch(os.path.basename(program)):
            yield from _interpreter_problems(interpreter, words[1:], context)


def _without_prefix(words: _CommandWords, in_shell: bool) -> _CommandWords:
    """The command without the assignments, `env` and `exec` before it; empty if PATH is assigned."""
    may_assign = in_shell  # otherwise only after `env`
    while words and (word := words[0]):
        if word == "env" or (word == "exec" and in_shell):
            may_assign = True
        elif not may_assign or not _ASSIGNMENT.match(word):
            break
        elif word.startswith("PATH="):
            return []
        words = words[1:]
    return words


def _is_builtin(word: str, in_shell: bool) -> bool:
    """Whether the word is a builtin or keyword of the shell, or an option of `env` or `exec`."""
    return "/" not in word and (in_shell or word.startswith("-")) and plain_words(word) is None


def _program_file_problems(file: str, context: _CommandContext) -> Iterator[str]:
    """Why a program file cannot be started."""
    if not os.path.exists(file):
        yield f"there is no file {file}{_near_file(file)}"
    elif os.path.isdir(file):
        yield f"{file} is a folder, not a program"
    elif not os.access(file, os.X_OK):
        yield f"{file} is not executable: chmod +x makes it executable"
    else:
        yield from _script_interpreter_problems(file, context)


def _near_file(file: str) -> str:
    """What the path of a file that is not there may be meant to be, for the end of a sentence."""
    folder, name = os.path.split(file)
    try:
        near = suggestion(name, [other for other in os.listdir(folder or ".") if other != name], _SIMILAR_FILE)
    except OSError:
        return ""
    return f": {near}" if near else ""


def _near_program(program: str, context: _CommandContext) -> str:
    """As `_near_file`, for the name of a program in PATH: of those that hooks are made of."""
    if os.path.isfile(context.find(program)):
        return f": write ./{program} for the file in {context.cwd}"
    near = suggestion(program, [name for name in _USUAL_PROGRAMS if not context.lacks(name)], _SIMILAR_PROGRAM)
    return f": {near}" if near else ""


def _script_interpreter_problems(file: str, context: _CommandContext) -> Iterator[str]:
    """Problems of the interpreter that a script's first line names."""
    if not os.path.isfile(file):  # opening a pipe may wait for ever
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
        yield f"{file} names an interpreter that does not exist: {program!r}"
    elif name == "env" and len(words) == 1 and context.lacks(words[0]):
        yield f"{file} names an interpreter that is not in PATH: {words[0]!r}"
    elif _SHELLS.fullmatch(name) and any(map(_LOGIN_OPTION.fullmatch, words)):
        yield f"{file} starts {_LOGIN_SHELL}"


def _interpreter_problems(interpreter: _Interpreter, words: _CommandWords, context: _CommandContext) -> Iterator[str]:
    """Problems of the arguments of an interpreter."""
    skipped = list(takewhile(lambda word: word is not None and interpreter.before.fullmatch(word), words))
    script, *rest = words[len(skipped) :] or [None]
    if interpreter.name is _SHELLS and any(_LOGIN_OPTION.fullmatch(word) for word in (*skipped, script) if word):
        yield f"it starts {_LOGIN_SHELL}"  # what profile files set is unknown
    elif script and interpreter.script.fullmatch(script):
        if not _script_exists(script, context):
            yield f"there is no file {context.find(script)}{_near_file(context.find(script))}"
    elif interpreter.name is _SHELLS and script and _COMMAND_STRING_OPTION.fullmatch(script) and rest and rest[0]:
        yield from _line_problems(rest[0], context)


def _script_exists(script: str, context: _CommandContext) -> bool:
    """Whether the script exists, also as an address, without its suffix, or in PATH."""
    folders = [""] if "/" in script else ["", *(context.path or os.defpath).split(os.pathsep)]
    return "://" in script or any(
        os.path.exists(context.find(os.path.join(folder, script + suffix)))
        for folder in folders
        for suffix in _SUFFIXES
    )


# --- the words of a command line ---

_WORD_PIECE: Final = re.compile(
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
_QUOTED_PIECE: Final = re.compile(r"\\(?:\n|([\\\"$`]))|\$\{?(\w+)\}?")
_SPLITTING: Final = re.compile(r"[\s*?\[]|\A\Z")  # in a value outside quotes: it may expand to any number of words
_OPERATORS: Final = tuple(";|&\n<>)")


def first_command(line: str, known: Mapping[str, str]) -> _CommandWords:
    """The words of the first command of a command line, as far as they are certain without a shell.

    `known` are the variables whose values are certain.
    """
    words: _CommandWords = []
    pieces: list[str | None] = []
    line = line.strip()
    at = 0
    while found := _WORD_PIECE.match(line, at):
        at = found.end()
        if found.lastgroup == "blank":
            words += _join(pieces)
            pieces = []
        elif found.lastgroup != "continued":
            pieces.append(_value(found, known, begins=not pieces))
    return words + _last_word(pieces, line[at : at + 1]) if line[at : at + 1] != "(" else []


def _join(pieces: list[str | None]) -> _CommandWords:
    """The one word that the pieces form; nothing if there are none."""
    if not pieces:
        return []
    certain = [piece for piece in pieces if piece is not None]
    return ["".join(certain) if len(certain) == len(pieces) else None]


def _last_word(pieces: list[str | None], sign: str) -> _CommandWords:
    """The word before the character at which the reading stopped; nothing if it is not a word."""
    if not sign or sign in _OPERATORS:
        word = _join(pieces)
        return [] if sign in ("<", ">") and word and str(word[0]).isdigit() else word  # the number of a file descriptor
    return [] if sign == "#" and not pieces else [None]  # a comment, or syntax that is not read here


def _value(found: re.Match[str], known: Mapping[str, str], *, begins: bool) -> str | None:
    """The value of a piece; None: only a shell knows it."""
    match found.lastgroup:
        case "plain" | "single" | "escaped":
            return found[found.lastgroup]
        case "double":
            return _expand_quoted(found["double"], known)
        case "variable":
            value = known.get(found["variable"].strip("${}"))
            return None if value is None or _SPLITTING.search(value) else value
        case "home" if begins:
            return known.get("HOME")
        case _:
            return None


def _expand_quoted(text: str, known: Mapping[str, str]) -> str | None:
    """The value of a text in double quotes; None: only a shell knows it."""
    if any(name and name not in known for _, name in _QUOTED_PIECE.findall(text)):
        return None
    return _QUOTED_PIECE.sub(lambda found: known[found[2]] if found[2] else found[1] or "", text)
