"""Decide whether a command line may run a command that a rule names.

`shell` reads the line. Three answers: it runs such a command in some reading; it may, because a part of it is not
literal (unreadable); it certainly does not (law 1).

A rule's words are compared with a command's words without quotes, with and without the folders of its program, and with
and without the options before a subcommand (`git -C x push` is `git push`). A rule that ends with ` *` or `:*` is also
compared by the normal form of options: `rm -rf *` is about every `rm` that has both options, wherever they stand.

A rule with separators, such as `curl * | sh`, is about lines that run all its commands.

Not recognised: scripts that are started by name, deletion by other means (`find -delete`, `unlink`), another case
(`RM`). A rule about command lines is not a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..shell import commands, options, programs
from ..shell.words import GLOB, UNKNOWN, Word, literal
from .globs import COMMAND_SEPARATORS, PREFIX_ENDINGS, BudgetExceeded, WorkBudget, command_pattern

_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_]\w*)(?!\w)\}?(?![\[:/#%^,@+=?-])")
_PROGRAM: Final = re.compile(r"\A=?([^\s:*]+?)(?:\.exe)?(?=[\s:]|\Z)")
"""A rule's program, as `_name` has that of a command."""
_FOLDER: Final = re.compile(r"[^\s*]*/(?=[^\s*/])")
_MOST_OPTIONS: Final = 64  # before a subcommand
_SEPARATES: Final = re.compile(r"[\s(]")
_MOST_CANDIDATES: Final = 16  # words that are the name of the rule's program: an agent might repeat it to take time
_LONGEST_SHOWN: Final = 80  # characters of a command in a sentence
_STARTS: Final = "sudo|run|exec|execute|shell|system|spawn|call|start|cmd|command"
"""Words behind which a command stands, in the small languages that programs read (`--input-commands='run rm x'`)."""


class Runs(NamedTuple):
    """Whether a line runs a command that a rule names."""

    certain: bool
    """In some reading, it does."""
    unreadable: str
    """Why it may, otherwise; empty: it does not."""


_DOES: Final = Runs(True, "")
_DOES_NOT: Final = Runs(False, "")


def command_matcher(specifier: str) -> Callable[[str, WorkBudget], Runs]:
    """Return a function that decides whether a command line may run a command that this specifier names."""
    whole = command_pattern(specifier)
    rules = [_RuleCommands(part) for part in COMMAND_SEPARATORS.split(specifier) if part.strip()]

    def runs(line: str, budget: WorkBudget) -> Runs:
        if whole.fullmatch(line.strip()):
            return _DOES
        try:
            return _runs_all(line, rules, budget)
        except BudgetExceeded:
            return Runs(False, "it would take too long to read")

    return runs


def _runs_all(line: str, rules: Sequence[_RuleCommands], budget: WorkBudget) -> Runs:
    """Decide whether a line runs all of these commands, of which a rule such as `curl * | sh` consists."""
    budget.spend(40 * len(line))
    read = commands.commands_of(line)
    if len(rules) == 1:
        return _runs(read, rules[0], budget)
    answers = [_runs(read, rule, budget) for rule in rules]
    if not answers or _DOES_NOT in answers:
        return _DOES_NOT
    return next((answer for answer in answers if not answer.certain), _DOES)


def _runs(read: commands.Line, rule: _RuleCommands, budget: WorkBudget) -> Runs:
    may_become = ""
    for words in read.commands:
        budget.spend(200)
        if not rule.names_program(words[0]):
            continue
        budget.spend(2000 + 400 * len(words))
        if rule.names(words):
            return _DOES
        if not may_become and rule.may_name(words, read.sets):
            unknown = next(word.source for word in words if not word.literal)
            shown = " ".join(word.source for word in words)[:_LONGEST_SHOWN]
            may_become = f"in {shown!r}, {unknown[:_LONGEST_SHOWN]!r} is only known when it runs"
    reason = may_become or read.unreadable or _suspected(read, rule, budget)
    return Runs(False, reason) if reason else _DOES_NOT


def _suspected(read: commands.Line, rule: _RuleCommands, budget: WorkBudget) -> str:
    """Why a program that is not known may start a command that the rule names; empty: it does not."""
    for suspect in read.suspects:
        budget.spend(500 + 200 * len(suspect.words) + 2 * len(suspect.code) + 2 * len(suspect.input))
        if rule.may_be_given(suspect):
            return f"{suspect.program[:_LONGEST_SHOWN]!r} may start what it is given"
    return ""


class _RuleCommands:
    """The commands that a rule names."""

    def __init__(self, specifier: str) -> None:
        specifier = specifier.strip()
        by_name = _FOLDER.sub("", specifier, count=1) if _FOLDER.match(specifier) else specifier
        by_name = _PROGRAM.sub(r"\1", by_name, count=1)
        self._pattern = command_pattern(specifier)
        self._by_name = command_pattern(by_name)
        """The same pattern, for commands without the folders of their programs."""
        self._is_prefix = by_name.endswith(PREFIX_ENDINGS)
        self._is_open = by_name.endswith("*")
        body = by_name[:-2] if self._is_prefix else by_name
        self._pieces = re.split(r"\*+", body + " *" if self._is_prefix else body)
        """The literal parts between its stars."""
        first = body.split(maxsplit=1)[0] if body.strip() else ""
        self._program = first
        self._any_program = not first or "*" in first
        words = body.split()
        self._wanted = None
        """Its words in normal form, if it has options, and no star but one at its end."""
        if any(word.startswith("-") for word in words[1:]) and "*" not in body[:-1]:
            self._wanted = options.split(words[0], body.removesuffix("*").split()[1:])

        self._others = [word for word in words[1:] if not word.startswith("-") and "*" not in word]
        name = "[^\\s'\"]{0,64}".join(map(re.escape, re.split(r"\*+", first))) if self._pieces[0] else "(?!)"
        self._spoken = re.compile(rf"(?:\A|[;&|(){{}}\[\]`!=:,/\"'\n]|\b(?:{_STARTS})\b)[ \t]{{0,8}}{name}(?![\w./-])")
        """The name of its program, where a command may begin."""
        self._mentioned = re.compile(name)

    def may_be_given(self, suspect: commands.Suspect) -> bool:
        """True if what a program is given holds one of the commands, as words of its own or in a text."""
        if self._is_spoken_of(suspect.code) or self._is_spoken_of(suspect.input.replace(" ", "\n")):
            return True
        candidates = 0
        for at, word in enumerate(suspect.words):
            text = word.text.partition("=")[2] if word.text[:1] == "-" and "=" in word.text else word.text
            if not self._mentioned.search(text):
                continue
            candidates += 1
            words = (literal(text), *suspect.words[at + 1 :])
            if candidates > _MOST_CANDIDATES or (self.names_program(words[0]) and self.names(words)):
                return True
            if _SEPARATES.search(text) and (self._is_spoken_of(text) or self._may_run(text)):
                return True
        return False

    def _is_spoken_of(self, text: str) -> bool:
        return self._spoken.search(text) is not None and all(other in text for other in self._others)

    def _may_run(self, text: str) -> bool:
        """True if a text runs one of the commands, if it is a line of shell."""
        return any(map(self.names, commands.commands_of(text).commands))

    def spells(self, command: str) -> bool:
        """True if the command is one of them exactly as written."""
        return self._pattern.fullmatch(command) is not None

    def names_program(self, word: Word) -> bool:
        """True if the rule may be about commands of this program."""
        return self._any_program or (self._program in word.text and self._program == _name(word))

    def names(self, words: Sequence[Word]) -> bool:
        """True if these words are one of the commands."""
        texts = [word.source for word in words]
        if self.spells(" ".join(texts)):
            return True
        program = _name(words[0])
        if any(self._by_name.fullmatch(" ".join((program, *texts[at:]))) for at in _subcommand_places(words)):
            return True
        return self._wanted is not None and options.includes(
            self._wanted, options.split(program, texts[1:]), exactly=not self._is_open
        )

    def may_name(self, words: Sequence[Word], sets: frozenset[str]) -> bool:
        """True if they may be one of them, depending on what is not literal. The line sets the variables `sets`.

        A rule that begins with a star is about what is written, and every command with a variable might be one of its.
        """
        if not self._pieces[0] or all(word.literal for word in words):
            return False
        program = literal(_name(words[0]))
        return any(self._may_become([program, *words[at:]], sets) for at in _subcommand_places(words))

    def _may_become(self, words: Sequence[Word], sets: frozenset[str]) -> bool:
        parts = UNKNOWN.split(" ".join(word.text for word in words))
        if len(parts) == 1:
            return False
        first, last = self._pieces[0], self._pieces[-1]
        if first[len(parts[0]) :].startswith("-") and _is_operand(words, sets):
            return False
        if len(self._pieces) == 1:
            return re.fullmatch(".*".join(map(re.escape, parts)), first, re.DOTALL) is not None
        return (first.startswith(parts[0]) or parts[0].startswith(first)) and (
            last.endswith(parts[-1]) or parts[-1].endswith(last)
        )


def _is_operand(words: Sequence[Word], sets: frozenset[str]) -> bool:
    """True if the first word that is not literal begins with what is taken for a value, and not for an option.

    That is a pattern of file names, or a variable that the line does not set.
    """
    word = next(word for word in words if not word.literal)
    variable = _VARIABLE.match(word.source)
    return word.text[0] == GLOB or (variable is not None and variable[1] not in sets)


def _name(word: Word) -> str:
    name = word.text.rpartition("/")[2]
    return name if name.isalnum() else name.removeprefix("=").removesuffix(".exe")  # zsh: `=rm` is the path of rm


def _subcommand_places(words: Sequence[Word]) -> Sequence[int]:
    """The places where a subcommand may stand: behind the program, or behind its options and their values."""
    if len(words) < 2 or words[1].text[:1] not in ("-", "+") or words[1].text == "--":
        return (1,)
    known = programs.operand_places(words)
    if known is not None:
        return sorted({1, *known})
    places = [1]
    for at in range(2, min(len(words), _MOST_OPTIONS)):
        options = [word.text.startswith("-") and word.text != "--" for word in words[at - 2 : at]]
        if not (options[1] or (at > 2 and options[0])):
            break
        places.append(at)
    return places
