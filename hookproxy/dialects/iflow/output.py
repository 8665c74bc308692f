"""Reads the exit status of an iFlow CLI hook into a verdict. iFlow CLI reads no JSON; people see what a hook prints."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..shared import exit_status

_RULES: Final = exit_status.ExitStatusRules(
    denies=lambda code: code != 0,  # "Non-zero return code blocks tool execution"
    shows=lambda _spec: True,  # "Standard output is displayed to user"
)
read_output: Final = partial(exit_status.read_output, _RULES)
"""The verdict of a hook run. Never raises."""
