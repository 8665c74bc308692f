"""Signatures of OpenSSH (`ssh-keygen -Y sign` and `-Y verify`): of a message, for one purpose, which is its namespace.

A signature names the key that made it. Only the keys that the caller gives count: the name only chooses among them. The
purpose is a part of what is signed, so a signature for another one, of the same key, is none.
Source: PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from .keys import ALGORITHM, PrivateKey, PublicKey, parse_public, ssh_string

_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_HASHES: Final = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_SIGNATURE_BYTES: Final = 64  # RFC 8032
_COLUMNS: Final = 70  # of base64 in a line, as ssh-keygen writes it
_MOST_BLOCKS: Final = 16  # signatures in one file: more keys than sign one thing
_UNREADABLE: Final = "has a signature that is not one of an Ed25519 key as ssh-keygen writes it"
_BLOCK: Final = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]{1,4096})-----END SSH SIGNATURE-----"
)


class BadSignature(ValueError):
    """The message is not signed by one of the keys; the text says why, as the end of a sentence."""


def sign(key: PrivateKey, namespace: str, message: bytes) -> bytes:
    """The signature as a text, which `ssh-keygen -Y verify -n NAMESPACE` accepts."""
    digest = hashlib.sha512(message).digest()
    body = ssh_string(namespace.encode()) + ssh_string(b"") + ssh_string(b"sha512")
    signature = ssh_string(ALGORITHM.encode()) + ssh_string(key.sign(_MAGIC + body + ssh_string(digest)))
    blob = _MAGIC + _VERSION.to_bytes(4, "big") + ssh_string(key.public.blob) + body + ssh_string(signature)
    text = base64.b64encode(blob)
    lines = [text[at : at + _COLUMNS] for at in range(0, len(text), _COLUMNS)]
    return b"\n".join((b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----", b""))


def verify(signatures: bytes, namespace: str, message: bytes, keys: Iterable[PublicKey]) -> PublicKey:
    """The first of the keys that has signed the message for this purpose. Raises BadSignature.

    A file may have several signatures, one after another: then one of them is enough.
    """
    by_blob = {key.blob: key for key in keys}
    blocks = list(_BLOCK.finditer(signatures))
    if not blocks or len(blocks) > _MOST_BLOCKS:
        raise BadSignature("has no signature that can be read" if not blocks else "has too many signatures")
    whys = []
    for block in blocks:
        try:
            return _verified(block[1], namespace.encode(), message, by_blob)
        except BadSignature as problem:
            whys.append(str(problem))
    raise BadSignature(" and ".join(dict.fromkeys(whys)))


def named_keys(signatures: bytes) -> list[PublicKey]:
    """The keys that the signatures name: nobody has said that they count. Raises BadSignature."""
    keys = []
    for block in _BLOCK.finditer(signatures):
        key_blob, *_ = _parts(block[1])
        try:
            keys.append(parse_public(f"{ALGORITHM} {base64.b64encode(key_blob).decode()}"))
        except ValueError as problem:
            raise BadSignature(f"names a key that {problem}") from None
    return keys


def _parts(text: bytes) -> list[bytes]:
    """Key, purpose, what is reserved, the name of the hash, and the signature. Raises BadSignature."""
    try:
        blob = base64.b64decode(b"".join(text.split()), validate=True)
        head = _MAGIC + _VERSION.to_bytes(4, "big")
        if not blob.startswith(head):
            raise ValueError
        return _strings(blob[len(head) :], 5)
    except ValueError:
        raise BadSignature(_UNREADABLE) from None


def _verified(text: bytes, namespace: bytes, message: bytes, keys: dict[bytes, PublicKey]) -> PublicKey:
    key_blob, purpose, reserved, hash_name, signature = _parts(text)
    try:
        algorithm, raw = _strings(signature, 2)
        if algorithm != ALGORITHM.encode() or len(raw) != _SIGNATURE_BYTES:
            raise ValueError
        digest = _HASHES[hash_name](message).digest()
    except (ValueError, KeyError):
        raise BadSignature(_UNREADABLE) from None
    if purpose != namespace:
        raise BadSignature(f"is signed for another purpose than {namespace.decode()}")
    key = keys.get(key_blob)
    if key is None:
        raise BadSignature("is not signed by one of the keys")
    body = ssh_string(purpose) + ssh_string(reserved) + ssh_string(hash_name)
    if not key.verifies(raw, _MAGIC + body + ssh_string(digest)):
        raise BadSignature("is not what its key has signed")
    return key


def _strings(data: bytes, count: int) -> list[bytes]:
    """The strings of which the data consists. Raises ValueError if it is not exactly so many."""
    strings = list(_split(data))
    if len(strings) != count:
        raise ValueError
    return strings


def _split(data: bytes) -> Iterator[bytes]:
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError
        yield data[4 : 4 + size]
        data = data[4 + size :]
