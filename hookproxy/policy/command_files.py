"""Rules about paths for `Read`, `Write` and `Edit`, where a command line names the files: `cat .env` reads one.

Deny and ask rules only (law 1): what a line certainly names is judged as those tools would be. `shell.file_uses` says
what is found; an allow rule never covers a command because of the files that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from posixpath import normpath
from typing import Final

from ..jsonrpc import raw_json
from ..model.late_pattern import late_pattern
from .call_texts import SHELL, CallArguments
from .globs import BudgetExceeded, WorkBudget
from .rules import RuleDecision, Rules

_READ: Final = ("Read",)
_WRITTEN: Final = ("Write", "Edit")
_FOLDER_ARGUMENTS: Final = frozenset({
    "cwd", "workdir", "workingdir", "workingdirectory", "currentdirectory", "currentworkingdirectory", "directory",
    "dir", "dirpath", "folder", "chdir",
})  # fmt: skip
"""Arguments of tools that run commands, without signs between their words, that say in which folder."""
_NOT_LETTERS: Final = late_pattern(r"[\W_]+")
_ABOVE: Final = late_pattern(r"(?:\.\.(?:/|$))+")
"""Which folder that is, only the shell knows: what stands behind it may be anywhere."""


class CommandFiles:
    """The rules of one configuration about files that commands read and write."""

    def __init__(self, rules: Rules) -> None:
        self._read, self._written = (rules.about(names).about_files() for names in (_READ, _WRITTEN))
        self.rules: Final = rules.about((*_READ, *_WRITTEN)).about_files()
        """All of these rules."""

    def __bool__(self) -> bool:
        """Some rule may be about the files of a command."""
        return bool(self._read or self._written)

    def has(self, rule: object, names: Collection[str]) -> bool:
        """True if a rule is one of these, and a tool with these names may run commands."""
        return SHELL in names and any(known is rule for _, known, _ in self.rules.deny_or_ask)

    def judge_calls(self, calls: Iterable[CallArguments]) -> RuleDecision | None:
        """The strictest decision about the files that calls of `Bash` name, which are readings of one call; None: no
        rule is about them. What cannot be read is for other rules.
        """
        lines: dict[str, tuple[str, ...]] = {}
        for call in calls:
            try:
                folders = _folders(call)
                lines.update((line, folders) for _, line in call.texts("command", without_long=True).lines)
            except (ValueError, RecursionError, BudgetExceeded):
                continue
        return self.judge(lines, WorkBudget()) if lines else None

    def judge(self, lines: Mapping[str, Sequence[str]], budget: WorkBudget) -> RuleDecision | None:
        """The strictest decision about the files that these command lines name, each with the folders in which it may
        begin; None: no rule is about them.
        """
        from ..shell.file_uses import TooMany, file_uses  # the grammar of shells takes 30 ms to import, and a table

        found: list[RuleDecision] = []
        for line, folders in lines.items():
            try:
                uses = file_uses(line, folders)
                for rules, files in ((self._read, uses.read), (self._written, uses.written)):
                    if rules and (files.paths or files.patterns):
                        ruling = rules.judge_files(files.paths, _spelled(files.paths), files.patterns, budget)
                        found += [] if ruling is None else [ruling]
            except (TooMany, BudgetExceeded):
                found += [rules.judge_unknown_files() for rules in (self._read, self._written) if rules]
        return max(found, key=lambda ruling: ruling.permission, default=None)


def _folders(call: CallArguments) -> tuple[str, ...]:
    """The folders that the arguments of a call name for its command. Raises ValueError, BudgetExceeded."""
    named = (
        raw_json.text(raw)
        for name, raw in call.members("").items()
        if _NOT_LETTERS.sub("", name).casefold() in _FOLDER_ARGUMENTS
    )
    return tuple(filter(None, named))


def _spelled(paths: Iterable[str]) -> list[str]:
    """The paths, also as folders, without what leads to a folder that nobody knows."""
    spelled: dict[str, None] = {}
    for path in paths:
        plain = normpath(path)
        below = _ABOVE.sub("", plain, count=1)
        names = (plain,) if below == plain else (below, f"/{below}")
        spelled.update((name, None) for name in names if name not in ("", "."))
    return [text for name in spelled for text in (name, f"{name}/")]
