"""The command line of a verb: argparse with our errors and our help."""

from __future__ import annotations

import itertools
from argparse import Action, ArgumentParser, ArgumentTypeError, HelpFormatter, Namespace, _AppendAction
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, NoReturn

from ..model.errors import UserError
from .common import show, split_command


class Parser(ArgumentParser):
    """The command line of one verb. An error in it becomes a UserError with the hint, or else with the usage.

    The usage is made from the options that are declared, without those of groups with a title; `rest` follows them.
    `subverbs` returns the words that may follow the verb, where other options follow them.
    """

    def __init__(
        self,
        verb: str,
        description: str,
        *,
        rest: str = "",
        hint: str = "",
        subverbs: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        # A formatter is made for each option that is declared; without a width it would import shutil, to ask for it.
        formatter = partial(HelpFormatter, width=80)
        super().__init__(f"hookproxy {verb}", description=description, allow_abbrev=False, formatter_class=formatter)
        self.rest: Final = rest
        self.subverbs: Final = subverbs
        self._hint = hint
        self._whole_help = False
        self._given: tuple[str, ...] = ()
        self.register("type", None, _not_empty)

    @property
    def usage(self) -> str:
        """The form of the command line."""
        titled = [action for group in self._action_groups[2:] for action in group._group_actions]
        usual = [action for action in self._actions if action.dest != "help" and action not in titled]
        exclusive = {id(group._group_actions[0]): group._group_actions for group in self._mutually_exclusive_groups}
        others = {id(action) for actions in exclusive.values() for action in actions[1:]}
        forms = [_form(exclusive.get(id(action), [action])) for action in usual if id(action) not in others]
        return " ".join(filter(None, (self.prog, *forms, self.rest)))

    @usage.setter
    def usage(self, _usage: str | None) -> None:
        """Do nothing: argparse sets what it is given."""

    @property
    def short_usage(self) -> str:
        """The form of the command line, without the options that may be left out."""
        needed = [action for action in self._actions if action.required or not action.option_strings]
        optional = (
            "[OPTION...]" if any(action.option_strings for action in self._actions if action.dest != "help") else ""
        )
        return " ".join(filter(None, (self.prog, optional, *(_form([action]) for action in needed), self.rest)))

    def add_common(self, *names: str) -> None:
        """Add options that several verbs have."""
        for name in names:
            _COMMON[name](self)

    def wrong(self, message: str) -> UserError:
        """The error for a command line of another form."""
        return UserError(message, f"usage: {self.usage}")

    def run_subverb(
        self,
        arguments: Sequence[str],
        subverbs: Mapping[str, Callable[[Namespace], int | None]],
        parsers: Mapping[str, Parser],
    ) -> int:
        """Do what the first word says, which is one of these subverbs. Returns the exit status."""
        if arguments and arguments[0] in subverbs:
            return subverbs[arguments[0]](parsers[arguments[0]].parse_args(list(arguments[1:]))) or 0
        raise self.no_subverb(arguments)

    def no_subverb(self, arguments: Sequence[str]) -> UserError:
        """The error for a command line without a subverb, unless it asks for help."""
        self.parse_args(list(arguments))
        *others, last = self.subverbs()
        names = f"{', '.join(others)} or {last}" if others else last
        return self.wrong(f"{names} must follow {self.prog.removeprefix('hookproxy ')}")

    def error(self, message: str) -> NoReturn:
        """Raise a UserError; for a misspelled option or subverb, its hint suggests the right one."""
        from ..dialects.shared.hook_file import suggestion

        if "unrecognized" not in message and (unknown := self._unknown_option()):
            message = f"unrecognized arguments: {unknown}"  # the word behind it was taken for another argument
        argument, invalid, choice = message.partition(": invalid choice: ")
        if invalid:
            value, _, choices = choice.partition(" (choose from ")
            known = choices.rstrip(")").replace("'", "").split(", ")
            near = suggestion(value.strip("'"), known) or f"one of {', '.join(known)}"
            raise UserError(f"{argument}: there is no {value}", near)
        if "unrecognized" not in message:
            argument, not_int, value = message.partition(": invalid int value: ")
            raise self.wrong(f"{argument}: {value} is not a whole number" if not_int else message)
        first = message.removeprefix("unrecognized arguments: ").partition(" ")[0]
        if not first.startswith("-") and not any(action.option_strings == [] for action in self._actions):
            near = suggestion(first, (*self.subverbs(), *self._option_string_actions))
            raise UserError(f"there is no `{self.prog} {first}`", near or self._hint or f"usage: {self.usage}")
        wrong = next((word.partition("=")[0] for word in message.split() if word.startswith("-")), "")
        near = suggestion(wrong, self._option_string_actions)
        raise UserError(
            f"there is no option {wrong}" if wrong else message, near or self._hint or f"usage: {self.usage}"
        )

    def _unknown_option(self) -> str:
        """The first option that was given and that there is not; empty: all are known."""
        options = itertools.takewhile(lambda word: word != "--", self._given)
        names = (word.partition("=")[0] for word in options if word.startswith("--"))
        return next((name for name in names if name not in self._option_string_actions), "")

    def format_help(self) -> str:
        """Return the help, with examples."""
        from .help_text import WholeWords, more_help

        self.formatter_class = WholeWords
        return super().format_help() + more_help(self)

    def print_help(self, file: object = None) -> None:
        """Write the help to standard output: to a terminal in short, unless `--verbose` asks for all of it."""
        show(self.help_page(whole=self._whole_help))

    def help_page(self, *, whole: bool) -> str:
        """The help as it is shown: `whole`, or, on a terminal where it has too many lines, in short."""
        from .help_text import short_help
        from .layout import new_page

        text, page = self.format_help(), new_page(short=True)
        return (
            text
            if whole or not page.most or text.count("\n") <= page.most
            else short_help(self, self.short_usage, page)
        )

    def parse_known_args(  # type: ignore[override]  # argparse has more forms than we use
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Note whether all of the help is wanted, which may be said behind `--help`, and parse as argparse does."""
        self._whole_help = "--verbose" in (args or ())
        self._given = tuple(args or ())
        return super().parse_known_args(args, namespace)


def parse_with_command(parser: Parser, arguments: Sequence[str]) -> tuple[Namespace, list[str]]:
    """Our options, and the command line of a server, without which it cannot have a name. Raises UserError."""
    words, command = split_command(arguments)
    options = parser.parse_args(words)
    if options.name and not command:
        raise UserError("--name has no server to name: there is no COMMAND", "write -- COMMAND [ARG...] after it")
    return options, command


def _form(actions: Sequence[Action]) -> str:
    """An option or a word in the usage; of several options, only one may be given."""
    texts = []
    for action in actions:
        value = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
        value = f"[{value}]" if action.option_strings and action.nargs == "?" else str(value)
        texts.append(" ".join((*action.option_strings[-1:], *([] if action.nargs == 0 else [value]))))
    first = actions[0]
    is_needed = first.required if first.option_strings else first.nargs not in ("?", "*")
    repeats = "..." * (first.nargs == "*" or isinstance(first, _AppendAction))
    return (texts[0] if is_needed else f"[{' | '.join(texts)}]") + repeats


def _not_empty(text: str) -> str:
    """Return the text unchanged. An empty one is an error: it comes from an unset variable of the shell."""
    if not text:
        raise ArgumentTypeError("is empty")
    return text


def seconds(text: str, most: float = inf) -> float:
    """The type of an option for a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most or value == inf:
        up_to = "" if most == inf else f" up to {most:g}"
        raise ArgumentTypeError(f"{text} is not a number of seconds{up_to}")
    return value


HOOK_OPTIONS: Final = ("--config", "--hooks", "--project")
"""The options that name files with hooks: see `common.load_named`."""

GATEWAY_OPTIONS: Final = ("--server", "--user", "--groups")
"""The options that say whose calls at which server of a gateway are meant: see `offline.policy_named`."""

ENTRY_OPTIONS: Final = ("--agent",)
"""The option that names the agent whose entry of `--server` is meant: see `agent_entry.use_entry`."""

_COMMON: Final[Mapping[str, Callable[[Parser], object]]] = {
    "--config": lambda parser: parser.add_argument(
        "--config", metavar="FILE", help="hookproxy's configuration (default: ~/.config/hookproxy/hookproxy.toml)"
    ),
    "--hooks": lambda parser: parser.add_argument(
        "--hooks",
        metavar="[DIALECT=]FILE",
        action="append",
        default=[],
        help="a hook file of another system, unchanged, or a plugin's folder; may be given several times",
    ),
    "--project": lambda parser: parser.add_argument(
        "--project",
        metavar="DIR",
        help="the folder in which the hooks of these files run, and which they get as their working directory "
        "(default: the project that a file belongs to)",
    ),
    "--name": lambda parser: parser.add_argument(
        "--name", metavar="SERVER", help="the server's name as hooks see it (default: server)"
    ),
    "--server": lambda parser: parser.add_argument(
        "--server", metavar="NAME", help="of a gateway's file, or with --agent: the server (default: the only one)"
    ),
    "--agent": lambda parser: parser.add_argument(
        "--agent",
        metavar="NAME",
        help="an agent, or its file: use exactly what its entry of --server runs, in place of --config and --hooks",
    ),
    "--user": lambda parser: parser.add_argument(
        "--user", metavar="NAME", help="of a gateway's file: who calls, with the groups of the account and the tokens"
    ),
    "--groups": lambda parser: parser.add_argument(
        "--groups", metavar="A,B", help="the groups of the user, in place of those; - for none"
    ),
    "--fail-closed": lambda parser: parser.add_argument(
        "--fail-closed",
        action="store_true",
        help="a hook that fails, or gives no clean verdict, refuses the call, whatever its system or its file says",
    ),
    "--strict": lambda parser: parser.add_argument(
        "--strict",
        action="store_true",
        help="a warning of hookproxy check stops the start, as with strict = true in hookproxy.toml",
    ),
    "--verbose": lambda parser: parser.add_argument(
        "--verbose", action="store_true", help="on a terminal, show all lines"
    ),
    "--json": lambda parser: parser.add_argument(
        "--json", action="store_true", help="print one JSON document, for programs"
    ),
}


def add_remote_options(parser: ArgumentParser) -> None:
    """Add the options for a server at an address."""
    remote = parser.add_argument_group("a server at an address, instead of COMMAND")
    remote.add_argument("--url", help="the address of the server (Streamable HTTP, or else HTTP+SSE)")
    remote.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="a header of each request; ${NAME} and %%{NAME} stand for environment variables",
    )
    remote.add_argument("--ca", metavar="FILE", help="trust the certificates in FILE instead of the system's")
    remote.add_argument("--cert", metavar="FILE", help="the certificate with which the server recognises this client")
    remote.add_argument("--key", metavar="FILE", help="the key of --cert, if it is in another file")
    remote.add_argument(
        "--allow-http", action="store_true", help="allow http:// to other machines, where everybody may read along"
    )


def add_sandbox_options(parser: ArgumentParser) -> None:
    """Add the options for a server in a sandbox."""
    group = parser.add_argument_group("a sandbox for the server")
    group.add_argument(
        "--sandbox",
        action="store_true",
        help="the server reaches only programs, its own files, the working folder and what is named here",
    )
    for name, what in (("read", "a folder or file that it may read"), ("write", "one that it may write, too")):
        group.add_argument(f"--sandbox-{name}", metavar="PATH", action="append", default=[], help=what)
    group.add_argument(
        "--sandbox-env", metavar="NAME", action="append", default=[], help="a variable of the environment that it gets"
    )
    group.add_argument(
        "--sandbox-network", choices=("all", "none"), default="all", help="none: it reaches no network (default: all)"
    )


def sandbox_words(options: Namespace) -> tuple[str, ...]:
    """The words that say the same on another command line. Raises UserError for options of no sandbox."""
    words: list[str] = []
    for name in ("read", "write", "env"):
        words += (word for value in getattr(options, f"sandbox_{name}") for word in (f"--sandbox-{name}", value))
    if options.sandbox_network != "all":
        words += ("--sandbox-network", options.sandbox_network)
    if words and not options.sandbox:
        raise UserError(f"{words[0]} is for a server in a sandbox", f"add --sandbox: --sandbox {' '.join(words)}")
    return ("--sandbox", *words) if options.sandbox else ()
