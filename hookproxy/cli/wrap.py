"""`hookproxy wrap`: puts hooks in front of the servers in an agent's own configuration, without asking.

A configuration is named by its agent, by its path, or, with `--all`, by none of them: then all agents that are found.
The diff is written to standard output, all other messages to standard error. Exit status: 0 done, or nothing to do;
1 some files could not be changed, and the others were; 2 it failed, and nothing was changed. With no name at all it
lists the configurations that exist; 1: one cannot be read.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..config.hook_files import NONE_CAN_RUN
from ..config.load import Loaded
from ..dialects.registry import DIALECTS
from ..dialects.shared.hook_file import NO_HOOKS, suggestion
from ..hooks import failures
from ..model.counts import some_of
from ..model.env_references import TOKEN_VARIABLE
from ..model.errors import EXIT_FINDINGS, UserError
from ..trust.sources import state_folder
from ..wrapping import agent_files, edit_plan, files, known_agents, written
from ..wrapping.agent_files import AgentFile, PlannedFile
from ..wrapping.diff import unified
from ..wrapping.edit_plan import Configuration
from ..wrapping.find_servers import Entry, Kind, NoServers
from ..wrapping.gateway_entry import Gateway
from ..wrapping.http_entry import reaches_gateway
from ..wrapping.known_agents import AGENTS, AGENTS_BY_NAME, ConfigFile, HttpForm
from ..wrapping.version_control import is_shared
from ..wrapping.wrap_entry import FAIL_CLOSED, PROGRAM, RunOptions
from ..wrapping.written import Written
from . import findings
from .common import load_named, show, tell, working_directory
from .layout import new_page, shortened
from .options import HOOK_OPTIONS, Parser, add_sandbox_options, sandbox_words

_GATEWAY_FORM: Final = "write https://HOST[:PORT]"
_MAX_FINDINGS: Final = 5  # what fits beside a diff on a screen
_MAX_NOTES: Final = 4  # remarks about one file beside its diff: there may be one about each server
_DEFAULT_GATEWAY: Final = "unix:"  # as in gateway.toml, without a path: where `connect` finds it
_MODULE: Final = ("-P", "-m", PROGRAM)  # -P: never import a folder of that name in the agent's working directory
_WITH_PATH: Final = "written with its path"
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def main(arguments: Sequence[str]) -> int:
    """Wrap the servers of the named files, or list the configurations that exist. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    if options.target is None and not options.all:
        given = (options.server, options.config, options.hooks, options.dry_run, options.fail_closed)
        if any(given) or options.gateway is not None:
            raise build_parser().wrong("no agent and no file is named")
        return list_all(options)
    if options.from_caller and options.gateway is None:
        raise build_parser().wrong("--from-caller is for --gateway")
    if options.stdio and "://" not in (options.gateway or ""):
        raise build_parser().wrong("--stdio is for --gateway URL")
    if options.gateway is not None:
        return _wrap_for_gateway(options)
    cwd = working_directory()
    # raises if wrapped servers would not start
    loaded = load_named(options, cwd)
    findings.stop_if_strict(loaded, False, os.environ)
    run_options = wrap_options(options, loaded, cwd, options.fail_closed, sandbox_words(options))
    program = own_program()
    found = named_files(options)
    shared = shared_files(found)

    def plan(path: str, configuration: Configuration, names: Sequence[str]) -> edit_plan.Plan:
        return plan_wrap(configuration, names, program, run_options, path in shared, options.replace_mcp_remote)

    def explain(planned: PlannedFile) -> list[str]:
        return [*explain_wrap(planned, program, shared), *_repeated_hooks(planned, loaded)]

    return change_all(options, found, plan, "wrapped", said_once(explain), _notes(loaded))


def _wrap_for_gateway(options: Namespace) -> int:
    """Let the named files' servers be reached through the gateway. Returns the exit status. Raises UserError."""
    if options.config or options.hooks or options.project or options.replace_mcp_remote or options.fail_closed:
        hint = "leave out --config, --hooks, --project, --fail-closed and --replace-mcp-remote"
        raise UserError("behind a gateway, its own configuration says which hooks run", hint)
    if options.sandbox:
        raise UserError("behind a gateway, its own configuration says what servers reach", "leave out --sandbox")
    gateway = _gateway(options.gateway, options.from_caller)
    program = own_program()
    found = named_files(options)
    shared = shared_files(found)
    forms = {} if options.stdio or not gateway.url else _http_forms(options.target, found)

    def plan(path: str, configuration: Configuration, names: Sequence[str]) -> edit_plan.Plan:
        if (form := forms.get(path)) is not None:
            return edit_plan.wrap_over_http(configuration, names, form, gateway.url)
        return edit_plan.wrap_for_gateway(
            configuration, names, lambda entry: program.words(entry, path in shared), gateway
        )

    return change_all(
        options, found, plan, "wrapped", said_once(lambda planned: explain_wrap(planned, program, shared))
    )


def _http_forms(target: str | None, found: Sequence[AgentFile]) -> dict[str, HttpForm]:
    """How the agents of these files write that they reach a server over HTTP themselves, by the files' paths."""
    named = AGENTS_BY_NAME.get(target or "")
    forms = {file.config_file.path: named.http if named else file.config_file.http for file in found}
    return {path: form for path, form in forms.items() if form is not None}


def _gateway(where: str, from_caller: bool) -> Gateway:
    """The gateway that `--gateway` names. Raises UserError."""
    if "://" in where:
        if from_caller:
            raise UserError("--from-caller needs the gateway's socket", "name its path instead of a URL")
        from ..network.address import parse

        try:
            parse(where, allow_http=False)
        except UserError as error:
            raise UserError(f"--gateway: {error.message.removeprefix('--url ')}", _GATEWAY_FORM) from None
        if "?" in where or "#" in where:
            raise UserError(f"--gateway {where}: this is not the address of a gateway", _GATEWAY_FORM)
        return Gateway(url=where)
    path = os.path.expanduser(where.removeprefix("unix:"))
    if path and not os.path.isabs(path):
        hint = "name the agent first: hookproxy wrap AGENT --gateway" if "/" not in where else "begin the path with /"
        raise UserError(f"--gateway {where}: this is neither the full path of a socket nor a URL", hint)
    return Gateway(path, from_caller=from_caller)


def _notes(loaded: Loaded) -> list[str]:
    """What a person should know, whatever files are wrapped."""
    found = findings.lines(loaded, os.environ) if has_hooks(loaded) else []
    found += [remark for remark in loaded.remarks if remark.endswith((NONE_CAN_RUN, NO_HOOKS))]
    notes = found[:_MAX_FINDINGS]
    if len(found) > _MAX_FINDINGS:
        notes.append(f"and {len(found) - _MAX_FINDINGS} more: hookproxy check shows all")
    if not has_hooks(loaded):
        notes.append(
            "no hook is configured yet, so wrapped servers run as before: hookproxy init guard --user writes one"
        )
    if passing := failures.summary(loaded.groups, loaded.settings):  # what the run says itself, an agent rarely shows
        notes.append(f"{passing}: --fail-closed refuses such calls")
    if in_cache():
        notes.append(f"{sys.executable} is in a cache: if the cache is cleared, wrapped servers no longer start")
    return notes


def in_cache() -> bool:
    """True if this hookproxy is in a cache, for example that of `uvx`, and may be gone tomorrow."""
    return not {".cache", "Caches"}.isdisjoint(sys.executable.split("/"))


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "wrap",
        "Put hookproxy in front of the servers in an agent's configuration, and show the diff. "
        "Without AGENT, FILE and --all: list the agent configurations on this machine and in the working directory, "
        "and which of their servers are wrapped.",
    )
    add_target_options(parser)
    add_mcp_remote_option(parser)
    parser.add_common(*HOOK_OPTIONS, "--fail-closed")
    add_sandbox_options(parser)
    parser.add_argument(
        "--gateway",
        metavar="SOCKET|URL",
        nargs="?",
        const=_DEFAULT_GATEWAY,
        help="reach the servers through a gateway (hookproxy connect), which has servers of the same names; "
        "without a value: the one on this machine",
    )
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="with --gateway URL: write hookproxy connect also where the agent could speak HTTP itself",
    )
    parser.add_argument(
        "--from-caller",
        action="store_true",
        help="with --gateway: the servers run as whoever starts the agent, as from_caller says in gateway.toml",
    )
    return parser


def add_mcp_remote_option(parser: Parser) -> None:
    """The option that `wrap` and `setup` share."""
    parser.add_argument(
        "--replace-mcp-remote",
        action="store_true",
        help="where an entry starts mcp-remote, let hookproxy connect to its address instead",
    )


def add_target_options(parser: Parser) -> None:
    """The options that `wrap` and `unwrap` share."""
    parser.add_argument(
        "target",
        metavar="AGENT|FILE",
        nargs="?",
        help=f"an agent: {', '.join(AGENTS_BY_NAME)}; or its configuration: JSON, TOML or YAML",
    )
    parser.add_argument("--all", action="store_true", help="the configurations of all agents that are found")
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this server; may be given several times"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the diff, and write nothing")
    parser.add_common("--verbose")


def named_files(options: Namespace) -> list[AgentFile]:
    """The files that the command line of `wrap` or `unwrap` names. Raises UserError, as `find_files` does."""
    if options.all and options.target is not None:
        raise UserError(f"both --all and {options.target!r} are given", "give one of them")
    return find_files(options.target)


def find_files(target: str | None) -> list[AgentFile]:
    """The files of an agent, the named file, or those of all agents that are found (None).

    A word that is both an agent and a file is the agent; `./cursor` is the file. Raises UserError if there is no file
    with servers, and ConfigError for a named file that cannot be used.
    """
    if target is not None and target not in AGENTS_BY_NAME:
        return [_named_file(target)]
    agents = [AGENTS_BY_NAME[target]] if target is not None else AGENTS
    home = os.path.expanduser("~")
    config_files = known_agents.config_files(os.environ, home, working_directory(), agents)
    found = agent_files.read(config_files)
    if any(file.has_servers or is_broken(file) for file in found):
        return found
    if target is not None:
        raise agent_files.not_found(AGENTS_BY_NAME[target], config_files, found, home)
    raise UserError(
        "no agent configuration with servers was found",
        f"known agents: {', '.join(AGENTS_BY_NAME)}; for another one, name its FILE",
    )


def _named_file(path: str) -> AgentFile:
    try:
        snapshot = files.read(path)
        configuration = edit_plan.read(path, snapshot.text)
        edit_plan.require_servers(configuration)
    except UserError as error:
        near = near_agent(path)
        raise UserError(error.message, near, error.status) if near else error from None
    return AgentFile(ConfigFile(path, (), in_project=False), snapshot, configuration)


def near_agent(word: str) -> str:
    """The hint for a misspelled agent; empty if the word is not like one."""
    return "" if os.path.lexists(word) else suggestion(word, AGENTS_BY_NAME)


def is_broken(file: AgentFile) -> bool:
    """True if the file cannot be used; one without servers is in order."""
    return file.error is not None and not isinstance(file.error, NoServers)


class Program(Struct, frozen=True):
    """How this hookproxy is started."""

    script: str
    """Its script; empty if it has none that can be executed."""
    in_path: bool
    """True if PATH finds this script by its name."""

    def words(self, entry: Entry, shared: bool) -> tuple[str, ...]:
        """The words that start it in any folder, in the environment of an entry."""
        if entry.for_python:  # -E: ignore PYTHONPATH and the like, which are for the server and still reach it
            return (sys.executable, "-E", *_MODULE)
        return (PROGRAM,) if shared and self.in_path else self.start

    @property
    def start(self) -> tuple[str, ...]:
        """The words that start it on this machine, in any folder."""
        return (self.script,) if self.script else (sys.executable, *_MODULE)


def own_program() -> Program:
    """How this hookproxy is started: its script, or else the module. Raises UserError if it is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(PROGRAM)
    except PackageNotFoundError:
        hint = "install it first, for example with pipx or uv tool install"
        raise UserError("this hookproxy is not installed: an agent could not start it", hint) from None
    script = os.path.abspath(sys.argv[0])
    usable = os.path.basename(script) == PROGRAM and os.path.isfile(script) and os.access(script, os.X_OK)
    found = shutil.which(PROGRAM)
    ours = script if usable else os.path.join(os.path.dirname(sys.executable), PROGRAM)
    in_path = found is not None and os.path.isabs(found) and os.path.exists(ours) and os.path.samefile(found, ours)
    return Program(script if usable else "", in_path)


def shared_files(found: Sequence[AgentFile]) -> frozenset[str]:
    """The paths of those files that git shares with others."""
    paths = [file.config_file.path for file in found if file.has_servers]
    return frozenset(path for path in paths if is_shared(path, os.environ))


def plan_wrap(
    configuration: Configuration,
    names: Sequence[str],
    program: Program,
    run_options: RunOptions,
    is_shared_file: bool,
    replace_mcp_remote: bool,
) -> edit_plan.Plan:
    """Plan how a file that has servers is wrapped. Raises ConfigError."""
    if is_shared_file:  # everybody's own configuration is read without --config
        run_options = replace(run_options, fallback=None)
    return edit_plan.wrap(
        configuration, names, lambda entry: program.words(entry, is_shared_file), run_options, replace_mcp_remote
    )


def wrap_options(
    options: Namespace, loaded: Loaded, cwd: str, fails_closed: bool, sandbox: Sequence[str] = ()
) -> RunOptions:
    """The options of the wrapped servers. Paths are absolute: an agent may start servers in any folder."""
    return RunOptions(
        config=None if options.config is None else _absolute(options.config, cwd),
        hooks=tuple(_hook_file(item, cwd) for item in options.hooks),
        others=(
            *(("--project", _absolute(options.project, cwd)) if options.project else ()),
            *((FAIL_CLOSED,) if fails_closed else ()),
            *sandbox,
        ),
        fallback=loaded.path or None,
    )


def has_hooks(loaded: Loaded) -> bool:
    """True if the configuration can refuse anything, or would: a hook, or a permission rule."""
    settings = loaded.settings
    return bool(loaded.groups or settings.has_rules or settings.has_flow or loaded.watched)


def _hook_file(item: str, cwd: str) -> str:
    """`[DIALECT=]FILE` with an absolute path, as `run` reads it."""
    name, equals, file = item.partition("=")
    return f"{name}={_absolute(file, cwd)}" if equals and name in DIALECTS else _absolute(item, cwd)


def _absolute(path: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def explain_wrap(planned: PlannedFile, program: Program, shared: frozenset[str]) -> list[str]:
    """Sentences about the entries of a wrapped file, and about how it names hookproxy, and why."""
    reasons = planned.plan.reasons
    notes = [
        f"{entry.key_path} is not changed: it {reasons[entry.key_path]}"
        if entry.key_path in reasons
        else f"{entry.key_path} is already wrapped: {_wrapping_words(entry) or reaches_gateway(entry)}"
        for entry in planned.plan.unchanged
    ]
    notes += planned.plan.notes
    changed = planned.plan.changed
    if planned.plan.replaced:
        notes.append(f"the agent needs your token of the gateway in its environment, as {TOKEN_VARIABLE}")
        changed = tuple(entry for entry in changed if entry.key_path not in planned.plan.replaced)
    notes += [
        f"{entry.key_path} also has an address: an agent that uses it bypasses the hooks"
        for entry in changed
        if entry.also_remote
    ]
    notes += [
        f"{entry.key_path} starts mcp-remote: with --replace-mcp-remote, hookproxy connects to the address itself"
        for entry in changed
        if edit_plan.starts_mcp_remote(entry) and entry.key_path not in planned.plan.rewritten
    ]
    if changed and planned.config_file.path in shared:
        notes += _explain_shared(planned, program)
    elif changed:
        path = program.words(changed[0], shared=False)[0]
        notes.append(f"{_WITH_PATH}, {path}: an agent may have another PATH")
    return notes


def said_once(explain: Callable[[PlannedFile], list[str]]) -> Callable[[PlannedFile], list[str]]:
    """The same sentences, but the one about hookproxy's path only for the first file: it is true of all."""
    said: set[str] = set()

    def explain_once(planned: PlannedFile) -> list[str]:
        notes = [note for note in explain(planned) if note not in said]
        said.update(note for note in notes if note.startswith(_WITH_PATH))
        return notes

    return explain_once


def _explain_shared(planned: PlannedFile, program: Program) -> list[str]:
    """Sentences about the paths in a file that git shares with others."""
    changed, notes = planned.plan.changed, []
    by_path = [entry.key_path for entry in changed if program.words(entry, shared=True) != (PROGRAM,)]
    if len(by_path) < len(changed):
        notes.append(f"written as {PROGRAM}, without its path: git shares this file with others, and PATH finds it")
    if by_path and not program.in_path:
        notes.append(f"written with a path of this machine, although git shares this file: PATH finds no {PROGRAM}")
    elif by_path:
        notes.append(f"{', '.join(by_path)}: written with a path of this machine: its env has variables for Python")
    if any(word.startswith("/") or "=/" in word for entry in changed for word in _option_words(planned, entry)):
        notes.append("its options name paths of this machine, although git shares this file with others")
    return notes


def _option_words(planned: PlannedFile, entry: Entry) -> tuple[str, ...]:
    """The words between the verb and the server's command in the changed file."""
    after = edit_plan.read(planned.snapshot.path, planned.plan.text)
    wrapped = next(candidate for candidate in after.entries if candidate.key_path == entry.key_path)
    wrapping = edit_plan.wrapping(wrapped)
    return wrapping.options.words if wrapping else ()


def _repeated_hooks(planned: PlannedFile, loaded: Loaded) -> list[str]:
    """A sentence for each agent that runs some of these hooks itself."""
    return [
        f"{agent.title} also runs its own hooks itself: those of {group.source} may run twice"
        for agent in planned.config_file.agents
        for group in loaded.groups
        if planned.plan.changed and agent.dialect and group.dialect.name.partition("@")[0] == agent.dialect
    ]


def change_all(
    options: Namespace,
    found: Sequence[AgentFile],
    plan: Callable[[str, Configuration, Sequence[str]], edit_plan.Plan],
    done: str,
    explain: Callable[[PlannedFile], list[str]],
    notes: Sequence[str] = (),
) -> int:
    """Plan all changes, print the notes, show the changes and carry them out. Returns the exit status.

    Raises UserError if an error leaves everything unchanged. The error of one of several files does not stop the
    others: it is reported, and the exit status says so.
    """
    planned, errors = agent_files.plan_all(found, options.server, plan)
    if not planned and len(errors) == 1:
        raise errors[0]
    for note in notes:
        report(note)
    for error in errors:
        report_error(error)
    changed = 0
    with shortened(verbose=options.verbose, end=0):
        for file in planned:
            try:
                carry_out(file, options, done, explain)
                changed += 1
            except UserError as error:
                if len(found) == 1:
                    raise
                errors.append(error)
                report_error(error)
    if errors and not changed:
        raise UserError("nothing was changed", "each file's error is above")
    return EXIT_FINDINGS if errors else 0


def carry_out(file: PlannedFile, options: Namespace, done: str, explain: Callable[[PlannedFile], list[str]]) -> None:
    """Show the change of a file, and write it, unless this is a dry run or there is nothing to do."""
    show_change(file, explain, verbose=options.verbose)
    if not file.plan.edits:
        report(f"{file.snapshot.path}: nothing to do")
    elif options.dry_run:
        names = some_of([entry.key_path for entry in file.plan.changed])
        report(f"{file.snapshot.path}: nothing was written; would be {done}: {names}")
    else:
        write_change(file, done, is_wrapped=done == "wrapped")


def show_change(
    file: PlannedFile,
    explain: Callable[[PlannedFile], list[str]],
    *,
    verbose: bool = True,
    with_diff: bool = True,
) -> None:
    """Show the diff of a file, and what there is to know about it.

    Without `with_diff`, a terminal gets the names of what changes: few lines of a diff would say less.
    """
    notes = explain(file)
    shown = notes if verbose or not sys.stderr.isatty() or len(notes) <= _MAX_NOTES else notes[: _MAX_NOTES - 1]
    for note in shown:
        report(f"{file.snapshot.path}: {note}")
    if len(shown) < len(notes):
        report(f"{file.snapshot.path}: {len(notes) - len(shown)} more remarks: --verbose shows them")
    if file.plan.edits:
        if os.path.islink(file.snapshot.path):
            report(f"{file.snapshot.path} is a link to {file.snapshot.real}")
        page = new_page()
        if page.width and not with_diff:
            path = agent_files.short(file.snapshot.path, os.path.expanduser("~"))
            page.row(("  ", ""), f"{path}: {some_of([entry.key_path for entry in file.plan.changed])}")
            show(page.text)
            return
        show_lines(unified(file.snapshot.path, file.snapshot.text, file.plan.edits))


def write_change(file: PlannedFile, done: str, is_wrapped: bool = True) -> None:
    """Write a file, say so, and record it if it is wrapped now. Raises UserError; then the file is unchanged."""
    path = os.path.abspath(file.snapshot.path)
    if file.plan.replaced:  # before: without it, nobody could restore them
        folder = state_folder(os.environ, os.path.expanduser("~"))
        written.update(folder, lambda record: record.with_replaced(path, file.plan.replaced))
    backup = files.replace(file.snapshot, file.plan.text)
    if is_wrapped:
        remember(lambda record: record.with_wrapped(path), PROGRAM, "unwrap", path)
    elif restored := [entry.key_path for entry in file.plan.changed if not edit_plan.wrapping(entry)]:
        remember(lambda record: record.without_replaced(path, restored))
    names = some_of([entry.key_path for entry in file.plan.changed])
    report(f"{file.snapshot.path}: {done}: {names}; backup: {backup}")


def remember(change: Callable[[Written], Written], *undo: str) -> None:
    """Record what was written, for `uninstall`. If that is impossible, the change stands, and it is reported.

    `undo` are the words of the command that undoes it then; none: it was itself an undoing.
    """
    try:
        written.update(state_folder(os.environ, os.path.expanduser("~")), change)
    except UserError as error:
        report(f"this change is not recorded: {error.message}; {error.hint}")
        if undo:
            report(f"hookproxy uninstall will not find it: {shlex.join(undo)} undoes it")


def show_lines(lines: list[str]) -> None:
    """Print a diff: unchanged into a pipe; on a terminal with colours, and with control characters escaped."""
    page = new_page()
    if not page.width:
        text = "\n".join((*lines, ""))
        show(text.encode(page.encoding, "backslashreplace").decode(page.encoding))
        return
    for line in lines:
        style = "bold" if line.startswith(("--- ", "+++ ")) else _STYLES.get(line[:1], "")
        page.verbatim(line.removesuffix("\r"), style)
    show(page.text)


def report(text: str) -> None:
    """Write a line to standard error."""
    tell(text, prefix="")


def report_error(error: UserError) -> None:
    """Write an error and its hint to standard error, each on its line."""
    report(f"error: {error.message}")
    report(f"hint: {error.hint}")


def _wrapping_words(entry: Entry) -> str:
    """The words before a wrapped server's own command."""
    configuration = edit_plan.wrapping(entry)
    if configuration is None:
        return ""
    return " ".join((*configuration.launcher, configuration.verb, *configuration.options.words))


def list_all(options: Namespace, after: Callable[[Sequence[AgentFile]], Sequence[str]] = lambda _found: ()) -> int:
    """List every configuration that exists, and then the lines that `after` makes of them. Returns the exit status."""
    found = agent_files.read(known_agents.config_files(os.environ, os.path.expanduser("~"), working_directory()))
    more = after(found)
    with shortened(verbose=options.verbose, end=len(more)):
        broken = list_files(found)
        show("".join(f"{line}\n" for line in more))
    if not any(file.has_servers for file in found):
        report("no agent configuration with servers was found")
    return EXIT_FINDINGS if broken else 0


def list_files(found: Sequence[AgentFile]) -> int:
    """Show the servers of all these files. Returns the number of files that cannot be read, which are reported."""
    for file in found:
        if file.has_servers and file.configuration is not None:
            _show_configuration(file.config_file, file.configuration)
    broken = [file.error for file in found if file.error is not None and is_broken(file)]
    for error in broken:
        report_error(error)
    return len(broken)


def _show_configuration(config_file: known_agents.ConfigFile, configuration: Configuration) -> None:
    page = new_page()
    width = max(len(page.visible(entry.key_path)) for entry in configuration.entries)
    why_not = edit_plan.why_not(configuration)
    page.line((config_file.path, "bold"), f"  {config_file.titles}")
    for entry in configuration.entries:
        name = page.visible(entry.key_path).ljust(width)
        page.line(f"  {name}  ", _state(entry, why_not.get(entry.key_path, "")))
    page.line()
    show(page.text)


def _state(entry: Entry, why_not: str) -> tuple[str, str]:
    """The state of an entry as text, and its colour."""
    off = ", disabled" if entry.disabled else ""
    if entry.kind is Kind.OTHER:
        return f"no command{off}", "dim"
    if url := reaches_gateway(entry):
        return f"reaches a gateway{off}: {url}", "green"
    if why_not:
        return f"cannot be wrapped{off}: {why_not}", "dim"
    if edit_plan.wrapping(entry):
        return f"wrapped{off}: {_wrapping_words(entry)}", "green"
    return f"not wrapped{off}", "yellow"
