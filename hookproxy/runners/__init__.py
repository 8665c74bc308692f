"""The ways in which a hook can run, by the `type` of its entry. A new one is a file here and a line below."""

from __future__ import annotations

from . import command
from .base import Runner

RUNNERS: dict[str, Runner] = {"command": command.run}
