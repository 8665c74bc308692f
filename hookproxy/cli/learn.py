"""`hookproxy learn`: proposes the smallest allow list that lets pass what an audit shows, with the evidence of each
rule.

It prints a hookproxy.toml, or writes it to `--output`. It is never applied by itself. Exit status: 0; 1 if the file has
lines that are not records; 2 if it cannot be read, or nothing can be learned from it.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError
from .common import configured_audit, create, show, tell, working_directory
from .layout import MORE_OF_TOML, shortened
from .options import Parser

if TYPE_CHECKING:
    from ..audit.records import Entry

_MOST_NAMED = 8  # servers in a hint: it is one line


def main(arguments: Sequence[str]) -> int:
    """Print or write what is learned. Returns the exit status."""
    from ..learning.as_toml import toml_of
    from ..learning.observations import Observations
    from ..learning.propose import propose

    options = build_parser().parse_args(list(arguments))
    paths = [os.path.join(working_directory(), path) for path in options.audit] or [
        configured_audit(options.config, "hookproxy learn AUDIT")
    ]
    if options.output is not None and os.path.lexists(options.output):
        raise UserError(f"{options.output} already exists", "nothing was written; name another file, or move it away")
    observations, reader = Observations(), _Reader(options)
    for path in paths:
        observations.add_all(reader.entries(path))
    if not observations.records and reader.left_out:
        raise UserError(f"{', '.join(paths)}: no call in it is one of those that were asked for", reader.hint(options))
    if not observations.records:
        why = "; ".join(f"{reason}, {counted(number, 'time')}" for reason, number in observations.left_out.items())
        is_audit = not why or any(not reason.startswith("lines ") for reason in observations.left_out)
        raise UserError(
            f"{', '.join(paths)}: nothing can be learned, because no call in it counts" + (f": {why}" if why else ""),
            'audit all calls for some days first: [audit] calls = "all"' if is_audit else "name an audit file",
        )
    text = toml_of(propose(observations), observations, [os.path.basename(path) for path in paths])
    if options.output is None:
        with shortened(verbose=options.verbose, end=0, more=MORE_OF_TOML):
            show(text)
    else:
        create({os.path.join(working_directory(), options.output): text}, "name another file")
        replay = shlex.join(["hookproxy", "replay", (options.audit or paths)[0], "--config", options.output])
        tell(f"wrote {options.output}: read it, then try it: {replay}")
    return reader.status


class _Reader:
    """Reads audit files with their rotated parts. It owns what was found wrong with them, and what was left out."""

    def __init__(self, options: Namespace) -> None:
        from ..audit.view import files

        self.status = 0
        self.left_out = 0
        """Records that the options leave out."""
        self._servers: set[str] = set()
        self._since = files.since(options.since, files.now()) if options.since is not None else None
        self._filter = files.Filter(
            since=self._since, tool=options.tool or "", server=options.server or "", user=options.user or ""
        )

    def entries(self, path: str) -> Iterator[Entry]:
        """The entries that count. Raises UserError."""
        from ..audit.records import BadLine, CallRecord, entry
        from ..audit.view import files

        for _name, line in files.read_all(path):
            if not line.raw.strip():
                continue
            record = entry(line)
            if isinstance(record, BadLine) and not record.torn:
                self.status = EXIT_FINDINGS
            if self._filter.matches(record):
                yield record
            elif isinstance(record, CallRecord):
                self.left_out += 1
                self._servers.add(record.server)

    def hint(self, options: Namespace) -> str:
        """What to ask for, where the options have left out every record."""
        if options.server and options.server not in self._servers:
            from ..dialects.shared.hook_file import suggestion

            servers = sorted(filter(None, self._servers))
            return suggestion(options.server, servers) or f"--server may be {', '.join(servers[:_MOST_NAMED])}"
        return "leave out --since, --tool, --server or --user: they select calls"


# --- the command line ---


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "learn",
        "Propose the smallest policy that lets pass what an audit shows: rules by tool, folder, command and host, each "
        "with its evidence in a comment, and what would be refused, as a hookproxy.toml that denies all else. Denied "
        "calls stay denied; what a person was asked about is asked again. Nothing is applied: read it first. "
        "Exit status: 0; 1 the audit has lines that are not records; 2 nothing could be learned.",
    )
    parser.add_argument(
        "audit", metavar="AUDIT", nargs="*", help="audit files, with their rotated parts (default: the configuration's)"
    )
    parser.add_argument("--output", metavar="FILE", help="write it to this new file instead of printing it")
    parser.add_argument("--tool", metavar="GLOB", help="only calls of these tools, for example write_*")
    parser.add_argument("--server", metavar="GLOB", help="only calls of these servers")
    parser.add_argument("--user", metavar="GLOB", help="of a gateway's audit: only calls of these users")
    parser.add_argument("--since", metavar="WHEN", help="only calls since then: 2026-11-21, 2026-11-21T08:00, 7d, 2h")
    parser.add_common("--config", "--verbose")
    return parser
