"""What a pack is: `pack.toml`, its signature, and whether files are those of it. Pure.

- `pack.toml` has a name, a version, what the hooks need, and in `[files]` the hash of each other file: no file can be
  added, left out or changed without another `pack.toml`.
- `pack.toml.sig` is its signature for the purpose `hookproxy-pack`, as `ssh-keygen -Y sign -n hookproxy-pack` makes it.
- Versions are numbers with points between them. Whoever delivers packs can withhold a new one, and cannot bring back
  an old one: `check_successor`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from ..archives import archive, names
from ..archives.listed import ListedFile, Refused, check_files
from ..model.errors import printable
from ..model.toml import NotToml, parse_toml
from ..signing import ssh_signature
from ..signing.keys import PublicKey, parse_public

MANIFEST: Final = "pack.toml"
SIGNATURE: Final = "pack.toml.sig"
CONFIG: Final = "hookproxy.toml"
"""The file with the pack's hooks and rules."""

TESTS: Final = "tests/"
"""Where its tests are."""

NAMESPACE: Final = "hookproxy-pack"
NAME: Final = r"^[a-z0-9][a-z0-9\-]{0,63}\Z"
"""A part of paths: nothing in it needs quoting, and no two differ only in their case."""

_VERSION: Final = r"^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,3}\Z"
_OWN: Final = (MANIFEST, SIGNATURE)
_NO_MANIFEST: Final = f"it has no {MANIFEST}: hookproxy pack new writes one"
_MOST_PACKAGES: Final = 200  # with all that they need themselves: an application has so many, hooks a few
_LONGEST_TEXT: Final = 500  # characters of a description: a person is to read it before the pack is installed
_HASHES: Final = r"(?: --hash=sha256:[0-9a-f]{64}){0,64}"
_PACKAGE: Final = rf"^[A-Za-z0-9](?:[A-Za-z0-9._\-]{{0,98}}[A-Za-z0-9])?==[0-9][A-Za-z0-9.!+_\-]{{0,63}}{_HASHES}\Z"
"""One version exactly, and the hashes of its files if they are known. No address, no option: pip would follow it."""

Version = Annotated[str, Meta(pattern=_VERSION)]


class Needs(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the hooks of a pack need."""

    hookproxy: Version = "0"
    """The oldest version."""
    python: Version = "3"
    """The oldest version of the interpreter of `packages`, and of the hooks that start `python3`."""
    packages: Annotated[tuple[Annotated[str, Meta(pattern=_PACKAGE)], ...], Meta(max_length=_MOST_PACKAGES)] = ()
    """Each as NAME==VERSION, with all that they need themselves: nothing else is installed."""
    programs: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+\-]{0,63}\Z")], ...], Meta(max_length=64)
    ] = ()
    """Other programs, found in PATH. They are only looked for."""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """`pack.toml`."""

    format: Literal["hookproxy-pack-1"]
    name: Annotated[str, Meta(pattern=NAME)]
    version: Version
    description: Annotated[str, Meta(max_length=_LONGEST_TEXT)]
    files: Annotated[dict[str, ListedFile], Meta(min_length=1, max_length=archive.MOST_FILES)]
    needs: Needs = Needs()


class Pack(Struct, frozen=True):
    """A pack whose files are those of its manifest."""

    manifest: Manifest
    digest: str
    """The SHA-256 of `pack.toml`, in hexadecimal: two packs are the same if theirs are."""
    files: Mapping[str, bytes]
    """All of them, with the manifest and the signature."""
    signed_by: PublicKey | None = None
    """Whose signature is right; None: it is not signed."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.name

    @property
    def version(self) -> str:
        """Its version."""
        return self.manifest.version


class InvalidManifest(Refused):
    """`pack.toml` is not TOML, or has other keys or values than a manifest."""

    def __init__(self, text: str, tables: dict[str, object], error: NotToml | msgspec.ValidationError) -> None:
        super().__init__(f"{MANIFEST} cannot be read: {printable(str(error))}")
        self.text = text
        self.tables = tables
        """What it says; empty if it is not TOML."""
        self.error = error


def number(version: str) -> tuple[int, ...]:
    """The version for comparison: 1.0 is 1."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def read(files: Mapping[str, bytes]) -> Manifest:
    """The manifest among these files, whether it is true or not. Raises Refused, InvalidManifest."""
    try:
        text = files[MANIFEST].decode()
    except KeyError:
        raise Refused(_NO_MANIFEST) from None
    except UnicodeDecodeError:
        raise Refused(f"{MANIFEST} is not UTF-8") from None
    tables: dict[str, object] = {}
    try:
        tables = parse_toml(text)
        manifest = msgspec.convert(tables, Manifest)
    except (NotToml, msgspec.ValidationError) as problem:
        raise InvalidManifest(text, tables, problem) from None
    try:
        names.check_all((*manifest.files, *_OWN))
    except names.BadName as problem:
        raise Refused(f"{MANIFEST} cannot be read: {printable(str(problem))}") from None
    if compiled := [name for name in manifest.files if "__pycache__" in name.split("/")]:
        raise Refused(f"{MANIFEST} names {compiled[0]}, which Python writes where the pack is used: leave it out")
    if hidden := [name for name in manifest.files if any(part.startswith(".") for part in name.split("/"))]:
        raise Refused(f"{MANIFEST} names {hidden[0]}, which begins with a dot: nobody would see it")
    if CONFIG not in manifest.files:
        raise Refused(f"{MANIFEST} names no {CONFIG}")
    return manifest


def verify(files: Mapping[str, bytes], keys: Sequence[PublicKey] | None) -> Pack:
    """The pack of these files, if they are those of its manifest and nothing else is there. Raises Refused.

    With `keys`, one of them must have signed it. With None nobody has said whose signature counts: then it need not be
    signed, but a signature that is there must be right. Raises ModuleNotFoundError if there is nothing that can verify.
    """
    if MANIFEST not in files:
        raise Refused(_NO_MANIFEST)
    signed_by = _signer(files, keys)  # first of all: nothing else of it is read before
    manifest = read(files)
    _check_files(manifest, files)
    return Pack(manifest, hashlib.sha256(files[MANIFEST]).hexdigest(), dict(files), signed_by)


def _signer(files: Mapping[str, bytes], keys: Sequence[PublicKey] | None) -> PublicKey | None:
    signature = files.get(SIGNATURE)
    if signature is None:
        if keys is not None:
            raise Refused("it is not signed, and [packs] keys says who must have signed it")
        return None
    try:
        known = ssh_signature.named_keys(signature) if keys is None else keys
        return ssh_signature.verify(signature, NAMESPACE, files[MANIFEST], known)
    except ssh_signature.BadSignature as problem:
        raise Refused(f"{MANIFEST} {problem}") from None


def _check_files(manifest: Manifest, files: Mapping[str, bytes]) -> None:
    try:
        names.check_all(files)
    except names.BadName as problem:
        raise Refused(str(problem)) from None
    check_files(manifest.files, files, _OWN, MANIFEST)


class Memory(Struct, frozen=True):
    """What must be remembered of a pack that was installed."""

    version: str
    """The highest version that was."""
    digest: str
    """Of the one with that version."""
    signed_by: str = ""
    """The line of the key that has signed it; empty: nobody has."""


def check_successor(pack: Pack, memory: Memory, keys: Iterable[PublicKey] | None) -> bool:
    """Whether the pack is newer than what was installed; False: it is the same one. Raises Refused.

    Where no keys are configured, the key of the first version is the one that counts: another one, or none, is refused.
    """
    if pack.digest == memory.digest:
        return False
    if number(pack.version) < number(memory.version):
        raise Refused(f"version {pack.version} is older than version {memory.version}, which was installed before")
    if number(pack.version) == number(memory.version):
        raise Refused(f"version {pack.version} was installed before with another content: a change needs a new version")
    if keys is None and memory.signed_by:
        if pack.signed_by is None:
            raise Refused("it is not signed, and the installed version is")
        if pack.signed_by.blob != parse_public(memory.signed_by).blob:
            raise Refused(f"it is signed by another key than the installed version: {pack.signed_by.fingerprint}")
    return True
