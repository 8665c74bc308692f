"""Keys, and bundles of policies that are signed with them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hookproxy.archives import archive
from hookproxy.bundles import make, manifest
from hookproxy.model.policy_source import PolicySource
from hookproxy.signing.keys import PrivateKey

POLICY = b'[permissions]\ndeny = ["drop_*"]\n'
DAY = 86400.0


def new_key() -> PrivateKey:
    return PrivateKey(Ed25519PrivateKey.generate())


def bundle(  # one value for each member of a manifest
    key: PrivateKey,
    version: int = 1,
    *,
    files: Mapping[str, bytes] | None = None,
    rings: Sequence[str] = ("stable",),
    seconds: float = DAY,
    executable: frozenset[str] = frozenset(),
) -> dict[str, bytes]:
    """The files of a signed bundle; those of `keys/` among `files` are not in its manifest."""
    of_policy = {"policy.toml": POLICY, **(files or {})}
    expires = manifest.formatted_time(time.time() + seconds)
    return {**of_policy, **make.signed(make.made_manifest(of_policy, executable, version, expires, rings), key)}


def packed(files: Mapping[str, bytes]) -> bytes:
    return archive.write(files)


def source(folder: str, url: str, *keys: PrivateKey, ring: str = "stable", min_version: int = 1) -> PolicySource:
    lines = tuple(key.public.line for key in keys)
    return PolicySource(url, lines, ring, min_version, 300.0, "deny", "deny", folder, place="gateway.toml: policy")
