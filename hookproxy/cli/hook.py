"""`hookproxy hook`: runs hooks of one system as one hook of another system's agent.

The agent's document comes on standard input, and what the agent reads goes to standard output, standard error and the
exit status. A document or a hook that cannot be read refuses the call: exit status 2, with the reason.
"""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..model.errors import UserError
from .common import new_parser, split_command

if TYPE_CHECKING:
    from ..convert.run_hook import ForeignHook
    from ..dialects.agent_side import AgentSide, HookOutput

USAGE = (
    "hookproxy hook --as DIALECT [--for AGENT] [--event EVENT] [--matcher PATTERN] [--if RULE] [--timeout SECONDS] "
    "[--fail-closed] [--run COMMAND]... [-- COMMAND [ARG...]]"
)

_OF_ONE_HOOK = {"event": None, "matcher": None, "only_if": None, "timeout": 0.0, "fail_closed": False}
"""The options of one hook only, with their defaults; the system counts for the hooks after it too."""


class _Run(argparse.Action):
    """Ends the options of one hook: those after it are of the next one."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        hooks = [*namespace.hooks, argparse.Namespace(**vars(namespace), command=values)]
        vars(namespace).update(_OF_ONE_HOOK, hooks=hooks)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line before `--`."""
    parser = new_parser(
        "hook",
        USAGE,
        "Run COMMAND, a hook that was written for one system, as a hook of another system's agent: it gets the "
        "document that it knows, and its output is translated for the agent. One COMMAND is a command line for the "
        "shell; several words are a program and its arguments. Several hooks run by one start with --run: the options "
        "before each --run are those of its hook.",
    )
    parser.add_argument(
        "--as", dest="dialect", metavar="DIALECT", required=True, help="the system that the hook was written for"
    )
    parser.add_argument(
        "--for",
        dest="agent",
        metavar="AGENT",
        help="the system of the agent that runs this (default: recognised from the document)",
    )
    parser.add_argument(
        "--event",
        metavar="EVENT",
        help="the event at which the hook is configured, as its system spells it",
    )
    parser.add_argument("--matcher", metavar="PATTERN", help="the hook's matcher, in its system's syntax")
    parser.add_argument("--if", dest="only_if", metavar="RULE", help="the hook's `if`, a permission rule")
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, default=0.0, help="the hook's timeout")
    parser.add_argument("--fail-closed", action="store_true", help="a failure of the hook refuses the call")
    parser.add_argument(
        "--run",
        dest="hooks",
        metavar="COMMAND",
        action=_Run,
        default=[],
        help="a hook, as a command line for the shell, with the options before it; may be given several times",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def main(arguments: Sequence[str]) -> int:
    """Run the hook. Returns the exit status that the agent reads."""
    words, command = split_command(arguments)
    options = build_parser().parse_args(words)
    if command:
        line = command[0] if len(command) == 1 else shlex.join(command)
        options.hooks = [*options.hooks, argparse.Namespace(**vars(options), command=line)]
    elif unused := [name for name, value in _OF_ONE_HOOK.items() if getattr(options, name) != value]:
        option = {"only_if": "if"}.get(unused[0], unused[0].replace("_", "-"))
        raise UserError(f"--{option} is after the last hook", "the options of a hook are before its --run")
    if not options.hooks:
        raise UserError("there is no hook to run", f"usage: {USAGE}")
    gc.disable()  # this process ends soon, and collecting what it imports would take 5 ms
    try:
        output = _guarded(options)
    finally:
        gc.enable()
    with open(1, "wb", closefd=False) as stdout:
        stdout.write(output.stdout)
    if output.stderr:
        sys.stderr.write(output.stderr.rstrip("\n") + "\n")
    return output.status


def _guarded(options: argparse.Namespace) -> HookOutput:
    """What the agent reads. Whatever goes wrong here refuses the call: the agent would let it pass after a crash."""
    from ..convert.run_hook import recognise_agent
    from ..dialects.agent_side import refuse_by_status

    refuse: Callable[[str], HookOutput] = refuse_by_status
    try:
        side = _agent(options.agent) if options.agent else None
        refuse = side.refuse if side else refuse
        hooks = [_foreign_hook(one) for one in options.hooks]
        with open(0, "rb", closefd=False) as stdin:
            document = stdin.read()
        return _run(hooks, side or recognise_agent(document), document)
    except UserError as error:
        return refuse(str(error))
    except (SystemExit, KeyboardInterrupt):  # a signal; an agent that is gone reads nothing
        return refuse("error: hookproxy was ended before the hook had decided")
    except Exception:  # not swallowed: the agent shows it as the reason
        from traceback import format_exc

        return refuse(f"error: a defect of hookproxy\n{format_exc()}")


def _foreign_hook(options: argparse.Namespace) -> ForeignHook:
    """The hook that these options describe. Raises UserError."""
    from ..convert.run_hook import ForeignHook
    from ..dialects.registry import DIALECTS

    if options.dialect not in DIALECTS:
        raise UserError(f"--as: there is no dialect {options.dialect!r}", f"expected one of {', '.join(DIALECTS)}")
    return ForeignHook(
        DIALECTS[options.dialect],
        options.command,
        options.event or "",
        options.matcher or "",
        options.only_if or "",
        options.timeout,
        options.fail_closed,
    )


def _run(hooks: Sequence[ForeignHook], side: AgentSide, document: bytes) -> HookOutput:
    from ..convert.run_hook import run_hooks
    from ..processes import spawn
    from .hook_runtime import redirected_output, run

    spawn.start_without_probes()
    with redirected_output():
        return run(lambda: run_hooks(hooks, side, document, os.environ))


def _agent(name: str) -> AgentSide:
    from ..dialects.agent_side import agent_side, names

    found = agent_side(name)
    if found is None:
        raise UserError(f"--for: {name!r} is not an agent that runs hooks", f"expected one of {', '.join(names())}")
    return found
