"""Command lines: the words by which they can be led back to a program and its subcommand. Pure.

Only lines of one command without quotes, expansions and redirections have parts, because only these say with their
first words what they run. A program that is there to run others (`sh`, `python`, `sudo`, `xargs`) is never opened:
what it runs is in its operands. Nor is one that reaches any host (`curl`, `ssh`): `programs.toml` has them. A program
with subcommands is opened below them only. What a line may run otherwise
is up to the code that judges it: a rule for `git status *` covers no line with `;`, `$(…)` or `git -c
alias.status=!…` in it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from .generalise import MOST_LISTED, Node, Parts
from .places import host_of

FEWEST: Final = 3
"""Different continuations of a command, until any is meant."""

MOST_WORDS: Final = 3
"""Words of a prefix: `npm run build`, `docker compose up`. What follows is an argument, and stays in one part."""

FEWEST_DENIED: Final = 2
"""Different denied lines with the same option, until they bar no beginning any more: then it was the option."""

_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9_-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./~-]+(?: [A-Za-z0-9_@%+=:,./~-]+)*")
OPTION: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


def line_parts(line: str) -> Parts | None:
    """The program, its subcommands and the rest of a line that certainly runs them, as parts. None: there are none."""
    return loose_line_parts(line) if _PLAIN.fullmatch(line) and _reads_so(line) else None


def loose_line_parts(line: str) -> Parts | None:
    """As `line_parts`, for a line that is to be refused or asked about, whatever else it may run."""
    if not _PLAIN.fullmatch(line) or _ASSIGNMENT.match(line):
        return None
    words = line.split(" ")
    named = 1
    while named < min(len(words), MOST_WORDS) and _SUBCOMMAND.fullmatch(words[named]):
        named += 1
    rest = " ".join(words[named:])
    return (*words[:named], *([rest] if rest else ()))


def _reads_so(line: str) -> bool:
    """True if the grammar of shells reads the same words in the line, and none that it cannot tell."""
    from ..shell.commands import commands_of

    read = commands_of(line)
    words = tuple(line.split(" "))
    return not read.unreadable and any(tuple(word.text for word in command) == words for command in read.commands)


def text_parts(text: str) -> Parts | None:
    """The words of any other text, as parts: the first ones, and the rest. None: it is never generalised."""
    words = text.split(" ")
    if "" in words or "*" in words[0] or not text.isprintable() or len(text) > 1000:
        return None
    return (*words[:1], *([" ".join(words[1:])] if words[1:] else ()))


def line_text(parts: Parts, whole: bool) -> str:
    """The text of the rule about a line with these parts, or about all that begin with them."""
    return " ".join(parts) + (" *" if whole else "")


def lines_needed(parts: Parts, node: Node) -> int | None:
    """How many different continuations the beginning of a command needs, as `generalise.opened` asks."""
    if not parts or " " in parts[-1] or _reaches_or_starts(parts):
        return None
    if len(parts) == 1:
        return FEWEST if _takes_operands(parts[0], node.children) else None
    return FEWEST if not _runs_operands(parts) else None


@cache
def _programs() -> Mapping[str, frozenset[str]]:
    with open(os.path.join(os.path.dirname(__file__), "programs.toml"), "rb") as file:
        return {name: frozenset(words.split()) for name, words in tomllib.load(file).items()}


def _reaches_or_starts(parts: Parts) -> bool:
    """True if what the program does is in its operands: it starts others, or reaches whatever host they name."""
    known, program = _programs(), parts[0].rpartition("/")[2]
    alone = known["fetches"] | known["reaches"] | known["starts"]
    subcommand = f"{program}.{parts[1] if len(parts) > 1 else ''}"
    return (
        program in alone or subcommand in known["subcommands"] or (len(parts) == 2 and subcommand in known["remotes"])
    )


def fetched_host(line: str) -> tuple[str, str]:
    """The program and the host of a line that fetches one address; both are empty if there is none."""
    words = line.split(" ")
    if words[0] not in _programs()["fetches"] or not _PLAIN.fullmatch(line):
        return "", ""
    hosts = {host for word in words[1:] if (host := host_of(word))}
    return (words[0], hosts.pop()) if len(hosts) == 1 else ("", "")


def fetched_hosts(lines: Mapping[str, int], barred: Iterable[str]) -> list[str]:
    """Texts of rules that ask about lines that fetch from a host, `curl *//api.example.com*`: of hosts from which so
    many different addresses were fetched that they are not listed. No rule can allow a host and nothing beside it.
    """
    seen: dict[tuple[str, str], int] = {}
    for line in lines:
        if (fetched := fetched_host(line)) != ("", ""):
            seen[fetched] = seen.get(fetched, 0) + 1
    denied = {fetched_host(line) for line in barred}
    return [f"{program} *//{host}*" for (program, host), count in seen.items()
            if count > MOST_LISTED and (program, host) not in denied]  # fmt: skip


def texts_needed(parts: Parts, _node: Node) -> int | None:
    """As `lines_needed`, for other texts."""
    return FEWEST if parts else None


def _takes_operands(program: str, continuations: Iterable[str]) -> bool:
    """True if a program has no subcommands, as far as can be seen, and does not run what it is given."""
    from ..shell.program_table import table
    from ..shell.programs import runs_command
    from ..shell.words import literal

    known = table().program(program)
    entry = known.entry
    if entry is not None:
        return not entry.subcommands and _runs_operands((program,)) and not runs_command((literal(program),))
    return known.is_inert or not all(map(_SUBCOMMAND.fullmatch, continuations))


def _runs_operands(parts: Parts) -> bool:
    from ..shell.program_table import table
    from ..shell.programs import runs_operands

    return table().program(parts[0]).entry is not None and runs_operands(parts)


def denied_beginnings(denied: Iterable[Parts], passed: Iterable[Parts]) -> dict[str, frozenset[Parts]]:
    """Rules about programs and subcommands that only denied lines have, each with the lines that it explains."""
    begun = {parts[:length] for parts in passed for length in range(1, len(parts) + 1)}
    rules: dict[str, set[Parts]] = {}
    for parts in denied:
        length = next((length for length in range(1, len(parts) + 1) if parts[:length] not in begun), 0)
        if length == 1 or (length and _SUBCOMMAND.fullmatch(parts[length - 1])):
            rules.setdefault(line_text(parts[:length], whole=True), set()).add(parts)
    return {text: frozenset(lines) for text, lines in rules.items()}


def denied_options(denied: Iterable[Parts], others: Iterable[Parts]) -> dict[str, frozenset[Parts]]:
    """Rules about the options for which lines were denied, `git push --force *`, each with the lines that it explains.

    Only options that stand in no line that passed. To deny one wherever it stands opens nothing, so one line is enough.
    """
    by_option: dict[tuple[Parts, str], set[Parts]] = {}
    for parts in denied:
        for option in _options(parts):
            by_option.setdefault((_named(parts), option), set()).add(parts)
    passed = {(_named(parts), option) for parts in others for option in _options(parts)}
    return {
        f"{line_text(named, whole=False)} {option} *": frozenset(lines)
        for (named, option), lines in by_option.items()
        if (named, option) not in passed
    }


def _named(parts: Parts) -> Parts:
    """The program and its subcommand: what stands behind them may be in any order."""
    named = [part for part in parts[:2] if " " not in part and not part.startswith("-")]
    return tuple(named)


def _options(parts: Parts) -> list[str]:
    return [word for part in parts[1:] for word in part.split(" ") if OPTION.fullmatch(word)]
