"""`hookproxy setup`: finds agents, servers and hooks, shows what would change, asks, and changes it.

It is `wrap` for a person who has not read the manual: everything that it writes could be written with `wrap` and
`init`, and `unwrap` undoes it. Nothing is written before the last yes, and Ctrl-C before that changes nothing. The
hook files of a project are code of whoever made the project: they are used only if a person says so, and only in front
of that project's servers. Exit status: 0 done, nothing to do, or the person said no; 1 some files could not be changed,
and the others were; 2 it failed, and nothing was changed.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from ..config.load import Loaded
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError
from ..policy.presets import PRESETS, preset_for
from ..wrapping import edit_plan, known_hook_files
from ..wrapping.agent_files import AgentFile, PlannedFile, short
from ..wrapping.find_servers import Entry
from ..wrapping.known_agents import AGENTS_BY_NAME, ConfigFile
from ..wrapping.known_hook_files import FoundHookFile
from . import wrap
from .common import add_hook_options, ask, has_terminal, load_named, new_parser, show, show_line, working_directory
from .init import CONFIG, STARTERS, user_config_folder, write_starter
from .layout import alias_text, label, new_console, print_line, row

if TYPE_CHECKING:
    import argparse

USAGE: Final = (
    "hookproxy setup [AGENT|FILE]... [--yes] [--dry-run] [--replace-mcp-remote] [--config FILE] "
    "[--hooks [DIALECT=]FILE]... [--project DIR]"
)

_STARTER: Final = STARTERS["guard"]


class Guards(Struct, frozen=True):
    """What is to guard the servers."""

    loaded: Loaded
    """The configuration without the hook files that were found."""
    hook_files: tuple[FoundHookFile, ...]
    """The hook files that were found and are to be used."""
    starter_folder: str = ""
    """The folder into which the starter is to be written; empty: it is not."""
    broken: bool = False
    """True if one of the person's own hook files cannot be used."""

    @property
    def config_path(self) -> str:
        """The hookproxy.toml that wrapped servers read; empty if there is none."""
        return os.path.join(self.starter_folder, CONFIG) if self.starter_folder else self.loaded.path

    @property
    def everywhere(self) -> bool:
        """True if the configuration itself guards every server."""
        return bool(self.starter_folder) or wrap.has_hooks(self.loaded)


def main(arguments: Sequence[str]) -> int:
    """Walk a person through it, or with `--yes` do it without asking. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    if not (options.yes or options.dry_run or has_terminal()):
        raise UserError(
            "there is no terminal to ask on; nothing was changed",
            "hookproxy setup --yes asks nothing; --dry-run only shows what would change",
        )
    try:
        agreed = _propose(options, asks=not options.yes and has_terminal())
    except KeyboardInterrupt:
        show("\nnothing was changed\n")
        raise
    if isinstance(agreed, int):
        return agreed
    return _write(agreed)


def build_parser() -> argparse.ArgumentParser:
    """The parser of this verb's command line."""
    parser = new_parser(
        "setup",
        USAGE,
        "Find agents, their servers and hook files, show what would change, and put the hooks in front of the servers. "
        "A person is asked before anything is written.",
    )
    parser.add_argument(
        "targets",
        metavar="AGENT|FILE",
        nargs="*",
        help=f"only these agents: {', '.join(AGENTS_BY_NAME)}; or configurations (default: all that are found)",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing; hook files of the project are left out")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    wrap.add_mcp_remote_option(parser)
    add_hook_options(parser)
    return parser


class Agreed(Struct, frozen=True):
    """What is to be written."""

    planned: tuple[PlannedFile, ...]
    guards: Guards
    incomplete: bool
    """True if a file cannot be read or changed."""


def _propose(options: argparse.Namespace, asks: bool) -> Agreed | int:
    """Show what there is and what would change, and ask. Returns the exit status if nothing is to be written."""
    program = wrap.own_program()
    found = [file for target in options.targets or [None] for file in wrap.find_files(target)]
    _heading("agents and their servers")
    broken = wrap.list_files(found)
    if broken and not any(file.has_servers for file in found):
        raise UserError("no configuration can be used; nothing was changed", "each file's error is above")
    if not any(_open_entries(file) for file in found):
        show("nothing to do: every server that can be wrapped is wrapped already\n")
        return EXIT_FINDINGS if broken else 0
    guards = _guards(options, asks)
    if guards is None:
        return _unchanged()
    _show_familiar_names(found, guards.loaded)
    planned, errors = _plan(options, found, guards, program)
    if not planned and not errors and any(_wrapped_entries(file) for file in found):
        show("nothing to do: all other servers are wrapped already\n")
        return EXIT_FINDINGS if broken else 0
    if not planned:
        raise (
            errors[0]
            if errors
            else UserError(
                "nothing would guard these servers; nothing was changed",
                "name hook files with --hooks, or write a first guard with hookproxy init guard --user",
            )
        )
    if options.dry_run or (asks and not ask(_question(planned, guards))):
        return _unchanged()
    return Agreed(tuple(planned), guards, incomplete=bool(errors or broken or guards.broken))


def _unchanged() -> int:
    show("nothing was changed\n")
    return 0


def _heading(text: str) -> None:
    console = new_console()
    with console.capture() as captured:
        print_line(console, Text(text, "bold"))
    show(captured.get())


def _rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print labelled rows, as wide as the terminal, and an empty line. Nothing in them reaches the terminal raw."""
    console = new_console()
    with console.capture() as captured:
        for name, text in rows:
            row(console, label(name), text)
        print_line(console, Text())
    show(captured.get())


# --- what guards the servers ---


def _guards(options: argparse.Namespace, asks: bool) -> Guards | None:
    """Show the hooks that are there, and ask which to use. None: none are, and the person wants none."""
    cwd, home = working_directory(), os.path.expanduser("~")
    loaded = load_named(options, cwd)
    configured = {group.source for group in loaded.groups}
    found = [
        file for file in known_hook_files.find(os.environ, home, cwd) if not file.sources <= configured or file.error
    ]
    _heading("hooks")
    rows = [("config", short(loaded.path, home))] if loaded.path else []
    rows += [("hooks", f"{item} (--hooks)") for item in options.hooks]
    rows += [("alias", f"{alias.tool} {alias_text(alias)}") for alias in loaded.settings.aliases]
    for file in found:
        rows += _hook_file_rows(file, home)
    _rows(rows or [("none", "no hook file of a known system was found, and there is no hookproxy.toml")])
    own = [file for file in found if file.hooks and not file.in_project]
    project = [file for file in found if file.hooks and file.in_project]
    broken = [file.path for file in found if file.error and not file.in_project]
    for path in broken:
        wrap.report(f"{path} cannot be read and is left out: its hooks will not run")
    if project and not _wants(project, asks):
        wrap.report("the hook files of this project are left out; --hooks DIALECT=FILE names one of them")
        project = []
    guards = Guards(loaded, (*own, *project), broken=bool(broken))
    if guards.hook_files or guards.everywhere or not asks:
        return guards
    folder = user_config_folder()
    question = f"Write a first guard into {short(folder, home)}? It {_STARTER.description}."
    return Guards(loaded, (), folder, bool(broken)) if not loaded.path and ask(question) else None


def _hook_file_rows(file: FoundHookFile, home: str) -> Iterator[tuple[str, str]]:
    name = short(file.path, home)
    if file.error:
        yield "left out", file.error.message
        return
    owner = ", of this project" if file.in_project else ""
    yield "hooks", f"{name}: {counted(file.hooks, 'hook')}, as {file.dialect} runs them{owner}"
    for note in file.notes:
        yield "warning", note


def _wants(project: Sequence[FoundHookFile], asks: bool) -> bool:
    files = counted(len(project), "hook file")
    question = f"Use the {files} of this project, for its own servers? Hooks are programs: say yes if you trust them."
    return asks and ask(question)


def _hooks_for(file: ConfigFile, guards: Guards, shared: bool) -> tuple[list[str], list[str]]:
    """The `--hooks` for a configuration, and sentences about those that are left out.

    In a file that git shares, the project's hook files are named relative to the project, where agents start a
    project's servers, and the person's own are not named at all: nobody else has them.
    """
    hooks, notes = [], []
    cwd = working_directory()
    for hook_file in guards.hook_files:
        runs_it = [agent.title for agent in file.agents if agent.dialect == hook_file.dialect.partition("@")[0]]
        if hook_file.in_project and not file.in_project:
            continue
        if runs_it:
            notes.append(f"{' and '.join(runs_it)} runs the hooks of {hook_file.path} itself: they are left out here")
        elif not shared:
            hooks.append(hook_file.option)
        elif hook_file.in_project:
            hooks.append(f"{hook_file.dialect}={os.path.relpath(hook_file.path, cwd)}")
        else:
            notes.append(f"git shares this file with others: {hook_file.path}, which only you have, is left out here")
    return hooks, notes


def _show_familiar_names(found: Sequence[AgentFile], loaded: Loaded) -> None:
    """Show the names by which hooks that were written for Claude Code's tools see those of known servers."""
    rows: dict[str, str] = {}
    for entry in (entry for file in found for entry in _open_entries(file)) if loaded.settings.auto_aliases else ():
        preset = PRESETS.get(preset_for(entry.argv, ""))
        aliases = preset.tools if preset is not None else ()
        names = dict.fromkeys(f"{alias.tool} as {alias.name}" for alias in aliases if alias.name)
        if names:
            rows[entry.name] = f"{entry.name}: hooks see {', '.join(names)}"
    if rows:
        _heading("familiar names")
        _rows([("alias", text) for text in rows.values()])


# --- what changes ---


def _open_entries(file: AgentFile) -> list[Entry]:
    """The servers that can be wrapped, and are not wrapped yet."""
    if (configuration := file.configuration) is None:
        return []
    why_not = edit_plan.why_not(configuration)
    return [entry for entry in configuration.entries if not (edit_plan.wrapping(entry) or entry.key_path in why_not)]


def _wrapped_entries(file: AgentFile) -> list[Entry]:
    """The servers that are wrapped already."""
    entries = file.configuration.entries if file.configuration is not None else ()
    return [entry for entry in entries if edit_plan.wrapping(entry)]


def _plan(
    options: argparse.Namespace, found: Sequence[AgentFile], guards: Guards, program: wrap.Program
) -> tuple[list[PlannedFile], list[UserError]]:
    """Plan and show the change of each file. Returns the plans, and the errors of files that cannot be changed."""
    cwd = working_directory()
    shared = wrap.shared_files(found)
    planned: list[PlannedFile] = []
    errors: list[UserError] = []
    _heading("changes")
    for file in found:
        path = file.config_file.path
        if file.snapshot is None or not (entries := _open_entries(file)):
            continue
        found_hooks, notes = _hooks_for(file.config_file, guards, path in shared)
        for note in notes:
            wrap.report(f"{path}: {note}")
        if not (found_hooks or guards.everywhere):
            wrap.report(f"{path}: nothing would guard its servers: it is not changed")
            continue
        hooks = [*options.hooks, *found_hooks]
        if not guards.starter_folder:
            # raises if wrapped servers would not start
            load_named(options, cwd, hooks)
        run_options = wrap.wrap_options(options, guards.loaded, cwd)
        run_options = replace(
            run_options, hooks=(*run_options.hooks, *found_hooks), fallback=guards.config_path or None
        )
        try:
            plan = wrap.plan_wrap(
                file, [entry.name for entry in entries], program, run_options, shared, options.replace_mcp_remote
            )
        except UserError as error:
            errors.append(error)
            wrap.report_error(error)
            continue
        planned.append(PlannedFile(file.config_file, file.snapshot, plan))
        wrap.show_change(planned[-1], lambda planned_file: wrap.explain_wrap(planned_file, program, shared))
    return planned, errors


def _question(planned: Sequence[PlannedFile], guards: Guards) -> str:
    servers = counted(sum(len(file.plan.changed) for file in planned), "server")
    starter = f", and write {guards.config_path}" if guards.starter_folder else ""
    return f"Wrap {servers} in {counted(len(planned), 'file')}{starter}?"


def _write(agreed: Agreed) -> int:
    """Write everything, and say how to undo it. Returns the exit status."""
    written, failed = [], agreed.incomplete
    with _uninterrupted():
        if agreed.guards.starter_folder:
            write_starter(_STARTER, agreed.guards.starter_folder)
            wrap.report(f"wrote {agreed.guards.config_path}")
        for file in agreed.planned:
            try:
                wrap.write_change(file, "wrapped")
                written.append(file.snapshot.path)
            except UserError as error:
                failed = True
                wrap.report_error(error)
        if not written:
            raise UserError("no configuration was changed", "each file's error is above")
        _heading("restart the agents; to undo this:")
        for path in written:  # never broken into lines, so that it can be copied
            show_line(f"  hookproxy unwrap {shlex.quote(path)}")
    return EXIT_FINDINGS if failed else 0


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and a closed terminal wait: what a person has said yes to is done as a whole."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            os.kill(os.getpid(), received[0])
