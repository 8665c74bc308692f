"""What `check` finds out, as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ..dialects.dialect import Group
from ..model.hooks import HookSpec
from ..model.settings import Settings
from ..trust.sources import Managed
from ..trust.trusted_files import Covered


class OnFailure(StrEnum):
    """What follows when a hook crashes, hangs, cannot start or answers nonsense. Standard error tells in each case."""

    BLOCK = "block"  # the call is refused
    WITHHOLD = "withhold"  # the result is withheld
    TELL = "tell"  # the result passes, and the model is told that it was not judged
    CONTINUE = "continue"  # nothing


class Finding(Struct, frozen=True):
    """Something that its author should know, and where."""

    file: str
    """Empty: it is about no file."""
    line: int | None
    key: str
    text: str
    """One sentence without a full stop."""


class Entry(Struct, frozen=True):
    """One hook as its file has it; of one that nothing here ever asks, only what its place tells."""

    file: str
    line: int | None
    key: str
    dialect: str = ""
    event: str = ""
    """The occasion; empty where the dialect's event is none here."""
    event_name: str = ""
    """The event as its file spells it."""
    matcher: str = ""
    only_if: str = ""
    command: str = ""
    timeout: float = 0.0
    on_failure: OnFailure = OnFailure.CONTINUE
    fires: bool = False
    """It can be asked behind MCP."""
    awaited: bool = False
    """Something waits for what it says."""
    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    managed: bool = False
    """The administrator's, which the user cannot switch off."""


class Report(Struct, frozen=True):
    """All that is configured, and what is to be said about it."""

    settings: Settings
    entries: tuple[Entry, ...]
    """By file, and there by line."""
    findings: tuple[Finding, ...]
    """Each one once: those of entries, too."""
    remarks: tuple[Finding, ...]
    """What may be as it should: it depends on what is not known here."""
    managed: Managed | None = None
    """Nothing is, where there is none."""
    trust: Covered | None = None
    """What must stay as it was trusted; None: that is not required."""


class Hook(Struct, frozen=True):
    """A configured hook and what it stands among."""

    spec: HookSpec
    group: Group
    settings: Settings
    environ: Mapping[str, str]
