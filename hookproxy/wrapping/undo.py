"""Plans how everything that hookproxy wrote on this machine is undone: wrapped entries, whole files, inserted texts.

What others changed in the same files since then stays. Where it cannot be distinguished from what hookproxy wrote, a
file is left as it is, and the reason is reported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from ..model.errors import ConfigError, UserError, not_written
from . import agent_files, edit_plan, files, hook_entries, use_tables, written
from .agent_files import AgentFile, PlannedFile
from .files import BACKUP, Snapshot
from .known_agents import ConfigFile
from .written import Written


class Restored(Struct, frozen=True):
    """A file that is not an agent's configuration, and what it becomes."""

    snapshot: Snapshot
    text: str | None
    """Its text afterwards; None: it is removed."""


class Plan(Struct, frozen=True):
    """Everything that is to be undone."""

    unwrapped: tuple[PlannedFile, ...]
    restored: tuple[Restored, ...]
    gone: tuple[str, ...]
    """Files of the record in which nothing of hookproxy is left."""
    errors: tuple[UserError, ...]
    """Why other files stay as they are."""


def plan(record: Written, known: Sequence[ConfigFile]) -> Plan:
    """Plan it for the files of the record, and for these files of agents. Nothing is changed."""
    others = [ConfigFile(path, (), in_project=False) for path in record.wrapped]
    found = agent_files.read([*known, *others])
    unwrapped, errors = _unwrap(found, record)
    restored: list[Restored] = []
    touched = {file.config_file.path for file in found if file.error} | {file.snapshot.path for file in unwrapped}
    gone = [path for path in record.wrapped if path not in touched]
    for path in dict.fromkeys((*record.inserted, *record.created)):
        try:
            undone = restore(path, record)
        except UserError as error:
            errors.append(error)
            continue
        if undone is None:
            gone.append(path)
        else:
            restored.append(undone)
    return Plan(tuple(unwrapped), tuple(restored), tuple(gone), tuple(errors))


def _unwrap(found: Sequence[AgentFile], record: Written) -> tuple[list[PlannedFile], list[UserError]]:
    """The files with wrapped entries, and why some of these stay."""
    planned: list[PlannedFile] = []
    errors: list[UserError] = []
    for file in found:
        configuration = file.configuration
        if file.snapshot is None or configuration is None:
            if file.error is not None and _may_be_wrapped(file.config_file.path):
                errors.append(file.error)
            continue
        replaced = record.replaced.get(os.path.abspath(file.snapshot.path), {})
        if not (replaced or any(map(edit_plan.wrapping, configuration.entries))):
            continue
        try:
            change = edit_plan.unwrap(configuration, [], replaced)
        except UserError as error:
            errors.append(error)
            continue
        kept = [entry for entry in change.unchanged if edit_plan.wrapping(entry) or entry.key_path in replaced]
        kept = [entry for entry in kept if edit_plan.wrapping(entry) or entry.key_path in change.reasons]
        errors += [
            ConfigError(
                file.config_file.path,
                f"{entry.key_path} is not changed: it {change.reasons.get(entry.key_path, 'is wrapped')}",
                "edit this entry by hand",
            )
            for entry in kept
        ]
        if change.edits:
            planned.append(PlannedFile(file.config_file, file.snapshot, change))
    return planned, errors


def _may_be_wrapped(path: str) -> bool:
    """Whether a file that cannot be used could have entries that start hookproxy."""
    try:
        return "hookproxy" in files.read(path).text
    except UserError:
        return os.path.lexists(path)


def restore(path: str, record: Written) -> Restored | None:
    """What a file of the record becomes; None if it is gone, or nothing of hookproxy is in it. Raises UserError."""
    if not os.path.lexists(path):
        return None
    snapshot = files.read(path)
    text = snapshot.text
    for inserted in reversed(record.inserted.get(path, ())):
        without = use_tables.without if "[[use]]" in inserted else hook_entries.without
        text = without(path, text, inserted)
    digest = record.created.get(path)
    if digest is None:
        return Restored(snapshot, text)
    if digest == written.digest(text):
        return Restored(snapshot, None)
    if path in record.inserted:
        return Restored(snapshot, text)
    raise ConfigError(path, "has changed since hookproxy wrote it, and stays", "remove from it what starts hookproxy")


def undo(restored: Restored) -> str:
    """Do it for one file. Returns what was done, for people. Raises UserError; then the file is unchanged."""
    path = restored.snapshot.path
    if restored.text is not None:
        os.unlink(files.replace(restored.snapshot, restored.text))
        return f"{path}: restored"
    if files.read(path).raw != restored.snapshot.raw:
        raise ConfigError(path, "has changed since it was read", "try again")
    try:
        os.unlink(path)
    except OSError as error:
        raise not_written(path, error, "cannot be removed") from None
    return f"{path}: removed"


def needless_backup(path: str) -> str:
    """The backup beside a file, if it has nothing that the file itself has not; else empty."""
    real = os.path.realpath(path)
    backup = real + BACKUP
    if not os.path.lexists(backup):
        return ""
    try:
        text = files.read(backup).text
        now = files.read(real).text if os.path.lexists(real) else ""
        is_needless = text == now or edit_plan.unwrap(edit_plan.read(real, text), []).text == now
        return backup if is_needless else ""
    except UserError:
        return ""
