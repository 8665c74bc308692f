"""The hookproxy.toml that verbs write for a person: its name, its folder, and its first line."""

from __future__ import annotations

import os
from typing import Final

from .schema import SCHEMA

CONFIG: Final = "hookproxy.toml"
DIRECTIVE: Final = "#:schema "  # names the schema of a TOML file for editors (taplo, tombi)


def user_config_folder() -> str:
    """The folder whose hookproxy.toml is read without `--config`."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification says to ignore a relative path
        folder = os.path.expanduser("~/.config")
    return os.path.join(folder, "hookproxy")


def schema_directive() -> str:
    """The first line of a hookproxy.toml, by which editors find the installed schema."""
    return f"{DIRECTIVE}{SCHEMA.as_uri()}\n"
