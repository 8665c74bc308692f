"""What the command line of the console says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

from msgspec import Struct

from ..audit import os_user
from ..config.load import Loaded
from .mistakes import Mistake


class Options(Struct, frozen=True):
    """What the pages may read and run."""

    load: Callable[[], Loaded]
    """Reads the configuration as it is now. Raises UserError."""
    environ: Mapping[str, str]
    cwd: str
    audit: str = ""
    """The audit file; empty: the configuration's."""
    compared: Mapping[str, Callable[[], Loaded]] = {}
    """Changed configurations that calls may be replayed through: code that runs is only what the command line names."""
    command: Sequence[str] = ()
    """The server whose tools the policy page may list; empty: none."""
    server: str = ""
    """Its name, as hooks see it."""
    only_server: str = ""
    """The configuration is that of this server of a gateway: only its calls are replayed. Empty: for all servers."""

    @property
    def configurations(self) -> list[str]:
        """The names of the configurations that calls may be replayed through, that in force first."""
        return ["the configuration in force", *self.compared]

    def audit_path(self) -> str:
        """The path of the audit file. Raises UserError, also if there is none."""
        path = self.audit or os_user.audit_path(self.load().settings.audit_file)
        if not path:
            hint = "remove audit.enabled from hookproxy.toml, or name one with --audit"
            raise Mistake("no audit log is kept", hint, HTTPStatus.NOT_FOUND)
        return path
