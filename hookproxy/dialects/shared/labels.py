"""Names hooks for people and for the model: by their script, or else by the first telling words of their command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from os.path import basename
from typing import Final

from ...model.late_pattern import late_pattern

_MAX_LENGTH: Final = 40
"""Characters of a label that is made of words: it stands in sentences and in tables."""

_ASSIGNMENT: Final = late_pattern(r"\w+\+?=")
_COMMENT_LINE: Final = late_pattern(r"^\s*#.*$", re.MULTILINE)
_OPERATOR: Final = late_pattern(r"[();<>|&{}]+")
_SHELL: Final = late_pattern(r"[a-z]*sh(?:\.exe)?")
_INTERPRETER: Final = late_pattern(
    r"(?:[a-z]*sh|python[\d.]*|pypy[\d.]*|node|deno|bun|tsx|ruby|perl|php|env|exec|sudo|nice|nohup|time|timeout|xargs"
    r"|npx|bunx|uvx?|pwsh|source|\.)(?:\.exe)?"
)
"""Programs that run another program. The label is the other's name, if it can be found."""
_RUNNERS: Final = frozenset(("env", "exec", "sudo", "nice", "nohup", "time", "timeout", "xargs", "npx", "bunx", "uvx"))
"""Programs whose first argument that is not an option names a program, even if it does not look like a file."""
_SCRIPT_NAME: Final = late_pattern(r".*[/.]\w.*", re.DOTALL)
_SCRIPT_FILE: Final = late_pattern(
    r"[\w@+.-]*\w\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|mts|rb|pl|php|ps1|cmd|bat|lua)", re.ASCII
)
_PROGRAM: Final = late_pattern(r"(?!\$\()[$\w./~{][^*^\\]*\Z")
"""A word that can name a program. Patterns of `case` and leftovers of expansions cannot."""
_NUMBER: Final = late_pattern(r"[\d.]+[smhd]?")
_KEYWORDS: Final = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"))
"""Words of the shell's own language that may come before a command."""
_NO_COMMANDS: Final = frozenset(
    ("fi", "done", "esac", "}", "for", "case", "in", "function", "test", "[", "[[", ":", "true", "false", "exit",
     "return", "set", "export", "local", "cd", "pushd", "popd", "shift", "break", "continue", "trap", "wait", "command")
)  # fmt: skip
"""Words that begin a part of a script which says nothing about its purpose."""
_HELPERS: Final = frozenset(
    ("echo", "printf", "cat", "jq", "grep", "egrep", "rg", "sed", "awk", "head", "tail", "tr", "cut", "sort", "uniq",
     "wc", "tee", "read", "mkdir", "touch", "rm", "date", "basename", "dirname", "sleep", "find", "which", "type")
)  # fmt: skip
"""Programs that prepare and print texts. A script has its name from another program in it, if there is one."""
_PRINTERS: Final = ("echo", "printf")
_INPUT_AND_OUTPUT: Final = (*_PRINTERS, "jq", "cat", "read")
"""Helpers that most scripts use for their input and their output."""
_WITH_SUBCOMMAND: Final = frozenset(("git", "npm", "yarn", "pnpm", "cargo", "go", "docker", "make", "gh"))
"""Programs that say little without their first argument."""


def command_label(command: str) -> str:
    """The short name of a shell command: `python3 guards/paths.py --x` is `paths.py`."""
    labels = [(part[0], label) for part in _simple_commands(command) if (label := _label(part))]
    scripts = [label for _, label in labels if _SCRIPT_FILE.fullmatch(label)]
    telling = [label for word, label in labels if _last_part(word) not in _HELPERS]
    tests = [label for word, label in labels if " " in label and word not in _INPUT_AND_OUTPUT]
    others = [label for _, label in labels if " " in label]
    best = next(iter([*scripts, *telling, *tests, *others, *(label for _, label in labels)]), "")
    return best or _shortened(_COMMENT_LINE.sub("", command)) or command.strip()


def argv_label(words: list[str]) -> str:
    """The same for a command that is already split into words."""
    part = _command_words(words)
    return _label(part) if part else ""


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each command in a line or script of the shell, without what says nothing about its purpose."""
    words: list[str] = []
    is_target = in_test = False  # of a redirection; between `[[` and `]]`, where parentheses are patterns
    for token in [*_tokens(_COMMENT_LINE.sub("", command).replace("\n", " ; ")), ";"]:
        if in_test or token == "[[":
            in_test = token != "]]"
        elif is_target:
            is_target = False
        elif not _OPERATOR.fullmatch(token):
            words.append(token)
        elif "<" in token or ">" in token:
            is_target = True
            if words and words[-1].isdigit():  # the descriptor in `2>`
                words.pop()
        else:
            if part := _command_words(words):
                yield part
            words = []


def _tokens(line: str) -> list[str]:
    """The words and operators of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return [token for token in lexer if token]
    except ValueError:  # an open quotation mark, for example in a comment
        return [token for token in re.split(r"\s+|([;|&()<>]+)", line) if token]


def _command_words(words: list[str]) -> list[str]:
    """The words from the program on. Empty if they begin with none."""
    while words and (words[0] in _KEYWORDS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words if words and words[0] not in _NO_COMMANDS and _PROGRAM.match(words[0]) else []


def _label(words: list[str]) -> str:
    program = _last_part(words[0])
    if program.startswith("$"):  # most likely an interpreter, for example `$PYTHON guard.py`
        return _label_of_run_program(program, words[1:])
    if _INTERPRETER.fullmatch(program):
        return _label_of_run_program(program, words[1:]) or _cut(words)
    if program in _PRINTERS:  # their text is what the hook says, and may be long
        return program
    if program in _HELPERS:
        return _cut(words)
    if program in _WITH_SUBCOMMAND and len(words) > 1 and not words[1].startswith(("-", "$")):
        return f"{program} {words[1]}"
    return program


def _label_of_run_program(program: str, words: list[str]) -> str:
    """The label of the program or the code that an interpreter runs. Empty if it cannot be found."""
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word == "-m":
            return following
        if word.startswith("-") and word.endswith("c") and _SHELL.fullmatch(program):
            return command_label(following) if following else ""
        if word in ("-c", "-e", "--eval", "-p"):  # code follows, which may start the script that follows it
            return next(
                (name for word in reversed(words[at + 2 :]) if _SCRIPT_FILE.fullmatch(name := _last_part(word))), ""
            )
        if word.startswith("-") or _ASSIGNMENT.match(word) or _NUMBER.fullmatch(word):
            continue
        if program in _RUNNERS:
            return _label(words[at:])
        if _SCRIPT_NAME.fullmatch(word):
            return _last_part(word)
    return ""


def _cut(words: list[str]) -> str:
    """The first telling words: variables, marks and JSON say nothing, and paths only by their last part."""
    names = [_last_part(word) if word.startswith("$") and "/" in word else word for word in words[1:]]
    return _shortened(
        " ".join([words[0], *(word for word in names if re.search(r"\w", word) and word[0] not in "$[{")])
    )


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def _last_part(word: str) -> str:
    return basename(word.rstrip("/;&|)")) or word
