"""`hookproxy audit`: what happened, as the audit files have it; `audit stats`: summed up; `audit verify`: unchanged.

All files that have had the name (FILE.1, FILE.2, …) are read before FILE. Exit status: 0; 1 where a line is no record,
or a file is not as it was written; 2 where it cannot be read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..audit.records import BadLine, Entry, Line, entry
from ..model.errors import EXIT_FINDINGS, UserError, printable
from .common import here, parser, show

if TYPE_CHECKING:
    import argparse

    from ..audit.view.files import Filter
    from ..audit.view.verify import FileCheck

_LOOKS: Final = "[--tool GLOB] [--decision D] [--since WHEN] [--session S]"
USAGE: Final = f"hookproxy audit [FILE] {_LOOKS} [--follow] [--json] [--config FILE]"
STATS: Final = f"hookproxy audit stats [FILE] {_LOOKS} [--json] [--config FILE]"
VERIFY: Final = "hookproxy audit verify [FILE] [--head HASH] [--json] [--config FILE]"

_NAP: Final = 200  # milliseconds between two looks at a file that is followed: at once, to a person
_BATCH: Final = 64 * 1024  # characters that are written at a time


def main(arguments: Sequence[str]) -> int:
    """Print what is asked for; gives the exit status."""
    verbs: dict[str, Callable[[Sequence[str]], int]] = {"stats": _stats, "verify": _verify}
    if arguments and arguments[0] in verbs:
        return verbs[arguments[0]](arguments[1:])
    if arguments and not os.path.lexists(arguments[0]):
        _check_verb(arguments[0], verbs)
    return _list(arguments)


def _check_verb(word: str, verbs: Iterable[str]) -> None:
    """Raise UserError for a misspelled verb: else it would be taken for a file that is not there."""
    from difflib import get_close_matches

    if near := get_close_matches(word, verbs, n=1):
        raise UserError(f"{word}: there is no such file", f"did you mean `hookproxy audit {near[0]}`?")


# --- the calls ---


def _list(arguments: Sequence[str]) -> int:
    from ..audit.view import files, table

    chosen = options().parse_args(list(arguments))
    wanted, path = _wanted(chosen), _path(chosen)
    lines = files.follow(path, _wait) if chosen.follow else files.read_all(path)
    told, screen, own = _Told(), table.screen(), _own()
    output = _Output(at_once=chosen.follow)
    for name, line in lines:
        one = told.record(name, line)
        if one is None or not wanted.matches(one):
            continue
        if chosen.json:
            output.write(_safe(line.raw))
            continue
        if output.empty:
            output.write(table.header(screen))
        for row in table.rows(one, screen, own):
            output.write(row)
    output.flush()
    if output.empty:
        _tell("no such record")
    return told.status


class _Told:
    """Lines that are no records are told on standard error, and make the exit status."""

    status = 0

    def record(self, name: str, line: Line) -> Entry | None:
        """What the line says; None: nothing."""
        if not line.raw.strip():
            return None
        one = entry(line)
        if not isinstance(one, BadLine):
            return one
        _tell(f"{name}:{line.number}: {one.why}")
        self.status = self.status if one.torn else EXIT_FINDINGS
        return None


class _Output:
    """Lines for standard output: at once, or many at a time."""

    def __init__(self, at_once: bool) -> None:
        self.empty = True
        self._at_once = at_once
        self._text: list[str] = []
        self._size = 0

    def write(self, line: str) -> None:
        self.empty = False
        self._text.append(line + "\n")
        self._size += len(line)
        if self._at_once or self._size > _BATCH:
            self.flush()

    def flush(self) -> None:
        show("".join(self._text))
        self._text.clear()
        self._size = 0


def _wait() -> None:
    """Wait a moment; raises BrokenPipeError if nobody reads what we print any more."""
    output = select.poll()
    output.register(1, 0)  # only that its reader has gone
    if output.poll(_NAP):
        raise BrokenPipeError


def _safe(raw: bytes) -> str:
    """The line as it is, but that what a terminal would obey, or not show, is escaped: the same JSON."""
    text = raw.decode(errors="replace")
    return text if text.isprintable() else "".join(map(_spelled, text))


def _spelled(sign: str) -> str:
    if sign.isprintable():
        return sign
    return " " if sign in "\t\r" else json.dumps(sign)[1:-1]  # outside of texts there is no other


# --- sums ---


def _stats(arguments: Sequence[str]) -> int:
    from ..audit.view import files, statistics, table
    from ..audit.view.statistics import Statistics

    chosen = parts()["stats"].parse_args(list(arguments))
    wanted, told, sums = _wanted(chosen), _Told(), Statistics()
    found = (told.record(name, line) for name, line in files.read_all(_path(chosen)))
    sums.add(one for one in found if one is not None and wanted.matches(one))
    if chosen.json:
        show(_document(sums))
    else:
        show("".join(f"{line}\n" for line in statistics.charts(sums, table.screen())))
    return told.status


def _document(value: object) -> str:
    import msgspec

    document = msgspec.json.format(msgspec.json.encode(value))
    return "".join(f"{_safe(line)}\n" for line in document.split(b"\n"))


# --- verification ---


def _verify(arguments: Sequence[str]) -> int:
    from ..audit.view import table
    from ..audit.view.verify import verify

    chosen = parts()["verify"].parse_args(list(arguments))
    head = (chosen.head or "").lower()
    if head and not re.fullmatch("[0-9a-f]{64}", head):
        raise UserError(f"--head {chosen.head!r}: is no head", "the 64 signs that `hookproxy audit verify` prints")
    checked = verify(_path(chosen), head)
    lost = bool(head) and not any(one.found for one in checked)
    if chosen.json:
        show(_document({"files": checked, "head_found": None if not head else not lost}))
    else:
        screen = table.screen()
        for one in checked:
            show("".join(f"{screen.visible(line)}\n" for line in _verdict(one)))
        if missing := _missing(checked):
            show(f"{screen.visible(missing)}\n")
        if lost:
            show("head: not there: lines have been removed from the end, or all has been written anew\n")
    unchained = any(one.lines and not one.chained for one in checked) or not any(one.lines for one in checked)
    return EXIT_FINDINGS if lost or unchained or any(one.broken for one in checked) else 0


def _verdict(one: FileCheck) -> Iterator[str]:
    if one.broken:
        yield f"{one.path}:{one.broken.line}: {one.broken.what}"
        yield f"  the {one.lines} lines before are as they were written" if one.lines else "  nothing before it is sure"
        return
    if one.continues and not one.lines:
        yield f"{one.path}: no line has been written to it yet"
        return
    if not one.chained:
        what = f"none of its {one.lines} lines names the one before" if one.lines else "there is no line in it"
        yield f"{one.path}: not chained: {what}"
        yield "  with chain = true in [audit], each line that is written from then on does"
        return
    yield f"{one.path}: {one.chained} chained lines are as they were written"
    if one.unchained:
        yield f"  {one.unchained} lines before them are older than the chain, which covers only the last of them"
    if one.torn:
        yield f"  {one.torn} torn: their writers were stopped while they wrote"
    if one.unfinished:
        yield "  the last line is unfinished: its writer was stopped, or is still writing"
    yield f"  head {one.head}"


def _missing(checked: Sequence[FileCheck]) -> str:
    first = checked[0]
    return f"before: {first.continues} is not here, and is not checked" if first.continues else ""


# --- what all have in common ---


def options() -> argparse.ArgumentParser:
    """What its command line takes, where it is neither `stats` nor `verify`."""
    taken = _options("audit", USAGE, "Show the calls of an audit file. See also: audit stats, audit verify.")
    _add_looks(taken)
    taken.add_argument("--follow", action="store_true", help="go on as lines come, until interrupted")
    taken.add_argument("--json", action="store_true", help="each record as its line of JSON")
    return taken


def parts() -> dict[str, argparse.ArgumentParser]:
    """What its command line takes after `stats` and `verify`."""
    stats = _options("audit stats", STATS, "Show calls, refusals, rewrites and the time of hooks.")
    _add_looks(stats)
    verify = _options(
        "audit verify",
        VERIFY,
        "Check that the lines of a chained audit file are those that were written. Lines removed from its end are not "
        "seen: note the head that is printed, and give it with --head later.",
    )
    verify.add_argument("--head", metavar="HASH", help="a head that was printed before: it must be there")
    for taken in (stats, verify):
        taken.add_argument("--json", action="store_true", help="one JSON document, for programs")
    return {"stats": stats, "verify": verify}


def _options(verb: str, usage: str, description: str) -> argparse.ArgumentParser:
    taken = parser(verb, usage, description)
    taken.add_argument("file", nargs="?", metavar="FILE", help="an audit file (default: the configuration's)")
    taken.add_argument("--config", metavar="FILE", help="our own file (default: ~/.config/hookproxy/hookproxy.toml)")
    return taken


def _add_looks(to: argparse.ArgumentParser) -> None:
    to.add_argument("--tool", metavar="GLOB", help="of these tools: a name, or a pattern such as 'git_*'")
    to.add_argument("--decision", metavar="D", help="allow, deny, asked-allow, asked-deny or '*deny'")
    to.add_argument("--since", metavar="WHEN", help="2026-11-01, 2026-11-01T10:30, or 90m, 2h, 7d ago")
    to.add_argument("--session", metavar="S", help="of this session; the beginning of its id will do")


def _wanted(chosen: argparse.Namespace) -> Filter:
    from ..audit.view import files

    return files.Filter(
        tool=chosen.tool or "",
        decision=files.decision(chosen.decision) if chosen.decision else "",
        since=files.since(chosen.since, files.now()) if chosen.since else None,
        session=chosen.session or "",
    )


def _path(chosen: argparse.Namespace) -> str:
    """The file that is meant. Raises UserError where none is named."""
    if chosen.file is not None:
        return str(chosen.file)
    from ..audit.os_user import audit_path
    from ..config.load import load

    settings = load(chosen.config, [], None, os.environ, here()).settings
    if not settings.audit_file:
        raise UserError("no audit file is named", "hookproxy audit FILE, or set audit.file in hookproxy.toml")
    return audit_path(settings.audit_file)


def _own() -> tuple[str, str]:
    from ..audit.os_user import user

    return user(), os.uname().nodename


def _tell(text: str) -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody reads, or the descriptor was closed before we started
        sys.stderr.write(f"hookproxy: {printable(text)}\n")
