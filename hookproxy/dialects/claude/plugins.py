"""Finds hook files in the folders that Claude Code knows: a plugin's folder, a project's `.claude`, and the user's own.

Source: Claude Code's plugins reference, code.claude.com/docs/en/plugins-reference, as of 2.1.240; the shape of
`installed_plugins.json`, version 2, as published files have it. Whoever names the user's folder also names the plugins
that are switched on in its settings, and nothing else: no project can switch on another one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ...model.errors import ConfigError
from ...model.late_pattern import late_pattern
from ..dialect import Files, FolderContent, FoundFile, Plugin
from ..shared import hook_file as shared_hook_file

MANIFEST: Final = ".claude-plugin/plugin.json"

_MANIFEST_FOLDER: Final = ".claude-plugin"
_HOOK_FILE: Final = "hooks/hooks.json"
_SETTINGS_FOLDER: Final = ".claude"
_SETTINGS: Final = ("settings.json", "settings.local.json")
"""The later one counts where both have a key."""
_NOT_IN_A_NAME: Final = late_pattern(r"[^a-zA-Z0-9_-]")
_OF_NO_MARKETPLACE: Final = "inline"
"""The marketplace in the id of a plugin that was not installed from one, as for Claude Code's `--plugin-dir`."""


def find_plugin(path: str, files: Files) -> Plugin | None:
    """The plugin that the hook file belongs to; None if it belongs to none. Raises nothing."""
    folder, name = os.path.split(path)
    if name == "hooks.json" and os.path.basename(folder) == "hooks":  # the documented place, with or without a manifest
        return _plugin(os.path.dirname(folder), files)
    if os.path.basename(folder) == _SETTINGS_FOLDER:
        return None
    above = shared_hook_file.folder_above(path, MANIFEST)
    return _plugin(above, files) if above else None


def read_folder(path: str, files: Files) -> FolderContent | None:
    """The hook files of a plugin, of a project's `.claude`, or of the user's own folder. None for other folders.

    Raises ConfigError for a settings file or a manifest that cannot be read.
    """
    settings = tuple(file for name in _SETTINGS if os.path.isfile(file := os.path.join(path, name)))
    user_folder = _user_folder(files)
    if user_folder and os.path.realpath(path) == os.path.realpath(user_folder) and settings:
        return _user_content(path, settings, files)
    if os.path.isdir(os.path.join(path, _MANIFEST_FOLDER)) or os.path.isfile(os.path.join(path, _HOOK_FILE)):
        return _plugin_content(path, _plugin(path, files), files)
    if os.path.basename(path) == _SETTINGS_FOLDER and settings:
        return FolderContent(tuple(map(FoundFile, settings)))
    return None


# --- a plugin ---


def _plugin(root: str, files: Files, plugin_id: str = "") -> Plugin:
    name = _NOT_IN_A_NAME.sub("-", plugin_id or _id_of_folder(root, files))
    return Plugin(root, os.path.join(_plugins_folder(files), "data", name))


def _id_of_folder(root: str, files: Files) -> str:
    """The id of the plugin in a folder: by its place in Claude Code's cache, or else by the name in its manifest."""
    cache = os.path.join(_plugins_folder(files), "cache") + "/"
    parts = root.removeprefix(cache).split("/") if root.startswith(cache) else []
    if len(parts) == 3:
        return f"{parts[1]}@{parts[0]}"
    name = os.path.basename(root)
    manifest = os.path.join(root, MANIFEST)
    if os.path.isfile(manifest):
        with suppress(ConfigError):  # whoever reads the plugin's hooks reports it
            name = shared_hook_file.read_json(manifest, files.text(manifest)).text("name", name)
    return f"{name}@{_OF_NO_MARKETPLACE}"


def _plugin_content(root: str, plugin: Plugin, files: Files) -> FolderContent:
    """The hook files of a plugin: hooks/hooks.json, and those that its manifest names or contains."""
    default, manifest = os.path.join(root, _HOOK_FILE), os.path.join(root, MANIFEST)
    found = [default] if os.path.isfile(default) else []
    notes: list[str] = []
    has_manifest = os.path.isfile(manifest)
    hooks = shared_hook_file.read_json(manifest, files.text(manifest)).members.get("hooks") if has_manifest else None
    for item in hooks if isinstance(hooks, list) else [hooks]:
        if isinstance(item, str):
            path = os.path.normpath(os.path.join(root, item))
            if not path.startswith(f"{root}/"):
                notes.append(f"{manifest}: hooks {item!r} is left out: it is outside of the plugin")
            elif not os.path.isfile(path):
                notes.append(f"{manifest}: hooks {item!r} is left out: there is no such file")
            elif path not in found:
                found.append(path)
        elif item is not None and manifest not in found:
            found.append(manifest)
    remarks = () if found or notes else (f"{root}: {shared_hook_file.NO_HOOKS}",)
    return FolderContent(tuple(FoundFile(path, plugin) for path in found), tuple(notes), remarks)


# --- the user's folder ---


def _user_folder(files: Files) -> str:
    """Claude Code's folder of the user; empty if there is no home folder."""
    return files.environ.get("CLAUDE_CONFIG_DIR", "") or (files.home and os.path.join(files.home, _SETTINGS_FOLDER))


def _plugins_folder(files: Files) -> str:
    return files.environ.get("CLAUDE_CODE_PLUGIN_CACHE_DIR", "") or os.path.join(_user_folder(files), "plugins")


def _user_content(folder: str, settings: Sequence[str], files: Files) -> FolderContent:
    tables = [shared_hook_file.read_json(path, files.text(path)) for path in settings]
    for table in reversed(tables):
        if "disableAllHooks" in table.members:
            if table.flag("disableAllHooks"):
                remark = f"{table.where}: disableAllHooks is true, so no hooks of {folder} and of plugins run"
                return FolderContent((), remarks=(remark,))
            break
    content = [FolderContent(tuple(map(FoundFile, settings)))]
    enabled = {key: (value, table) for table in tables for key, value in table.table("enabledPlugins").members.items()}
    installed = _installed_plugins(files) if enabled else {}
    for plugin_id, (value, table) in enabled.items():
        if value is False:
            continue
        root = _installed_at(installed.get(plugin_id), files.cwd)
        if root and os.path.isdir(root):
            content.append(_content_of_installed(root, plugin_id, files))
        else:
            reason = f"there is no folder {root}" if root else "it is not installed"
            note = f"{table.where}: enabledPlugins switches on {plugin_id!r}, whose hooks do not run: {reason}"
            content.append(FolderContent((), (note,)))
    return FolderContent(
        tuple(file for part in content for file in part.files),
        tuple(note for part in content for note in part.notes),
        tuple(remark for part in content for remark in part.remarks),
    )


def _content_of_installed(root: str, plugin_id: str, files: Files) -> FolderContent:
    """The hook files of an installed plugin. One that cannot be read does not stop the others, as in Claude Code."""
    try:
        content = _plugin_content(root, _plugin(root, files, plugin_id), files)
    except ConfigError as error:
        return FolderContent((), (f"{error.message}: the hooks of plugin {plugin_id!r} do not run: {error.hint}",))
    optional = tuple(FoundFile(file.path, file.plugin, optional=True) for file in content.files)
    return FolderContent(optional, content.notes)  # most plugins have no hooks


def _installed_plugins(files: Files) -> Mapping[str, object]:
    """The members of `plugins` in installed_plugins.json; none if there is no such file."""
    path = os.path.join(_plugins_folder(files), "installed_plugins.json")
    return shared_hook_file.read_json(path, files.text(path)).table("plugins").members if os.path.isfile(path) else {}


def _installed_at(entries: object, cwd: str) -> str:
    """The folder of an installed plugin, of this project's own version first; empty: it is not installed here.

    Version 1 of the file has one object for each plugin, and version 2 has a list.
    """
    found = ""
    for entry in entries if isinstance(entries, list) else [entries]:
        folder, project = (
            (entry.get("installPath"), entry.get("projectPath")) if isinstance(entry, dict) else (None, None)
        )
        if not isinstance(folder, str):
            continue
        if not isinstance(project, str):
            found = found or folder
        elif cwd == project or cwd.startswith(project.rstrip("/") + "/"):
            return folder
    return found
