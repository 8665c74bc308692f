"""Reads the exit code, standard output and standard error of a Droid hook into a verdict; it never raises."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..shared import claude_envelope as envelope

FIELDS: Final = envelope.FIELDS
"""What each member of the JSON output does here."""

read_output = partial(envelope.read_output, envelope.Rules(checks_event=True, merges=True))
