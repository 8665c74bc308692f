"""Ed25519 keys: the private one that signs checkpoints of an audit, and public ones that verify them.

Private keys are PEM (PKCS #8, as `openssl genpkey -algorithm ed25519` writes them) or OpenSSH's own form (`ssh-keygen
-t ed25519`). Public keys are PEM or lines of OpenSSH (`ssh-ed25519 AAAA…`). `cryptography` is imported with the
first key.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from ..model.errors import UserError, file_hint, not_installed
from ..signing.keys import EXTRA, PrivateKey, PublicKey, load_private
from .key_file import read_private

MAKE: Final = "make one without a passphrase: ssh-keygen -t ed25519 -N '' -f {path}"
"""How to make a key; with `.format(path=…)`."""

_KEY_BYTES: Final = 32
_DER_BEGIN: Final = bytes.fromhex("302a300506032b6570032100")  # of every public Ed25519 key (RFC 8410)
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----")
_SSH_LINE: Final = re.compile(rb"(?:^|\s)ssh-ed25519\s+([A-Za-z0-9+/]+=*)", re.MULTILINE)
_LONGEST_PUBLIC: Final = 65_536  # bytes of a file with public keys: a hundred of them, with comments


class Signer:
    """A private key."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self.public = key.public.raw
        self.name = key.public.fingerprint
        """As `name_of`."""

    def sign(self, text: bytes) -> bytes:
        """The signature of a text, always the same one."""
        return self._key.sign(text)


def name_of(public: bytes) -> str:
    """The name of a public key, as `ssh-keygen -l` shows it: `SHA256:…`."""
    return PublicKey(public).fingerprint


def read_signer(path: str) -> Signer:
    """The private key in a file. Raises OSError, also if others can read it; UserError without the package."""
    data = read_private(path)
    try:
        return Signer(load_private(data))
    except ImportError:
        raise not_installed("audit.sign_key", "cryptography", EXTRA) from None
    except ValueError as problem:
        raise OSError(errno.EINVAL, str(problem), path) from None


def read_public_keys(path: str) -> Mapping[str, bytes]:
    """The public keys in a file, by their names. Raises UserError if it has none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            data = file.read(_LONGEST_PUBLIC)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", file_hint(path, error)) from None
    keys = {name_of(public): public for public in _public_keys(data)}
    if not keys:
        what = "is a private key" if b"PRIVATE KEY" in data else "has no public Ed25519 key"
        hint = "name the file with the public key: ssh-keygen -y -f PRIVATE >KEY.pub, or openssl pkey -pubout"
        raise UserError(f"{path}: {what}", hint)
    return keys


def _public_keys(data: bytes) -> Iterator[bytes]:
    if b"PRIVATE KEY" in data:
        return
    # a key in a comment is one that somebody has taken out
    data = b"\n".join(line for line in data.splitlines() if not line.lstrip().startswith(b"#"))
    for found in _PEM.finditer(data):
        der = _decoded(found[1])
        if der.startswith(_DER_BEGIN) and len(der) == len(_DER_BEGIN) + _KEY_BYTES:
            yield der[len(_DER_BEGIN) :]
    for found in _SSH_LINE.finditer(data):
        blob = _decoded(found[1])
        if PublicKey(blob[-_KEY_BYTES:]).blob == blob:
            yield blob[-_KEY_BYTES:]


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(text.split()), validate=True)
    except binascii.Error:
        return b""


def verifies(public: bytes, signature: bytes, text: bytes) -> bool:
    """Whether the owner of this key has signed the text. Raises UserError if the package is missing."""
    try:
        return PublicKey(public).verifies(signature, text)
    except ImportError:
        raise not_installed("verifying a signature", "cryptography", EXTRA) from None
