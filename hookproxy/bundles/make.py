"""Makes bundles: a manifest of a folder and its signature, and statements of keys, as `ssh-keygen -Y sign` would.

Only plain files count, and none whose name begins with a dot. What is executable here is executable there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..archives.listed import listed
from ..model.errors import UserError
from ..signing import ssh_signature
from ..signing.keys import PrivateKey, PublicKey
from .manifest import (
    KEYS_NAMESPACE,
    MANIFEST,
    NAMESPACE,
    SIGNATURE,
    KeyStatement,
    Manifest,
    is_of_signer,
)


def made_manifest(
    files: Mapping[str, bytes], executable: frozenset[str], version: int, expires: str, rings: Sequence[str]
) -> bytes:
    """The manifest of these files. Raises UserError if it is none that can be taken."""
    files_listed = {
        name: listed(content, name in executable) for name, content in sorted(files.items()) if not is_of_signer(name)
    }
    text = msgspec.json.encode(Manifest("hookproxy-policy-1", version, expires, tuple(rings), files_listed))
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
