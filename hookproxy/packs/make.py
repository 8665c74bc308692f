"""Makes packs: the manifest of a folder, and its signature; and reads what is to be one, a folder or an archive.

What a person has written into `pack.toml` stays; only the table `[files]`, which is its end, is written anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from ..archives import archive
from ..archives.folder import files_of
from ..archives.listed import Refused, listed
from ..files.open_flags import READ_FILE
from ..model.errors import ConfigError, UserError, file_hint
from ..model.toml import NotToml, parse_toml
from ..signing import ssh_signature
from ..signing.keys import PrivateKey
from .manifest import MANIFEST, NAME, NAMESPACE, SIGNATURE, InvalidManifest, read

_FILES: Final = re.compile(r"^\[files\][ \t]*(#.*)?$", re.MULTILINE)
_TEMPLATE: Final = """\
format = "hookproxy-pack-1"
name = "{name}"
version = "1.0.0"                # a higher one for each change: 1.0.1
description = "{description}"

[needs]                          # what its hooks need; nothing of it has to be here
# hookproxy = "{hookproxy}"            # the oldest version
# python = "3.11"                # the oldest version for hooks that start python3
# packages = ["regex==2025.9.1"] # installed into an environment of their own, with all that they need themselves
# programs = ["bash", "jq"]      # only looked for

"""
_REMARK: Final = "[files] # hookproxy pack writes this table: the hash of each file\n"


def read_source(path: str) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files of a folder or an archive, and which of them are executable in the folder. Raises UserError."""
    if os.path.isdir(path):
        return files_of(path)
    try:
        with open(os.open(os.path.realpath(path), READ_FILE), "rb") as file:
            data = file.read(archive.MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    if len(data) > archive.MOST_BYTES:
        raise UserError(f"{path}: has more than {archive.MOST_BYTES} bytes", "it is not a pack: nothing was done")
    try:
        return archive.read(data), frozenset()
    except ValueError as problem:
        hint = "nothing was done; hookproxy pack sign --output writes an archive that can be read"
        raise UserError(f"{path}: {problem}", hint) from None


def new_manifest(name: str, description: str, hookproxy: str) -> str:
    """The beginning of a manifest. Raises UserError for a name that a pack cannot have."""
    if not re.match(NAME, name):
        raise UserError(f"{name} is not a name for a pack", "rename the folder: small letters, digits and -")
    texts = description.replace("\\", "").replace('"', "'")
    return _TEMPLATE.format(name=name, description=texts, hookproxy=hookproxy)


def with_files(path: str, text: str, files: Mapping[str, bytes], executable: frozenset[str]) -> str:
    """The manifest at `path`, for these files. Raises ConfigError if it could not be used, and InvalidManifest."""
    table = _FILES.search(text)
    head = text[: table.start()] if table else f"{text.rstrip()}\n\n"
    lines = []
    for name, content in sorted(files.items()):
        if name not in (MANIFEST, SIGNATURE):
            file = listed(content, name in executable)
            mark = ", executable = true" if file.executable else ""
            lines.append(f'"{name}" = {{ sha256 = "{file.sha256}", size = {file.size}{mark} }}\n')
    changed = head + _REMARK + "".join(lines)
    _check_rest(path, text, changed)
    try:
        read({**files, MANIFEST: changed.encode()})
    except InvalidManifest:
        raise
    except Refused as problem:
        raise ConfigError(path, str(problem).removeprefix(f"{MANIFEST} "), "correct it there, and try again") from None
    return changed


def _check_rest(path: str, before: str, after: str) -> None:
    """Raise ConfigError unless both say the same about everything but files, and InvalidManifest."""
    try:
        old, new = parse_toml(before), parse_toml(after)
    except NotToml as problem:
        raise InvalidManifest(before, {}, problem) from None
    old.pop("files", None)
    new.pop("files", None)
    if old != new:
        raise ConfigError(path, "has something below [files]", "move it above: that table is written anew")


def signature(manifest: str, key: PrivateKey) -> bytes:
    """The signature of a manifest, as a file."""
    return ssh_signature.sign(key, NAMESPACE, manifest.encode())
