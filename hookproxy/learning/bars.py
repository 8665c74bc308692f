"""What was denied, or asked about, in whatever spelling: no rule opens a place around it. Pure.

A rule that would deny such a call, if it were a deny rule, must not be an allow rule: deny rules know all spellings. So
`rm *` is not opened after `cd x && sudo /bin/rm -rf y` was denied, and no folder after one of its files was denied as
`x/../keys/id`. There is one exception. No allow rule covers a line of several commands, so the default meets it
whatever the rules say of its parts: then a command that is like those that passed alone, by its options and by the
folders that it names, bars nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..model.settings import Settings
from ..policy.rules import Rules
from . import places
from .commands import OPTION
from .generalise import Parts

_ANY: Final = ""  # the key of calls that are not about commands


class Bars:
    """The calls of one tool that bar their surroundings."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        """`name` is the tool's in rules, `names` are all that rules may know it by."""
        self._name = name
        self._names = names
        self._calls: dict[str, list[bytes]] = {}

    def add(self, arguments: bytes, programs: Iterable[str] = (_ANY,)) -> None:
        """Add a call; one that is about commands with the programs that it may run, by their names without folders."""
        for program in programs:
            self._calls.setdefault(program, []).append(arguments)

    def hits(self, text: str, program: str = _ANY) -> bool:
        """True if a rule with this text would have denied one of the calls; of those about commands: with this one."""
        calls = self._calls.get(os.path.basename(program), ())
        if not calls:
            return False
        try:
            about = Rules.of(Settings(deny=(f"{self._name}({text})",), unreadable="allow")).about(self._names)
        except ValueError:
            return True
        return any(about.judge(arguments) for arguments in calls)


class PassedCommands:
    """What is known of the programs whose lines passed, each by its name without a folder."""

    def __init__(self, lines: Iterable[Parts]) -> None:
        self._known: dict[str, set[str]] = {}
        for parts in lines:
            words = [word for part in parts for word in part.split(" ")]
            self._known.setdefault(os.path.basename(words[0]), set()).update(_features(words))

    def barred_programs(self, line: str, *, says_nothing: bool) -> set[str]:
        """The programs that a line may run, and that it bars, by their names without folders.

        `says_nothing`: it was denied for another reason than its parts, as far as these are like what passed.
        """
        commands = _commands(line)
        return {os.path.basename(words[0]) for words in commands if not says_nothing or not self._passed_alike(words)}

    def _passed_alike(self, words: Sequence[str]) -> bool:
        """True if lines passed of which one had each of its options, and one named something in each of its folders."""
        return self._known.get(os.path.basename(words[0]), set()).issuperset(_features(words))


def programs(line: str) -> set[str]:
    """The programs that a line may run, as they stand there."""
    return {words[0] for words in _commands(line)}


def _commands(line: str) -> list[list[str]]:
    """The words of each command, without those of which nobody knows what they become."""
    from ..shell.commands import commands_of

    found = ([word.text for word in words if word.literal] for words in commands_of(line).commands if words)
    return [words for words in found if words]


def _features(words: Sequence[str]) -> Iterator[str]:
    """The options of a command, its subcommand, and the folders of its operands; an operand that is not plain is one
    itself.
    """
    for at, word in enumerate(words[1:], 1):
        if OPTION.fullmatch(word) or (at == 1 and "/" not in word and "." not in word):
            yield word
        else:
            parts = places.path_parts(word)
            yield word if parts is None else "/".join(parts[: 2 if len(parts) > 2 else 1]) + "/"
