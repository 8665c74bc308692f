"""`hookproxy run`: runs an MCP server behind hooks, in its place. `--url` reaches a server at its address instead.

The server is started first, and gets no message before the whole configuration has been read (law 3).
"""

import os

from ..model.errors import UserError
from ..processes import guardian, process
from . import late_tls
from .common import unread_file, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack

    from ..audit.log import Audit
    from ..config.load import Loaded
    from ..guard.link import GuardLink
    from ..hooks.evaluate import Hooks
    from ..model.hooks import Session, Tool
    from ..policy.shared_state import Shared
    from ..session.hidden_secrets import HiddenSecrets
    from ..session.live_feed import LiveFeed
    from ..session.proxy import OnToolsListed, Proxy
    from ..session.server_end import ServerEnd
    from ..session.tap import Watching
    from ..transports.channel import Channel
    from .options import Parser

    OpenServer = Callable[[argparse.Namespace, Loaded, Callable[[str], None]], tuple[Channel, ServerEnd]]
else:
    import _signal as signal  # as `process` has it

_PIPE_BYTES = 262_144  # for the server's output: long results take a tenth less time; one user's pipes may have 64 MB
_MAX_NAME_SHOWN = 60  # characters of a server's name in a message


def main(arguments: "Sequence[str]") -> int:
    """Run the server behind hooks. Returns the server's exit status."""
    option_words, command = _split(arguments)
    if not command or any(word.partition("=")[0] in _URL_OPTIONS for word in option_words):
        return _without_server_process(option_words, command)
    agent_in, agent_out = move_agent_pipes()
    confined = any(word.startswith("--sandbox") for word in option_words)
    try:
        server = (
            _start_confined(option_words, command) if confined else process.start_server(command, _end_server_on_signal)
        )
    except UserError as problem:
        raise _without_secrets(problem) from None
    try:  # from here on, the server starts up while we import modules and read the configuration
        process.widen_pipe(server.from_server, _PIPE_BYTES)
        return _run(_parse(option_words), command, (agent_in, agent_out), _process_opener(server, confined))
    except BaseException:
        _discard_server(server)
        raise


def _without_secrets(problem: UserError) -> UserError:
    """The same error without what looks like a secret in the server's command line: logs of agents keep it."""
    from ..secrets.mask import Masking

    masking = Masking()
    return UserError(masking.text(problem.message), masking.text(problem.hint), problem.status)


def _start_confined(option_words: "Sequence[str]", command: "Sequence[str]") -> process.Server:
    """Start the server in its sandbox. Raises UserError."""
    from . import run_sandbox
    from .options import sandbox_words

    options = _parse(option_words)
    sandbox_words(options)  # it may refuse them
    return run_sandbox.start(options, list(command), _end_server_on_signal)


_FORM = "hookproxy run [OPTION...] -- COMMAND [ARG...]"
_URL_FORM = "hookproxy run [OPTION...] --url URL"
_URL_OPTIONS = ("--url", "--header", "--ca", "--cert", "--key", "--allow-http")


def _split(arguments: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Our options, and the server's command line: after the first `--`, else from the first word that is not an option.

    Programs that take the whole command line as their own arguments, as the MCP Inspector does, remove the `--`. After
    an unknown option it is not known whether the next word is its value: then there is no command line.
    """
    arguments = list(arguments)
    if "--" in arguments:
        end = arguments.index("--")
        return arguments[:end], arguments[end + 1 :]
    options = build_parser()._option_string_actions
    position = 0
    while position < len(arguments):
        name, equals, _ = arguments[position].partition("=")
        if not name.startswith("-"):
            return arguments[:position], arguments[position:]
        takes_value = name in options and options[name].nargs != 0
        if name not in options or (equals and not takes_value):
            break
        position += 2 if takes_value and not equals else 1
    return arguments, []


def _without_server_process(option_words: "Sequence[str]", command: "Sequence[str]") -> int:
    """Print `--help`, or reach the server at its address, or raise an error, since there is no server to start."""
    options = _parse(option_words)
    if not options.url and not command:
        after = f": no command follows {option_words[-1]}" if option_words else ""
        raise build_parser().wrong(f"there is no server to start{after}")
    if not options.url:
        names = ", ".join(_URL_OPTIONS[1:])
        raise UserError(f"{names} are for a server at an address, and --url names none", _URL_FORM)
    if command:
        raise UserError(f"--url names a server, and so does the command {command[0]}", f"leave out one: {_URL_FORM}")
    from . import run_url

    run_url.check(options)
    return _run(options, (), move_agent_pipes(), run_url.open_server)


def move_agent_pipes() -> tuple[int, int]:
    """Move our standard input and output to other descriptors, so that no child and no stray print can use them."""
    try:
        os.fstat(0), os.fstat(1)
    except OSError:
        raise UserError(
            "standard input or output is closed", "this command is started by an agent, which opens both"
        ) from None
    process.prepare_for_children()  # if standard error is missing, its number would be the first free one
    agent_in, agent_out = os.dup(0), os.dup(1)
    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.close(null_device)
    os.dup2(2, 1)
    return agent_in, agent_out


def _end_server_on_signal(server: int) -> None:
    """Until the event loop handles signals, a signal that ends us also ends the server: it might outlive us."""

    def end_server_and_exit(number: int, _frame: object) -> None:
        _kill_server(server)
        os._exit(128 + number)  # an exception could appear anywhere, for example in the middle of an import

    for number in process.TERMINATION_SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end_server_and_exit)


def _discard_server(server: process.Server) -> None:
    """Kill a server that was started but cannot be used. Its pipes are closed when we exit."""
    _kill_server(server.pid)
    process.reap_killed(server.pid)


def _kill_server(server: int) -> None:
    try:  # noqa: SIM105 - contextlib would have to be imported
        os.kill(server, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has ended, or runs as another user
        pass


def _process_opener(server: process.Server, leads_group: bool) -> "OpenServer":
    """A function that opens the channel to a server that we have started."""

    def open_server(
        _options: "argparse.Namespace", _loaded: "Loaded", _report: "Callable[[str], None]"
    ) -> "tuple[Channel, ServerEnd]":
        from ..session.server_end import ServerProcess
        from ..transports.pipe import open_channel

        return open_channel(server.from_server, server.to_server), ServerProcess(server, leads_group=leads_group)

    return open_server


def _run(
    options: "argparse.Namespace", command: "Sequence[str]", agent_pipes: tuple[int, int], open_server: "OpenServer"
) -> int:
    late_tls.postpone()
    import anyio

    from ..config.load import failing_closed, load, make_data_folders
    from ..transports.event_loop import new_loop

    cwd = working_directory()
    loaded = load(options.config, options.hooks, options.audit, os.environ, cwd, options.project)
    if options.fail_closed:
        loaded = failing_closed(loaded)
    if loaded.settings.managed is not None or any(group.managed for group in loaded.all_groups):
        from ..processes import inherited_state

        inherited_state.reset()
    if options.url:
        from . import run_url

        loaded = run_url.with_secrets_redacted(loaded, options)
    else:
        options.name = options.name or server_name(command)
    if options.strict or loaded.settings.strict:
        from .findings import stop_if_strict

        stop_if_strict(loaded, options.strict, os.environ, options.name)
    report = new_reporter()
    for note in (*loaded.notes, *loaded.remarks, *make_data_folders(loaded)):
        report(note)
    if problem := guardian.problem():
        report(f"if this process is killed, the server and hooks may be left running: {problem}")
    if unread := unread_file(options.config, loaded.path, cwd):
        report(unread)
    return anyio.run(
        _serve, loaded, options, command, agent_pipes, open_server, report, backend_options={"loop_factory": new_loop}
    )


def _check_command(options: "argparse.Namespace") -> str:
    """The command line that shows the hooks of this run: `check` with the same files."""
    import shlex

    config = () if options.config is None else ("--config", options.config)
    return shlex.join(("hookproxy", "check", *config, *(word for item in options.hooks for word in ("--hooks", item))))


async def _serve(
    loaded: "Loaded",
    options: "argparse.Namespace",
    command: "Sequence[str]",
    agent_pipes: tuple[int, int],
    open_server: "OpenServer",
    report: "Callable[[str], None]",
) -> int:
    import contextlib
    import gc

    import anyio

    from ..hooks.evaluate import Hooks
    from ..policy.shared_state import NOTHING_SHARED
    from ..session.lifecycle import Lifecycle
    from ..session.proxy import Proxy
    from ..transports.pipe import open_channel

    name, session = options.name, _session(loaded, options, command)
    link = _guard_link(loaded, session)
    closing = contextlib.ExitStack()
    session, shared = _with_transcript(
        loaded, session, NOTHING_SHARED if link is None else link.shared, report, closing
    )
    secrets = _hidden_secrets(loaded, name, shared)
    report = report if secrets is None else secrets.masked_report(report)
    agent_channel = open_channel(*agent_pipes)
    server_channel, server = open_server(options, loaded, report)
    hooks = Hooks(loaded.groups, loaded.settings, name, os.environ, loaded.trust, command, shared)
    audit, watch = _audit(loaded, options, report), _watch(loaded, name, command, report)
    proxy = Proxy(
        agent_channel, server_channel, hooks, loaded.settings, session, audit, report, watch=watch, secrets=secrets
    )
    _report_policy(proxy, hooks, loaded, options, command)
    if link is not None:
        closing.callback(link.close)
        _connect(link, proxy)
    feed = _open_feed(proxy, loaded, report)
    gc.freeze()  # collections during calls skip what is loaded, which stays; to collect first would take 5 ms
    gc.enable()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(feed.serve)
            status = await Lifecycle(proxy, server).run_to_end()
            tasks.cancel_scope.cancel()
        return status
    finally:
        feed.close()
        closing.close()


def _session(loaded: "Loaded", options: "argparse.Namespace", command: "Sequence[str]") -> "Session":
    """The session of this run, as hooks see it."""
    import uuid

    from ..model.hooks import Session

    cwd = working_directory()
    return Session(
        id=os.environ.get("CLAUDE_CODE_SESSION_ID") or str(uuid.uuid4()),
        server=options.name,
        cwd=cwd,
        project_dir=os.environ.get("CLAUDE_PROJECT_DIR") or cwd,
        command=tuple(command),
        url=options.url or "",
    ).in_project(loaded.project)


def _audit(loaded: "Loaded", options: "argparse.Namespace", report: "Callable[[str], None]") -> "Audit":
    if options.verbose:
        from ..audit.verbose import VerboseAudit

        return VerboseAudit(loaded.settings, report)
    from ..audit.log import Audit

    return Audit(loaded.settings)


def _report_policy(
    proxy: "Proxy", hooks: "Hooks", loaded: "Loaded", options: "argparse.Namespace", command: "Sequence[str]"
) -> None:
    """Report what of the policy does nothing or lets calls pass, now and when the server's tools are known."""
    from ..hooks import failures

    name, report = options.name, proxy.report
    for note in hooks.groups.unreachable_server_notes(name):
        report(note)
    if passing := failures.summary(loaded.groups, loaded.settings):
        report(f"{passing}: {_check_command(options)} says which; --fail-closed refuses such calls")
    if hooks.groups or hooks.has_rules or hooks.flow is not None:
        proxy.on_tools_listed = _coverage_reporter(proxy, loaded, name, command, report)
    elif not loaded.settings.audit_all_calls:  # recording every call is a purpose of its own
        in_force = "configured" if loaded.watched is None else "in force"
        so = "so no call is guarded" if proxy.secrets is None else "so secrets are hidden, but no call is judged"
        report(f"{_cut(name)}: no hook and no permission rule is {in_force}, {so}")


def _watch(
    loaded: "Loaded", name: str, command: "Sequence[str]", report: "Callable[[str], None]"
) -> "Callable[[Proxy], Watching] | None":
    """What watches the session for the policy that is only watched; None: there is none."""
    if loaded.watched is None:
        return None
    from ..hooks.watched import summary
    from ..session.watch import WatchedPolicy

    report(summary(loaded.watched))
    return WatchedPolicy(loaded.watched, name, os.environ, loaded.trust, command).watch


def _guard_link(loaded: "Loaded", session: "Session") -> "GuardLink | None":
    """What this run has in common with its agent's others, if somebody keeps it; None: it judges nothing."""
    if not (loaded.has_policy or loaded.settings.audit_all_calls):
        return None
    from ..guard import place
    from ..guard.link import GuardLink

    path = place.socket_for_run(os.environ, managed=loaded.managed is not None)
    return GuardLink(path, session, loaded) if path else None


def _with_transcript(
    loaded: "Loaded", session: "Session", shared: "Shared", report: "Callable[[str], None]", closing: "ExitStack"
) -> "tuple[Session, Shared]":
    """With the file of what is done in the session, if some hook reads one and nothing must be hidden from it."""
    groups = [group for group in loaded.groups if group.dialect.reads_transcript]
    reads = any(spec.argv or spec.shell for group in groups for spec in group.hooks)
    from ..trust.sources import state_folder

    folder = state_folder(os.environ, os.path.expanduser("~"))
    if not (reads and folder) or loaded.settings.secrets is not None:
        return session, shared
    from msgspec.structs import replace

    from ..session.transcript import Transcript

    transcript = Transcript(os.path.join(folder, "transcripts"), report)
    closing.callback(transcript.close)
    return replace(session, transcript=transcript.path), replace(shared, transcript=transcript)


def _connect(link: "GuardLink", proxy: "Proxy") -> None:
    """Let the session be that of its agent, and the guard know what the server's tools are."""
    from msgspec.structs import replace

    note_list = proxy.on_tools_listed

    def note(line: bytes, tools: "Sequence[Tool]", server_name: str) -> None:
        note_list(line, tools, server_name)
        link.note_tools(tools, server_name)

    proxy.on_tools_listed = note
    link.spawn = proxy.spawn
    link.on_session = lambda name: proxy.change_session(replace(proxy.session, id=name))


def _hidden_secrets(loaded: "Loaded", name: str, shared: "Shared") -> "HiddenSecrets | None":
    """What this run hides; None: nothing. Raises UserError for a value that cannot be had."""
    if loaded.settings.secrets is None:
        return None
    from ..config.secret_values import finder
    from ..session.hidden_secrets import HiddenSecrets

    settings = loaded.settings.secrets
    return HiddenSecrets(settings, finder(settings, os.environ), name, shared.secrets)


def _open_feed(proxy: "Proxy", loaded: "Loaded", report: "Callable[[str], None]") -> "LiveFeed":
    """Let consoles find this run."""
    import time

    from ..live import messages, registry
    from ..session.live_feed import open_feed

    run = messages.Run(
        messages.VERSION,
        registry.new_name(),
        os.getpid(),
        round(time.time(), 3),
        proxy.session.command,
        proxy.session.url,
        proxy.session.server_folder,
        loaded.path,
        proxy.policy.judges_calls,
    )
    feed = open_feed(run, report, needed=loaded.settings.uses_console)
    try:
        feed.prepare(loaded.settings)
    except UserError:
        feed.close()
        raise
    feed.add_session(proxy)
    return feed


def _cut(name: str) -> str:
    """A server's name for messages: one that is derived from `sh -c` may be a whole script."""
    return name if len(name) <= _MAX_NAME_SHOWN else f"{name[:_MAX_NAME_SHOWN]}…"


def _coverage_reporter(
    proxy: "Proxy", loaded: "Loaded", name: str, command: "Sequence[str]", report: "Callable[[str], None]"
) -> "OnToolsListed":
    """A function that gets each tools/list response, and reports how many tools hooks see."""
    note_list: OnToolsListed | None = None

    def note(line: bytes, tools: "Sequence[Tool]", server_info: str) -> None:
        nonlocal note_list
        if note_list is None:
            from ..session.tool_coverage import ToolCoverage  # not before the first list: it would delay the start

            note_list = ToolCoverage(loaded, name, command, report, proxy.spawn, _cut(name)).note
        note_list(line, tools, server_info)

    return note


def _parse(arguments: "Sequence[str]") -> "argparse.Namespace":
    return build_parser().parse_args(list(arguments))


def build_parser() -> "Parser":
    """The parser of the options before the two dashes."""
    from .options import HOOK_OPTIONS, Parser, add_remote_options, add_sandbox_options

    parser = Parser(
        "run",
        "Start an MCP server behind hooks, in its place: the agent starts this instead of COMMAND. "
        "Without the two dashes, COMMAND is the first word that is not an option. "
        "With --url and no COMMAND, the server is reached at its address.",
        rest="-- COMMAND [ARG...]",
        hint=f"the server's command line comes last, after two dashes: {_FORM}",  # the dashes are easily forgotten
    )
    parser.add_common(*HOOK_OPTIONS)
    parser.add_argument("--name", help="the server's name as hooks see it (default: derived from COMMAND or the URL)")
    parser.add_argument("--audit", metavar="FILE", help="append one JSON line per judged call to FILE")
    parser.add_common("--fail-closed", "--strict")
    parser.add_argument(
        "--verbose", action="store_true", help="write a line on standard error for each call that hooks or rules judge"
    )
    add_sandbox_options(parser)
    add_remote_options(parser)
    return parser


def new_reporter() -> "Callable[[str], None]":
    """A function that writes a line to standard error, or drops it if it cannot be written without waiting."""
    from contextlib import suppress

    from ..transports.pipe import open_shared_writer

    write = open_shared_writer(2)

    def report(text: str) -> None:
        with suppress(OSError):
            write(f"hookproxy: {text}\n".encode(errors="replace"))

    return report


# Programs that launch servers, each with its words that do not name the server: subcommands, and options with a value.
_LAUNCHERS = {
    "python": "-W -X",
    "node": "-r --require --import --loader --env-file",
    "bash": "-o",
    "sh": "-o",
    "deno": "run",
    "bun": "run x",
    "bunx": "",
    "npx": "-p --package",
    "npm": "exec -p --package",
    "pnpm": "dlx exec",
    "yarn": "dlx",
    "uv": "run tool --directory --project --from --with --python -p",
    "uvx": "--from --with --python -p",
    "pipx": "run --spec --python",
    "docker": "run -e --env --env-file -v --volume --mount --network --name -u --user -w --workdir -p",
    "podman": "run -e --env --env-file -v --volume --mount --network --name -u --user -w --workdir -p",
    "env": "-u -C",
    "nice": "-n",
    "sudo": "-u -g",
}


_SIGNS_OF_NAMES = "._-@:+"


def server_name(command: "Sequence[str]") -> str:
    """The server's name if none is given: the name of its program, or of what a launcher such as `npx` runs."""
    words = list(command)
    while len(words) > 1:
        launcher = os.path.basename(words[0]).rstrip("0123456789.")
        if launcher not in _LAUNCHERS:
            break
        rest = _without_options(words[1:], _LAUNCHERS[launcher].split())
        if not rest:
            break
        words = rest
    name = os.path.basename(words[0].rstrip("/"))
    if len(words) < len(command) and not all(sign.isalnum() or sign in _SIGNS_OF_NAMES for sign in name):
        name = os.path.basename(command[0])  # it is code, as behind `bash -c`: there may be anything in it
    if words is not command:
        name = name.partition("@")[0].partition(":")[0] or name  # without a version or a tag
    for ending in (".py", ".js", ".mjs", ".cjs", ".ts", ".sh"):
        name = name.removesuffix(ending)
    return name or "server"


def _without_options(words: list[str], own_words: list[str]) -> list[str]:
    """The words after a launcher's own words, options and assignments."""
    while words:
        word = words[0]
        if word in own_words:
            words = words[2 if word.startswith("-") else 1 :]
        elif word.startswith("-") or "=" in word:  # also `-m`: a module's name is used like a program's
            words = words[1:]
        else:
            break
    return words
