"""Where bundles come from: an address over https, a repository of an OCI registry, or a branch of a git repository.

Nothing that comes from there is believed: `manifest` decides about it. What is decided here is only whom is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from ..model.errors import UserError, printable
from ..network import address

HINT: Final = (
    'write "https://HOST/PATH.tar.gz", "oci://HOST/NAME" or "git+https://HOST/PATH"; {ring} in it stands for the ring'
)

_RING: Final = "{ring}"
_SCP: Final = re.compile(r"([A-Za-z0-9_.\-]+@[A-Za-z0-9.\-]+):(?!/)([^\s]+)")  # git@host:path
_REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*(/[A-Za-z0-9][A-Za-z0-9_.\-]*)*")
_REPOSITORY: Final = re.compile(r"[a-z0-9]+([._\-]+[a-z0-9]+)*(/[a-z0-9]+([._\-]+[a-z0-9]+)*)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}|sha256:[0-9a-f]{64}")
_GIT: Final = ("git+https", "git+http", "git+ssh", "git+file", "ssh")


class Source(Struct, frozen=True):
    """A source whose address is right, for one ring."""

    kind: Literal["https", "oci", "git"]
    url: str
    """Of the bundle; of the registry, as https://HOST; or of the git repository, as git takes it."""
    name: str = ""
    """The repository in the registry."""
    reference: str = ""
    """The tag or digest, or the branch as refs/heads/BRANCH."""

    @property
    def shown(self) -> str:
        """For people."""
        match self.kind:
            case "oci":
                return f"oci://{self.url.partition('://')[2]}/{self.name}:{self.reference}"
            case "git":
                return f"{self.url} {self.reference.removeprefix('refs/heads/')}"
            case _:
                return self.url


class Fetched(Struct, frozen=True):
    """What a source has now."""

    files: Mapping[str, bytes] | None
    """None: it is what was fetched last, as its mark says."""
    mark: str = ""
    """Differs when something else is there: an ETag, a digest, a commit. Empty: the source has none."""


class NotFetched(Exception):
    """Nothing usable has come from the source; the text is a sentence without a full stop."""


def parse(text: str, ring: str) -> Source:
    """The source at this address. Raises UserError, whose message begins with the address."""
    if match := _SCP.fullmatch(text):
        text = f"git+ssh://{match[1]}/{match[2]}"
    text = text.replace(_RING, ring)
    scheme = text.partition("://")[0]
    try:
        parts = urlsplit(text)
        if scheme in _GIT or (scheme in ("https", "http") and parts.path.endswith(".git")):
            return _git(text, ring)
        if scheme == "oci":
            return _oci(text, ring)
        if scheme in ("https", "http"):
            if parts.fragment:
                raise UserError(f"{printable(text)} has a fragment", HINT)
            _check_address(text)
            return Source("https", text)
    except ValueError as problem:
        raise UserError(f"{printable(text)} is not an address: {problem}", HINT) from None
    raise UserError(f"{printable(text)} is not the address of a policy", HINT)


def _check_address(url: str) -> address.Address:
    try:
        return address.parse(url)
    except UserError as problem:
        hint = HINT
        if "contains credentials" in problem.message:
            hint = 'put them into a file that only the gateway can read, and write credential = "file:…"'
        elif "unencrypted" in problem.message:
            hint = "use https; http is for this machine only"
        raise UserError(problem.message.removeprefix("--url "), hint) from None


def _oci(text: str, ring: str) -> Source:
    host, _, rest = text.removeprefix("oci://").partition("/")
    name, at, tag = rest.partition("@") if "@" in rest else rest.partition(":")
    place = _check_address(f"https://{host}/")
    if not _REPOSITORY.fullmatch(name):
        raise UserError(f"{printable(text)} names no repository of a registry", 'write "oci://HOST/NAME"')
    reference = tag if at else ring
    if not _TAG.fullmatch(reference):
        raise UserError(f"{printable(text)} has no tag that a registry takes", 'write "oci://HOST/NAME:TAG"')
    scheme = "http" if address.is_loopback(place.host) else "https"  # as docker reaches a registry on this machine
    return Source("oci", f"{scheme}://{host}", name, reference)


def _git(text: str, ring: str) -> Source:
    url, _, reference = text.removeprefix("git+").partition("#")
    parts = urlsplit(url)
    if parts.scheme in ("https", "http"):
        _check_address(url)
    elif parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise UserError(f"{printable(text)} is not an absolute path", "write git+file:///PATH")
    elif not parts.hostname or parts.hostname.startswith("-") or (parts.username or "").startswith("-"):
        raise UserError(f"{printable(text)} names no host", "write git+ssh://git@HOST/PATH")
    reference = reference or ring
    if not _REF.fullmatch(reference) or ".." in reference or reference.endswith((".lock", ".")):
        raise UserError(f"{printable(text)}: {printable(reference)} is not a branch", "write …#BRANCH")
    if any(char <= " " or char == "\x7f" for char in url):
        raise UserError(f"{printable(text)} contains a blank or a control character", "encode it, as in %20")
    return Source("git", url, "", reference if reference.startswith("refs/") else f"refs/heads/{reference}")
