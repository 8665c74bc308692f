"""Finds OpenCode's plugins: each module of a folder, or one that is named. What it holds is known when it runs."""

from __future__ import annotations

import os
import re
import shutil
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.errors import ConfigError
from ...model.hooks import Event, HookSpec
from ..dialect import Files, FolderContent, FoundFile, HookFile, HookList
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, TURNS_UNSEEN

NAME: Final = "opencode"

TIMEOUT: Final = 60.0
"""Seconds. OpenCode waits for ever; nobody waits for a guard that long."""

SUFFIXES: Final = (".ts", ".js", ".mts", ".mjs", ".cts", ".cjs")
_TYPED: Final = (".ts", ".mts", ".cts")
FOLDERS: Final = (".opencode/plugin", ".opencode/plugins", ".config/opencode/plugin", ".config/opencode/plugins")

BEFORE: Final = "tool.execute.before"
AFTER: Final = "tool.execute.after"
EVENTS: Final = {BEFORE: Event.PRE_TOOL_USE, AFTER: Event.POST_TOOL_USE}
UNAVAILABLE_EVENTS: Final = {
    "event": "an MCP server does not see what happens in OpenCode's sessions",
    "config": INSIDE_AGENT,
    "tool": "OpenCode gives tools of plugins to the model itself",
    "auth": INSIDE_AGENT,
    "chat.message": PROMPTS_UNSEEN,
    "chat.params": TURNS_UNSEEN,
    "permission.ask": "OpenCode declares it, and never calls it",
}
"""A plugin's other functions, each with the reason why it cannot be called behind MCP."""

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("read", {"file_path": "filePath"}),),
    "Write": (ToolSpelling("write", {"file_path": "filePath"}),),
    "Edit": (
        ToolSpelling(
            "edit",
            {
                "file_path": "filePath",
                "old_string": "oldString",
                "new_string": "newString",
                "replace_all": "replaceAll",
            },
        ),
    ),
    "LS": (ToolSpelling("list"),),
    "Glob": (ToolSpelling("glob"),),
    "Grep": (ToolSpelling("grep", {"glob": "include"}),),
    "WebFetch": (ToolSpelling("webfetch"),),
}

_REPLACED: Final = re.compile(r"[^a-zA-Z0-9_-]")
_HOST: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugin_host.mjs")


def mcp_tool_name(server: str, tool: str) -> str:
    """The name that OpenCode gives to a server's tool."""
    return f"{_REPLACED.sub('_', server)}_{_REPLACED.sub('_', tool)}"


def read_folder(path: str, _files: Files) -> FolderContent | None:
    """The modules of a folder, sorted by name as OpenCode loads them; None if it has none, or is not of OpenCode.

    A folder of another name is one if it holds modules only: programs of another system may lie beside its file.
    """
    # a link that leads nowhere is an error of the file: a guard may be meant
    found = [name for name in os.listdir(path) if not os.path.isdir(os.path.join(path, name))]
    modules = sorted(name for name in found if _is_module(name))
    is_named = path.endswith(tuple(f"/{folder}" for folder in FOLDERS))
    if not modules or not (is_named or all(name.endswith(SUFFIXES) or name in _BESIDE for name in found)):
        return None
    return FolderContent(tuple(FoundFile(os.path.join(path, name)) for name in modules))


_BESIDE: Final = frozenset({"package.json", "bun.lock", "package-lock.json", "tsconfig.json", "README.md"})
"""What stands beside modules in a folder of plugins."""


def _is_module(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.endswith(".d.ts")


def read_hook_file(file: HookFile) -> HookList:
    """The two hooks of a module: what runs before a call and after it. Raises ConfigError if nothing can run it."""
    name = os.path.basename(file.path)
    if not _is_module(name):
        raise ConfigError(file.path, "a plugin of OpenCode is a module in TypeScript or JavaScript", "name such a file")
    before = HookSpec(
        dialect=NAME,
        source=file.path,
        event=Event.PRE_TOOL_USE,
        label=name,
        argv=(*_runtime(file), _HOST, file.path),
        cwd=os.path.dirname(
            _HOST
        ),  # Bun runs what a bunfig.toml of its folder says: the project's is the agent's to write
        timeout=TIMEOUT,
        fails_closed=True,
        withholds=True,
        type="worker",
        event_name=BEFORE,
        process=file.path,
    )
    after = replace(before, event=Event.POST_TOOL_USE, event_name=AFTER)
    hooks = (before, after, replace(after, event=Event.POST_TOOL_USE_FAILURE))
    if BEFORE in file.text or AFTER in file.text or "import" in file.text or "require" in file.text:
        return HookList(hooks)
    return HookList(hooks, (f"{file.path}: it names neither {BEFORE} nor {AFTER}, so it may do nothing here",))


def _runtime(file: HookFile) -> tuple[str, ...]:
    """The program that runs the module. Raises ConfigError if there is none."""
    path = file.environ.get("PATH")
    if bun := shutil.which("bun", path=path):
        return (bun, "--no-install")  # else it fetches what a module imports and is not there, whatever that is by now
    if node := shutil.which("node", path=path):
        return (node,)
    what = "Bun, or Node 22.18 and newer" if file.path.endswith(_TYPED) else "Bun or Node"
    raise ConfigError(file.path, f"plugins of OpenCode run in {what}, and PATH has neither", "install one of them")
