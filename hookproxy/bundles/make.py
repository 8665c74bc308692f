"""Makes bundles: a manifest of a folder and its signature, and statements of keys, as `ssh-keygen -Y sign` would.

Only plain files count, and none whose name begins with a dot. What is executable here is executable there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ..model.errors import ConfigError, UserError, file_hint
from ..signing import ssh_signature
from ..signing.keys import PrivateKey, PublicKey
from . import archive, names
from .manifest import (
    KEYS_NAMESPACE,
    MANIFEST,
    NAMESPACE,
    SIGNATURE,
    File,
    KeyStatement,
    Manifest,
    is_of_signer,
)

_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def files_of(folder: str) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files of a policy's folder, and which of them are executable. Raises UserError."""
    files: dict[str, bytes] = {}
    executable = set()
    for path in _paths(folder):
        name = os.path.relpath(path, folder)
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode):
            raise ConfigError(path, "is not a plain file", "a bundle has no links: put the file itself there")
        try:
            names.check(name)
            with open(path, "rb") as file:
                files[name] = file.read(archive.MOST_BYTES + 1)
        except names.BadName as problem:
            raise UserError(f"{folder}: {problem}", "rename it") from None
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
        if _PRIVATE_KEY.match(files[name]):
            hint = "move it elsewhere: everybody who can fetch the policy would have it"
            raise ConfigError(path, "is a private key", hint)
        if state.st_mode & stat.S_IXUSR:
            executable.add(name)
    return files, frozenset(executable)


def _paths(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise ConfigError(error.filename or folder, f"cannot be read: {error.strerror}", "name the policy's folder")

    for here, folders, present in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        yield from (os.path.join(here, name) for name in sorted((*links, *present)) if not name.startswith("."))


def made_manifest(
    files: Mapping[str, bytes], executable: frozenset[str], version: int, expires: str, rings: Sequence[str]
) -> bytes:
    """The manifest of these files. Raises UserError if it is none that can be taken."""
    listed = {
        name: File(hashlib.sha256(content).hexdigest(), len(content), name in executable)
        for name, content in sorted(files.items())
        if not is_of_signer(name)
    }
    text = msgspec.json.encode(Manifest("hookproxy-policy-1", version, expires, tuple(rings), listed))
    return msgspec.json.format(text, indent=1) + b"\n"


def signed(text: bytes, key: PrivateKey) -> dict[str, bytes]:
    """The manifest and its signature, as files."""
    return {MANIFEST: text, SIGNATURE: ssh_signature.sign(key, NAMESPACE, text)}


def key_statement(files: Mapping[str, bytes], keys: Sequence[PublicKey], key: PrivateKey) -> dict[str, bytes]:
    """The next statement of keys of a policy with these files, and its signature, as files."""
    number = 1
    while f"keys/{number}.json" in files:
        number += 1
    name = f"keys/{number}.json"
    statement = KeyStatement("hookproxy-keys-1", number, tuple(public.line for public in keys))
    text = msgspec.json.format(msgspec.json.encode(statement), indent=1) + b"\n"
    return {name: text, f"{name}.sig": ssh_signature.sign(key, KEYS_NAMESPACE, text)}


def last_version(files: Mapping[str, bytes]) -> int:
    """The version of the manifest that is there; 0: there is none. Raises UserError if it cannot be read."""
    if MANIFEST not in files:
        return 0
    try:
        return msgspec.json.decode(files[MANIFEST], type=Manifest).version
    except (ValueError, RecursionError) as problem:
        raise UserError(f"{MANIFEST}: cannot be read: {problem}", "remove it, and give --version") from None
