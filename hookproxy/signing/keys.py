"""Ed25519 keys: public ones as OpenSSH writes them, `ssh-ed25519 AAAA… comment`; private ones of OpenSSH or as PKCS #8.

Only Ed25519: one algorithm has nothing to be chosen by whoever sends a signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..model.errors import UserError, not_installed, printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM: Final = "ssh-ed25519"
"""The only type of key, as OpenSSH names it."""

_KEY_BYTES: Final = 32  # of a public key: RFC 8032
EXTRA: Final = "gateway"
"""The extra of hookproxy that brings `cryptography`."""

HAS_PASSPHRASE: Final = "has a passphrase"
"""The beginning of what is wrong with such a key."""


class PublicKey(Struct, frozen=True):
    """A key that verifies. Two are the same if their bytes are, whatever their comments say."""

    raw: bytes
    comment: str = ""

    @property
    def blob(self) -> bytes:
        """The key in SSH's own form."""
        return ssh_string(ALGORITHM.encode()) + ssh_string(self.raw)

    @property
    def line(self) -> str:
        """The line that `ssh-keygen` writes into a `.pub` file."""
        return " ".join(filter(None, (ALGORITHM, base64.b64encode(self.blob).decode(), self.comment)))

    @property
    def fingerprint(self) -> str:
        """What `ssh-keygen -l` shows: `SHA256:…`."""
        return f"SHA256:{base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip('=')}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether this is the key's Ed25519 signature of the message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class PrivateKey:
    """A key that signs."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public: Final = PublicKey(key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The Ed25519 signature of the message: 64 bytes."""
        return self._key.sign(message)


def ssh_string(data: bytes) -> bytes:
    """The bytes as SSH writes a string: their number before them (RFC 4251)."""
    return len(data).to_bytes(4, "big") + data


def parse_public(text: str) -> PublicKey:
    """The key of one line of a `.pub` file. Raises ValueError that says what is wrong, as the end of a sentence."""
    words = text.split(maxsplit=2)
    if len(words) < 2:
        raise ValueError("is not a public key as ssh-keygen writes it: ssh-ed25519 AAAA…")
    if words[0].startswith("-----BEGIN") and "PRIVATE" in text:
        raise ValueError("begins a private key, which nobody else should have: name the public one, of FILE.pub")
    if words[0] != ALGORITHM:
        raise ValueError(f"has the type {printable(words[0][:40])}; only {ALGORITHM} can be used")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is cut off, or not base64 after ssh-ed25519") from None
    head = ssh_string(ALGORITHM.encode()) + _KEY_BYTES.to_bytes(4, "big")
    if not blob.startswith(head) or len(blob) != len(head) + _KEY_BYTES:
        raise ValueError("is cut off, or of another type than its first word says")
    return PublicKey(blob[len(head) :], words[2].strip() if len(words) > 2 else "")


def parse_public_file(text: str) -> Iterator[PublicKey]:
    """The keys of a `.pub` file: one in each line that is neither empty nor a comment. Raises ValueError."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                yield parse_public(line)
            except ValueError as problem:
                raise ValueError(f"line {number} {problem}") from None


def load_private(data: bytes) -> PrivateKey:
    """The private key of a file's content: OpenSSH's form, or PKCS #8 as PEM, without a passphrase.

    Raises ValueError that says what is wrong, as the end of a sentence, and ModuleNotFoundError.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if b"PRIVATE KEY" not in data:
        is_public = b"PUBLIC KEY" in data or data.startswith(b"ssh-")
        what = "is a public key: name the private one, which has no .pub at its end"
        raise ValueError(what if is_public else "is not a private key in PEM or OpenSSH's form")
    load = serialization.load_ssh_private_key if b"BEGIN OPENSSH" in data else serialization.load_pem_private_key
    try:
        key: object = load(data, None)
    except TypeError:  # of both, where a password is needed
        raise ValueError(f"{HAS_PASSPHRASE}, and nobody is there to type it") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("is not a private key that can be read") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("is a key of another type than Ed25519")
    return PrivateKey(key)


def parse_private(data: bytes, where: str) -> PrivateKey:
    """As `load_private`. Raises UserError; `where` names the file in it."""
    try:
        return load_private(data)
    except ModuleNotFoundError:
        raise not_installed("signing", "cryptography", EXTRA) from None
    except ValueError as problem:
        hint = "make one: ssh-keygen -t ed25519 -N '' -f FILE"
        if str(problem).startswith(HAS_PASSPHRASE):
            hint = "ssh-keygen -Y sign uses such a key, also through ssh-agent; or name one without a passphrase"
        raise UserError(f"{where}: {problem}", hint) from None
