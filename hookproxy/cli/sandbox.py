"""`hookproxy sandbox learn`: watches a server at work, and proposes the table of its sandbox.

The server runs without a sandbox, driven by whoever is at our standard input and output, which it gets as they are; or
with `--probe` by us, who list its tools and call none. Nothing is changed: the table is text.
Exit status: 0 a table was printed; 2 the server could not be watched.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from .common import create, show, split_command, tell, working_directory
from .layout import MORE_OF_TOML, shortened
from .options import Parser, seconds
from .progress import waiting

if TYPE_CHECKING:
    from ..processes.watch import Watch
    from ..processes.watched_calls import Access
    from ..sandbox.installation import Installation
    from ..sandbox.learned import Around

_END_SECONDS: Final = 30.0  # after the end of its input: `npx` may still have to download the server
_PROBE_SECONDS: Final = 60.0  # as long, and some more: while it is watched a server starts more slowly
_LARGEST_FILE: Final = 8 * 1024**2  # bytes of a file of a program that is searched for names: a bundle of JavaScript
_MOST_SEARCHED: Final = 128 * 1024**2  # bytes in all: a second
_FIRST_HUMAN: Final = 1000  # as in useradd: accounts below are the system's
_OF_TERMINALS: Final = frozenset(
    (
        *("HOME", "PWD", "OLDPWD", "SHLVL", "TERM", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "EDITOR", "VISUAL"),
        *("PAGER", "MAIL", "TMPDIR", "HOSTNAME", "DEBUG", "COLUMNS", "LINES", "CI", "TERM_PROGRAM", "VIRTUAL_ENV"),
        *("FORCE_COLOR", "_"),
    )
)
"""Variables that say something about a terminal, or that each sandbox sets."""
_NEVER: Final = (
    "HOOKPROXY_",
    "LISTEN_",
    "NOTIFY_",
    "CREDENTIALS_",
    "LC_",
    "LD_",
    "XDG_",
    "SSH_",
    "PYTHON",
    "NODE_",
    "npm_",
    "RUST_",
)
"""How names begin of variables that no server gets, or that change how its program is loaded."""


_LIBRARIES: Final = (".so", ".node")
"""Endings of libraries that are made for many programs: what they name says nothing about this one."""


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says. Returns the exit status."""
    if arguments and arguments[0] == "learn":
        return _learn(arguments[1:])
    raise build_parser().no_subverb(arguments)


def build_parser() -> Parser:
    """The parser of the verb alone, for its help."""
    return Parser(
        "sandbox",
        "Find out what a server needs from its sandbox. See also: sandbox learn.",
        rest="learn [OPTION...] -- COMMAND [ARG...]",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parser of the command line after the subverb."""
    learn = Parser(
        "sandbox learn",
        "Watch a server at work, and propose the table [servers.NAME.sandbox] for it, each entry with its reason. The "
        "server runs WITHOUT a sandbox meanwhile. It gets standard input and output as they are, so start this in "
        "place of the server, and let an agent do what it will do later; the table is then written to standard error. "
        "Nothing is changed.",
        rest="-- COMMAND [ARG...]",
        hint="the server's command line comes last, after two dashes: hookproxy sandbox learn [OPTION...] -- COMMAND",
    )
    learn.add_argument(
        "--probe", action="store_true", help="be the agent: list its tools, call none, and print the table"
    )
    learn.add_argument("--seconds", metavar="N", type=seconds, help="end the server after N seconds")
    learn.add_argument("--name", help="the server's name in gateway.toml (default: derived from COMMAND)")
    learn.add_argument("-o", "--output", metavar="FILE", help="write the table to this new file")
    learn.add_common("--verbose")
    learn.add_argument("--trace", metavar="FILE", help="write all that was seen to this new file, a JSON line for each")
    return {"learn": learn}


def _learn(arguments: Sequence[str]) -> int:
    from ..processes import platforms

    words, command = split_command(arguments)
    parser = subverb_parsers()["learn"]
    options = parser.parse_args(words)
    if not command:
        raise parser.wrong("there is no server to watch: no COMMAND follows the two dashes")
    if not platforms.linux:
        raise UserError(
            "a server can be watched on Linux only: this system has neither the means to watch it nor a sandbox for it",
            "run hookproxy sandbox learn where the gateway runs",
        )
    _check_new(options)
    from ..processes.process import find_program
    from ..processes.watch import watching
    from .hook_runtime import run_until_done
    from .run import server_name

    if find_program(command[0], os.environ.get("PATH")) is None:
        raise UserError(
            f"cannot start the server: command not found: {command[0]}", "install it, or give its full path"
        )
    name = _checked(options.name) if options.name else re.sub(r"[^A-Za-z0-9_.-]+", "-", server_name(command))
    tell(f"{name} runs without a sandbox while it is watched")
    begun = time.monotonic()
    with watching() as watch:
        drive = partial(_probe if options.probe else _relay, watch, command, options.seconds)
        try:
            run_until_done(drive)
        except UserError as failure:
            raise watch.problem or failure from None
    if watch.problem is not None:
        raise watch.problem
    if watch.is_cut:
        tell("it used more different files than are kept: what came later is missing")
    _write(options, name, watch, command, time.monotonic() - begun)
    return 0


def _checked(name: str) -> str:
    from ..config.gateway_models import SERVER_NAME

    if not re.match(SERVER_NAME, name):
        raise UserError(f"--name: {name!r} cannot be the name of a server", "use letters, digits, - and _")
    return name


def _check_new(options: Namespace) -> None:
    """Raise UserError for a file that is there, or cannot be made: before the watch, which may take hours."""
    for path in filter(None, (options.output, options.trace)):
        if os.path.lexists(path):
            raise UserError(f"{path} already exists", "name a new file")
        if not os.path.isdir(folder := os.path.dirname(path) or "."):
            raise UserError(f"{path}: there is no folder {folder}", f"make it: mkdir -p {shlex.quote(folder)}")


# --- the server at work ---


async def _probe(watch: Watch, command: Sequence[str], seconds: float | None) -> None:
    from ..checks.server_tools import list_tools

    with waiting("the server's tools"):
        listed = await list_tools(watch.words(command), os.environ, seconds or _PROBE_SECONDS)
    tell(f"it lists {len(listed.tools)} tools; none was called")


async def _relay(watch: Watch, command: Sequence[str], seconds: float | None) -> None:
    """Let the server have our standard streams, until it ends, nobody writes to it any more, or the time is over."""
    import anyio

    from ..processes import process
    from ..processes.ending import end_server
    from ..processes.watch import end_of_input, start

    ended = False
    pid = start(watch.words(command))
    exit_fd = process.open_exit_fd(pid)

    async def exits_within(limit: float) -> bool:
        with anyio.move_on_after(limit):
            await anyio.wait_readable(exit_fd)
            return True
        return False

    async def after_input(scope: anyio.CancelScope, end: int) -> None:
        await anyio.wait_readable(end)
        await anyio.sleep(_END_SECONDS)
        scope.cancel()

    try:
        with end_of_input() as end:
            async with anyio.create_task_group() as tasks:
                if end is not None:
                    tasks.start_soon(after_input, tasks.cancel_scope, end)
                with anyio.move_on_after(seconds):
                    await anyio.wait_readable(exit_fd)
                    ended = True
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            process.signal_group(pid, signal.SIGTERM)
            await end_server(exits_within, partial(process.signal_group, pid))
            await exits_within(process.REAP_LIMIT)
            process.signal_group(pid, signal.SIGKILL)  # what is left of its group; its id is not reused yet
            status = process.reap(pid)
            os.close(exit_fd)
    if ended and status:
        tell(f"the server has ended with status {status}: what is proposed may be too little")


# --- the table ---


def _write(options: Namespace, name: str, watch: Watch, command: Sequence[str], seconds: float) -> None:
    from ..sandbox.learned import Watched, propose, variables_named
    from ..sandbox.learned_text import options_of, toml_of

    installed, around = _around(command)
    files = dict(_program_files(watch.accesses, installed))
    variables = variables_named(sorted(_candidates()), files)
    proposal = propose(Watched(watch.accesses, watch.memory, watch.tasks, variables), around)
    driven = "its tools were listed, and none called" if options.probe else "driven by its agent"
    head = f"What {name} used in {seconds:.0f} s, {driven}."
    text = toml_of(proposal, name, head)
    texts = {os.path.abspath(options.output): text} if options.output else {}
    if options.trace:
        import msgspec.json

        lines = (msgspec.json.encode(access).decode(errors="replace") + "\n" for access in _encodable(watch.accesses))
        texts[os.path.abspath(options.trace)] = "".join(lines)
    if texts:
        create(texts, "name new files")
    if words := options_of(proposal):  # before the table, which may be copied up to the end
        tell(f"the table as options of hookproxy run and hookproxy wrap: {words}")
    if not options.output:
        if options.probe:
            with shortened(verbose=options.verbose, end=0, more=MORE_OF_TOML):
                show(text)
        else:
            sys.stderr.write(text)


def _encodable(accesses: Sequence[Access] | dict[Access, int]) -> Iterator[Access]:
    """Those whose names are UTF-8; the others are listed with the table."""
    for access in accesses:
        try:
            access.path.encode()
        except UnicodeEncodeError:
            continue
        yield access


def _around(command: Sequence[str]) -> tuple[Installation, Around]:
    """What the server's program is, and what lies around it here. Raises UserError."""
    from ..sandbox.bubblewrap import TEMPORARY
    from ..sandbox.folders import SYSTEM_FILES
    from ..sandbox.installation import Surroundings, find_installation
    from ..sandbox.learned import Around
    from .run_sandbox import own_files

    people = [entry.pw_dir for entry in pwd.getpwall() if entry.pw_uid == 0 or entry.pw_uid >= _FIRST_HUMAN]
    homes = {os.path.realpath(home) for home in (os.path.expanduser("~"), *people) if os.path.isdir(home)} - {"/"}
    protected = {os.path.realpath(path): "a part of hookproxy" for path in own_files()}
    surroundings = Surroundings(sorted(homes), sorted(protected), ())
    installed = find_installation(command, os.environ.get("PATH"), working_directory(), surroundings)
    temporary = {TEMPORARY, "/var/tmp", os.path.realpath(os.environ.get("TMPDIR", TEMPORARY))}
    covered = [*(os.path.realpath(path) for path in SYSTEM_FILES), *SYSTEM_FILES, *installed.paths]
    named = dict.fromkeys(installed.folders_named)
    return installed, Around(sorted(homes), covered, protected, list(named), sorted(temporary))


def _candidates() -> Iterator[str]:
    """The variables here that its sandbox would keep from it."""
    from .run_sandbox import PASSES

    for name in os.environ:
        if name not in PASSES and name not in _OF_TERMINALS and not name.startswith(_NEVER) and len(name) > 1:
            yield name


def _program_files(accesses: dict[Access, int], installed: Installation) -> Iterator[tuple[str, bytes]]:
    """The files of the server's own program and its modules that were read, and not those of its language."""
    from ..sandbox.folders import SYSTEM, within_any

    left = _MOST_SEARCHED
    searched = set()
    for access in accesses:
        path = access.path
        if access.what not in ("read", "run"):
            continue
        folder, name = os.path.split(path)
        if name.endswith(".pyc") and os.path.basename(folder) == "__pycache__":
            path = os.path.join(os.path.dirname(folder), f"{name.partition('.')[0]}.py")
        parts = path.split(os.sep)
        modules = {"node_modules", "site-packages", "dist-packages"}.intersection(parts)
        library = not modules and any(part.startswith("python3") for part in parts[:-1])
        own = path == os.path.realpath(installed.command[0])
        inside = modules or (within_any(path, installed.paths) and not within_any(path, SYSTEM) and not library)
        if path in searched or not (own or inside) or path.endswith(_LIBRARIES):
            continue
        searched.add(path)
        try:
            if os.path.getsize(path) > min(_LARGEST_FILE, left):
                continue
            with open(path, "rb") as file:
                content = file.read(_LARGEST_FILE)
        except OSError:
            continue
        left -= len(content)
        yield path, content
