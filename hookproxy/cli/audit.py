"""`hookproxy audit`: shows the calls in an audit file. `audit show` prints one whole, `audit stats` sums them up,
`audit verify` finds changed and removed lines, and `audit receipt` proves one call to others.

Rotated files (FILE.1, FILE.2, …) are read before FILE. Exit status: 0; 1 if a line is not a record, or a file is not
as it was written; 2 if a file cannot be read.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
from argparse import Namespace
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..audit.records import BadLine, CallRecord, Entry, Line, entry, joined
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError
from ..model.late_pattern import late_pattern
from .common import configured_audit, show, tell, working_directory
from .options import Parser

if TYPE_CHECKING:
    from ..audit.view.files import Filter
    from ..audit.view.verify import FileCheck
    from ..audit.view.verify_signed import Copy, SignedCheck


_OF_CALL: Final = late_pattern(rb'"call"\s*+:\s*+"')
"""In a line about a call; some programs that pass the file on write blanks there."""
_SUBVERBS: Final = ("show", "stats", "verify", "receipt")
_CALL: Final = re.compile("[0-9a-f]{4,6}|[0-9a-f]{6}-[0-9]{0,9}")
"""The id of a call, as 3f2a91-7, or its beginning: four characters, since fewer name the calls of several runs."""
_SESSION: Final = re.compile("[0-9a-f]{8}-[0-9a-f-]{0,27}")
"""The id of a session or its beginning: a UUID."""
_TOOL: Final = re.compile(r"[\w-]+(/[\w-]+)?|[\w/-]*[*?][\w/*?-]*")
"""A tool's name, as SERVER/TOOL too, or a pattern. The name of a file has a suffix or several folders."""
_POLL_INTERVAL: Final = 200  # milliseconds between two reads of a followed file: to a person, that is at once
_LONGEST_COPIES: Final = 64 * 1024 * 1024  # bytes of a file with checkpoints: those of a year
_BELOW: Final = "    "  # before the lines below the row of a call
_OTHER_LINES: Final = 2  # on a terminal, beside the calls: the header, and how many are left out
_BUFFER_SIZE: Final = 64 * 1024  # characters that are collected before they are written


def main(arguments: Sequence[str]) -> int:
    """Print calls, sums or the result of verification. Returns the exit status."""
    subverbs = dict(zip(_SUBVERBS, (_show, _stats, _verify, _receipt), strict=True))
    if arguments and arguments[0] in subverbs:
        return subverbs[arguments[0]](arguments[1:])
    if len(arguments) > 1 and not (arguments[0].startswith("-") or arguments[1].startswith("-")):
        first, second, *rest = arguments
        if _is_call(first) or _is_call(second):  # of a file, in either order
            return _show([first, second, *rest] if _is_call(first) else [second, first, *rest])
        _check_file(first)  # a second word only follows a subverb
    options = build_parser().parse_args(list(arguments))
    if _names_call(options):
        others = list(arguments)
        others.remove(options.file)
        return _show([options.file, *others])
    return _list(options)


def _names_call(options: Namespace) -> bool:
    """True if the word in the place of the file is the id of a call, with no option that `audit show` lacks."""
    filters = options.tool or options.decision or options.since or options.follow
    filters = filters or options.user or options.server or options.group
    return bool(options.file) and _is_call(options.file) and not filters


def _is_call(word: str) -> bool:
    """True for the id of a call, unless a file has that name."""
    return _CALL.fullmatch(word) is not None and not os.path.lexists(word)


def _check_file(word: str) -> None:
    """Raise UserError for the name of a file that is not there, if the word looks like something else."""
    from difflib import get_close_matches

    from ..audit.view.files import DECISIONS

    if os.path.lexists(word):
        return
    if near := get_close_matches(word, _SUBVERBS, n=1):
        hint = f"did you mean `hookproxy audit {near[0]}`?"
    elif _CALL.fullmatch(word):
        hint = f"one call: hookproxy audit show {word}"
    elif _SESSION.fullmatch(word):
        hint = f"the calls of a session: hookproxy audit --session {word}"
    elif near := get_close_matches(word, DECISIONS, n=1):
        hint = f"the calls with a decision: hookproxy audit --decision {near[0]}"
    elif _TOOL.fullmatch(word):
        hint = f"the calls of a tool: hookproxy audit --tool {shlex.quote(word)}"
    else:
        return  # whoever opens it says what is wrong
    raise UserError(f"{word}: there is no such file", hint)


# --- the calls ---


def _list(options: Namespace) -> int:
    from ..audit.view import files

    record_filter, path = _filter(options), _path(options)
    lines = files.follow(path, _wait) if options.follow else files.read_all(path)
    reader = _RecordReader()
    output = _Output(at_once=options.follow)
    shown = (_json_lines if options.json else _rows)(lines, reader, record_filter)
    most = 0 if options.json or options.follow or options.verbose else _most_lines()
    for text in _newest(shown, most) if most else shown:
        output.write(text)
    output.flush()
    if output.empty:
        tell("no record matches")
    return reader.status


def _most_lines() -> int:
    """How many lines are shown on standard output; 0: all, since it is not a terminal."""
    from .common import terminal
    from .layout import MOST_LINES

    return MOST_LINES if terminal()[0] else 0


def _newest(rows: Iterable[str], most: int) -> Iterator[str]:
    """The header and the newest calls for which there is room, with the lines below each, and how many came before."""
    header, kept, dropped = "", deque[list[str]](), 0
    for row in rows:
        if not header:
            header = row
            continue
        if kept and row.startswith(_BELOW, row.startswith("\x1b") and row.find("m") + 1):
            kept[-1].append(row)
        else:
            kept.append([row])
        while len(kept) > 1 and sum(map(len, kept)) > most - _OTHER_LINES:
            kept.popleft()
            dropped += 1
    if header:
        yield header
    if dropped:
        yield f"{dropped} more before these: --verbose shows all, --since and --tool choose some"
    for row in (row for of_call in kept for row in of_call):
        yield row


def _json_lines(lines: Iterable[tuple[str, Line]], reader: _RecordReader, record_filter: Filter) -> Iterator[str]:
    for name, line in lines:
        record = reader.read(name, line)
        if record is not None and record_filter.matches(record):
            yield _printable(line.raw)


def _rows(lines: Iterable[tuple[str, Line]], reader: _RecordReader, record_filter: Filter) -> Iterator[str]:
    from ..audit.os_user import user
    from ..audit.view import table
    from ..audit.view.files import is_checkpoint

    screen, user_and_host, empty = table.screen(), (user(), os.uname().nodename), True
    read = (reader.read(name, line) for name, line in lines)
    for record in joined(record for record in read if record is not None):
        if not record_filter.matches(record) or is_checkpoint(record):
            continue
        if empty:
            yield table.header(screen)
            empty = False
        yield from table.rows(record, screen, user_and_host)


class _RecordReader:
    """Reads lines as records. Lines that are not records are reported, and determine the exit status."""

    status = 0

    def read(self, name: str, line: Line) -> Entry | None:
        """The record in the line; None if there is none."""
        if not line.raw.strip():
            return None
        record = entry(line)
        if not isinstance(record, BadLine):
            return record
        tell(f"{name}:{line.number}: {record.why}")
        self.status = self.status if record.torn else EXIT_FINDINGS
        return None


class _Output:
    """Writes lines to standard output: each at once, or many together."""

    def __init__(self, at_once: bool) -> None:
        self.empty = True
        self._at_once = at_once
        self._text: list[str] = []
        self._size = 0

    def write(self, line: str) -> None:
        self.empty = False
        self._text.append(line + "\n")
        self._size += len(line)
        if self._at_once or self._size > _BUFFER_SIZE:
            self.flush()

    def flush(self) -> None:
        show("".join(self._text))
        self._text.clear()
        self._size = 0


def _wait() -> None:
    """Wait until the next read of a followed file. Raises BrokenPipeError if nobody reads our output any more."""
    output = select.poll()
    output.register(1, 0)  # reports only that the reader has closed its end
    if output.poll(_POLL_INTERVAL):
        raise BrokenPipeError


def _printable(raw: bytes) -> str:
    """The line with all characters escaped that a terminal would obey or not show: the same JSON."""
    text = raw.decode(errors="replace")
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in "\t\r" else json.dumps(character)[1:-1]  # all others can only occur inside strings


# --- one call ---


def _show(arguments: Sequence[str]) -> int:
    from ..audit.view import files, one_call, table

    options = subverb_parsers()["show"].parse_args(list(arguments))
    path, reader = _path(options), _RecordReader()
    raw: dict[tuple[str, int], bytes] = {}

    def records() -> Iterator[CallRecord]:
        for name, line in files.read_all(path):
            if not _OF_CALL.search(line.raw):
                continue
            record = reader.read(name, line)
            if isinstance(record, CallRecord) and record.session.startswith(options.session or ""):
                if record.call.startswith(options.call):
                    raw[record.time, record.line] = line.raw
                yield record

    found = one_call.find(records(), options.call, path)
    if options.json:
        show("".join(f"{_printable(raw[record.time, record.line])}\n" for record in found))
    else:
        lines = list(one_call.text_of(found, table.screen()))
        if not options.verbose and (most := _most_lines()) and len(lines) > most:
            lines = [*lines[: most - 1], f"{len(lines) - most + 1} more lines: --verbose shows them"]
        show("".join(f"{line}\n" for line in lines))
    return reader.status


# --- sums ---


def _stats(arguments: Sequence[str]) -> int:
    from ..audit.view import files, statistics, table
    from ..audit.view.statistics import Statistics

    options = subverb_parsers()["stats"].parse_args(list(arguments))
    record_filter, reader, sums = _filter(options), _RecordReader(), Statistics()
    found = (reader.read(name, line) for name, line in files.read_all(_path(options)))
    sums.add(record for record in joined(filter(None, found)) if record_filter.matches(record))
    if options.json:
        show(_json_document(sums))
    else:
        from .layout import shortened

        with shortened(verbose=options.verbose, end=0):
            show("".join(f"{line}\n" for line in statistics.charts(sums, table.screen())))
    return reader.status


def _json_document(value: object) -> str:
    import msgspec

    document = msgspec.json.format(msgspec.json.encode(value))
    return "".join(f"{_printable(line)}\n" for line in document.split(b"\n"))


# --- verification ---


def _verify(arguments: Sequence[str]) -> int:
    from ..audit.view import table
    from ..audit.view.verify import verify

    options = subverb_parsers()["verify"].parse_args(list(arguments))
    head = (options.head or "").lower()
    if head and not re.fullmatch("[0-9a-f]{64}", head):
        raise UserError(
            f"--head {options.head!r} is not a head", "give the 64 characters that `hookproxy audit verify` printed"
        )
    path = _path(options)
    checked = verify(path, head, _key(options.key))
    head_missing = bool(head) and not any(file.found for file in checked)
    signed = _check_signed(options, path, checked, end_is_known=bool(head) and not head_missing)
    if options.json:
        head_found = None if not head else not head_missing
        show(_json_document({"files": checked, "head_found": head_found, "signed": signed}))
    else:
        screen = table.screen()
        for file in checked:
            show("".join(f"{screen.visible(line)}\n" for line in _verification_lines(file)))
        if earlier := checked[0].continues:
            show(f"{screen.visible(f'earlier file: {earlier} does not exist here, and was not checked')}\n")
        if head_missing:
            show("head: not found: lines were removed from the end, or the whole file was rewritten\n")
        if signed is not None:
            show("".join(f"{screen.visible(line)}\n" for line in _signed_lines(signed, path)))
    unchained = any(file.lines and not file.chained for file in checked) or not any(file.lines for file in checked)
    problems = head_missing or unchained or any(file.broken for file in checked)
    return EXIT_FINDINGS if problems or (signed is not None and signed.problems) else 0


def _check_signed(
    options: Namespace, path: str, checked: Sequence[FileCheck], *, end_is_known: bool
) -> SignedCheck | None:
    """The check of signed checkpoints; None: there are none, and none are asked for. Raises UserError."""
    from ..audit.signing_keys import read_public_keys
    from ..audit.view.verify_signed import check_signed

    keys = {name: key for file in options.public_key for name, key in read_public_keys(file).items()}
    there = [file.path for file in checked if os.path.lexists(file.path)]
    copies = list(_copies(options, path))
    if not there:
        return None
    signed = check_signed(there, keys, copies, has_earlier=bool(checked[0].continues), end_is_known=end_is_known)
    return signed if signed.checkpoints or signed.problems else None


def _copies(options: Namespace, path: str) -> Iterator[Copy]:
    """The copies of checkpoints: those that options name, and the one beside the file. Raises UserError."""
    from ..audit.checkpoints import SIGNED, read
    from ..audit.view.verify_signed import Copy
    from ..model.errors import file_hint

    if options.store is not None:
        yield _copy_of_store(options.store, path)
    for file in (*options.checkpoint, path + SIGNED):
        try:
            with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as copy:
                lines = copy.read(_LONGEST_COPIES).splitlines()
            found = [line for line in lines if read(line) is not None]  # a collector may keep whole lines, and many
            yield from (Copy(file, line) for line in found or [b""])
        except FileNotFoundError as error:
            if file in options.checkpoint:
                raise UserError(f"--checkpoint {file}: {error.strerror}", file_hint(file, error)) from None
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}", file_hint(file, error)) from None


def _copy_of_store(config: str, path: str) -> Copy:
    """The newest checkpoint that the store of a gateway.toml has for this audit. Raises UserError."""
    import anyio

    from ..audit.view.verify_signed import Copy, last_checkpoint
    from ..config.gateway import gateway_table
    from ..gateway.audit_signing import copy_from_store, writer_of

    config, table = gateway_table(config, os.environ, working_directory())
    if table.store is None:
        raise UserError(f"--store {config}: it has no table [gateway.store]", "name the gateway.toml with the store")
    last = last_checkpoint(path)  # the file may be a copy of the gateway's
    writer, written = (writer_of(table), os.path.abspath(path)) if last is None else (last.writer, last.path)
    copy = anyio.run(copy_from_store, table.store, os.path.dirname(config), writer, written)
    if copy is None:
        raise UserError(
            f"the store at {table.store.url} has no checkpoint of {written} by {writer}",
            "a gateway puts it there, with audit.sign_key; or it was removed from the store",
        )
    return Copy("the store", copy)


def _signed_lines(signed: SignedCheck, path: str) -> Iterator[str]:
    yield from signed.problems
    if not signed.checkpoints:
        return
    by = f" by {', '.join(signed.keys)}"
    names = f"{counted(signed.checkpoints, 'checkpoint')}, the last one number {signed.number} of {signed.time}"
    yield f"signed{by}: {counted(signed.signed, 'line')}, {names}"
    if os.path.realpath(signed.path) != os.path.realpath(path):
        yield f"  it was written as {signed.host}:{signed.path}: is that the audit that you mean?"
    if not signed.verified:
        yield "  the signatures were not verified: --public-key FILE names the key"
    if signed.unsigned:
        lines = f"{counted(signed.unsigned, 'line')} after the last checkpoint"
        yield f"  {lines}: not signed yet, or the writer was killed before"
    elif not signed.closed:
        yield "  the last writer still runs, was killed, or lines after the last checkpoint were removed"
    if signed.killed:
        yield f"  {counted(signed.killed, 'earlier writer')} made no last checkpoint: killed, or still at work"
    if signed.clock_back:
        yield f"  the clock went back before {counted(signed.clock_back, 'checkpoint')}"


# --- the receipt of a call ---


def _receipt(arguments: Sequence[str]) -> int:
    from ..audit.view import files, one_call, receipt

    options = subverb_parsers()["receipt"].parse_args(list(arguments))
    path, reader = _path(options), _RecordReader()

    def record_of(line: Line) -> CallRecord | None:
        record = reader.read(path, line) if _OF_CALL.search(line.raw) else None
        if not (isinstance(record, CallRecord) and record.call.startswith(options.call)):
            return None
        return record if record.session.startswith(options.session or "") else None

    paths = [*(f"{path}.{number}" for number in files.rotated_numbers(path)), path]
    records = (record for _, line in files.read_all(path) if (record := record_of(line)) is not None)
    (key,) = {record.key for record in one_call.find(records, options.call, path)}

    def is_of_call(raw: bytes) -> bool:
        record = record_of(Line(0, raw))
        return record is not None and record.key == key

    show(_json_document(receipt.make(paths, key[0], is_of_call)))
    return 0


def _key(path: str | None) -> bytes:
    """The key in the file that `--key` names; empty if it names none. Raises UserError."""
    if path is None:
        return b""
    from ..audit.hash_chain import read_key
    from ..model.errors import file_hint

    try:
        return read_key(path)
    except OSError as error:
        raise UserError(f"--key {path}: {error.strerror}", file_hint(path, error)) from None


def _verification_lines(file: FileCheck) -> Iterator[str]:
    if file.broken:
        place = f"{file.path}:{file.broken.line}" if file.broken.line else file.path
        yield f"{place}: {file.broken.what}"
        yield f"  the {file.lines} lines before it are unchanged" if file.lines else "  no line before it is verified"
        return
    if file.continues and not file.lines:
        yield f"{file.path}: no line has been written to it yet"
        return
    if not file.chained:
        reason = f"none of its {file.lines} lines refers to the line before" if file.lines else "it has no lines"
        yield f"{file.path}: not chained: {reason}"
        yield "  to chain all lines written from now on, set chain = true in [audit]"
        return
    yield f"{file.path}: {file.chained} chained lines are unchanged"
    if file.keyed:
        yield f"  {file.keyed} of them were written with the key, up to number {file.count}"
    if file.unchained:
        yield f"  {file.unchained} lines before them are older than the chain, which covers only the last of them"
    if file.torn:
        yield f"  {file.torn} torn lines: their writers were stopped while they wrote"
    if file.unfinished:
        yield "  the last line is unfinished: its writer was stopped, or is still writing"
    yield f"  head {file.head}"


# --- the command line ---


def build_parser() -> Parser:
    """The parser of the command line without a subverb."""
    parser = _new_parser("audit", "Show the calls in an audit file. See also: audit show, stats, verify, receipt.")
    _add_filter_options(parser)
    parser.add_argument("--follow", action="store_true", help="keep showing new lines, until interrupted")
    parser.add_argument("--verbose", action="store_true", help="on a terminal, show all calls, not only the newest")
    parser.add_argument("--json", action="store_true", help="print each record as its line of JSON")
    return parser


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    one_call = Parser(
        "audit show",
        "Print one call whole: the decision, which hooks ran, what each got and printed, why others did not run, and "
        "what was changed. The configuration says how much of it is recorded: audit.arguments, audit.results.",
    )
    one_call.add_argument("call", metavar="CALL", help="the id that `hookproxy audit` shows, or its beginning")
    _add_file_options(one_call)
    one_call.add_argument("--session", metavar="S", help="only this session: its id, or the beginning of it")
    one_call.add_argument("--verbose", action="store_true", help="on a terminal, show all lines")
    stats = _new_parser("audit stats", "Sum up the calls, refusals, rewrites and the running time of hooks.")
    _add_filter_options(stats)
    stats.add_common("--verbose")
    verify = _new_parser(
        "audit verify",
        "Check that the lines of a chained audit file have not been changed. Lines removed from its end are noticed "
        "where the audit is signed (audit.sign_key); else note the head that this command prints, and pass it with "
        "--head later.",
    )
    verify.add_argument(
        "--head", "--expect-head", metavar="HASH", help="a head that was printed before: it must still be in the file"
    )
    verify.add_argument(
        "--key",
        metavar="FILE",
        help='the key of a chain that is "keyed": also checks that every line was written with it, and that as many '
        "lines are there as the checkpoint beside the file names",
    )
    verify.add_argument(
        "--public-key",
        action="append",
        default=[],
        metavar="FILE",
        help="a public key of audit.sign_key, as OpenSSH or PEM: checkpoints must be signed by it; may be repeated",
    )
    verify.add_argument(
        "--checkpoint",
        action="append",
        default=[],
        metavar="FILE",
        help="a checkpoint that was kept elsewhere, such as a copy of FILE.signed: it must be in the file",
    )
    verify.add_argument(
        "--store",
        metavar="FILE",
        help="a gateway.toml: the last checkpoint in the store that it names must be in the file",
    )
    receipt = Parser(
        "audit receipt",
        "Print the receipt of one call, as JSON: what the audit has of it, and the proof that a signed checkpoint "
        "covers it. docs/verify_receipt.py verifies it with nothing but the public key.",
    )
    receipt.add_argument("call", metavar="CALL", help="the id that `hookproxy audit` shows, or its beginning")
    _add_file_options(receipt)
    receipt.add_argument("--session", metavar="S", help="only this session: its id, or the beginning of it")
    for parser in (one_call, stats, verify):
        parser.add_common("--json")
    return {"show": one_call, "stats": stats, "verify": verify, "receipt": receipt}


def _new_parser(verb: str, description: str) -> Parser:
    parser = Parser(verb, description)
    _add_file_options(parser)
    return parser


def _add_file_options(parser: Parser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="an audit file (default: the one that the configuration names, or else the one in the state folder)",
    )
    parser.add_common("--config")
    parser.add_argument(
        "--gateway",
        metavar="PATH",
        nargs="?",
        const="-",  # as `administration.USUAL`, which would have to be imported
        help="the audit of a running gateway, for its auditors; PATH is its socket",
    )


def _add_filter_options(parser: Parser) -> None:
    parser.add_argument(
        "--tool", metavar="GLOB", help="only calls of these tools: a name, or a pattern such as 'git_*'"
    )
    parser.add_argument(
        "--decision", metavar="D", help="only these decisions: allow, deny, asked-allow, asked-deny or '*deny'"
    )
    parser.add_argument(
        "--since", metavar="WHEN", help="only calls since then: 2026-11-01, 2026-11-01T10:30, or 90m, 2h, 7d ago"
    )
    parser.add_argument("--session", metavar="S", help="only this session: its id, or the beginning of it")
    parser.add_argument(
        "--user", metavar="U", help="only calls of this user: a name, an id such as uid:1000, or a glob"
    )
    parser.add_argument("--server", metavar="NAME", help="only calls to these servers: a name or a glob")
    parser.add_argument("--group", metavar="G", help="only calls of users who were in this group: a name or a glob")


def _filter(options: Namespace) -> Filter:
    from ..audit.view import files

    return files.Filter(
        tool=options.tool or "",
        decision=files.decision(options.decision) if options.decision else "",
        since=files.since(options.since, files.now()) if options.since else None,
        session=options.session or "",
        user=options.user or "",
        server=options.server or "",
        group=(options.group or "").removeprefix("@"),
    )


def _path(options: Namespace) -> str:
    """The audit file. Raises UserError if neither the options nor the configuration name one."""
    if options.gateway is not None:
        from .gateway_audit import copied

        if getattr(options, "follow", False):
            raise UserError(
                "--follow and --gateway exclude each other", "hookproxy top --gateway shows calls as they come"
            )
        return copied(options.gateway, options.file)
    if options.file is not None:
        if not getattr(options, "follow", False):  # a followed file may come later
            _check_file(options.file)
        return str(options.file)
    return configured_audit(options.config, "hookproxy audit FILE")
