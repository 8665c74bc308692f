"""Runs the verb that the command line names, and turns errors into text: this is the only place that does.

`run` starts the server before anything heavy is imported, so this module and `common` import nothing but `os` and
`sys` until there is something to print. A verb is a module with two functions: `main(arguments)` returns an exit
status, and `build_parser()` returns the parser of its command line. If other words may follow the verb (as in
`audit stats`), `subverb_parsers()` returns a parser for each of them. `completion` and the reference are made from
these parsers.
"""

import gc
import sys

from ..processes import platforms
from . import late_tls
from .common import discard_output, show, terminal

TYPE_CHECKING = False  # `typing` alone would cost as much as the rest of the start; checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..model.errors import UserError
    from .options import Parser

VERBS = {
    "run": "hookproxy.cli.run",
    "setup": "hookproxy.cli.setup",
    "init": "hookproxy.cli.init",
    "check": "hookproxy.cli.check",
    "try": "hookproxy.cli.try_",
    "test": "hookproxy.cli.test",
    "explain": "hookproxy.cli.explain",
    "wrap": "hookproxy.cli.wrap",
    "unwrap": "hookproxy.cli.unwrap",
    "uninstall": "hookproxy.cli.uninstall",
    "audit": "hookproxy.cli.audit",
    "replay": "hookproxy.cli.replay",
    "learn": "hookproxy.cli.learn",
    "console": "hookproxy.cli.console",
    "top": "hookproxy.cli.top",
    "trust": "hookproxy.cli.trust",
    "lock": "hookproxy.cli.lock",
    "secrets": "hookproxy.cli.secrets",
    "convert": "hookproxy.cli.convert",
    "hook": "hookproxy.cli.hook",
    "guard": "hookproxy.cli.guard",
    "interceptors": "hookproxy.cli.interceptors",
    "login": "hookproxy.cli.login",
    "logout": "hookproxy.cli.logout",
    "serve": "hookproxy.cli.serve",
    "connect": "hookproxy.cli.connect",
    "reload": "hookproxy.cli.reload",
    "token": "hookproxy.cli.token",
    "sessions": "hookproxy.cli.sessions",
    "users": "hookproxy.cli.users",
    "pack": "hookproxy.cli.pack",
    "policy": "hookproxy.cli.policy",
    "sandbox": "hookproxy.cli.sandbox",
    "demo": "hookproxy.cli.demo",
    "schema": "hookproxy.cli.schema",
    "completion": "hookproxy.cli.completion",
}

OPTIONAL_PACKAGES = {
    "joserfc": "remote",
    "mcp": "remote",
    "redis": "cluster",
    "textual": "top",
}
"""Packages that come with an extra of hookproxy only, by the name under which they are imported."""

_EXTRAS = {"demo": "demo", "serve": "gateway"}
"""The extra of a verb, where it is another one than the package's."""

_MEANT = {
    "add": "wrap",
    "dashboard": "console",
    "ban": "users block",
    "block": "users block",
    "disable": "unwrap",
    "doctor": "check",
    "enable": "wrap",
    "exec": "run",
    "can": "explain",
    "may": "explain",
    "who": "explain",
    "why": "explain",
    "gateway": "serve",
    "import": "convert",
    "install": "setup",
    "kick": "sessions end",
    "lint": "check",
    "pin": "lock",
    "log": "audit",
    "logs": "audit",
    "monitor": "top",
    "proxy": "run",
    "remove": "unwrap",
    "show": "audit show",
    "start": "run",
    "stats": "audit stats",
    "status": "wrap",
    "stop": "unwrap",
    "ui": "console",
    "unset": "unwrap",
    "validate": "check",
    "verify": "audit verify",
    "watch": "top",
    "web": "console",
}
"""Words of other programs, with the verb that does this here."""

_STARTERS = ("bunx", "deno", "docker", "node", "npx", "python", "python3", "uv", "uvx")
"""Programs with which servers are started, whether they are on this machine or not."""

_TAKE_HELP = (
    *(
        "audit",
        "check",
        "convert",
        "interceptors",
        "learn",
        "login",
        "pack",
        "policy",
        "sandbox",
        "sessions",
        "setup",
        "token",
        "trust",
        "unwrap",
    ),
    *("users", "wrap"),
)
"""Verbs after which `help` alone is taken for the option: their words are other words, files and addresses."""

USAGE = """\
usage: hookproxy VERB [OPTION...]

hookproxy puts hooks in front of any MCP server.

  run         start a server behind hooks: run [OPTION...] -- COMMAND [ARG...]
  setup       find agents, servers and hooks, and put the hooks in front
  init        write a small configuration or a policy, or install a pack
  check       show every configured hook, and what about it cannot work
  try         try a call on the configured hooks, without a server
  test        run the cases of a policy, and find rules that no case needs
  explain     say who may call which tool, and which line decides it
  wrap        put hooks in front of the servers of one agent
  unwrap      remove hookproxy from an agent's configuration again
  uninstall   undo every wrap, setup and convert, and print what is left
  audit       show the calls in an audit file, one of them whole, or their sums
  replay      run recorded calls through changed hooks, and compare
  learn       propose the smallest policy for the calls in an audit
  console     show a web page of all runs: calls, approvals, the audit
  top         show the calls of all runs in the terminal, and answer what waits
  trust       show what changed in a hook file, and record it as trusted
  lock        pin what servers say of themselves, and show what changed
  secrets     show what [secrets] would hide in files
  convert     write a hook file of one system as another's
  hook        run a hook of one system inside of another system's agent
  guard       judge agents' own tools by the same hooks, rules and limits
  interceptors  offer hooks and rules as MCP interceptors, or ask a server
  login       log in at a remote server, or list the logins
  logout      remove a login
  serve       run the gateway: servers for several people, behind one policy
  connect     be a server of the gateway for an agent
  reload      let the gateway use its changed configuration
  token       make, list and revoke the tokens of a gateway's users
  sessions    list the open sessions of a gateway, or end some
  users       block users of a gateway, and allow them again
  pack        make a pack of hooks, rules and tests, or take a newer one
  policy      show, fetch or make a signed policy for many machines
  sandbox     watch a server, and propose what its sandbox should allow
  demo        show an agent, a server and three hooks at work
  schema      print the JSON Schema of hookproxy.toml, for editors
  completion  print a completion script for bash, zsh or fish

  hookproxy VERB --help   the options of a verb, as hookproxy help VERB
  hookproxy --version     this version
"""

_ENDS_SOON = ("check", "explain", "hook", "try")
"""Verbs that need no garbage collection, and hardly ever TLS."""

WINDOWS = ("win32", "cygwin", "msys")
"""The values of `sys.platform` on Windows."""

INTERRUPTED = 128 + 2  # what shells report for a program that SIGINT ended
PIPE_CLOSED = 128 + 13  # what shells report for a program that SIGPIPE ended: nobody reads what it prints


def main(arguments: "Sequence[str] | None" = None, platform: str = sys.platform) -> int:
    """Run the verb that the command line names. Returns the exit status.

    `platform` is for tests: `platforms.PORTABLE` runs on Linux as on a Mac.
    """
    platforms.choose(platform)
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            if platform in WINDOWS:
                raise _no_windows()
            gc.disable()  # collecting while modules are imported takes 15 ms; verbs that stay enable it again
            status = _dispatch(words)
        finally:
            gc.enable()
            show("")  # flush what is still buffered here, where a failure is reported
        if arguments is None and words[:1] == ["hook"]:
            _end(status)
        return status
    except SystemExit:
        raise
    except BaseException as error:
        error = _innermost(error)
        status = _report(error)
        from ..model.errors import resource_shortage

        if arguments is None and resource_shortage(error):
            _end(status)  # what was only half made, such as an event loop, would complain when it is tidied up
        return status


def _end(status: int) -> None:
    """End this process at once: the interpreter would take 15 ms to tidy up, for which an agent waits at each call."""
    import os

    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(status)


def _dispatch(arguments: list[str]) -> int:
    verb = arguments[0] if arguments else ""
    if arguments[1:] == ["help"] and verb in _TAKE_HELP:
        show(_help([verb]))
        return 0
    if verb in VERBS:
        if verb in _ENDS_SOON:
            late_tls.postpone()
        __import__(VERBS[verb])  # to import importlib would take time, and `run` must start fast
        if verb not in (*_ENDS_SOON, "run"):  # `run` enables it when all is imported
            gc.enable()
        run_verb: Callable[[Sequence[str]], int] = sys.modules[VERBS[verb]].main
        return run_verb(arguments[1:])
    if verb in ("", "--help", "-h", "help"):
        show(_help(arguments[1:]))
        return 0
    if verb in ("--version", "-V"):
        from .. import __version__

        show(f"hookproxy {__version__}\n")
        return 0
    raise _unknown_verb(verb)


def _help(words: list[str]) -> str:
    """The help of a verb, or of the word that follows it as in `audit show`; without a verb, the list of verbs.

    On a terminal it is short, unless one of the words is `--verbose`.
    """
    whole = "--verbose" in words
    names = [word for word in words if word not in ("--help", "-h", "help", "--verbose")]
    if not names:
        return USAGE if whole or not terminal()[0] else _short_list()
    if names[0] not in VERBS:
        raise _unknown_verb(names[0])
    from importlib import import_module

    module = import_module(VERBS[names[0]])
    subverbs: dict[str, Parser] = getattr(module, "subverb_parsers", dict)()
    if len(names) == 1:
        parser: Parser = module.build_parser()
    elif names[1] in subverbs:
        parser = subverbs[names[1]]
    else:
        from ..dialects.shared.hook_file import suggestion
        from ..model.errors import UserError

        near = suggestion(names[1], subverbs) or f"hookproxy help {names[0]}"
        raise UserError(f"there is no verb {' '.join(names[:2])!r}", near)
    return parser.help_page(whole=whole)


def _short_list() -> str:
    """The list of verbs for a terminal."""
    from .help_text import short_list
    from .layout import new_page

    return short_list(USAGE, new_page(short=True))


def _no_windows() -> Exception:
    from ..model.errors import UserError

    hint = "run it, its servers and its hooks inside WSL: wsl --install"
    return UserError("hookproxy runs on Linux and macOS, and not on Windows itself", hint)


def _unknown_verb(verb: str) -> Exception:
    """The error for a first word that is not a verb."""
    from shutil import which

    from ..dialects.shared.hook_file import suggestion
    from ..model.errors import UserError

    kind = "option" if verb.startswith("-") else "verb"
    words = [*VERBS, "help", *(["--version", "--help"] if kind == "option" or verb == "version" else [])]
    if kind == "option":  # `--hooks` is not a misspelled `hook`
        words = [word for word in words if word.startswith("-") or word == verb.lstrip("-")]
    near = f"did you mean {_MEANT[verb]!r}?" if verb in _MEANT else suggestion(verb, words)
    if kind == "option" and not near:
        return UserError(
            f"{verb!r} is before the verb", "options come after the verb: hookproxy run [OPTION...] -- COMMAND"
        )
    if not near and (verb in _STARTERS or which(verb)):
        near = f"to start it as a server behind hooks: hookproxy run -- {verb} …"
    return UserError(f"there is no {kind} {verb!r}", near or "hookproxy --help lists the verbs")


def _innermost(error: BaseException) -> BaseException:
    """The single error inside the exception groups of task groups; for several errors, their group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _report(error: BaseException) -> int:
    """Write what went wrong to standard error. Returns the exit status."""
    from ..model.errors import EXIT_DEFECT, UserError, describe_error, resource_hint, resource_shortage

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        discard_output()
        return PIPE_CLOSED
    if shortage := resource_shortage(error):
        error = UserError(describe_error(error), resource_hint(shortage))
    if isinstance(error, UserError) and (".toml: " in error.message or ".toml: " in error.hint):
        from ..checks.startup_notes import with_lines  # takes 100 ms

        error = UserError(with_lines(error.message), with_lines(error.hint), error.status)
    if isinstance(error, UserError):
        _write_error(f"{_on_terminal(str(error))}\n")
        return error.status
    if isinstance(error, ModuleNotFoundError) and (missing := _missing_extra(error.name or "")):
        _write_error(f"{missing}\n")
        return missing.status
    from traceback import format_exception

    summary = str(error).partition("\n")[0] or type(error).__name__
    _write_error(f"error: {summary} (a defect of hookproxy)\n{''.join(format_exception(error))}")
    return EXIT_DEFECT


def _on_terminal(text: str) -> str:
    """The text, on a terminal broken between words; as it is where that cannot be done now."""
    try:
        from .common import for_stderr

        return for_stderr(text)
    except (OSError, AttributeError, ImportError):  # no descriptor is left, for example
        return text


def _missing_extra(module: str) -> "UserError | None":
    """The error for a verb whose extra is not installed; None if the module comes with hookproxy itself."""
    from ..model.errors import not_installed

    package, verb = module.partition(".")[0], sys.argv[1] if len(sys.argv) > 1 else ""
    if package not in OPTIONAL_PACKAGES:
        return None
    return not_installed(f"hookproxy {verb}", package, _EXTRAS.get(verb, OPTIONAL_PACKAGES[package]))


def _write_error(text: str) -> None:
    try:  # noqa: SIM105 - contextlib may have to be imported, for which no descriptor may be left
        sys.stderr.write(text)
    except (OSError, AttributeError):  # nobody reads it, or it was closed before we started
        pass
