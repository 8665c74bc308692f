"""`hookproxy setup`: finds agents, servers and hooks, shows what would change, asks, and changes it.

It is `wrap` for a person who has not read the manual: everything that it writes could be written by hand and with
`wrap`, `guard install` and `init`, and `uninstall` undoes all of it. Nothing is written before the last yes, and Ctrl-C
before that changes nothing. The hook files of a project are code of whoever made the project: they are used only if a
person says so, and only in front of that project's servers. Exit status: 0 done, nothing to do, or the person said no;
1 some files could not be changed, and the others were; 2 it failed, and no agent's configuration was changed.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..config.load import Loaded
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError
from ..policy.presets import PRESETS, preset_for
from ..wrapping import known_hook_files
from ..wrapping.agent_files import AgentFile, PlannedFile, short
from ..wrapping.known_agents import AGENTS_BY_NAME
from ..wrapping.known_hook_files import FoundHookFile
from ..wrapping.wrap_entry import FAIL_CLOSED
from . import guard_install, setup_own_tools, wrap
from .common import ask, has_terminal, load_named, show, show_line, working_directory
from .guard import folder as guard_folder
from .layout import Rows, alias_text, new_page, shortened
from .options import HOOK_OPTIONS, Parser
from .own_file import CONFIG, user_config_folder
from .setup_guards import (
    STARTER,
    Guards,
    PlannedConfig,
    diff,
    hooks_for,
    needed,
    open_entries,
    plan_config,
    wrapped_entries,
    write_config,
    write_first_guard,
)
from .setup_own_tools import OwnTools
from .signals import uninterrupted

_MOST_AGENTS: Final = 4
_MOST_HOOKS: Final = 3
_MOST_CHANGED: Final = 3
_MOST_ADDED: Final = 3
_MOST_WRITTEN: Final = 2
_MOST_UNDONE: Final = 3
"""Lines on a terminal of each section, where nothing is asked: with three headings and two last lines, the output has
twenty. Who is asked sees all that the question is about."""


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


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "setup",
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
    parser.add_common("--verbose")
    closed = parser.add_mutually_exclusive_group()
    closed.add_argument(
        FAIL_CLOSED,
        dest="refuses",  # and not as for other verbs: the configuration is looked at as it is
        action="store_true",
        default=None,
        help="refuse calls when a hook of another system's file fails (default: it is asked; with --yes: do so), and "
        "calls that the guard cannot judge (default: as [guard] fail_closed says, which is true)",
    )
    closed.add_argument(
        "--no-fail-closed",
        dest="refuses",
        action="store_false",
        help="let each system's document say what its failing hooks mean, and each agent decide about calls that the "
        "guard cannot judge: most let them pass",
    )
    parser.add_argument(
        "--no-guard", dest="guard", action="store_false", help="leave out the guard of the agents' own tools"
    )
    wrap.add_mcp_remote_option(parser)
    parser.add_common(*HOOK_OPTIONS)
    return parser


class Agreed(Struct, frozen=True):
    """What is to be written."""

    planned: tuple[PlannedFile, ...]
    guards: Guards
    config: PlannedConfig | None
    """The hookproxy.toml to which hook files are added; None: it stays as it is."""
    own_tools: tuple[OwnTools, ...]
    """The agents whose own tools the guard is to judge."""
    incomplete: bool
    """True if a file cannot be read or changed."""
    verbose: bool


def _propose(options: Namespace, asks: bool) -> Agreed | int:
    """Show what there is and what would change, and ask. Returns the exit status if nothing is to be written."""
    program = wrap.own_program()
    found = [file for target in options.targets or [None] for file in wrap.find_files(target)]
    _heading("agents and their servers")
    whole = options.verbose or (asks and not options.dry_run)
    with shortened(verbose=options.verbose, most=_MOST_AGENTS, end=0):
        broken = wrap.list_files(found)
    if broken and not any(file.has_servers for file in found):
        raise UserError("no configuration can be used; nothing was changed", "each file's error is above")
    is_done = not any(map(open_entries, found))
    has_hook_files = any(map(wrapped_entries, found)) and bool(_hook_files(options, found)[1])
    if is_done and not has_hook_files and not _own_tools(options, found, None)[0]:
        show("nothing to do: every server that can be wrapped is wrapped already\n")
        return EXIT_FINDINGS if broken else 0
    guards = _guards(options, asks, found)
    if guards is None:
        return _unchanged()
    _show_familiar_names(found, guards.loaded, whole=whole)
    asks = asks and not options.dry_run
    planned, errors = _plan(options, found, guards, program, whole=whole)
    config = plan_config(guards) if planned or is_done else None
    own_tools, fails = _own_tools(options, found, guards) if planned or config or is_done else ((), False)
    if not (planned or config or errors or own_tools) and any(map(wrapped_entries, found)):
        show("nothing to do: all other servers are wrapped already\n")
        return EXIT_FINDINGS if broken else 0
    if not (planned or config or own_tools):
        raise (
            errors[0]
            if errors
            else UserError(
                "nothing would guard these servers; nothing was changed",
                "name hook files with --hooks, or write a first guard with hookproxy init guard --user",
            )
        )
    if whole or not (options.yes and new_page().width):  # else what is written is shown soon, and by these names
        _show_additions(config, own_tools, whole=whole)
    if options.dry_run or (asks and not ask(_question(planned, guards, config, own_tools))):
        return _unchanged()
    incomplete = bool(errors or broken or guards.broken or fails)
    return Agreed(tuple(planned), guards, config, tuple(own_tools), incomplete, options.verbose)


def _own_tools(
    options: Namespace, found: Sequence[AgentFile], guards: Guards | None
) -> tuple[Sequence[OwnTools], bool]:
    """As `setup_own_tools.plan`; without `guards`, for the configuration as it is. Raises UserError."""
    if not options.guard:
        return (), False
    config = load_named(options, working_directory()).path if guards is None else guards.config_path
    return setup_own_tools.plan(found, config, guard_folder(), guard_install.without_guard(options.refuses))


def _unchanged() -> int:
    show("nothing was changed\n")
    return 0


def _heading(text: str) -> None:
    page = new_page()
    page.line((text, "bold"))
    show(page.text)


def _section(heading: str, rows: Rows) -> None:
    page = new_page()
    page.section(heading, rows)
    show(page.text)


# --- what guards the servers ---


def _guards(options: Namespace, asks: bool, found: Sequence[AgentFile]) -> Guards | None:
    """Show the hooks that are there, and ask which to use. None: there are none, and the person wants none."""
    home = os.path.expanduser("~")
    loaded = load_named(options, working_directory())
    hook_files, added = _hook_files(options, found)
    rows = [("config", short(loaded.path, home))] if loaded.path else []
    rows += [("hooks", f"{item} (--hooks)") for item in options.hooks]
    rows += [("alias", f"{alias.tool} {alias_text(alias)}") for alias in loaded.settings.aliases]
    for file in hook_files:
        rows += _hook_file_rows(file, home)
    none = ("none", "no hook file of a known system was found, and there is no hookproxy.toml")
    with shortened(verbose=options.verbose or (asks and not options.dry_run), most=_MOST_HOOKS, end=0):
        _section("hooks", iter(rows or [none]))
    own = [file for file in hook_files if file.hooks and not file.in_project]
    broken = [file.path for file in hook_files if file.error and not file.in_project]
    for path in broken:
        wrap.report(f"{path} cannot be read and is left out: its hooks will not run")
    project = _project_files(hook_files, asks) if any(map(open_entries, found)) else ()
    guards = Guards(loaded, tuple(own), added, project, broken=bool(broken))
    guards = replace(guards, fails_closed=_fails_closed(options, asks, guards))
    if guards.has_any or not asks:
        return guards
    folder = user_config_folder()
    question = f"Write a first guard into {short(folder, home)}? It {STARTER.description}."
    return replace(guards, starter_folder=folder) if not loaded.path and ask(question) else None


def _hook_files(
    options: Namespace, found: Sequence[AgentFile]
) -> tuple[list[FoundHookFile], tuple[FoundHookFile, ...]]:
    """The hook files that no configuration names yet, and those of them that the person's configuration is to name."""
    cwd = working_directory()
    configured = {group.source for group in load_named(options, cwd).groups}
    hook_files = [
        file
        for file in known_hook_files.find(os.environ, os.path.expanduser("~"), cwd)
        if not file.sources <= configured or file.error
    ]
    own = [file for file in hook_files if file.hooks and not file.in_project]
    return hook_files, needed(own, found)


def _project_files(hook_files: Sequence[FoundHookFile], asks: bool) -> tuple[FoundHookFile, ...]:
    """The hook files of the project, if the person wants them."""
    project = tuple(file for file in hook_files if file.hooks and file.in_project)
    if project and not _wants(project, asks):
        wrap.report("the hook files of this project are left out; --hooks DIALECT=FILE names one of them")
        return ()
    return project


def _fails_closed(options: Namespace, asks: bool, guards: Guards) -> bool:
    """Whether calls are to be refused when a hook of another system fails. It is asked only where that is a choice."""
    if options.refuses is not None or not guards.follows_documents:
        return options.refuses is not False
    question = "Refuse calls when a guard fails? Most systems' documents let them pass."
    return not asks or options.dry_run or ask(question, default=True)


def _hook_file_rows(file: FoundHookFile, home: str) -> Rows:
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


def _show_familiar_names(found: Sequence[AgentFile], loaded: Loaded, *, whole: bool) -> None:
    """Show the names by which hooks that were written for Claude Code's tools see those of known servers.

    Unless `whole`, they are left out on a terminal, as what nobody need decide about.
    """
    rows: dict[str, tuple[str, str]] = {}
    is_shown = loaded.settings.auto_aliases and (whole or not new_page().width)
    for entry in (entry for file in found for entry in open_entries(file)) if is_shown else ():
        preset = PRESETS.get(preset_for(entry.argv, ""))
        aliases = preset.tools if preset is not None else ()
        names = dict.fromkeys(f"{alias.tool} as {alias.name}" for alias in aliases if alias.name)
        if names:
            rows[entry.name] = ("alias", f"{entry.name}: hooks see {', '.join(names)}")
    _section("familiar names", iter(rows.values()))


# --- what changes ---


def _plan(
    options: Namespace, found: Sequence[AgentFile], guards: Guards, program: wrap.Program, *, whole: bool
) -> tuple[list[PlannedFile], list[UserError]]:
    """Plan and show the change of each file. Returns the plans, and the errors of files that cannot be changed.

    `whole`: all of it is shown, because a person is asked about it, or wants it.
    """
    cwd = working_directory()
    shared = wrap.shared_files(found)
    planned: list[PlannedFile] = []
    errors: list[UserError] = []
    explain = wrap.said_once(lambda planned_file: wrap.explain_wrap(planned_file, program, shared))
    _heading("changes" if whole or not new_page().width else "changes, whose diff --verbose shows")
    with shortened(verbose=whole, most=_MOST_CHANGED, end=0):
        for file in found:
            path = file.config_file.path
            if file.snapshot is None or file.configuration is None or not (entries := open_entries(file)):
                continue
            found_hooks, notes, guarded = hooks_for(file.config_file, guards, path in shared)
            for note in notes:
                wrap.report(f"{path}: {note}")
            if not (guarded or options.hooks):
                wrap.report(f"{path}: nothing would guard its servers: it is not changed")
                continue
            hooks = [*options.hooks, *found_hooks]
            if not guards.starter_folder:
                # raises if wrapped servers would not start
                load_named(options, cwd, [*hooks, *(hook_file.option for hook_file in guards.added)])
            run_options = wrap.wrap_options(options, guards.loaded, cwd, guards.needs_option(hooks))
            run_options = replace(
                run_options, hooks=(*run_options.hooks, *found_hooks), fallback=guards.config_path or None
            )
            try:
                plan = wrap.plan_wrap(
                    file.configuration,
                    [entry.name for entry in entries],
                    program,
                    run_options,
                    path in shared,
                    options.replace_mcp_remote,
                )
            except UserError as error:
                errors.append(error)
                wrap.report_error(error)
                continue
            planned.append(PlannedFile(file.config_file, file.snapshot, plan))
            wrap.show_change(planned[-1], explain, verbose=options.verbose, with_diff=whole)
    return planned, errors


def _show_additions(config: PlannedConfig | None, own_tools: Sequence[OwnTools], *, whole: bool) -> None:
    if config is not None:
        with shortened(verbose=whole, most=_MOST_ADDED, end=0):
            wrap.show_lines(diff(config))
    with shortened(verbose=whole, most=_MOST_ADDED, end=0):
        _section("agents' own tools", setup_own_tools.rows(own_tools))


def _question(
    planned: Sequence[PlannedFile], guards: Guards, config: PlannedConfig | None, own_tools: Sequence[OwnTools]
) -> str:
    titles = " and ".join(tools.title for tools in own_tools)
    verb, whose = ("does", "its") if len(own_tools) == 1 else ("do", "their")
    guard = f"let the guard judge what {titles} {verb} with tools of {whose} own"
    if not planned:
        writes = f"write {guards.config_path}" if config is not None else ""
        question = ", and ".join(filter(None, (guard if own_tools else "", writes)))
        return f"{question[0].upper()}{question[1:]}?"
    servers = counted(sum(len(file.plan.changed) for file in planned), "server")
    more = f", and write {guards.config_path}" if guards.starter_folder or config is not None else ""
    more = f", {guard}{more}" if own_tools else more
    return f"Wrap {servers} in {counted(len(planned), 'file')}{more}?"


def _write(agreed: Agreed) -> int:
    """Write everything, and say how to undo it. Returns the exit status."""
    written, failed = [], agreed.incomplete
    with uninterrupted():
        if agreed.guards.starter_folder:
            write_first_guard(agreed.guards.starter_folder)
        if agreed.config is not None:
            write_config(agreed.config)
            if agreed.guards.loaded.trust is not None and agreed.guards.loaded.trust.required:
                path = shlex.quote(agreed.config.path)
                wrap.report(f"it requires trust, and servers start again after: hookproxy trust {path}")
        for file in agreed.planned:
            try:
                wrap.write_change(file, "wrapped")
                written.append(file.snapshot.path)
            except UserError as error:
                failed = True
                wrap.report_error(error)
        if agreed.planned and not written:
            kept = agreed.config is not None or agreed.guards.starter_folder
            more = f"; {agreed.guards.config_path} was written, and hookproxy uninstall removes it" if kept else ""
            raise UserError(f"no agent's configuration was changed{more}", "each file's error is above")
        with shortened(verbose=agreed.verbose, most=_MOST_WRITTEN, end=0):
            failed = not setup_own_tools.write(agreed.own_tools) or failed
        guarded = [tools.side.name for tools in agreed.own_tools]
        _what_next(written, guarded, agreed.guards.config_path, verbose=agreed.verbose)
    return EXIT_FINDINGS if failed else 0


def _what_next(written: Sequence[str], guarded: Sequence[str], config: str, *, verbose: bool) -> None:
    """Say how to undo it, and how to look at the hooks. No line is broken, so that each command can be copied."""
    _heading("restart the agents; to undo this:" if written or guarded else "restart the agents")
    with shortened(verbose=verbose, most=_MOST_UNDONE):
        for path in written:
            show_line(f"  hookproxy unwrap {shlex.quote(path)}")
        if guarded:
            show_line(f"  hookproxy guard uninstall {' '.join(guarded)}")
    show_line("everything at once: hookproxy uninstall")
    if config:
        is_default = config == os.path.join(user_config_folder(), CONFIG)
        option = "" if is_default else f" --config {shlex.quote(config)}"
        show_line(f"what the hooks are, and what cannot work in them: hookproxy check{option}")
