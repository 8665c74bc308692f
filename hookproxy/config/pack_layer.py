"""Adds what packs say to a user's layer. Imported only where one is used.

A pack only narrows: it has hooks, permission rules and limits, and nothing else. Its hooks run before the user's own
ones, which judge what it has rewritten; and the administrator's come last, as always. Its rules are a
layer of their own that a call must pass as well: among the user's they could open a default. Its files are verified
at each start, and where keys are configured, its signature as well; while it runs, they are held by the same
hashes (`Layer.pinned`), so that what runs is what was verified.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.errors import ConfigError
from ..model.pack_settings import NamedPacks
from ..model.settings import Settings
from ..packs import environment, manifest
from ..packs.store import ENVIRONMENTS, Store
from ..signing.keys import PublicKey, parse_public
from ..trust.scripts import NO_PYCACHE
from ..trust.sources import FileContext, Layer, data_folder
from .models import ConfigFile
from .parse import read_tables, validated

ReadLayer: TypeAlias = Callable[[str, FileContext], Layer]
"""Reads a hookproxy.toml, as `load.read_layer`."""

FOLDER: Final = "packs"
"""Its name in the user's data folder."""

_ALLOWED: Final[Mapping[str, frozenset[str] | None]] = {
    "hooks": None,
    "use": None,
    "limits": None,
    "permissions": frozenset({"deny", "ask", "allow", "default"}),
}
"""What a pack may say: the tables, and the keys in them; None: all, but for `_check_hooks` and `_check_use`."""

_ONLY: Final = "a pack has hooks, permission rules and limits, and only narrows what is allowed"
_LEAVE_OUT: Final = "leave it out of the pack: whoever uses it writes it into hookproxy.toml"


def store(file_context: FileContext) -> Store:
    """The user's packs. Raises UserError if there is no folder for them."""
    return Store(os.path.join(data_folder(file_context.environ, file_context.home), FOLDER))


def keys_in_force(user: NamedPacks | None, managed: Sequence[NamedPacks]) -> list[PublicKey] | None:
    """Whose signatures count: the administrator's keys, or else the user's; None: nobody has said."""
    lines = [line for packs in managed for line in packs.keys or ()]
    if not lines and user is not None and user.keys is not None:
        lines = list(user.keys)
    return [parse_public(line) for line in lines] or None


def with_packs(user: Layer, managed: Sequence[NamedPacks], file_context: FileContext, read_layer: ReadLayer) -> Layer:
    """The user's layer with the packs that it uses. Raises ConfigError, UserError."""
    assert user.packs is not None, "the caller looks"
    keys, packs = keys_in_force(user.packs, managed), store(file_context)
    for name in reversed(user.packs.use):  # each is put in front
        folder, needed = file_context.pack_folders.get(name, ("", ""))
        of_pack, pinned = file_context, {}
        if folder:  # its files are not trusted yet
            of_pack = replace(file_context, files_read={})
        else:
            state = packs.installed(name)
            if state is None:
                hint = f"install it: hookproxy init --from PACK --install; or remove it from {user.packs.place}.use"
                raise ConfigError(user.packs.place, f"there is no pack {name}", hint)
            verified = packs.pack(name, state.version, state.digest, keys)
            folder = packs.files(name, state.version, state.digest)
            pinned = {os.path.join(folder, path): sha256(text).hexdigest() for path, text in verified.files.items()}
            needed = packs.place(name, ENVIRONMENTS, state.environment) if state.environment else ""
        user = _added(user, name, read_pack(folder, needed, of_pack, read_layer))
        _check_read(of_pack, pinned)
        user = replace(user, pinned={**user.pinned, **({folder: pinned} if pinned else {})})
    return user


def _check_read(file_context: FileContext, pinned: Mapping[str, str]) -> None:
    """Raise ConfigError if what was read of a pack is not what was verified, because it was replaced meanwhile."""
    for path, snapshot in file_context.files_read.items():
        if path in pinned and sha256(snapshot.data).hexdigest() != pinned[path]:
            raise ConfigError(
                path, "was changed while it was read", "try again; if it is so again, install the pack again"
            )


def read_pack(folder: str, needed: str, file_context: FileContext, read_layer: ReadLayer) -> Layer:
    """What the pack in a folder says. Raises ConfigError, UserError.

    `needed` is the environment in which its programs run; empty: it needs none.
    """
    path = os.path.join(folder, manifest.CONFIG)
    text = file_context.text(path)
    tables = read_tables(path, text)
    validated(path, text, tables, ConfigFile)  # first of all: a key that is only misspelt is told as such
    _check_tables(path, tables)
    layer = read_layer(path, file_context)
    layer = replace(layer, groups=tuple(map(_only_narrowing, layer.groups)))
    if not needed:
        return layer
    if not environment.is_made(needed):
        hint = "install the pack again: hookproxy init --from PACK --install"
        raise ConfigError(needed, "the environment of the pack is not there", hint)
    return replace(layer, groups=tuple(_within(group, needed, file_context) for group in layer.groups))


def _check_tables(path: str, tables: Mapping[str, object]) -> None:
    """Raise ConfigError for a key that a pack must not set."""
    for key, value in tables.items():
        if key not in _ALLOWED:
            raise ConfigError(f"{path}: {key}", f"is not for a pack: {_ONLY}", _LEAVE_OUT)
        allowed = _ALLOWED[key]
        if (
            allowed is not None
            and isinstance(value, dict)
            and (others := [name for name in value if name not in allowed])
        ):
            raise ConfigError(f"{path}: {key}.{others[0]}", f"is not for a pack: {_ONLY}", _LEAVE_OUT)
    permissions = tables.get("permissions")
    if isinstance(permissions, dict) and permissions.get("default", "allow") == "allow" and permissions.get("allow"):
        why = 'allows nothing by itself, as a pack only narrows: beside default = "deny" or "ask", it says what is left'
        raise ConfigError(f"{path}: permissions.allow", why, 'add default = "deny" to [permissions], or remove allow')
    hooks = tables.get("hooks")
    if isinstance(hooks, dict):
        _check_hooks(path, hooks)
    uses = tables.get("use")
    for number, use in enumerate(uses if isinstance(uses, list) else ()):
        if isinstance(use, dict):
            _check_use(f"{path}: use[{number}]", use)


def _check_hooks(path: str, hooks: Mapping[str, object]) -> None:
    if "notifications" in hooks:
        raise ConfigError(f"{path}: hooks.notifications", f"is not for a pack: {_ONLY}", _LEAVE_OUT)
    for event, entries in hooks.items():
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                place = f"{path}: hooks.{event}[{number}]"
                _check_secrets(place, entry)
                _check_files(place, entry, ("file", "schema"))


def _check_use(place: str, use: Mapping[str, object]) -> None:
    if "permissions" in use:
        raise ConfigError(f"{place}.permissions", "is not for a pack: such rules could allow", _LEAVE_OUT)
    _check_secrets(place, use)
    _check_files(place, use, ("file", "project"))


def _check_secrets(place: str, table: Mapping[str, object]) -> None:
    if table.get("secrets") == "values":
        raise ConfigError(f"{place}.secrets", '"values" is not for a pack: its hooks see placeholders', _LEAVE_OUT)


def _check_files(place: str, table: Mapping[str, object], keys: Sequence[str]) -> None:
    """Raise ConfigError for a path that leads out of the pack."""
    for key in keys:
        value = table.get(key)
        if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in value.split("/")):
            raise ConfigError(f"{place}.{key}", f"{value} is not in the pack", "name a file that comes with it")


def _only_narrowing(group: Group) -> Group:
    """The group, whose hooks neither answer for a person nor open the default, and whose Python runs no compiled
    modules of the pack's folder, which nobody has verified. Raises ConfigError for what goes past rules or people.
    """
    for resolver in group.dialect.resolvers:
        why = "answers in the place of a person, which a pack does not do"
        raise ConfigError(resolver.source, why, _LEAVE_OUT)
    for spec in (spec for spec in group.hooks if spec.type == "mcp_tool"):
        why = f"calls the tool {spec.tool}, and no rule, hook or limit of whoever uses the pack would see that call"
        raise ConfigError(spec.source, why, "use a hook of type command or worker instead")
    hooks = (replace(spec, only_narrows=True) for spec in group.hooks)
    return replace(
        group,
        hooks=tuple(
            replace(spec, env=(("PYTHONPYCACHEPREFIX", NO_PYCACHE), *spec.env)) if spec.argv or spec.shell else spec
            for spec in hooks
        ),
    )


def _within(group: Group, folder: str, file_context: FileContext) -> Group:
    """The group, whose programs run in an environment. Raises ConfigError for what cannot."""
    variables = environment.variables(folder, file_context.environ)
    hooks = []
    for spec in group.hooks:
        if spec.type == "python":
            why = "is a Python function, and runs in hookproxy's process, which lacks the pack's packages"
            raise ConfigError(spec.source, why, 'write it as a program: argv = ["python3", "FILE"], or type = "worker"')
        env = {**variables, **dict(spec.env)}
        hooks.append(replace(spec, env=tuple(env.items())) if spec.argv or spec.shell else spec)
    return replace(group, hooks=tuple(hooks))


def _added(user: Layer, name: str, pack: Layer) -> Layer:
    """The user's layer with the pack of this name in front of it."""
    own, other = user.settings, pack.settings
    settings = replace(own, limits=other.limits + own.limits)
    if other.has_rules:
        names = ("deny", "ask", "allow", "default_permission", "rule_places")
        rules = replace(Settings(called=f"the pack {name}"), **{key: getattr(other, key) for key in names})
        settings = replace(settings, pack_rules=(rules, *own.pack_rules))
    return replace(
        user,
        settings=settings,
        set_by={**({"limits": pack.set_by["limits"]} if "limits" in pack.set_by else {}), **user.set_by},
        groups=pack.groups + user.groups,
        notes=user.notes + pack.notes,
        remarks=user.remarks + pack.remarks,
    )
