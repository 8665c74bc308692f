"""`hookproxy lock`: pins what servers say of themselves in a file, and compares it with what they say now.

The diff is written to standard output, all other messages to standard error. Exit status: 0 done; 1 `--check` found a
difference; 2 it failed: of a server that did not answer, the old entry is kept, and those of the others are written.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from difflib import ndiff
from functools import partial
from typing import Final

import anyio
from msgspec import Struct

from ..checks.server_description import DESCRIBE_SECONDS, Described
from ..lock import hidden_text, lock_file
from ..lock.changes import Change, shortened
from ..lock.compare import IDENTITY, OF_SERVER, Pinned, accept, is_named
from ..lock.description import Description, Identity, Kind
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError, printable
from ..session.lock_command import with_server
from . import lock_place, lock_targets
from .common import show, split_command, tell, working_directory
from .hook_runtime import run_until_done
from .layout import new_page
from .lock_targets import Target, Targets
from .options import Parser, add_remote_options, seconds
from .progress import waiting

_LONGEST_SECONDS: Final = 3600.0  # more is a mistake: nobody waits for it
_AT_ONCE: Final = 4  # servers that run at the same time: each may be a whole Node.js
_MOST_LINES: Final = 60  # of one text in the diff: more is read in the file
_COLUMNS: Final = 500  # of one line of it: the rest of a long one follows in the next
_MOST_COMPARED: Final = 4000  # characters that are compared letter by letter, which takes time
_MOST_SHOWN: Final = 200  # changes of one server
_STYLES: Final = {"+": "green", "-": "red", "?": "dim"}
_NEW: Final = Description(Identity(), {})


class _Answers(Struct, frozen=True):
    """What the servers said, and the errors of those that did not."""

    described: Mapping[str, Described]
    errors: Mapping[str, UserError]


def main(arguments: Sequence[str]) -> int:
    """Ask the servers, show what has changed, and write the file. Returns the exit status."""
    words, command = split_command(arguments)
    options = build_parser().parse_args(words)
    options.command = command
    cwd = working_directory()
    _check(options, command)
    targets = _targets(options, command, cwd)
    path = options.file or targets.file or lock_file.NAME
    before = _read(path, options)
    tell(*targets.notes)
    with waiting("what the servers say of themselves"):
        answers = run_until_done(lambda: _ask_all(targets.targets, options.timeout))
    return _Outcome(options, path, before, targets.targets, answers).carry_out()


def _check(options: Namespace, command: Sequence[str]) -> None:
    """Raise UserError for options that exclude each other."""
    by_line = [name for name, given in (("-- COMMAND", command), ("--url", options.url)) if given]
    sources = [name for name in ("--agent", "--config") if getattr(options, name[2:]) is not None] + by_line
    if len(sources) > 1:
        raise UserError(f"{sources[0]} and {sources[1]} exclude each other", "servers come from one of them")
    if options.name and not by_line:
        raise UserError("--name has no server to name", "write -- COMMAND [ARG...] after it, or --url URL")
    if options.server and by_line:
        raise UserError(f"--server is not for {by_line[0]}", "leave it out: there is one server")
    for name in ("header", "ca", "cert", "key", "allow_http"):
        if getattr(options, name) and options.url is None:
            raise UserError(f"--{name.replace('_', '-')} is for --url", "name the server's address: --url URL")


def _targets(options: Namespace, command: Sequence[str], cwd: str) -> Targets:
    if command or options.url is not None:
        return lock_targets.of_line(options, command, cwd)
    if options.config is None:
        return lock_targets.of_agents(options.agent, options.server, cwd)
    from ..config.gateway import load_gateway

    return lock_targets.of_gateway(load_gateway(options.config, os.environ, cwd, makes_lock=True), options)


def _read(path: str, options: Namespace) -> lock_file.Lock:
    if not os.path.lexists(path):
        if options.check or options.diff or options.accept:
            raise UserError(f"there is no {printable(path)}", f"{_verb(options)} makes it; --file names another one")
        return {}
    return lock_file.read(path)


def _verb(options: Namespace, *more: str) -> str:
    """The command line with these words more that is about the same lock and the same server."""
    given = [(f"--{name}", getattr(options, name)) for name in ("agent", "config", "file", "name")]
    words = ["hookproxy", "lock", *more, *(word for pair in given if pair[1] for word in pair)]
    return (
        with_server(words, options.url or "", options.command) if options.url or options.command else shlex.join(words)
    )


async def _ask_all(targets: Sequence[Target], seconds: float) -> _Answers:
    described: dict[str, Described] = {}
    errors: dict[str, UserError] = {}
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def ask(target: Target) -> None:
        async with limit:
            tell(f"{target.name}: asking {shortened(target.shown)}")
            try:
                described[target.name] = await target.ask(seconds)
            except UserError as error:
                errors[target.name] = error

    async with anyio.create_task_group() as tasks:
        for target in targets:
            tasks.start_soon(ask, target)
    return _Answers(described, errors)


class _Outcome:
    """What is done with what the servers said."""

    def __init__(
        self,
        options: Namespace,
        path: str,
        before: lock_file.Lock,
        targets: Sequence[Target],
        answers: _Answers,
    ) -> None:
        self._options = options
        self._path = path
        self._before = before
        self._targets = targets
        self._answers = answers
        self._by_line = all(target.place == lock_targets.LINE for target in targets)
        self._page = new_page(short=not options.verbose)

    def carry_out(self) -> int:
        """Show what has changed, and write it unless it is only to be shown. Returns the exit status."""
        new = self._new()
        changed = [name for name, description in new.items() if self._show_changes(name, description)]
        withheld = self._show_withheld() if self._only_shows else []
        show(self._page.text)
        self._tell_hidden(new)
        for name, described in self._answers.described.items():
            told = described.notes if self._only_shows else (*described.notes, *described.withheld)
            tell(*(f"{name}: {note}" for note in told))
        if self._only_shows:
            self._tell_absent()
            tell(self._summary(changed, withheld))
        else:
            self._write(new, changed)
        for name, error in self._answers.errors.items():
            kept = "its old entry is kept" if name in self._before else "it is not in the lock"
            tell(f"error: {name}: {error.message} ({kept})", f"hint: {error.hint}", prefix="")
        if self._answers.errors:
            return EXIT_USER_ERROR
        return EXIT_FINDINGS if self._options.check and (changed or withheld) else 0

    @property
    def _only_shows(self) -> bool:
        return bool(self._options.check or self._options.diff)

    def _show_withheld(self) -> list[str]:
        """Show what is withheld because it cannot be pinned. Returns the names of its servers."""
        withheld = {name: described.withheld for name, described in self._answers.described.items()}
        for name, notes in sorted(withheld.items()):
            for note in notes:
                self._page.line((f"{name}: {note}", "bold"))
        return sorted(name for name, notes in withheld.items() if notes)

    def _new(self) -> dict[str, Description]:
        """What is to be pinned of the servers that answered. Raises UserError for a name that none of them has."""
        new = {name: described.description for name, described in sorted(self._answers.described.items())}
        names = self._options.accept
        if not names:
            return new
        keys = {key for lock in (new, self._before) for description in lock.values() for key in description.entries}
        for name in names:
            if name.removeprefix(f"{OF_SERVER}:") not in IDENTITY and not any(is_named(key, name) for key in keys):
                from ..dialects.shared.hook_file import suggestion

                hint = (
                    suggestion(name, {key[1] for key in keys})
                    or f"or {', '.join(IDENTITY)} of a server; --diff shows what has changed"
                )
                raise UserError(f"--accept: no server has {name!r}", hint)
            self._check_is_of_one_server(name, new)
        return {name: accept(self._before.get(name, _NEW), came, names) for name, came in new.items()}

    def _check_is_of_one_server(self, name: str, new: Mapping[str, Description]) -> None:
        """Raise UserError if several servers have changed something of this name: another one may be hostile."""
        before = self._before
        changed = [
            server for server, came in new.items() if accept(old := before.get(server, _NEW), came, [name]) != old
        ]
        if len(changed) > 1:
            servers = ", ".join(map(printable, changed))
            raise UserError(f"--accept: {name} has changed at several servers: {servers}", "add --server NAME for one")

    def _write(self, new: Mapping[str, Description], changed: Sequence[str]) -> None:
        if not changed:
            tell(f"{self._path}: nothing has changed" if self._answers.described else "nothing was written")
            return
        lock_file.update(self._path, lambda before: {**before, **{name: new[name] for name in changed}})
        what = ", ".join(f"{name} ({_counts(new[name])})" for name in changed)
        tell(f"{self._path}: written: {what}")
        cwd = working_directory()
        beside = os.path.join(os.path.dirname(self._path), "hookproxy.toml")
        config = beside if os.path.isfile(beside) else None
        of_line = (lock_place.of_run(config, os.environ, cwd),) if self._by_line else ()
        tell(lock_place.not_read_by(self._path, {target.name: of_line or target.readers for target in self._targets}))

    def _summary(self, changed: Sequence[str], withheld: Sequence[str]) -> str:
        if changed:
            how = f"to accept what is in order: {_verb(self._options, '--accept', 'TOOL')}"
            return f"{self._path}: {', '.join(changed)} changed; {how}"
        if withheld:
            return f"{self._path}: what cannot be pinned is withheld from the agents: of {', '.join(withheld)}"
        return f"{self._path}: nothing has changed" if self._answers.described else ""

    def _tell_absent(self) -> None:
        """Warn of servers in the lock that are not there, if all were asked."""
        if not self._options.server and not self._by_line:
            asked = {target.name for target in self._targets}
            for name in self._before:
                if name not in asked:
                    tell(f"warning: {self._path} pins {name}, and there is no such server")

    def _tell_hidden(self, new: Mapping[str, Description]) -> None:
        lock = {**self._before, **new}
        for name, described in self._answers.described.items():
            others = {other: description for other, description in lock.items() if other != name}
            for hidden in hidden_text.in_server(described.description, others):
                tell(f"warning: {name}: {hidden.line()}")

    def _show_changes(self, name: str, new: Description) -> bool:
        """Show what differs from the lock; False: nothing."""
        pinned = self._before.get(name)
        changes = Pinned(_NEW if pinned is None else pinned).compare(new)
        if pinned is None:
            self._page.line((f"+ {name}: {_counts(new)}", "green"))
            if not self._only_shows:
                return True
        for change in changes[:_MOST_SHOWN]:
            self._page.line((f"{name}: {change.line()}", "bold"))
            for line in _text_lines(change):
                self._page.line((f"    {line}", _STYLES.get(line[:1], "")))
        if len(changes) > _MOST_SHOWN:
            self._page.line(f"{name}: and {len(changes) - _MOST_SHOWN} more changes")
        return bool(changes) or pinned is None


def _counts(description: Description) -> str:
    counts = [(kind, sum(key[0] is kind for key in description.entries)) for kind in Kind]
    return ", ".join(counted(count, kind.value) for kind, count in counts if count) or "neither tools nor prompts"


def _text_lines(change: Change) -> Iterator[str]:
    """What differs in the two texts of a change, with an escape for each character that is not seen.

    What is cut off is counted: nothing that differs is left out unseen.
    """
    before, after = _pieces(change.before), _pieces(change.after)
    same = _common(before, after)
    before, after = before[same:], after[same:]
    same = _common(before[::-1], after[::-1])
    before, after = before[: len(before) - same], after[: len(after) - same]
    old, new = (list(map(lock_file.seen, lines[:_MOST_LINES])) for lines in (before, after))
    if old and new and sum(map(len, (*old, *new))) <= _MOST_COMPARED:
        yield from (line.rstrip("\n") for line in ndiff(old, new) if not line.startswith("  "))
    else:
        yield from (f"- {line}" for line in old)
        yield from (f"+ {line}" for line in new)
    for sign, lines in (("-", before), ("+", after)):
        if len(lines) > _MOST_LINES:
            rest = sum(map(len, lines[_MOST_LINES:]))
            yield f"{sign} … and {counted(rest, 'more character')}, of which some differ"


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (line, its) in pairs if line != its), min(len(one), len(other)))


def _pieces(text: str) -> list[str]:
    """The lines of a text, the long ones in pieces."""
    if not text:
        return []
    return [line[at : at + _COLUMNS] for line in text.split("\n") for at in range(0, len(line) or 1, _COLUMNS)]


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "lock",
        "Ask servers what they say of themselves (tools, prompts, resource templates, instructions), and pin it in a "
        "file that is made to be committed. Without --agent, --config and a server: the servers in the agents' files "
        "of this project. The servers are started, as their agents would start them. Exit status: 0 done, 1 --check "
        "found a difference, 2 a server did not answer: its old entry is kept.",
        rest="[-- COMMAND [ARG...]]",
    )
    parser.add_argument("--agent", metavar="NAME", help="the servers of this agent, the user's and the project's")
    parser.add_argument("--config", metavar="FILE", help="the servers of this gateway.toml")
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this server; may be given several times"
    )
    parser.add_argument("--name", help="the server's name in the lock (default: derived from COMMAND or URL)")
    parser.add_argument(
        "--file",
        metavar="FILE",
        help=f"the file (default: the one that the gateway or the runs of the entries read, or {lock_file.NAME})",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=partial(seconds, most=_LONGEST_SECONDS),
        default=DESCRIBE_SECONDS,
        help=f"how long each server may take to say everything (default: {DESCRIBE_SECONDS:g})",
    )
    parser.add_argument("--verbose", action="store_true", help="on a terminal, show all that has changed")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="write nothing; status 1 and a diff if anything has changed")
    how.add_argument("--diff", action="store_true", help="write nothing, and show what has changed")
    how.add_argument(
        "--accept",
        metavar="TOOL",
        nargs="+",
        default=[],
        help="write only what has changed of these tools, prompts and templates, or instructions, details, "
        "version, name, title, capabilities of the server; tool:instructions is the tool of this name",
    )
    add_remote_options(parser)
    return parser
