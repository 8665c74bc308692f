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
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError, file_hint, not_installed
from .key_file import read_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAKE: Final = "make one without a passphrase: ssh-keygen -t ed25519 -N '' -f {path}"
"""How to make a key; with `.format(path=…)`."""

_EXTRA: Final = "gateway"  # the extra of hookproxy with the package
_SSH_TYPE: Final = b"ssh-ed25519"
_KEY_BYTES: Final = 32
_DER_BEGIN: Final = bytes.fromhex("302a300506032b6570032100")  # of every public Ed25519 key (RFC 8410)
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----")
_SSH_LINE: Final = re.compile(rb"(?:^|\s)ssh-ed25519\s+([A-Za-z0-9+/]+=*)", re.MULTILINE)
_LONGEST_PUBLIC: Final = 65_536  # bytes of a file with public keys: a hundred of them, with comments


class Signer:
    """A private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()
        self.name = name_of(self.public)
        """As `name_of`."""

    def sign(self, text: bytes) -> bytes:
        """The signature of a text, always the same one."""
        return self._key.sign(text)


def name_of(public: bytes) -> str:
    """The name of a public key, as `ssh-keygen -l` shows it: `SHA256:…`."""
    return "SHA256:" + base64.b64encode(sha256(_ssh_blob(public)).digest()).decode().rstrip("=")


def _ssh_blob(public: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in (_SSH_TYPE, public))


def ssh_line(public: bytes) -> str:
    """The public key as a line of OpenSSH, without a comment."""
    return f"{_SSH_TYPE.decode()} {base64.b64encode(_ssh_blob(public)).decode()}"


def read_signer(path: str) -> Signer:
    """The private key in a file. Raises OSError, also if others can read it; UserError without the package."""
    data = read_private(path)
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
    except ImportError:
        raise not_installed("audit.sign_key", "cryptography", _EXTRA) from None
    if b"PRIVATE KEY" not in data:
        public = b"PUBLIC KEY" in data or data.startswith(b"ssh-")
        what = "is a public key: name the private one" if public else "is not a private key in PEM or OpenSSH's form"
        raise OSError(errno.EINVAL, what, path)
    load = load_ssh_private_key if b"BEGIN OPENSSH" in data else load_pem_private_key
    try:
        key = load(data, None)
    except TypeError:  # of both, where a password is needed
        raise OSError(errno.EINVAL, "has a passphrase, and nobody is there to type it", path) from None
    except (ValueError, UnsupportedAlgorithm):
        raise OSError(errno.EINVAL, "is not a private key that can be read", path) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise OSError(errno.EINVAL, "is a key of another type than Ed25519", path)
    return Signer(key)


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
    for found in _PEM.finditer(data):
        der = _decoded(found[1])
        if der.startswith(_DER_BEGIN) and len(der) == len(_DER_BEGIN) + _KEY_BYTES:
            yield der[len(_DER_BEGIN) :]
    for found in _SSH_LINE.finditer(data):
        blob = _decoded(found[1])
        if _ssh_blob(blob[-_KEY_BYTES:]) == blob:
            yield blob[-_KEY_BYTES:]


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(text.split()), validate=True)
    except binascii.Error:
        return b""


def verifies(public: bytes, signature: bytes, text: bytes) -> bool:
    """Whether the owner of this key has signed the text. Raises UserError if the package is missing."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise not_installed("verifying a signature", "cryptography", _EXTRA) from None
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except InvalidSignature:
        return False
    return True
