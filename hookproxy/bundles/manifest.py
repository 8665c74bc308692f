"""What is signed of a bundle, and whether a bundle may be taken. Pure: its files are bytes here.

- `manifest.json` has the version, until when it counts, for which rings, and the hash of each other file: files of two
  versions cannot be mixed. `manifest.json.sig` is its signature, for the purpose `hookproxy-policy`.
- `keys/1.json`, `keys/2.json` … each name the keys that count from then on, and are signed by one of the keys before,
  for the purpose `hookproxy-keys`. The first ones are signed by the administrator's. A statement that none of the keys
  in force has signed is skipped: the administrator's file may already have newer keys. (As the roots of TUF.)
- A version never goes down, two bundles never have the same one, and statements of keys that were taken stay
  (`Memory`): whoever delivers bundles can withhold new ones until the last one expires, and can do nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from ..archives import archive, names
from ..archives.listed import ListedFile, Refused, check_files
from ..model.errors import printable
from ..signing import ssh_signature
from ..signing.keys import PublicKey, parse_public

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.json.sig"
POLICY: Final = "policy.toml"
"""The file with the keys of hookproxy.toml."""

NAMESPACE: Final = "hookproxy-policy"
KEYS_NAMESPACE: Final = "hookproxy-keys"
RING: Final = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z"
"""A ring is a part of addresses, tags and branches: nothing in it needs quoting."""

MOST_KEYS: Final = 64
"""In force at a time, and statements of keys in a bundle: a rotation every month for five years."""

_STATEMENT: Final = re.compile(r"keys/([1-9][0-9]{0,3})\.json")
_OF_SIGNER: Final = re.compile(rf"manifest\.json(\.sig)?|{_STATEMENT.pattern}(\.sig)?")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """`manifest.json`."""

    format: Literal["hookproxy-policy-1"]
    version: Annotated[int, Meta(ge=1, le=2**53)]
    expires: str
    """In UTC, as 2027-01-31T00:00:00Z."""
    rings: Annotated[tuple[Annotated[str, Meta(pattern=RING)], ...], Meta(min_length=1, max_length=64)]
    files: Annotated[dict[str, ListedFile], Meta(min_length=1, max_length=archive.MOST_FILES)]

    @property
    def expires_at(self) -> float:
        """In seconds since 1970. Raises ValueError."""
        return datetime.strptime(self.expires, _TIME).replace(tzinfo=UTC).timestamp()


class KeyStatement(Struct, frozen=True, forbid_unknown_fields=True):
    """`keys/N.json`."""

    format: Literal["hookproxy-keys-1"]
    number: Annotated[int, Meta(ge=1, le=9999)]
    keys: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_KEYS)]


class Verified(Struct, frozen=True):
    """A bundle whose signature and hashes are right."""

    manifest: Manifest
    digest: str
    """The SHA-256 of the manifest, in hexadecimal."""
    signed_by: PublicKey
    keys_chain: tuple[str, ...] = ()
    """The SHA-256 of each statement of keys that counts, in their order; none: the administrator's keys count."""
    key_since: int = 0
    """After how many of these statements the key that has signed it counted for the first time."""


def formatted_time(seconds: float) -> str:
    """The time as a manifest has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime(_TIME)


def verify(files: Mapping[str, bytes], keys: Sequence[PublicKey]) -> Verified:
    """Check the signature of a bundle and the hashes of all its files. Raises Refused."""
    try:
        text, signature = files[MANIFEST], files[SIGNATURE]
    except KeyError as missing:
        raise Refused(f"it has no {missing.args[0]}") from None
    all_keys, chain = _keys_in_force(files, keys)
    try:
        signed_by = ssh_signature.verify(signature, NAMESPACE, text, all_keys[-1])
    except ssh_signature.BadSignature as problem:
        raise Refused(f"{MANIFEST} {problem}") from None
    manifest = _parsed(text)
    check_files(manifest.files, files, filter(is_of_signer, files), MANIFEST)
    since = next(number for number, then in enumerate(all_keys) if signed_by.raw in {key.raw for key in then})
    return Verified(manifest, hashlib.sha256(text).hexdigest(), signed_by, chain, since)


def _parsed(text: bytes) -> Manifest:
    """The manifest, whose signature is right. Raises Refused."""
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
        names.check_all(manifest.files)
        _ = manifest.expires_at
    except (ValueError, RecursionError) as problem:
        raise Refused(f"{MANIFEST} cannot be read: {printable(str(problem))}") from None
    if POLICY not in manifest.files:
        raise Refused(f"{MANIFEST} names no {POLICY}")
    if own := [name for name in manifest.files if is_of_signer(name) or name.startswith("keys/")]:
        raise Refused(f"{MANIFEST} names {own[0]}, which is not a file of the policy")
    if compiled := [name for name in manifest.files if "__pycache__" in name.split("/")]:
        raise Refused(f"{MANIFEST} names {compiled[0]}, which Python writes where the policy is used: leave it out")
    return manifest


def is_of_signer(name: str) -> bool:
    """Whether the file is not one of the policy, but says who has signed it."""
    return _OF_SIGNER.fullmatch(name) is not None


def _keys_in_force(
    files: Mapping[str, bytes], keys: Sequence[PublicKey]
) -> tuple[Sequence[Sequence[PublicKey]], tuple[str, ...]]:
    """The keys that count at first and after each statement, and the hashes of those that count. Raises Refused."""
    chain: list[str] = []
    all_keys = [keys]
    numbers = sorted(int(match[1]) for name in files if (match := _STATEMENT.fullmatch(name)))
    if len(numbers) > MOST_KEYS:
        raise Refused(f"it has more than {MOST_KEYS} statements of keys")
    for number in numbers:
        name = f"keys/{number}.json"
        try:
            ssh_signature.verify(files.get(f"{name}.sig", b""), KEYS_NAMESPACE, files[name], keys)
        except ssh_signature.BadSignature:
            continue
        try:
            statement = msgspec.json.decode(files[name], type=KeyStatement)
            if statement.number != number:
                raise ValueError(f"it is number {statement.number}")
            keys = [parse_public(line) for line in statement.keys]
            all_keys.append(keys)
        except (ValueError, RecursionError) as problem:
            raise Refused(f"{name} cannot be read: {printable(str(problem))}") from None
        chain.append(hashlib.sha256(files[name]).hexdigest())
    return all_keys, tuple(chain)


# --- whether it may be taken ---


class Memory(Struct, frozen=True):
    """What must be remembered of the bundles that were taken."""

    version: int = 0
    """The highest version that was taken in this ring."""
    digest: str = ""
    """Of the bundle with that version."""
    keys_chain: tuple[str, ...] = ()
    """The longest `Verified.keys_chain` under the administrator's present keys."""
    version_chain: int = 0
    """How many statements there were when that version was taken."""


def check_usable(verified: Verified, ring: str, min_version: int, now: float) -> None:
    """Raise Refused if the bundle must not be in force now, whether it is new or not."""
    manifest = verified.manifest
    if ring not in manifest.rings:
        raise Refused(f"version {manifest.version} is for the ring {', '.join(manifest.rings)}, and not for {ring}")
    if manifest.version < min_version:
        raise Refused(f"version {manifest.version} is lower than min_version, {min_version}")
    if now >= manifest.expires_at:
        raise Refused(f"version {manifest.version} has expired at {manifest.expires}")


def is_newer(verified: Verified, memory: Memory) -> bool:
    """Whether the bundle is to be taken; False: it is the newest one that is known. Raises Refused for an older one.

    Versions begin anew with a key that counts only since the highest one was taken: who had an earlier key may have
    published the highest version that there is, and the new key has signed nothing that could be put back.
    """
    version = verified.manifest.version
    if verified.keys_chain[: len(memory.keys_chain)] != memory.keys_chain:
        raise Refused("it lacks a statement of keys that was taken before: a key that was dropped may have signed it")
    if verified.key_since > memory.version_chain:
        return True
    if version < memory.version:
        raise Refused(f"version {version} is older than version {memory.version}, which was taken before")
    if version == memory.version and memory.digest and verified.digest != memory.digest:
        raise Refused(
            f"version {version} was taken before with another content: a changed policy needs a higher version"
        )
    return version > memory.version


def keys_digest(keys: Iterable[PublicKey]) -> str:
    """The same for the same keys, in any order and with any comments."""
    return hashlib.sha256(b"".join(sorted(key.raw for key in keys))).hexdigest()
