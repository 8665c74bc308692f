"""Reads the exit status and standard error of a Cascade hook into a verdict. Standard output is never parsed."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..shared import exit_status
from .hook_file import SHOWS_OUTPUT

_RULES: Final = exit_status.ExitStatusRules(
    comments=True,  # "The Cascade agent will see the error message from stderr"
    shows=lambda spec: SHOWS_OUTPUT in spec.traits,
)

read_output: Final = partial(exit_status.read_output, _RULES)
"""The verdict of a hook run. Never raises."""
