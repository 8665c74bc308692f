"""Where the files of secrets are that a configuration names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ..model.errors import ConfigError

_CREDENTIALS_FOLDER: Final = "$CREDENTIALS_DIRECTORY/"
"""The folder of systemd's credentials for a service, at the beginning of a path."""


def with_credentials_folder(text: str, path: str, key: str, environ: Mapping[str, str]) -> str:
    """The path of a secret's file with the folder of systemd's credentials in place of its name, if that begins it.

    `path` is the configuration file, and `key` the key in it. Raises ConfigError if there is no such folder.
    """
    if not text.startswith(_CREDENTIALS_FOLDER):
        return text
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    if not os.path.isabs(folder):
        service = "it is set for a systemd service with LoadCredential= or LoadCredentialEncrypted="
        hint = f"{service}; elsewhere: CREDENTIALS_DIRECTORY=FOLDER hookproxy …, with the folder of such files"
        raise ConfigError(path, f"{key}: the variable CREDENTIALS_DIRECTORY is not set", hint)
    return os.path.join(folder, text.removeprefix(_CREDENTIALS_FOLDER))
