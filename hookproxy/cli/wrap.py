"""`hookproxy wrap`: puts hooks in front of the servers in an agent's own configuration, without asking.

The diff is written to standard output, all other messages to standard error. Exit status: 0 done, or nothing to do;
2 it failed, and nothing was changed. Without a file it lists the configurations that exist; 1: one cannot be read.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from ..config.load import load
from ..dialects.registry import DIALECTS
from ..model.errors import EXIT_FINDINGS, UserError
from ..wrapping import edit_plan, files, known_agents
from ..wrapping.diff import unified
from ..wrapping.find_servers import Entry, Kind, NoServers
from ..wrapping.wrap_entry import PROGRAM, RunOptions
from . import findings
from .common import add_hook_options, new_parser, show, visible, working_directory

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy wrap [FILE] [--server NAME]... [--config FILE] [--hooks [DIALECT=]FILE]... [--dry-run]"

_MAX_FINDINGS: Final = 5  # what fits beside a diff on a screen
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def main(arguments: Sequence[str]) -> int:
    """Wrap the servers of a file, or list the configurations that exist. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    if options.file is None:
        return _list(options)
    wrap_options, notes = _wrap_options(options, working_directory())
    snapshot = files.read(options.file)
    configuration = edit_plan.read(options.file, snapshot.text)
    plan = edit_plan.wrap(configuration, options.server, _launcher(), wrap_options)
    for note in notes:
        _report(note)
    for entry in plan.unchanged:
        _report(f"{options.file}: {entry.key_path} {_why_unchanged(entry)}")
    if not {".cache", "Caches"}.isdisjoint(sys.executable.split("/")):  # for example the cache of `uvx`
        _report(f"{sys.executable} is in a cache: if the cache is cleared, wrapped servers no longer start")
    for entry in plan.changed:
        if entry.also_remote:
            _report(f"{options.file}: {entry.key_path} also has an address: an agent that uses it bypasses the hooks")
    carry_out(snapshot, plan, options.dry_run, "wrapped")
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of this verb's command line."""
    parser = new_parser(
        "wrap",
        USAGE,
        "Put hookproxy in front of the servers that an agent's configuration starts, and show the diff. "
        "Without FILE: list the agent configurations on this machine, and which of their servers are wrapped.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="an agent's configuration: JSON, TOML or YAML")
    add_server_options(parser)
    add_hook_options(parser)
    return parser


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """The options that `wrap` and `unwrap` share."""
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this server; may be given several times"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the diff, and write nothing")


def _wrap_options(options: argparse.Namespace, cwd: str) -> tuple[RunOptions, list[str]]:
    """The options of the wrapped servers, and notes. Paths are absolute: an agent may start servers in any folder."""
    loaded = load(options.config, options.hooks, None, os.environ, cwd)  # raises if wrapped servers would not start
    settings = loaded.settings
    no_hooks = not loaded.groups and not (settings.allow or settings.ask or settings.deny)
    findings.stop_if_strict(loaded, False, os.environ)
    notes = ["no hook is configured yet: until there is one, wrapped servers run as before"] if no_hooks else []
    if not no_hooks:
        notes += _first(findings.lines(loaded, os.environ))
    config = None if options.config is None else _absolute(options.config, cwd)
    hooks = tuple(_hook_file(item, cwd) for item in options.hooks)
    return RunOptions(config=config, hooks=hooks, fallback=loaded.path or None), notes


def _first(lines: list[str]) -> list[str]:
    """The first findings; the rest are in the output of `check`."""
    if len(lines) <= _MAX_FINDINGS:
        return lines
    return [*lines[:_MAX_FINDINGS], f"and {len(lines) - _MAX_FINDINGS} more: hookproxy check shows all"]


def _hook_file(item: str, cwd: str) -> str:
    """`[DIALECT=]FILE` with an absolute path, as `run` reads it."""
    name, equals, file = item.partition("=")
    return f"{name}={_absolute(file, cwd)}" if equals and name in DIALECTS else _absolute(item, cwd)


def _absolute(path: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def _launcher() -> edit_plan.Launcher:
    """The words that start this hookproxy in any folder: the script that is running, or else the module.

    Raises UserError if this hookproxy cannot be started from other folders.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(PROGRAM)
    except PackageNotFoundError:
        hint = "install it first, for example with pipx or uv tool install"
        raise UserError("this hookproxy is not installed: an agent could not start it", hint) from None
    script = os.path.abspath(sys.argv[0])
    usable = os.path.basename(script) == PROGRAM and os.path.isfile(script) and os.access(script, os.X_OK)
    module = ("-P", "-m", PROGRAM)  # -P: never import a folder of that name in the agent's working directory

    def launcher(entry: Entry) -> tuple[str, ...]:
        if entry.for_python:  # -E: ignore PYTHONPATH and the like, which are for the server and still reach it
            return (sys.executable, "-E", *module)
        return (script,) if usable else (sys.executable, *module)

    return launcher


def carry_out(snapshot: files.Snapshot, plan: edit_plan.Plan, dry_run: bool, done: str) -> None:
    """Show the diff, and write the file, unless this is a dry run or there is nothing to do."""
    if not plan.edits:
        _report(f"{snapshot.path}: nothing to do")
        return
    if os.path.islink(snapshot.path):
        _report(f"{snapshot.path} is a link to {snapshot.real}")
    _show(unified(snapshot.path, snapshot.text, plan.edits))
    names = ", ".join(entry.key_path for entry in plan.changed)
    if dry_run:
        _report(f"{snapshot.path}: nothing was written; would be {done}: {names}")
        return
    backup = files.replace(snapshot, plan.text)
    _report(f"{snapshot.path}: {done}: {names}; backup: {backup}")


def _show(lines: list[str]) -> None:
    """Print a diff: unchanged into a pipe; on a terminal with colours, and with control characters escaped."""
    console = Console(highlight=False)
    if not console.is_terminal:
        text = "\n".join((*lines, ""))
        show(text.encode(console.encoding, "backslashreplace").decode(console.encoding))
        return
    with console.capture() as captured:
        for line in lines:
            style = "bold" if line.startswith(("--- ", "+++ ")) else _STYLES.get(line[:1], "")
            console.print(Text(visible(line.removesuffix("\r"), console.encoding), style), soft_wrap=True)
    show(captured.get())


def _report(text: str) -> None:
    """Write a line to standard error."""
    with suppress(OSError, AttributeError):  # nobody reads it, or it was closed before we started
        sys.stderr.write(f"{visible(text, sys.stderr.encoding)}\n")


def _why_unchanged(entry: Entry) -> str:
    """Why an entry was not changed."""
    if entry.kind is not Kind.STARTED:
        return f"is not changed: it {edit_plan.why_not(entry)}"
    return f"is already wrapped: {_wrapping_words(entry)}"


def _wrapping_words(entry: Entry) -> str:
    """The words before a wrapped server's own command."""
    configuration = edit_plan.wrapping(entry)
    return " ".join((*configuration.launcher, "run", *configuration.options.words)) if configuration else ""


def _list(options: argparse.Namespace) -> int:
    """List every configuration that exists. Returns the exit status."""
    if options.server or options.config or options.hooks or options.dry_run:
        raise UserError("no file is named", f"usage: {USAGE}")
    status, any_shown = 0, False
    for config_file in known_agents.config_files(os.environ, os.path.expanduser("~"), working_directory()):
        if not _exists(config_file.path):
            continue
        try:
            configuration = edit_plan.read(config_file.path, files.read(config_file.path).text)
        except NoServers:
            continue
        except UserError as error:
            _report(str(error))
            status = EXIT_FINDINGS
            continue
        if configuration.entries:
            any_shown = True
            _show_configuration(config_file, configuration)
    if not any_shown:
        _report("no agent configuration with servers was found")
    return status


def _exists(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)


def _show_configuration(config_file: known_agents.ConfigFile, configuration: edit_plan.Configuration) -> None:
    console = Console(highlight=False)
    width = max(len(entry.key_path) for entry in configuration.entries)
    with console.capture() as captured:
        head = Text.assemble((visible(config_file.path, console.encoding), "bold"), f"  {config_file.agent}")
        console.print(head, soft_wrap=True)
        for entry in configuration.entries:
            state, style = _state(entry)
            name = visible(entry.key_path, console.encoding).ljust(width)
            console.print(Text.assemble(f"  {name}  ", (visible(state, console.encoding), style)), soft_wrap=True)
        console.print()
    show(captured.get())


def _state(entry: Entry) -> tuple[str, str]:
    """The state of an entry as text, and its colour."""
    off = ", disabled" if entry.disabled else ""
    if entry.kind is Kind.REMOTE:
        return f"remote{off}", "dim"
    if entry.kind is Kind.OTHER:
        return f"no command{off}", "dim"
    if edit_plan.wrapping(entry):
        return f"wrapped{off}: {_wrapping_words(entry)}", "green"
    return f"not wrapped{off}", "yellow"
