"""A second opinion on command lines: the reader by regular expressions that the package had before it had a grammar.

Decide without a shell whether a command line may run a command that a rule names. In doubt, it may.

Recognised: commands between separators, in parentheses and braces, after reserved words, after variables that
are set for them and after redirections; folders before a program's name; quotes, backslashes, further blanks and
continued lines; options between a program and its subcommand; programs that run the command in their arguments (`env`,
`sudo`, `xargs`, `find -exec`, `sh -c`, `eval`, …). Text that may become anything counts as a match: substitutions
anywhere; quotes, backslashes, expansions and control characters in a command's name; expansions in the words that a
rule names; a shell that reads its commands from somewhere else. A plain command in quotes counts as if it were run.

Not recognised: scripts that are started by name, aliases and functions, programs that are started from another
language or named in the configuration of another program (`perl -e`, `awk`, `make`, `vim -c`, `rsync -e`,
`git -c core.pager`, `at`, `crontab`, `ssh` and containers that read commands), deletion by other means
(`find -delete`), options in another spelling or order (`rm -r -f` for `rm -rf`), another case (`RM`). A rule about
command lines is not a sandbox.

The work is limited: a line that would take too long to judge counts as a match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from hookproxy.policy.globs import COMMAND_SEPARATORS, BudgetExceeded, WorkBudget, command_pattern, glob

_SUBSTITUTION: Final = re.compile(r"\$\(|`|[<>]\(|\$\{[\s|]")
"""It matches what runs a command inside a word."""

_DUPLICATED: Final = re.compile(r"[<>]&|&>|>\|")
"""Redirections that contain a sign which elsewhere separates commands."""

_REDIRECTION: Final = re.compile(r"(?:(?<![^ \t\n])(?:\d+|\{\w+\}))?[<>]+")
_SEPARATORS: Final = re.compile(r"[;|&\n()]|(?<![^ \t\n])[{}](?![^ \t\n])")
_UNREADABLE: Final = re.compile(r"[\\'\"$`*?\[\]{}\x00-\x1f\x7f]")
"""In a command's name: a shell may run a command of another name."""

_EXPANDED: Final = re.compile(r"[$`*?\[{]")
_QUOTES: Final = re.compile(r"[\\'\"]")
_QUOTED: Final = re.compile(r"""\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_IN_QUOTES: Final = re.compile(r"[\s;|&(){}<>]")
_WORD: Final = re.compile(r"[^ \t\n]+")  # a shell treats other blanks as letters
_FOLDER: Final = re.compile(r"[^\s*]*/(?=[^\s*/])")
_ASSIGNMENT: Final = re.compile(r"\w+(?:\[[^\]]*\])?\+?=.*", re.DOTALL)
_RESERVED: Final = frozenset({"!", "if", "then", "else", "elif", "while", "until", "do"})
_TESTS: Final = frozenset({"[", "[["})

_STARTERS: Final = frozenset({
    "builtin", "busybox", "bwrap", "capsh", "chpst", "chroot", "chrt", "command", "coproc", "cpulimit",
    "dbus-run-session", "doas", "dumb-init", "env", "exec", "fakeroot", "firejail", "flatpak-spawn", "flock", "gosu",
    "ionice", "ltrace", "nice", "nohup", "nsenter", "numactl", "parallel", "pkexec", "prlimit", "runuser", "script",
    "setarch", "setpriv", "setsid", "setuidgid", "softlimit", "ssh", "start-stop-daemon", "stdbuf", "strace", "su-exec",
    "sudo", "systemd-inhibit", "systemd-run", "taskset", "time", "timeout", "tini", "toybox", "trap", "unbuffer",
    "unshare", "watch", "xargs",
})  # fmt: skip
"""Programs and builtins that run a command which is among their arguments."""

_RUN: Final = re.compile(r"run|exec")
_STARTERS_WITH: Final = {
    "docker": _RUN, "podman": _RUN, "nerdctl": _RUN, "docker-compose": _RUN, "kubectl": _RUN, "oc": _RUN,
    "git": re.compile(r".*\balias\..*", re.DOTALL), "hash": re.compile("-[a-z]*p.*"),
    "tar": re.compile("--(?:to-c|checkpoint-a|use-c|rsh|info-s|new-v).*|-[A-Za-z]*[IF].*", re.DOTALL),
}  # fmt: skip
"""Programs that do the same if one of their arguments matches this pattern."""

_VALUE: Final = re.compile(r".*[=!]", re.DOTALL)
"""The part of a word before a command that is the value of an option."""

_SHELLS: Final = frozenset({
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "su", "eval", "source", ".", "parallel",
})  # fmt: skip
"""Programs that run the commands which they read, or which one of their arguments contains."""

_MOST_WORDS: Final = 256  # of a command that starts others: each word may begin the other command
_LONGEST: Final = 16_384  # characters of such a command
_LONGEST_LINE: Final = 32_768
_MOST_COMMANDS: Final = 1024  # different commands of one line
_MOST_OPTIONS: Final = 64  # before a subcommand


def command_matcher(specifier: str) -> Callable[[str, WorkBudget], bool]:
    """Return a function that decides whether a command line may run a command that this specifier names."""
    pattern = command_pattern(specifier)
    by_name = _FOLDER.sub("", specifier, count=1) if _FOLDER.match(specifier) else specifier
    rule_commands = _RuleCommands(pattern, command_pattern(by_name), _words(by_name))

    def may_run(line: str, budget: WorkBudget) -> bool:
        try:
            return _may_run(line, rule_commands, budget)
        except BudgetExceeded:
            return True

    return may_run


class _RuleCommands:
    """The commands that a rule names."""

    __slots__ = ("_by_name", "_first", "_pattern", "_words")

    def __init__(self, pattern: re.Pattern[str], by_name: re.Pattern[str], words: Sequence[re.Pattern[str]]) -> None:
        self._pattern = pattern
        self._by_name = by_name
        """The same pattern, for commands without the folders of their programs."""
        self._words = words
        """The first words of the specifier, as long as each stands for exactly one word."""
        self._first = re.compile(words[0].pattern + r"(?:\s.*)?", re.DOTALL) if words else None

    def spelled(self, command: str) -> bool:
        """True if the command is one of them exactly as written."""
        return self._pattern.fullmatch(command) is not None

    def include(self, words: Sequence[str], budget: WorkBudget) -> bool:
        """True if these words are one of them, or may become one."""
        budget.spend(200)
        if self._first and not self._first.fullmatch(_QUOTES.sub("", words[0]).rpartition("/")[2]):
            return False
        budget.spend(300 + 40 * len(words) + sum(map(len, words)))
        plain = [_QUOTES.sub("", word) for word in words]
        short = [plain[0].rpartition("/")[2], *plain[1:]]
        return (
            self.spelled(" ".join(words))
            or self.spelled(" ".join(plain))
            or any(
                self._by_name.fullmatch(" ".join(one)) or self._may_become(one) for one in _subcommands(short, budget)
            )
        )

    def _may_become(self, words: Sequence[str]) -> bool:
        for at, (specifier, word) in enumerate(zip(self._words, words, strict=False)):
            if at and _EXPANDED.search(word):
                return True
            if not specifier.fullmatch(word):
                return False
        return False


def _words(specifier: str) -> list[re.Pattern[str]]:
    first = specifier.removesuffix(":*").removesuffix(" *").partition("*")
    words = first[0].split()
    if first[1] and words and not first[0][-1:].isspace():
        words.pop()  # it is only the beginning of a word
    return [re.compile(glob(word)) for word in words]


def _subcommands(words: list[str], budget: WorkBudget) -> Iterator[list[str]]:
    """Yield the words, and the words without the options and their values before a subcommand."""
    yield words
    for at in range(2, min(len(words), _MOST_OPTIONS)):
        if not (words[at - 1].startswith("-") or (at > 2 and words[at - 2].startswith("-"))):
            return
        budget.spend(300 + 40 * len(words) + sum(map(len, words)))
        yield [words[0], *words[at:]]


def _may_run(line: str, rule_commands: _RuleCommands, budget: WorkBudget) -> bool:
    if len(line) > _LONGEST_LINE or _SUBSTITUTION.search(line):
        return True
    budget.spend(4 * len(line))
    if rule_commands.spelled(line.strip()):
        return True
    whole = _read(line)
    budget.spend(50 * len(whole.parts))
    return (
        len(whole.parts) > _MOST_COMMANDS
        or whole.unclear
        or any(map(rule_commands.spelled, whole.parts))
        or any(_may_start(words, rule_commands, budget) for words in whole.commands)
    )


class _Line(NamedTuple):
    """A command line, read once for all rules."""

    parts: frozenset[str]
    """The texts between separators."""
    commands: tuple[tuple[str, ...], ...]
    """The words of every command that may be in it."""
    unclear: bool
    """The name of some command cannot be read."""


@lru_cache(maxsize=1)
def _read(line: str) -> _Line:
    parts = frozenset(part.strip() for part in COMMAND_SEPARATORS.split(line))
    if len(parts) > _MOST_COMMANDS:
        return _Line(parts, (), True)
    line = line.replace("\r\n", "\n")
    lines = {line, line.replace("\\\n", "")}  # wrong if another backslash escapes that one: so both lines are read
    masked = {_masked(one) for one in lines}
    clear = {tuple(words) for one in masked for words in _parts(one)}
    return _Line(
        parts,
        tuple(clear.union(tuple(words) for one in lines - masked for words in _parts(one))),
        any(map(_name_is_unreadable, clear)),
    )


def _masked(line: str) -> str:
    """Return the line without blanks and separators in quotes; unchanged if it is not certain what is in quotes."""
    if "<<" in line or "#" in line or "${" in line or _QUOTES.search(_QUOTED.sub("", line)):
        return line
    return _QUOTED.sub(lambda quoted: quoted[0] if quoted[0][0] == "\\" else _IN_QUOTES.sub("_", quoted[0]), line)


def _parts(line: str) -> Iterator[list[str]]:
    both = (line, _DUPLICATED.sub(">", line))  # an escaped sign does not redirect
    for part in {part for one in both for part in _SEPARATORS.split(one)}:
        yield from _commands(part)


def _commands(part: str) -> Iterator[list[str]]:
    """Yield the words of one command without what precedes it: with redirections as words, and without them."""
    words = _WORD.findall(_REDIRECTION.sub(" > ", part))
    without: list[str] = []
    target = False
    for word in words:
        if not target and word != ">":
            without.append(word)
        target = word == ">"
    for each in [words, without] if len(words) != len(without) else [words]:
        begin = next((at for at, word in enumerate(each) if not _stands_before(word)), len(each))
        if begin < len(each):
            yield each[begin:]


def _stands_before(word: str) -> bool:
    return word in _RESERVED or _ASSIGNMENT.fullmatch(word) is not None


def _name_is_unreadable(words: Sequence[str]) -> bool:
    """True if the command's name cannot be read."""
    return words[0] not in _TESTS and _UNREADABLE.search(words[0]) is not None


def _may_start(words: Sequence[str], rule_commands: _RuleCommands, budget: WorkBudget) -> bool:
    """True if the command is one of the named commands, or starts one."""
    if rule_commands.include(words, budget):
        return True
    name = words[0].rpartition("/")[2]
    if name in _SHELLS and _reads_elsewhere(words):
        return True
    if name == "find" and any(
        one.startswith(("-exec", "-ok")) and _UNREADABLE.search(two) for one, two in pairwise(words)
    ):
        return True
    if not (_is_starter(name, words) or name in _SHELLS or name == "find"):
        return False
    if len(words) > _MOST_WORDS or sum(map(len, words)) > _LONGEST:
        return True
    if name in _STARTERS and _starts_unreadable(words[1:]):
        return True
    return any(_may_start_at(words[at:], rule_commands, budget) for at in range(1, len(words)))


def _is_starter(name: str, words: Sequence[str]) -> bool:
    argument_pattern = _STARTERS_WITH.get(name)
    return name in _STARTERS or (
        argument_pattern is not None and any(argument_pattern.fullmatch(_QUOTES.sub("", word)) for word in words)
    )


def _may_start_at(words: Sequence[str], rule_commands: _RuleCommands, budget: WorkBudget) -> bool:
    first = _QUOTES.sub("", words[0])
    name = first.rpartition("/")[2]
    value = _VALUE.sub("", first)
    if rule_commands.include(words, budget) or (
        value and value != first and rule_commands.include((value, *words[1:]), budget)
    ):
        return True
    if name not in _SHELLS and name not in _STARTERS:
        return False
    budget.spend(100 * len(words))
    return (name in _SHELLS and name != "." and _reads_elsewhere(words)) or (
        name in _STARTERS and _starts_unreadable(words[1:])
    )


def _starts_unreadable(words: Sequence[str]) -> bool:
    """True if a word that may be the name of the started command cannot be read. An option may take the first word."""
    plain = [word for word in words if not (word.startswith("-") or _stands_before(word))]
    return any(_EXPANDED.search(word) for word in plain[:2])


def _reads_elsewhere(words: Sequence[str]) -> bool:
    """True if a shell's commands are not in its arguments, or the arguments will be expanded."""
    rest = [word for word in words[1:] if not word.startswith(("-", "+"))]
    return not rest or ">" in rest or any(map(_EXPANDED.search, rest))
