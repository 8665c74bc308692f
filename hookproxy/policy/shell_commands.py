"""Whether a command line may run a command that a rule names, told without a shell, and rather too often.

What is seen through: commands between separators, in parentheses and braces, after reserved words, after variables that
are set for them and after redirections; folders before a program's name; quotes, backslashes, further blanks and
continued lines; options between a program and its subcommand; programs that run what their words say (`env`, `sudo`,
`xargs`, `find -exec`, `sh -c`, `eval`, …). What may become anything counts as meant: substitutions wherever they
stand; quotes, backslashes, expansions and control characters in a command's name; expansions in the words that a rule
names; a shell that reads its commands from somewhere else. A plain command in quotes counts as if it were run.

What is not seen: scripts that are started by name, aliases and functions, programs that another language starts or
another program's configuration names (`perl -e`, `awk`, `make`, `vim -c`, `rsync -e`, `git -c core.pager`, `at`,
`crontab`, `ssh` and containers that read commands), deletion by other means (`find -delete`), options of another
spelling or order (`rm -r -f` for `rm -rf`), case (`RM`). A rule about command lines is no sandbox.

Work is bounded: a line that would take too long to judge counts as meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from .matchers import COMMAND_SEPARATORS, BudgetExceeded, WorkBudget, command_pattern, glob

_SUBSTITUTION: Final = re.compile(r"\$\(|`|[<>]\(|\$\{[\s|]")
"""What runs a command within a word."""

_DUPLICATED: Final = re.compile(r"[<>]&|&>|>\|")
"""Redirections with a sign in them that elsewhere stands between commands."""

_REDIRECTION: Final = re.compile(r"(?:(?<![^ \t\n])(?:\d+|\{\w+\}))?[<>]+")
_SEPARATORS: Final = re.compile(r"[;|&\n()]|(?<![^ \t\n])[{}](?![^ \t\n])")
_UNREADABLE: Final = re.compile(r"[\\'\"$`*?\[\]{}\x00-\x1f\x7f]")
"""In a command's name: it may be another one."""

_EXPANDED: Final = re.compile(r"[$`*?\[{]")
_QUOTES: Final = re.compile(r"[\\'\"]")
_QUOTED: Final = re.compile(r"""\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_IN_QUOTES: Final = re.compile(r"[\s;|&(){}<>]")
_WORD: Final = re.compile(r"[^ \t\n]+")  # to a shell, other blanks are letters
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
"""Programs and builtins that run the command which some of their words are."""

_RUN: Final = re.compile(r"run|exec")
_STARTERS_WITH: Final = {
    "docker": _RUN, "podman": _RUN, "nerdctl": _RUN, "docker-compose": _RUN, "kubectl": _RUN, "oc": _RUN,
    "git": re.compile(r".*\balias\..*", re.DOTALL), "hash": re.compile("-[a-z]*p.*"),
    "tar": re.compile("--(?:to-c|checkpoint-a|use-c|rsh|info-s|new-v).*|-[A-Za-z]*[IF].*", re.DOTALL),
}  # fmt: skip
"""The same, if one of their words is such."""

_VALUE: Final = re.compile(r".*[=!]", re.DOTALL)
"""In a word: what stands before the command that an option's value is."""

_SHELLS: Final = frozenset({
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "su", "eval", "source", ".", "parallel",
})  # fmt: skip
"""They run what they read, or what a word of theirs says."""

_MOST_WORDS: Final = 256  # of a command that starts others: all its ends are looked at
_LONGEST: Final = 16_384  # characters of such a command
_LONGEST_LINE: Final = 32_768
_MOST_COMMANDS: Final = 1024  # of one line that are not the same
_MOST_OPTIONS: Final = 64  # before a subcommand


def command_matcher(wanted: str) -> Callable[[str, WorkBudget], bool]:
    """Tells of a command line whether it may run what a rule says of commands."""
    pattern = command_pattern(wanted)
    by_name = _FOLDER.sub("", wanted, count=1) if _FOLDER.match(wanted) else wanted
    named = _NamedCommands(pattern, command_pattern(by_name), _words(by_name))

    def may_run(line: str, budget: WorkBudget) -> bool:
        try:
            return _may_run(line, named, budget)
        except BudgetExceeded:
            return True

    return may_run


class _NamedCommands:
    """The commands that a rule names."""

    __slots__ = ("_by_name", "_first", "_pattern", "_words")

    def __init__(self, pattern: re.Pattern[str], by_name: re.Pattern[str], words: Sequence[re.Pattern[str]]) -> None:
        self._pattern = pattern
        self._by_name = by_name
        """The same, for commands without the folders of their programs."""
        self._words = words
        """The first words, as far as each stands for one."""
        self._first = re.compile(words[0].pattern + r"(?:\s.*)?", re.DOTALL) if words else None

    def spelled(self, command: str) -> bool:
        """The command is one of them exactly as it is written."""
        return self._pattern.fullmatch(command) is not None

    def named(self, words: Sequence[str], budget: WorkBudget) -> bool:
        """The words are one of them, or may become it."""
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
        for at, (wanted, word) in enumerate(zip(self._words, words, strict=False)):
            if at and _EXPANDED.search(word):
                return True
            if not wanted.fullmatch(word):
                return False
        return False


def _words(wanted: str) -> list[re.Pattern[str]]:
    first = wanted.removesuffix(":*").removesuffix(" *").partition("*")
    words = first[0].split()
    if first[1] and words and not first[0][-1:].isspace():
        words.pop()  # the beginning of a word
    return [re.compile(glob(word)) for word in words]


def _subcommands(words: list[str], budget: WorkBudget) -> Iterator[list[str]]:
    """The words, and the words without options and their values before a subcommand."""
    yield words
    for at in range(2, min(len(words), _MOST_OPTIONS)):
        if not (words[at - 1].startswith("-") or (at > 2 and words[at - 2].startswith("-"))):
            return
        budget.spend(300 + 40 * len(words) + sum(map(len, words)))
        yield [words[0], *words[at:]]


def _may_run(line: str, named: _NamedCommands, budget: WorkBudget) -> bool:
    if len(line) > _LONGEST_LINE or _SUBSTITUTION.search(line):
        return True
    budget.spend(4 * len(line))
    if named.spelled(line.strip()):
        return True
    whole = _read(line)
    budget.spend(50 * len(whole.parts))
    return (
        len(whole.parts) > _MOST_COMMANDS
        or whole.unclear
        or any(map(named.spelled, whole.parts))
        or any(_may_start(words, named, budget) for words in whole.commands)
    )


class _Line(NamedTuple):
    """A command line, read once for all rules."""

    parts: frozenset[str]
    """What is between separators."""
    commands: tuple[tuple[str, ...], ...]
    """The words of every command that may be in it."""
    unclear: bool
    """A command's name is none that can be read."""


@lru_cache(maxsize=1)
def _read(line: str) -> _Line:
    parts = frozenset(part.strip() for part in COMMAND_SEPARATORS.split(line))
    if len(parts) > _MOST_COMMANDS:
        return _Line(parts, (), True)
    line = line.replace("\r\n", "\n")
    lines = {line, line.replace("\\\n", "")}  # unless that backslash is one that another has escaped
    masked = {_masked(one) for one in lines}
    clear = {tuple(words) for one in masked for words in _parts(one)}
    return _Line(
        parts,
        tuple(clear.union(tuple(words) for one in lines - masked for words in _parts(one))),
        any(map(_name_is_unreadable, clear)),
    )


def _masked(line: str) -> str:
    """The line without blanks and separators in quotes, or as it is where it may not be told what is in quotes."""
    if "<<" in line or "#" in line or "${" in line or _QUOTES.search(_QUOTED.sub("", line)):
        return line
    return _QUOTED.sub(lambda quoted: quoted[0] if quoted[0][0] == "\\" else _IN_QUOTES.sub("_", quoted[0]), line)


def _parts(line: str) -> Iterator[list[str]]:
    both = (line, _DUPLICATED.sub(">", line))  # an escaped sign is none of a redirection
    for part in {part for one in both for part in _SEPARATORS.split(one)}:
        yield from _commands(part)


def _commands(part: str) -> Iterator[list[str]]:
    """The words of one command without what stands before it: with redirections as words, and without them."""
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
    """The command's name is none that can be read."""
    return words[0] not in _TESTS and _UNREADABLE.search(words[0]) is not None


def _may_start(words: Sequence[str], named: _NamedCommands, budget: WorkBudget) -> bool:
    """The command is one of those, or starts one."""
    if named.named(words, budget):
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
    return any(_may_start_at(words[at:], named, budget) for at in range(1, len(words)))


def _is_starter(name: str, words: Sequence[str]) -> bool:
    with_ = _STARTERS_WITH.get(name)
    return name in _STARTERS or (with_ is not None and any(with_.fullmatch(_QUOTES.sub("", word)) for word in words))


def _may_start_at(words: Sequence[str], named: _NamedCommands, budget: WorkBudget) -> bool:
    first = _QUOTES.sub("", words[0])
    name = first.rpartition("/")[2]
    value = _VALUE.sub("", first)
    if named.named(words, budget) or (value and value != first and named.named((value, *words[1:]), budget)):
        return True
    if name not in _SHELLS and name not in _STARTERS:
        return False
    budget.spend(100 * len(words))
    return (name in _SHELLS and name != "." and _reads_elsewhere(words)) or (
        name in _STARTERS and _starts_unreadable(words[1:])
    )


def _starts_unreadable(words: Sequence[str]) -> bool:
    """One of the words that may be the started command's name cannot be read: an option may have taken the first."""
    plain = [word for word in words if not (word.startswith("-") or _stands_before(word))]
    return any(_EXPANDED.search(word) for word in plain[:2])


def _reads_elsewhere(words: Sequence[str]) -> bool:
    """A shell whose commands do not stand in its words, or not as they will be."""
    rest = [word for word in words[1:] if not word.startswith(("-", "+"))]
    return not rest or ">" in rest or any(map(_EXPANDED.search, rest))
