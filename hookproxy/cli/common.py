"""What every verb has in common: writing for people, reading the command line. Loads `os` and `sys` alone."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import NoReturn


def show(text: str) -> None:
    """Write to standard output, for people, at once."""
    if sys.stdout is None:  # closed before we started
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from ..model.errors import UserError

        discard_output()
        hint = "what was to be read here is not complete: send it where there is room for it"
        raise UserError(f"cannot write to standard output: {error.strerror}", hint) from error


def visible(text: str, encoding: str) -> str:
    """The text as a terminal can show it. Files may be anybody's: nothing in them reaches the terminal raw."""
    from ..model.errors import printable

    return printable(text).encode(encoding, "backslashreplace").decode(encoding)


def here() -> str:
    """The working directory, although it may be deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.environ.get("PWD", "/")


def discard_output() -> None:
    """Let the interpreter's own last flush of standard output go nowhere, instead of failing again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def parser(verb: str, usage: str, description: str, hint: str = "") -> "ArgumentParser":
    """For the options of a verb; what is wrong with them becomes a UserError with the hint, or with the usage."""
    from argparse import ArgumentParser, ArgumentTypeError

    from ..model.errors import UserError

    def filled(text: str) -> str:
        """Every text, as it is: an empty one is a variable of the shell that is not set."""
        if not text:
            raise ArgumentTypeError("is empty")
        return text

    class Parser(ArgumentParser):
        def error(self, message: str) -> "NoReturn":
            """As an error of ours; a misspelled option comes with the one that was meant."""
            from ..dialects.shared.hook_file import suggestion

            wrong = next((word for word in message.split() if word.startswith("--")), "")
            near = suggestion(wrong.partition("=")[0], self._option_string_actions) if "unrecognized" in message else ""
            raise UserError(message, near or hint or f"usage: {usage}")

    taken = Parser(prog=f"hookproxy {verb}", usage=usage, description=description, allow_abbrev=False)
    taken.register("type", None, filled)
    return taken


def add_sources(to: "ArgumentParser") -> None:
    """The options that say where hooks are configured: `--config FILE`, and `--hooks [DIALECT=]FILE`, repeated."""
    to.add_argument("--config", metavar="FILE", help="our own file (default: ~/.config/hookproxy/hookproxy.toml)")
    to.add_argument(
        "--hooks",
        metavar="[DIALECT=]FILE",
        action="append",
        default=[],
        help="a hook file of another system, as it is; may be given several times",
    )
