"""Where the options, the operands and the inner command of a program's arguments may stand.

How it works: a state is a place among the words, and how many operands stand before it. Each word leads from a state
to one or several others: an option that is not in the table may or may not take the next word, so both readings are
followed (law 1). A state is visited once, so the work grows with the number of words only. What the words say is noted
and not judged here: `programs` makes commands of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from .program_table import VALUED, Grammar
from .words import HOLE, SPLIT, Word

_TELLING: Final = VALUED - {"values"} | {"hides"}
"""Kinds of options of which the place or the value says something."""
_MOST_JOINED: Final = 1000  # letters of options in one word: people write five
_ASSIGNMENT: Final = re.compile(r"(?!-)[^=]*=", re.DOTALL)


class Arguments:
    """The arguments of a program from one place on, in every reading."""

    __slots__ = (
        "_at", "_grammar", "_program", "_words", "assigned", "before_command", "first_operands", "kinds", "options",
        "perhaps_values", "starts",
    )  # fmt: skip

    def __init__(self, grammar: Grammar, words: Sequence[Word], at: int) -> None:
        self._grammar: Final = grammar
        self._program: Final = grammar.program
        self._words: Final = words
        self._at: Final = at
        self.starts: Final[set[int]] = set()
        """Where the command may begin. It may be the end of the words: then there is none."""
        self.first_operands: Final[set[int]] = set()
        self.options: Final[list[tuple[str, Word | None, int]]] = []
        """Each option: its kind, its value, and the place of the word with which that ends."""
        self.kinds: Final[set[str]] = set()
        self.assigned: Final[list[Word]] = []
        self.perhaps_values: Final[list[Word]] = []
        """Words behind one that may be any option."""
        self.before_command: Final[list[Word]] = []
        """Words before the command of which it is not certain how many they are."""
        todo, seen = [(at, 0)], set[tuple[int, int]]()
        while todo:
            state = todo.pop()
            if state[0] < len(words) and state not in seen:
                seen.add(state)
                todo += self._follow(*state)

    def _follow(self, at: int, operands: int) -> Iterable[tuple[int, int]]:
        """Follow the word at a place, behind so many operands: the states to which it leads."""
        program, word = self._program, self._words[at]
        text = word.text
        if text == "--":
            return self._operand(self._behind_assignments(at + 1), operands, last=True)
        states: list[tuple[int, int]] = []
        if program.runs != "nothing" and not word.literal:
            if SPLIT in text and not text.startswith("-"):
                self.before_command.append(word)
            if text[:1] in (HOLE, SPLIT):
                self.perhaps_values.extend(self._words[at + 1 : at + 2])
                states += (at + 1, operands), (at + 2, operands)
        assigns = program.assigns and _ASSIGNMENT.match(text) is not None
        if assigns:
            self.assigned.append(word)
            states.append((at + 1, operands))
        if assigns and not text.startswith("="):  # zsh reads the path of a program for `=NAME`
            return states
        if (text[:1] in self._grammar.signs and len(text) > 1) or self._grammar.is_listed(text):
            states += [(place, operands) for place in self._option(word, at)]
        else:
            states += self._operand(at, operands, last=False)
        return states

    def _behind_assignments(self, at: int) -> int:
        """The place of the first word from here on that is not an assignment, if there may be any."""
        while self._program.assigns and at < len(self._words) and _ASSIGNMENT.match(self._words[at].text):
            self.assigned.append(self._words[at])
            if self._words[at].text.startswith("="):
                self.starts.add(at)
            at += 1
        return at

    def _operand(self, at: int, operands: int, last: bool) -> Iterable[tuple[int, int]]:
        counts, program = self._grammar.operand_counts, self._program
        if not operands:
            self.first_operands.add(at)
        if program.runs == "nothing":
            return ((at + 1, operands),) if program.permutes and not last else ()
        if operands in counts:
            self.starts.add(at)
        if operands < max(counts):
            if program.permutes and not last:
                return ((at + 1, operands + 1),)
            self.starts.update(at + count - operands for count in counts if count > operands)
        return ()

    def _option(self, word: Word, at: int) -> set[int]:
        """Follow an option: where the next word may stand."""
        text = word.text
        is_listed = self._grammar.is_listed(text)
        if not is_listed and not text.startswith("--"):
            return self._joined(word, at)
        name, equals, value = text.partition("=")
        places: set[int] = set()
        for kind in sorted(self._grammar.of_option(text if is_listed else name)):
            if kind not in VALUED or equals:
                self._note(kind, Word(value, word.source.partition("=")[2]) if equals else None, at)
                places.add(at + 1)
            else:
                self._note(kind, self._word(at + 1), at + 1)
                places.add(at + 2)
        return places

    def _joined(self, word: Word, at: int) -> set[int]:  # noqa: C901  # several readings of each letter
        """Follow short options in one word, of which the last one may have its value there, too."""
        text, is_shell = word.text, bool(self._program.code_flags)
        for option in self._grammar.wordy:  # such as `-TTrm` of zip
            if text.startswith(option):
                for kind in self._grammar.of_option(option) & VALUED:
                    self._note(kind, _tail(word, len(option)), at)
        places: set[int] = set()
        for place in range(1, len(text)):
            kinds = self._grammar.of_option(text[0] + text[place])
            if place > _MOST_JOINED:
                self.options.append(("hides", None, at))
                return places | {at + 1}
            if valued := kinds & VALUED:
                has_rest = place + 1 < len(text)
                value = _tail(word, place + 1) if has_rest else self._word(at + 1)
                end = at if has_rest else at + 1
                for kind in sorted(valued):
                    self._note(kind, value, end)
                # shells take the values of joined options from the words behind them
                places |= {end + 1, at + 2} if is_shell else {end + 1}
            for kind in sorted(kinds - VALUED):
                self._note(kind, None, at)
            if kinds <= VALUED and not is_shell:
                return places
        return places | {at + 1}

    def _word(self, at: int) -> Word | None:
        return self._words[at] if at < len(self._words) else None

    def _note(self, kind: str, value: Word | None, at: int) -> None:
        self.kinds.add(kind)
        if kind in _TELLING:
            self.options.append((kind, value, at))


def operand_places(grammar: Grammar, words: Sequence[Word], at: int) -> set[int]:
    """The places where the first operand may stand, if the options begin at this place."""
    return {at} if grammar.is_operand(words, at) else Arguments(grammar, words, at).first_operands


def _tail(word: Word, start: int) -> Word:
    """A word from this place of its text on, before which all is literal."""
    source = word.source[start:] if word.source.startswith(word.text[:start]) else word.source
    return Word(word.text[start:], source)
