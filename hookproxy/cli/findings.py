"""Findings of `check` in other verbs: as lines on standard error, and as the error that stops them under `strict`."""

from __future__ import annotations

from collections.abc import Mapping

from ..checks.inspect import inspect
from ..checks.report import Finding
from ..config.load import Loaded
from ..hooks.select import HookGroups
from ..model.errors import UserError, printable


def line(finding: Finding) -> str:
    """A finding as one line: its place and its text."""
    return printable(placed(finding, finding.place))


def placed(finding: Finding, place: str) -> str:
    """The text of a finding after its place and its key."""
    key = "" if finding.text.startswith(finding.key) else finding.key
    return ": ".join(filter(None, (place, key, finding.text)))


def lines(loaded: Loaded, environ: Mapping[str, str]) -> list[str]:
    """All findings, as `check` shows them."""
    return [line(finding) for finding in inspect(loaded, environ).findings]


def stop_if_strict(loaded: Loaded, strict: bool, environ: Mapping[str, str], server: str = "") -> None:
    """Raise UserError if there is a finding and `strict` is set, by the option or in the configuration.

    `server` is the name of the server behind hookproxy, if there is one.
    """
    if not (strict or loaded.settings.strict):
        return
    found = lines(loaded, environ)
    if server:  # hooks that are tools of another server
        found += HookGroups(loaded.groups, server).unreachable_server_notes(server)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"strict: {found[0]}{more}", "hookproxy check shows all, with the same options")
