"""Merges what a verb adds into the hookproxy.toml of a folder, or writes one: for `init`, and for packs.

What the file says stays, with its comments and its order. It is planned first, so that a contradiction is known before
anything else is written.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping

from msgspec import Struct

from ..model.errors import UserError
from ..wrapping import files
from ..wrapping.files import Snapshot
from ..wrapping.merge_toml import Merged, merge
from .common import create, working_directory
from .own_file import CONFIG


class Change(Struct, frozen=True):
    """A hookproxy.toml that is there, and what it is to become."""

    snapshot: Snapshot
    merged: Merged


def planned(folder: str, addition: str, source: str) -> Change | None:
    """What the folder's hookproxy.toml becomes with an addition; None: there is none. Raises UserError."""
    config = os.path.join(folder, CONFIG)
    if not os.path.lexists(config):
        return None
    if os.path.islink(config):
        raise UserError(
            f"{config} is a link", "nothing was written; choose the folder of the file itself with --folder"
        )
    from ..config.parse import parse

    snapshot = files.read(config)
    merged = merge(config, snapshot.text, addition, source)
    parse(config, merged.text)
    return Change(snapshot, merged)


def write_change(folder: str, change: Change | None, text: str) -> None:
    """Write it, or a file with this text if there is none. Raises UserError."""
    if change is None:
        create_below(folder, {CONFIG: text})
    elif change.merged.added:
        files.replace(change.snapshot, change.merged.text)


def create_below(folder: str, contents: Mapping[str, str]) -> list[str]:
    """Create these files, by their names in the folder, or none. Returns the folders that were made for them."""
    paths = {os.path.join(folder, name): text for name, text in contents.items()}
    return create(paths, "choose another folder with --folder, or move that file", folder) if paths else []


def shown(folder: str, options: Namespace, name: str) -> str:
    """The path of a file in the folder, for people."""
    shown_folder = os.path.relpath(folder, working_directory()) if not options.user else folder
    return os.path.normpath(os.path.join(shown_folder, name))


def config_option(config: str, options: Namespace) -> str:
    """What names the configuration to other verbs."""
    return "" if options.user else f" --config {shlex.quote(config)}"
