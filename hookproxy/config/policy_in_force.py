"""The signed policy that was taken last, as layers of the administrator's: verified anew each time that it is read.

What was verified is what is used: the files that the configuration names are those in memory, and no others. The
scripts that hooks start lie where nobody but the owner of the folder can change them, which is checked, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..archives.listed import Refused
from ..bundles import manifest
from ..bundles.store import Store, verified_bundle
from ..bundles.update import keys_of, without_cryptography
from ..files.folder_use import FolderUse
from ..model.errors import ConfigError
from ..model.policy_source import PolicyBundle, PolicySource
from ..trust.managed_files import check_programs, environment, read_root_owned
from ..trust.sources import FileContext, FileReader, FileSnapshot, Layer
from .gateway_models import UserRules

MANAGED_STATE: Final = "/var/lib/hookproxy-policy"
"""The folder of policies that the administrator's file names, which root fills."""

_UPDATE_HINT: Final = "the administrator fetches it with: hookproxy policy update"


Rules = tuple[tuple[UserRules, Mapping[str, str]], ...]
"""Permission rules for some people only, each table with the places of its rules."""


class PolicyContent(Struct, frozen=True):
    """What a policy says, or one of its tables for a server."""

    layer: Layer
    rules: Rules = ()
    servers: Mapping[str, PolicyContent] = {}
    people: tuple[tuple[str, str], ...] = ()
    """Who is named in it, as `GatewayConfig.people`."""


class InForce(Struct, frozen=True):
    """The policy that is in force."""

    layers: tuple[Layer, ...] = ()
    bundle: PolicyBundle | None = None
    """None: there is none."""
    closed: str = ""
    """Why nothing may pass; empty: there is a policy, or none is needed."""
    notes: tuple[str, ...] = ()
    manifest: FileSnapshot | None = None
    """It stands for all files of the policy."""
    manifest_path: str = ""
    rules: Rules = ()
    people: tuple[tuple[str, str], ...] = ()
    servers: Mapping[str, PolicyContent] = {}

    def for_server(self, name: str) -> InForce:
        """With what the policy says about this server."""
        content = self.servers.get(name)
        if content is None:
            return self
        return replace(self, layers=(*self.layers, content.layer), rules=(*self.rules, *content.rules))

    def checked(self, check: Callable[[Layer], Layer]) -> InForce:
        """With layers that were checked. Raises ConfigError."""
        servers = {name: replace(content, layer=check(content.layer)) for name, content in self.servers.items()}
        return replace(self, layers=tuple(map(check, self.layers)), servers=servers)


ReadContent = Callable[[str, FileContext], PolicyContent]
"""Reads a policy.toml."""


class Reading(Struct, frozen=True):
    """How the files of a policy are read."""

    file: FileReader
    """Accepts only files that nobody else can change."""
    content: ReadContent
    environ: Mapping[str, str]


def with_bundle(
    managed: Sequence[Layer], bundle: InForce | None, reading: Reading, candidate: str = ""
) -> tuple[Sequence[Layer], InForce | None]:
    """The administrator's layers with that of the policy that one of them names. Raises ConfigError."""
    named = [layer.policy for layer in managed if layer.policy is not None]
    if len(named) > 1:
        raise ConfigError(named[1].place, f"{named[0].place} names a policy, too", "remove one of both")
    policy = with_folder(named[0], MANAGED_STATE)
    found = in_force(policy, reading, candidate)
    if found.closed:
        raise ConfigError(policy.place, found.closed, _UPDATE_HINT)
    layers = found.checked(lambda layer: check_programs(layer, reading.environ)).layers
    others = bundle.layers if bundle is not None else ()
    return (*managed, *layers, *others), bundle if bundle is not None and bundle.bundle is not None else found


def with_folder(policy: PolicySource, folder: str) -> PolicySource:
    """The source with the folder that it has if the file names none."""
    return policy if policy.folder else replace(policy, folder=folder)


def root_owned(content: ReadContent, environ: Mapping[str, str]) -> Reading:
    """Of a policy that the administrator's files name."""
    return Reading(read_root_owned, content, environment(environ, real_home=True))


def in_force(policy: PolicySource, reading: Reading, candidate: str = "") -> InForce:
    """The policy in force; or the one in the folder `candidate`, as if it were. Raises ConfigError."""
    folder = candidate
    try:
        if not candidate:
            store = Store(policy.folder)
            current = store.state(lambda path: reading.file(path).data).current
            if current is None or current.ring != policy.ring:
                return _missing(policy, "no policy was fetched yet")
            folder = store.path_of(current.digest)
        found = _read(policy, folder, reading)
        if candidate and found.bundle is None:  # whatever holds without a policy: this one is not to be taken
            raise ConfigError(folder, found.closed or " ".join(found.notes), "repair it, and publish the policy anew")
        return found
    except FileNotFoundError:
        return _missing(policy, "the policy that was taken last is not there any more")
    except OSError as error:
        raise ConfigError(folder or policy.folder, f"cannot be read: {error.strerror}", _UPDATE_HINT) from None
    except ModuleNotFoundError as missing:
        raise without_cryptography(missing) from None


def _missing(policy: PolicySource, why: str) -> InForce:
    why = f"{why} from {policy.source} for the ring {policy.ring}"
    if policy.on_missing == "deny":
        return InForce(closed=why)
    return InForce(notes=(f"{policy.place}: {why}: only the local configuration is in force (on_missing)",))


def _read(policy: PolicySource, folder: str, reading: Reading) -> InForce:
    snapshots: dict[str, FileSnapshot] = {}

    def read_and_keep(path: str) -> bytes:
        snapshots[path] = reading.file(path)
        return snapshots[path].data

    try:
        verified, _ = verified_bundle(folder, read_and_keep, keys_of(policy))
    except Refused as problem:
        return _missing(policy, f"the policy that was taken last cannot be used: {problem}: there is none")
    try:
        manifest.check_usable(verified, policy.ring, policy.min_version, 0.0)
    except Refused as problem:
        return _missing(policy, f"the policy that was taken last cannot be used: {problem}: there is none")
    version, expires = verified.manifest.version, verified.manifest.expires
    notes: tuple[str, ...] = ()
    if time.time() >= verified.manifest.expires_at:
        if policy.on_expired == "deny":
            return InForce(closed=f"the policy, version {version} of {policy.ring}, has expired at {expires}")
        notes = (f"{policy.place}: version {version} of {policy.ring} has expired at {expires} (on_expired)",)
    content = _content(folder, snapshots, reading)
    bundle = PolicyBundle(version, policy.ring, verified.digest, verified.manifest.expires_at, FolderUse(folder))
    layers, path = (content.layer,), os.path.join(folder, manifest.MANIFEST)
    return InForce(layers, bundle, "", notes, snapshots[path], path, content.rules, content.people, content.servers)


def _content(folder: str, snapshots: Mapping[str, FileSnapshot], reading: Reading) -> PolicyContent:
    """The policy's own configuration. Raises ConfigError."""

    def read_verified(path: str) -> FileSnapshot:
        if path not in snapshots:
            raise ConfigError(path, "is not a file of the policy", "put it into the policy's folder, and sign it anew")
        return snapshots[path]

    file_context = FileContext(reading.environ, folder, read_verified, managed=True)
    content = reading.content(os.path.join(folder, manifest.POLICY), file_context)
    if content.layer.policy is not None:
        raise ConfigError(content.layer.policy.place, "a policy cannot name another one", "remove the table [policy]")
    return content
