"""Finds the verb that the command line names, and turns errors into text: the only place that does.

`run` starts the server before anything heavy is imported, so this module and `base` load nothing but `os` and `sys`
until something is to be said. A verb is a module with `main(arguments)` that gives an exit status, and `options()`, the
argparse parser of its command line; where a word may follow it, `parts()` has the parser for each such word.
`completion` and the reference are made from those.
"""

import sys

from .common import discard_output, show

TYPE_CHECKING = False  # `typing` alone would cost as much as the rest of the start; checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERBS = {
    "run": "hookproxy.cli.run",
    "init": "hookproxy.cli.init",
    "check": "hookproxy.cli.check",
    "try": "hookproxy.cli.try_",
    "wrap": "hookproxy.cli.wrap",
    "unwrap": "hookproxy.cli.unwrap",
    "audit": "hookproxy.cli.audit",
    "replay": "hookproxy.cli.replay",
    "trust": "hookproxy.cli.trust",
    "demo": "hookproxy.cli.demo",
    "schema": "hookproxy.cli.schema",
    "completion": "hookproxy.cli.completion",
}

USAGE = """\
usage: hookproxy VERB [OPTION...]

hookproxy puts hooks in front of any MCP server.

  run         start a server behind hooks: hookproxy run [OPTION...] -- COMMAND [ARG...]
  init        write a small configuration that works, with its hook
  check       show every hook that is configured, and what about it cannot work
  try         try a call on the hooks that are configured, without a server
  wrap        put hooks in front of the servers in an agent's configuration; without a file, list what is found
  unwrap      take them out again
  audit       show the calls of an audit file; `audit stats`: summed up; `audit verify`: whether it is as it was written
  replay      run recorded calls through changed hooks: what would be decided otherwise
  trust       show what changed in a hook file and its scripts, and remember it as trusted
  demo        show an agent, a server and three hooks at work
  schema      print the JSON Schema of hookproxy.toml, for editors
  completion  print a script with which bash, zsh or fish completes all this

  hookproxy VERB --help   the options of a verb
  hookproxy --version     this version
"""

INTERRUPTED = 128 + 2  # what shells report for a program that SIGINT ended
PIPE_CLOSED = 128 + 13  # … and for one that SIGPIPE ended: nobody reads what we print


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Do what the command line says; gives the exit status."""
    try:
        try:
            return _dispatch(sys.argv[1:] if arguments is None else list(arguments))
        finally:
            show("")  # what is still in the buffer, here, where a failure has somebody to report it
    except SystemExit:
        raise
    except BaseException as error:
        return _report(_innermost(error))


def _dispatch(arguments: list[str]) -> int:
    verb = arguments[0] if arguments else ""
    if verb in VERBS:
        __import__(VERBS[verb])  # importlib is an import itself, and `run` is in a hurry
        perform: Callable[[Sequence[str]], int] = sys.modules[VERBS[verb]].main
        return perform(arguments[1:])
    if verb in ("--help", "-h", "help"):
        show(USAGE)
        return 0
    if verb in ("--version", "-V"):
        from .. import __version__

        show(f"hookproxy {__version__}\n")
        return 0
    raise _no_verb(verb)


def _no_verb(verb: str) -> Exception:
    from difflib import get_close_matches

    from ..model.errors import UserError

    if not verb:
        return UserError("no verb given", "see hookproxy --help")
    close = get_close_matches(verb, (*VERBS, "--version", "--help"), n=1)
    if verb.startswith("-") and not close:
        return UserError(
            f"{verb!r} stands before the verb", "options come after it: hookproxy run [OPTION...] -- COMMAND"
        )
    hint = f"did you mean {close[0]!r}?" if close else f"to start a server behind hooks: hookproxy run -- {verb} …"
    return UserError(f"there is no {'option' if verb.startswith('-') else 'verb'} {verb!r}", hint)


def _innermost(error: BaseException) -> BaseException:
    """The one error that task groups have wrapped, or the group of several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _report(error: BaseException) -> int:
    """Say on standard error what went wrong; gives the exit status."""
    from ..model.errors import EXIT_DEFECT, RESOURCE_HINT, UserError, describe_error, resource_shortage

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        discard_output()
        return PIPE_CLOSED
    if resource_shortage(error):
        error = UserError(describe_error(error), RESOURCE_HINT)
    if isinstance(error, UserError):
        _say(f"{error}\n")
        return error.status
    from traceback import format_exception

    summary = str(error).partition("\n")[0] or type(error).__name__
    _say(f"error: {summary} (a defect of hookproxy)\n{''.join(format_exception(error))}")
    return EXIT_DEFECT


def _say(text: str) -> None:
    from contextlib import suppress

    with suppress(OSError, AttributeError):  # nobody reads, or the descriptor was closed before we started
        sys.stderr.write(text)
