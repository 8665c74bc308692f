"""What of a signed policy cannot work on this machine, found before it is taken. Runs nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..config.load import Loaded
from ..model.errors import ConfigError
from . import commands
from .report import ConfiguredHook


def check(loaded: Loaded, folder: str, environ: Mapping[str, str]) -> None:
    """Raise ConfigError if a hook of the policy in this folder cannot run; under `strict`, also for a warning.

    `environ` is the environment of its hooks.
    """
    inside = f"{folder}{os.sep}"
    for group in loaded.all_groups:
        for spec in group.hooks if group.source.startswith(inside) else ():
            for problem in commands.problems(ConfiguredHook(spec, group, loaded.settings, environ)):
                raise ConfigError(spec.source, problem, "repair it, and publish the policy anew")
    if loaded.settings.strict:
        for note in loaded.notes:
            if note.startswith(inside):
                raise ConfigError("strict", note, "repair it, and publish the policy anew")
