"""Where a signed policy comes from, and what is known of the one in force: the table `[policy]` as a value."""

from __future__ import annotations

from msgspec import Struct


class PolicySource(Struct, frozen=True):
    """The table `[policy]` of an administrator's file."""

    source: str
    """The address, in which `{ring}` is still to be replaced."""
    keys: tuple[str, ...]
    """The public keys, each as a line of OpenSSH."""
    ring: str
    min_version: int
    refresh_seconds: float
    on_missing: str
    """`deny` or `allow`."""
    on_expired: str
    """`deny` or `keep`."""
    folder: str
    """The absolute path of the folder of bundles that were taken."""
    ca: str = ""
    credential: str = ""
    """The absolute path of the file with what the source asks for."""
    place: str = ""
    """The file and the key, for errors."""


class PolicyBundle(Struct, frozen=True):
    """The bundle in force, as metrics and the audit name it."""

    version: int
    ring: str
    digest: str
    """The SHA-256 of its manifest, in hexadecimal."""
    expires: float
    """In seconds since 1970."""
    use: object = None
    """Keeps its folder for as long as somebody has this: hooks of it may still be started."""

    @property
    def shown(self) -> str:
        """For people."""
        return f"version {self.version} of {self.ring}"
