"""`hookproxy run`: stands in a server's place.

The server is started first, and gets nothing before the whole configuration has been read (law 3).
"""

import os

from ..processes import process
from .common import add_sources, here, parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Callable, Sequence

    from ..config.load import Loaded
else:
    import _signal as signal  # as `process` has it

_WIDE = 262_144  # bytes of the server's output: long results take a tenth less; a user's pipes together have 64 MB
USAGE = "hookproxy run [--config FILE] [--hooks DIALECT=FILE]... [--name NAME] [--audit FILE] -- COMMAND [ARG...]"


def main(arguments: "Sequence[str]") -> int:
    """Run the server behind hooks; gives the status it ended with."""
    options, command = _split(arguments)
    if not command:
        return _without_command(options)
    wire_in, wire_out = _move_wire_aside()
    server = process.start_server(command, _take_along)
    try:  # from here on the server boots while we import and read
        return _run(options, command, server, (wire_in, wire_out))
    except BaseException:
        _end(server)
        raise


def _split(arguments: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Our options, and the server's command line after the first `--`."""
    arguments = list(arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def _without_command(options: "Sequence[str]") -> int:
    """`--help`, or an error: there is no server to start."""
    from ..model.errors import UserError

    _parse(options)
    raise UserError("there is no server to start", f"usage: {USAGE}")


def _move_wire_aside() -> tuple[int, int]:
    """Our standard input and output under other numbers: no child and no stray print can touch the wire."""
    try:
        os.fstat(0), os.fstat(1)
    except OSError:
        from ..model.errors import UserError

        raise UserError("standard input or output is closed", "an agent starts this command, with both") from None
    process.prepare_for_children()  # a missing standard error would be the first number that is free
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire_in, wire_out


def _take_along(server: int) -> None:
    """Until the loop hears signals, one that ends us ends the server too: it might outlive us."""

    def leave(number: int, _frame: object) -> None:
        _kill(server)
        os._exit(128 + number)  # not by an exception: it would come out anywhere, in the middle of an import

    for number in process.TERMINATION_SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, leave)


def _end(server: process.Server) -> None:
    """The server was started, and cannot be used: it goes. Its pipes end with us."""
    _kill(server.pid)
    process.reap_killed(server.pid)


def _kill(server: int) -> None:
    try:  # noqa: SIM105 - contextlib is an import
        os.kill(server, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has ended, or runs as somebody else
        pass


def _run(options: "Sequence[str]", command: "Sequence[str]", server: process.Server, wire: tuple[int, int]) -> int:
    import gc

    import anyio

    from ..config.load import load
    from ..transports.epoll_loop import new_loop

    process.widen_pipe(server.from_server, _WIDE)
    chosen = _parse(options)
    loaded = load(chosen.config, chosen.hooks, chosen.audit, os.environ, here())
    say = _speaker()
    for note in loaded.notes:
        say(note)
    name = chosen.name or server_name(command)
    gc.freeze()  # what is loaded stays: no collection in the middle of a call looks at it; to collect first takes 5 ms
    return anyio.run(_serve, loaded, name, server, wire, say, backend_options={"loop_factory": new_loop})


async def _serve(
    loaded: "Loaded", name: str, server: process.Server, wire: tuple[int, int], say: "Callable[[str], None]"
) -> int:
    import uuid

    from ..audit.log import Audit
    from ..hooks.evaluate import Hooks
    from ..model.hooks import Session
    from ..session.lifecycle import Lifecycle
    from ..session.proxy import Proxy
    from ..transports.pipe import open_channel

    cwd = here()
    session = Session(
        id=os.environ.get("CLAUDE_CODE_SESSION_ID") or str(uuid.uuid4()),
        server=name,
        cwd=cwd,
        project_dir=os.environ.get("CLAUDE_PROJECT_DIR") or cwd,
    )
    agent_channel = open_channel(*wire)
    server_channel = open_channel(server.from_server, server.to_server)
    hooks = Hooks(loaded.groups, loaded.settings, name, os.environ, loaded.trust)
    for note in hooks.groups.unreachable_server_notes(name):
        say(note)
    proxy = Proxy(agent_channel, server_channel, hooks, loaded.settings, session, Audit(loaded.settings), say)
    return await Lifecycle(proxy, server).run()


def _parse(arguments: "Sequence[str]") -> "argparse.Namespace":
    return options().parse_args(list(arguments))


def options() -> "argparse.ArgumentParser":
    """What its command line takes before the two dashes."""
    taken = parser(
        "run",
        USAGE,
        "Start an MCP server behind hooks, in its place: the agent starts this instead of COMMAND.",
        f"the server's command line comes last, after two dashes: {USAGE}",  # which is forgotten easily
    )
    add_sources(taken)
    taken.add_argument("--name", help="the server's name as hooks see it (default: derived from COMMAND)")
    taken.add_argument("--audit", metavar="FILE", help="append one JSON line per judged call to FILE")
    return taken


def _speaker() -> "Callable[[str], None]":
    """Says one line to people on standard error; drops it if that cannot be written without waiting."""
    from contextlib import suppress

    from ..transports.pipe import open_shared_writer

    write = open_shared_writer(2)

    def say(text: str) -> None:
        with suppress(OSError):
            write(f"hookproxy: {text}\n".encode(errors="replace"))

    return say


# Runners, each with the words of its own that name no server: verbs, and options that take a value.
_RUNNERS = {
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


def server_name(command: "Sequence[str]") -> str:
    """The server's name where none is given: that of its program, or of what a runner such as `npx` is to run."""
    words = list(command)
    while len(words) > 1:
        runner = os.path.basename(words[0]).rstrip("0123456789.")
        if runner not in _RUNNERS:
            break
        rest = _without_options(words[1:], _RUNNERS[runner].split())
        if not rest:
            break
        words = rest
    name = os.path.basename(words[0].rstrip("/"))
    if words is not command:
        name = name.partition("@")[0].partition(":")[0] or name  # a version, a tag
    for ending in (".py", ".js", ".mjs", ".cjs", ".ts", ".sh"):
        name = name.removesuffix(ending)
    return name or "server"


def _without_options(words: list[str], own: list[str]) -> list[str]:
    """A runner's words from the first on that is no word of its own, no option and no assignment."""
    while words:
        word = words[0]
        if word in own:
            words = words[2 if word.startswith("-") else 1 :]
        elif word.startswith("-") or "=" in word:  # `-m`, too: a module is named as a program is
            words = words[1:]
        else:
            break
    return words
