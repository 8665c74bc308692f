"""`hookproxy hook`: runs hooks of one system as one hook of another system's agent.

The agent's document comes on standard input, and what the agent reads goes to standard output, standard error and the
exit status. A document or a hook that cannot be read refuses the call: exit status 2, with the reason.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..model.errors import UserError
from .common import split_command
from .options import Parser, seconds

if TYPE_CHECKING:
    from ..convert.run_hook import ForeignHook
    from ..dialects.agent_side import AgentSide, HookOutput


_OF_ONE_HOOK = {"event": None, "matcher": None, "only_if": None, "timeout": 0.0, "fail_closed": False}
"""The options of one hook only, with their defaults; the systems count for the hooks after it too."""


def build_parser() -> Parser:
    """The parser of the command line before `--`."""
    parser = Parser(
        "hook",
        "Run COMMAND, a hook that was written for one system, as a hook of another system's agent: it gets the "
        "document that it knows, and its output is translated for the agent. One COMMAND is a command line for the "
        "shell; several words are a program and its arguments. With --run, one start runs several hooks: the options "
        "before each --run are those of its hook.",
        rest="[-- COMMAND [ARG...]]",
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
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, default=0.0, help="the hook's timeout")
    parser.add_argument("--fail-closed", action="store_true", help="a failure of the hook refuses the call")
    parser.add_argument(
        "--run",
        dest="command",
        metavar="COMMAND",
        help="a hook, as a command line for the shell, with the options before it; may be given several times",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the hook. Returns the exit status that the agent reads."""
    hooks, rest = _described_hooks(arguments)
    if unused := [name for name, value in _OF_ONE_HOOK.items() if getattr(rest, name) != value]:
        option = {"only_if": "if"}.get(unused[0], unused[0].replace("_", "-"))
        raise UserError(f"--{option} is after the last hook", "the options of a hook are before its --run")
    if not hooks:
        raise build_parser().wrong("there is no hook to run")
    output = _guarded(hooks, rest.agent)
    with open(1, "wb", closefd=False) as stdout:
        stdout.write(output.stdout)
    if output.stderr:
        sys.stderr.write(output.stderr.rstrip("\n") + "\n")
    return output.status


def _described_hooks(arguments: Sequence[str]) -> tuple[list[Namespace], Namespace]:
    """The hooks of a command line, each with the options before its `--run`, and the options after the last hook."""
    words, command = split_command(arguments)
    parser, hooks, systems = build_parser(), list[Namespace](), list[str]()
    while True:
        end = next((at for at, word in enumerate(words, 1) if word.partition("=")[0] == "--run"), 0)
        end += words[end - 1 : end] == ["--run"]
        options = parser.parse_args([*systems, *(words[:end] if end else words)])
        systems = [f"--as={options.dialect}", *([f"--for={options.agent}"] if options.agent else [])]
        if not end:
            break
        hooks.append(options)
        words = words[end:]
    if command:
        import shlex

        options.command = command[0] if len(command) == 1 else shlex.join(command)
        hooks.append(options)
        options = parser.parse_args(systems)
    return hooks, options


def _guarded(hooks: Sequence[Namespace], agent: str | None) -> HookOutput:
    """What the agent reads. Whatever goes wrong here refuses the call: the agent would let it pass after a crash."""
    from ..convert.run_hook import recognise_agent
    from ..dialects.agent_side import refuse_by_status

    refuse: Callable[[str], HookOutput] = refuse_by_status
    try:
        side = _agent(agent) if agent else None
        refuse = side.refuse if side else refuse
        foreign = [_foreign_hook(options) for options in hooks]
        with open(0, "rb", closefd=False) as stdin:
            document = stdin.read()
        return _run_hooks(foreign, side or recognise_agent(document), document)
    except UserError as error:
        return refuse(str(error))
    except (SystemExit, KeyboardInterrupt):  # a signal; an agent that is gone reads nothing
        return refuse("error: hookproxy was ended before the hook had decided")
    except Exception:  # not swallowed: the agent shows it as the reason
        from traceback import format_exc

        return refuse(f"error: a defect of hookproxy\n{format_exc()}")


def _foreign_hook(options: Namespace) -> ForeignHook:
    """The hook that these options describe. Raises UserError."""
    from ..convert.run_hook import ForeignHook
    from ..dialects.registry import DIALECTS, STANDARDS, hook_system

    known = (*DIALECTS, *STANDARDS)
    if options.dialect not in known:
        raise UserError(f"--as: there is no dialect {options.dialect!r}", f"expected one of {', '.join(known)}")
    return ForeignHook(
        hook_system(options.dialect),
        options.command,
        options.event or "",
        options.matcher or "",
        options.only_if or "",
        options.timeout,
        options.fail_closed,
    )


def _run_hooks(hooks: Sequence[ForeignHook], side: AgentSide, document: bytes) -> HookOutput:
    from ..convert.run_hook import run_hooks
    from ..processes import spawn
    from .hook_runtime import redirected_output, run_until_done

    spawn.start_without_probes()
    with redirected_output():
        return run_until_done(lambda: run_hooks(hooks, side, document, os.environ))


def _agent(name: str) -> AgentSide:
    from ..dialects.agent_side import convertible, side_of

    found = side_of(name)
    if found is None:
        raise UserError(
            f"--for: {name!r} is not an agent that runs hooks", f"expected one of {', '.join(convertible())}"
        )
    return found
