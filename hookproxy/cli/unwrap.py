"""`hookproxy unwrap`: removes what `wrap` inserted, and restores every byte that was there.

The diff is written to standard output, all other messages to standard error. Exit status: 0 done, or nothing to do;
1 some files could not be changed, and the others were; 2 it failed, and nothing was changed. With no name at all it
lists the configurations that exist, and how to unwrap them; 1: one cannot be read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from ..model.errors import printable
from ..trust.sources import state_folder
from ..wrapping import edit_plan, written
from ..wrapping.agent_files import AgentFile, PlannedFile
from ..wrapping.http_entry import reaches_gateway
from .options import Parser
from .wrap import add_target_options, change_all, list_all, named_files


def main(arguments: Sequence[str]) -> int:
    """Unwrap the servers of the named files. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    if options.target is None and not options.all:
        if options.server or options.dry_run:
            raise build_parser().wrong("no agent and no file is named")
        return list_all(options, _commands)
    record = written.read(state_folder(os.environ, os.path.expanduser("~")))
    return change_all(
        options,
        named_files(options),
        lambda path, configuration, names: edit_plan.unwrap(
            configuration, names, record.replaced.get(os.path.abspath(path), {})
        ),
        "unwrapped",
        _explain,
    )


def _commands(found: Sequence[AgentFile]) -> list[str]:
    """The command that unwraps each file with wrapped servers; never broken into lines, so that it can be copied."""
    entries = [(file, entry) for file in found if file.configuration for entry in file.configuration.entries]
    paths = dict.fromkeys(
        file.config_file.path for file, entry in entries if edit_plan.wrapping(entry) or reaches_gateway(entry)
    )
    return [f"hookproxy unwrap {shlex.quote(printable(path))}" for path in paths] or ["nothing is wrapped"]


def _explain(planned: PlannedFile) -> list[str]:
    """Why a wrapped entry was not changed."""
    reasons = planned.plan.reasons
    return [
        f"{entry.key_path} is not changed: it {reasons[entry.key_path]}"
        for entry in planned.plan.unchanged
        if entry.key_path in reasons and (edit_plan.wrapping(entry) or reaches_gateway(entry))
    ]


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "unwrap",
        "Remove hookproxy from an agent's configuration again, and show the diff. Other changes made since then stay. "
        "Without AGENT, FILE and --all: list the configurations, and the commands that unwrap them.",
    )
    add_target_options(parser)
    return parser
