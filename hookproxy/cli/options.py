"""The command line of a verb: argparse with our errors and our help."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter
from functools import partial
from typing import NoReturn

from ..model.errors import UserError


class Parser(ArgumentParser):
    """The command line of one verb. An error in it becomes a UserError with the hint, or else with the usage."""

    def __init__(self, verb: str, usage: str, description: str, hint: str = "") -> None:
        # A formatter is made for each option that is declared; without a width it would import shutil, to ask for it.
        formatter = partial(HelpFormatter, width=80)
        super().__init__(f"hookproxy {verb}", usage, description, allow_abbrev=False, formatter_class=formatter)
        self._usage_hint = f"usage: {usage}"
        self._hint = hint or self._usage_hint
        self.register("type", None, _not_empty)

    def error(self, message: str) -> NoReturn:
        """Raise a UserError; for a misspelled option, its hint suggests the right one."""
        from ..dialects.shared.hook_file import suggestion

        argument, invalid, choice = message.partition(": invalid choice: ")
        if invalid:
            value, _, choices = choice.partition(" (choose from ")
            known = choices.rstrip(")").replace("'", "").split(", ")
            near = suggestion(value.strip("'"), known) or f"one of {', '.join(known)}"
            raise UserError(f"{argument}: there is no {value}", near)
        if "unrecognized" not in message:
            argument, not_int, value = message.partition(": invalid int value: ")
            raise UserError(f"{argument}: {value} is not a whole number" if not_int else message, self._usage_hint)
        wrong = next((word.partition("=")[0] for word in message.split() if word.startswith("-")), "")
        near = suggestion(wrong, self._option_string_actions)
        raise UserError(f"there is no option {wrong}" if wrong else message, near or self._hint)

    def format_help(self) -> str:
        """Return the help, with examples."""
        from .help_text import WholeWords, more_help

        self.formatter_class = WholeWords
        return super().format_help() + more_help(self)


def _not_empty(text: str) -> str:
    """Return the text unchanged. An empty one is an error: it comes from an unset variable of the shell."""
    if not text:
        raise ArgumentTypeError("is empty")
    return text
