"""`hookproxy wrap`: puts hooks in front of the servers in an agent's own configuration, and never asks.

The diff is standard output, everything else is said on standard error. Exit status: 0 done, or nothing to do; 2 it
could not be done, and nothing was changed. Without a file it lists what there is; 1: a file cannot be read.
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
from ..wrapping.wrap_entry import PROGRAM, Options
from .common import add_sources, here, parser, show, visible

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy wrap [FILE] [--server NAME]... [--config FILE] [--hooks [DIALECT=]FILE]... [--dry-run]"

_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def main(arguments: Sequence[str]) -> int:
    """Wrap the servers of a file, or list the files that are there; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    if chosen.file is None:
        return _list(chosen)
    given, notes = _options(chosen, here())
    snapshot = files.read(chosen.file)
    found = edit_plan.read(chosen.file, snapshot.text)
    plan = edit_plan.wrap(found, chosen.server, _launcher(), given)
    for note in notes:
        _tell(note)
    for entry in plan.unchanged:
        _tell(f"{chosen.file}: {entry.place} {_left_alone(entry)}")
    if not {".cache", "Caches"}.isdisjoint(sys.executable.split("/")):  # that of `uvx`, say
        _tell(f"{sys.executable} is in a cache: when that is emptied, wrapped servers no longer start")
    for entry in plan.changed:
        if entry.also_remote:
            _tell(f"{chosen.file}: {entry.place} has an address, too: an agent that uses it passes no hook")
    carry_out(snapshot, plan, chosen.dry_run, "wrapped")
    return 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "wrap",
        USAGE,
        "Put hookproxy in front of the servers that an agent's configuration starts, and show the diff. "
        "Without FILE: list the configurations on this machine, and what is wrapped in each.",
    )
    taken.add_argument("file", metavar="FILE", nargs="?", help="an agent's configuration: JSON, TOML or YAML")
    add_choice(taken)
    add_sources(taken)
    return taken


def add_choice(to: argparse.ArgumentParser) -> None:
    """The options that `wrap` and `unwrap` share."""
    to.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="this server only; may be given several times"
    )
    to.add_argument("--dry-run", action="store_true", help="show the diff, and write nothing")


def _options(chosen: argparse.Namespace, cwd: str) -> tuple[Options, list[str]]:
    """What the wrapped servers are started with, absolute, since an agent starts them anywhere; and what to say."""
    loaded = load(chosen.config, chosen.hooks, None, os.environ, cwd)  # else no server would start any more
    settings = loaded.settings
    idle = not loaded.groups and not (settings.allow or settings.ask or settings.deny)
    notes = ["no hook is configured yet: wrapped servers run as they did, until there is one"] if idle else []
    config = None if chosen.config is None else _absolute(chosen.config, cwd)
    hooks = tuple(_hook_file(item, cwd) for item in chosen.hooks)
    return Options(config=config, hooks=hooks, fallback=loaded.path or None), notes


def _hook_file(item: str, cwd: str) -> str:
    """`[DIALECT=]FILE`, as `run` will understand it."""
    name, equals, file = item.partition("=")
    return f"{name}={_absolute(file, cwd)}" if equals and name in DIALECTS else _absolute(item, cwd)


def _absolute(path: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def _launcher() -> edit_plan.Launcher:
    """The words that start this hookproxy from anywhere: the script that runs, or else the module.

    Raises UserError if there is nothing to start from elsewhere.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(PROGRAM)
    except PackageNotFoundError:
        hint = "install it first, for example with pipx or uv tool install"
        raise UserError("this hookproxy is not installed: an agent could not start it", hint) from None
    script = os.path.abspath(sys.argv[0])
    usable = os.path.basename(script) == PROGRAM and os.path.isfile(script) and os.access(script, os.X_OK)
    module = ("-P", "-m", PROGRAM)  # -P: never a folder of that name where the agent happens to be

    def launcher(entry: Entry) -> tuple[str, ...]:
        if entry.for_python:  # -E: PYTHONPATH and the like are for the server, and reach it
            return (sys.executable, "-E", *module)
        return (script,) if usable else (sys.executable, *module)

    return launcher


def carry_out(snapshot: files.Snapshot, plan: edit_plan.Plan, dry_run: bool, done: str) -> None:
    """Show the diff; write, unless that is not wanted or there is nothing to write."""
    if not plan.edits:
        _tell(f"{snapshot.path}: nothing to do")
        return
    if os.path.islink(snapshot.path):
        _tell(f"{snapshot.path} is a link to {snapshot.real}")
    _show(unified(snapshot.path, snapshot.text, plan.edits))
    names = ", ".join(entry.place for entry in plan.changed)
    if dry_run:
        _tell(f"{snapshot.path}: nothing was written; {done} would be: {names}")
        return
    backup = files.replace(snapshot, plan.text)
    _tell(f"{snapshot.path}: {done}: {names}; as it was before: {backup}")


def _show(lines: list[str]) -> None:
    """A diff: as it is, or on a terminal in colours and with nothing that a terminal would obey."""
    console = Console(highlight=False)
    if not console.is_terminal:
        text = "\n".join((*lines, ""))
        show(text.encode(console.encoding, "backslashreplace").decode(console.encoding))
        return
    with console.capture() as shown:
        for line in lines:
            style = "bold" if line.startswith(("--- ", "+++ ")) else _STYLES.get(line[:1], "")
            console.print(Text(visible(line.removesuffix("\r"), console.encoding), style), soft_wrap=True)
    show(shown.get())


def _tell(text: str) -> None:
    """Say it on standard error."""
    with suppress(OSError, AttributeError):  # nobody reads, or it was closed before we started
        sys.stderr.write(f"{visible(text, sys.stderr.encoding)}\n")


def _left_alone(entry: Entry) -> str:
    """Why nothing was changed about an entry."""
    if entry.kind is not Kind.STARTED:
        return f"is left alone: it {edit_plan.why_not(entry)}"
    return f"is wrapped already: {_how(entry)}"


def _how(entry: Entry) -> str:
    """The words that a wrapped server is started with."""
    found = edit_plan.wrapping(entry)
    return " ".join((*found.launcher, "run", *found.options.words)) if found else ""


def _list(chosen: argparse.Namespace) -> int:
    """Every configuration that is there."""
    if chosen.server or chosen.config or chosen.hooks or chosen.dry_run:
        raise UserError("no file is named", f"usage: {USAGE}")
    status, seen = 0, False
    for place in known_agents.places(os.environ, os.path.expanduser("~"), here()):
        if not _is_there(place.path):
            continue
        try:
            found = edit_plan.read(place.path, files.read(place.path).text)
        except NoServers:
            continue
        except UserError as error:
            _tell(str(error))
            status = EXIT_FINDINGS
            continue
        if found.entries:
            seen = True
            _show_configuration(place, found)
    if not seen:
        _tell("no agent's configuration with servers was found")
    return status


def _is_there(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)


def _show_configuration(place: known_agents.Place, found: edit_plan.Configuration) -> None:
    console = Console(highlight=False)
    width = max(len(entry.place) for entry in found.entries)
    with console.capture() as shown:
        head = Text.assemble((visible(place.path, console.encoding), "bold"), f"  {place.agent}")
        console.print(head, soft_wrap=True)
        for entry in found.entries:
            state, style = _state(entry)
            name = visible(entry.place, console.encoding).ljust(width)
            console.print(Text.assemble(f"  {name}  ", (visible(state, console.encoding), style)), soft_wrap=True)
        console.print()
    show(shown.get())


def _state(entry: Entry) -> tuple[str, str]:
    """In words, and its colour."""
    off = ", disabled" if entry.disabled else ""
    if entry.kind is Kind.REMOTE:
        return f"remote{off}", "dim"
    if entry.kind is Kind.OTHER:
        return f"no command{off}", "dim"
    if edit_plan.wrapping(entry):
        return f"wrapped{off}: {_how(entry)}", "green"
    return f"not wrapped{off}", "yellow"
