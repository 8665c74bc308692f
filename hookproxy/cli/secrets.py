"""`hookproxy secrets scan`: what `[secrets]` would hide in files. It shows where and by which rule, and never a value.

Exit status: 0 nothing was found; 1 something was; 2 a file, or a value of the configuration, cannot be read.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from ..audit import records
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..model.secret_settings import SecretSettings
from .common import load_named, show, show_line, tell, working_directory
from .layout import shortened
from .options import Parser

if TYPE_CHECKING:
    from ..secrets.finder import Finder
    from ..secrets.scan import Place, Readable

_STDIN: Final = "-"
_HINT: Final = "name a file, or - for standard input"
_BEGINNING: Final = 64 * 1024  # bytes in which the first line of an audit ends, unless it is a very long call


class _Head(msgspec.Struct):
    """What every line of an audit has."""

    time: str
    v: int


def main(arguments: Sequence[str]) -> int:
    """Scan the files. Returns the exit status."""
    return build_parser().run_subverb(arguments, {"scan": _scan}, subverb_parsers())


def _scan(options: Namespace) -> int:
    with shortened(verbose=options.verbose or options.json, end=0):
        return _scan_all(options, _finder(options))


def _scan_all(options: Namespace, finder: Finder) -> int:
    by_rule: dict[str, int] = {}
    failed = False
    for name in options.files:
        try:
            for place in _places(name, finder):
                by_rule[place.rule] = by_rule.get(place.rule, 0) + 1
                if options.json:
                    show(f"{_json(name, place)}\n")
                else:
                    show_line(_line(name, place))
        except UserError as error:  # the other files are searched
            failed = True
            tell(error.message)
    if not options.json:
        tell(_summary(by_rule))
    return EXIT_USER_ERROR if failed else EXIT_FINDINGS if by_rule else 0


def _finder(options: Namespace) -> Finder:
    """What finds the secrets of the configuration; without a table `[secrets]`, what the rules of gitleaks find."""
    from ..config.secret_values import finder  # not for --help

    options.hooks, options.project = [], None
    settings = load_named(options, working_directory()).settings.secrets
    return finder(settings or SecretSettings(), os.environ)


def _places(name: str, finder: Finder) -> Iterator[Place]:
    """The secrets in a file, or in standard input. Raises UserError if it cannot be read."""
    try:
        file = open(0 if name == _STDIN else name, "rb", buffering=0, closefd=name != _STDIN)  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: cannot be read: {getattr(error, 'strerror', error)}", _HINT) from None
    with file, records.user_errors(name):  # apart: what goes wrong while it is read has other words
        yield from _places_in(file, finder)


def _places_in(file: BinaryIO, finder: Finder) -> Iterator[Place]:
    from ..secrets import scan

    begun = file.read(_BEGINNING) or b""
    whole = _Joined(begun, file)
    if not _is_audit(begun):
        yield from scan.in_text(whole, finder)
        return
    for line in records.lines(whole):
        if line.too_long:
            tell(f"line {line.number} is too long: only its beginning was searched")
        yield from scan.in_record(line.raw, line.number, finder)


class _Joined:
    """A file, with what was read of it already."""

    def __init__(self, begun: bytes, file: Readable) -> None:
        self._begun, self._file = begun, file

    def read(self, size: int, /) -> bytes:
        """At most so many bytes."""
        if self._begun:
            piece, self._begun = self._begun[:size], self._begun[size:]
            return piece
        return self._file.read(size) or b""


def _is_audit(begun: bytes) -> bool:
    with suppress(msgspec.DecodeError):
        return bool(msgspec.json.decode(begun.partition(b"\n")[0], type=_Head).v)
    return False


def _line(name: str, place: Place) -> str:
    member = f" in {place.member}" if place.member else ""
    return f"{name}:{place.line}:{place.column}: {place.rule}{member}"


def _json(name: str, place: Place) -> str:
    member: Mapping[str, str] = {"member": place.member} if place.member else {}
    found = {"file": name, "line": place.line, "column": place.column, "rule": place.rule, **member}
    return msgspec.json.encode(found).decode()


def _summary(by_rule: Mapping[str, int]) -> str:
    if not by_rule:
        return "nothing that looks like a secret"
    rules = ", ".join(f"{rule} {number}" for rule, number in sorted(by_rule.items(), key=lambda item: -item[1]))
    return f"{counted(sum(by_rule.values()), 'secret')} would be masked: {rules}"


def build_parser() -> Parser:
    """The parser of the verb alone."""
    return Parser(
        "secrets",
        "What [secrets] hides. See: secrets scan.",
        rest="scan FILE...",
        hint="hookproxy secrets scan FILE shows what would be masked",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    scan = Parser(
        "secrets scan",
        "Show what [secrets] would mask: where, and by which rule; never the value. The exit status is 1 if there is "
        "something.",
    )
    scan.add_argument("files", metavar="FILE", nargs="+", help="a text, an audit file, or - for standard input")
    scan.add_common("--config", "--verbose")
    scan.add_argument("--json", action="store_true", help="print a JSON object for each, one a line")
    return {"scan": scan}
