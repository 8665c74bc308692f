"""The list of files in a manifest, by which nothing can be added, left out or changed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from . import archive


class Refused(ValueError):
    """Files that must not be used; the text is a sentence without a full stop."""


class ListedFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file as a manifest lists it."""

    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    size: Annotated[int, Meta(ge=0, le=archive.MOST_BYTES)]
    executable: bool = False


def listed(content: bytes, executable: bool) -> ListedFile:
    """The entry for a file."""
    return ListedFile(hashlib.sha256(content).hexdigest(), len(content), executable)


def check_files(
    listed: Mapping[str, ListedFile], files: Mapping[str, bytes], unlisted: Iterable[str], manifest: str
) -> None:
    """Raise Refused unless the files are those that the manifest of this name lists, besides these unlisted ones."""
    present = files.keys() - set(unlisted)
    if missing := listed.keys() - present:
        raise Refused(f"{min(missing)} is missing")
    if unnamed := present - listed.keys():
        raise Refused(f"{min(unnamed)} is not in {manifest}")
    for name, file in listed.items():
        if len(files[name]) != file.size or hashlib.sha256(files[name]).hexdigest() != file.sha256:
            raise Refused(f"{name} is not the file that {manifest} names")
