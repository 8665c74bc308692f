"""The files that a line of shell writes itself: what it runs of them is read as well.

All other scripts are started by name, and not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .program_table import UNNAMED, program_name, table
from .programs import Code, Foreign, Started, Unreadable
from .words import Command, Word, echoed, literal

_IN_PLACE: Final = re.compile(r"-[A-Za-z]*i|--in-place|.*(?<!\w)[wW]\s*\S")
_CHANGES: Final = {
    "sed": _IN_PLACE, "perl": _IN_PLACE, "ruby": _IN_PLACE, "awk": re.compile(".*>", re.DOTALL),
    "gawk": re.compile(".*>|-i", re.DOTALL), "mawk": re.compile(".*>", re.DOTALL), "find": re.compile("-fp|-fls"),
    "sort": re.compile("-[A-Za-z]*o|--o"), "patch": re.compile(""), "ed": re.compile(""), "ex": re.compile(""),
    "rsync": re.compile(""), "scp": re.compile(""),
}  # fmt: skip
"""Programs that change the files that their words name, each with a word that is there if it does."""
_COPIES: Final = frozenset({"rsync", "scp"})
"""Programs that write to their last operand."""
_WRITES: Final = frozenset({"curl", "wget", "tee", "cp", "mv", "ln", "install", "dd", "aria2c", "base64", "xxd"})
_MAY_WRITE: Final = _WRITES | _CHANGES.keys()
_FILE: Final = re.compile(r"[^\s/'\"`=,;:(){}<>|&]+")
_INTERPRETER: Final = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(\S+)")
_BY_ENDING: Final = {
    "py": "python", "js": "node", "mjs": "node", "cjs": "node", "ts": "node", "pl": "perl", "rb": "ruby",
}  # fmt: skip
_OTHER_ESCAPE: Final = re.compile(r"\\(?![nt\\\n])")
_ESCAPE: Final = re.compile(r"\\([nt\\])")
_FOR_GIT: Final = re.compile(
    r"(?:\A|/)\.git/|\.gitconfig\Z|hooks/|\.config/git/|(?:\A|/)(?:pre|post|commit|prepare|update|applypatch|push)-[a-z-]+\Z"
)


class Files:
    """The files that a line has written so far, without their folders."""

    def __init__(self) -> None:
        self._contents: Final[dict[str, str | None]] = {}
        """None: not known."""
        self._for_git = False
        """One of them is a file from which git takes commands."""

    def follow(self, program: str, command: Command) -> Iterable[Started]:
        """Return what a command runs of the files that are written already, and note what it writes itself."""
        started = list(self._run(program, command)) if self._contents and self._may_run(program, command) else ()
        if command.written or program in _MAY_WRITE:
            self._note(program, command)
        return started

    def read_by(self, name: str, value: Word) -> Iterator[Started]:
        """Yield what is in the files that a variable such as BASH_ENV names."""
        variables = table()
        if self._contents and (
            variables.variables.fullmatch(name) or name in variables.options or name.startswith("GIT_CONFIG")
        ):
            for file in _FILE.findall(value.text):
                if file in self._contents:
                    yield Code(self._contents[file] or "", True)
                    yield Unreadable(f"{name} names {file!r}, which the line writes itself")

    def _may_run(self, program: str, command: Command) -> bool:
        """True if the words of a command hold the name of one of the files, or it may be run without being named."""
        if program == "git" or not UNNAMED.isdisjoint(self._contents):
            return True
        stems = [name.rpartition(".")[0] or name for name in self._contents]
        return any(stem in word.text for word in command.words for stem in stems)

    def _note(self, program: str, command: Command) -> None:
        if program in _WRITES:
            self._contents.update(dict.fromkeys(_named_files(program, command), _written(program, command)))
        elif program in _CHANGES and any(_CHANGES[program].match(word.text) for word in command.words[1:]):
            self._contents.update(dict.fromkeys(_named_files(program, command)))
        for path in command.written:
            name = path.rpartition("/")[2]
            text = _written(program, command)
            if name in self._contents:  # whether it is written anew or continued does not matter: both are read
                before = self._contents[name]
                text = f"{before}\n{text}" if text and before and program != "printf" else None
            self._contents[name] = text
            self._for_git |= _FOR_GIT.search(path) is not None

    def _run(self, program: str, command: Command) -> Iterator[Started]:
        if program == "git" and (self._for_git or any(name.startswith("git-") for name in self._contents)):
            yield Unreadable("git runs what the line writes")
        for run, language in [(program, ""), *table().run_files((literal(program), *command.words[1:]))]:
            for name in self._contents.keys() & {run, f"{run}.py", f"{run}.js", f"{run}.pm"}:
                text = self._contents[name]
                if text is None:
                    yield Unreadable(f"it runs {name!r}, which it writes itself")
                else:
                    language = language or _language_of(name, text)
                    yield Foreign(language, text, True) if language else Code(text, True)


def _written(program: str, command: Command) -> str | None:
    """What a command writes into a file; None if that is not known."""
    if program in ("cat", "tee"):
        return command.input.text if command.input.whole else None
    text = echoed(command) if all(word.literal for word in command.words) else ""
    if program == "printf" and len(command.words) == 2 and "%" not in text and not _OTHER_ESCAPE.search(text):
        return _ESCAPE.sub(lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), command.words[1].source)
    options = any(word.text.startswith("-") for word in command.words)
    return text if text and "%" not in text and "\\" not in text and not options else None


def _language_of(file: str, text: str) -> str:
    """The language of a file that is run by its name; "" is that of a shell."""
    interpreter = _INTERPRETER.match(text)
    program = program_name(interpreter[1]) if interpreter else _BY_ENDING.get(file.rpartition(".")[2], "sh")
    return next((language for _, language in table().run_files((literal(program), literal(file)))), "")


def _named_files(program: str, command: Command) -> set[str]:
    """The names of files, without folders, that may stand in the words behind a program."""
    texts = [word.text for word in command.words[1:]]
    if program in _COPIES:
        texts = texts[-1:]
    texts += [text[2:] for text in texts if text[:1] == "-"]
    return {name for text in texts for name in _FILE.findall(text)}
