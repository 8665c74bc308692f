"""Reads a settings file of Claude Code: its hooks, the settings that limit them, and its permission rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ...model.hooks import HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared.hook_file import Table
from . import hook_file, permissions

_URLS: Final = "allowedHttpHookUrls"
_VARIABLES: Final = "httpHookAllowedEnvVars"
_LIMITS: Final = (_URLS, _VARIABLES, "permissions")


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file, and with `permissions = true` in `[[use]]` its permission rules.

    Raises ConfigError.
    """
    found = hook_file.read_hook_file(file)
    if not any(f'"{key}"' in file.text for key in _LIMITS):  # true of most files, which need not be read twice
        return found
    settings = shared_hook_file.read_json(file.path, file.text)
    return permissions.add_rules(_limited(found, settings), file, settings)


def _limited(found: HookList, settings: Table) -> HookList:
    """The hooks without HTTP hooks whose address is not allowed, and without variables that are not allowed.

    "Undefined: no restriction; an empty array: no HTTP hooks."
    """
    hooks, notes = found.hooks, list(found.notes)
    if (urls := settings.texts(_URLS)) is not None:
        patterns = [re.compile(".*".join(map(re.escape, url.split("*"))), re.DOTALL) for url in urls]
        refused = [hook for hook in hooks if hook.url and not any(pattern.fullmatch(hook.url) for pattern in patterns)]
        notes += [f"{hook.source} does not run: {_URLS} does not allow {hook.target}" for hook in refused]
        hooks = tuple(hook for hook in hooks if hook not in refused)
    if (names := settings.texts(_VARIABLES)) is not None:
        notes += [
            f"{hook.source}: {_VARIABLES} does not allow {name}, so its value is empty"
            for hook in hooks
            for name in hook.allowed_env_vars
            if name not in names
        ]
        hooks = tuple(_with_variables(hook, names) for hook in hooks)
    return replace(found, hooks=hooks, notes=tuple(notes))


def _with_variables(hook: HookSpec, names: Sequence[str]) -> HookSpec:
    """The hook with only those of its variables that are allowed. `$NAME` of another one becomes empty."""
    refused = [name for name in hook.allowed_env_vars if name not in names]
    if not refused:
        return hook
    variables = re.compile(r"\$(?:\{(?:%s)\}|(?:%s)\b)" % (("|".join(map(re.escape, refused)),) * 2))
    headers = tuple((name, variables.sub("", value)) for name, value in hook.headers)
    allowed = tuple(name for name in hook.allowed_env_vars if name in names)
    return replace(hook, headers=headers, allowed_env_vars=allowed)
