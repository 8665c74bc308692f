"""Finds Cline's hooks: each file of a folder whose name is that of an event is a program."""

from __future__ import annotations

import os
import re
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.errors import ConfigError
from ...model.hooks import Event, HookSpec
from ..dialect import Files, FolderContent, FoundFile, HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN
from ..shared.hook_file import CANNOT_FIRE

NAME: Final = "cline"

TIMEOUT: Final = 120.0
"""Seconds: the CLI's. The extension has 30; a hook that times out lets the call go on."""

FOLDERS: Final = (".clinerules/hooks", ".cline/hooks", "Documents/Cline/Hooks")

EVENTS: Final = {
    "PreToolUse": Event.PRE_TOOL_USE,
    "PostToolUse": Event.POST_TOOL_USE,
    "TaskStart": Event.SESSION_START,
    "TaskCancel": Event.STOP,
    "TaskComplete": Event.SESSION_END,
    "SessionShutdown": Event.SESSION_END,
}
UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "TaskResume": "an MCP server does not see which task the agent resumes",
    "TaskError": INSIDE_AGENT,
    "PreCompact": INSIDE_AGENT,
    "Notification": "Cline's sources describe no document for it",
}
"""Cline's other events, each with the reason why it cannot occur behind MCP."""

EDIT: Final = "replace_in_file"
"""Its `diff` holds both texts of an edit."""

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("execute_command"),),
    "Read": (ToolSpelling("read_file", {"file_path": "path"}),),
    "Write": (ToolSpelling("write_to_file", {"file_path": "path"}),),
    "Edit": (ToolSpelling(EDIT, {"file_path": "path"}),),
    "MultiEdit": (ToolSpelling(EDIT, {"file_path": "path"}),),
    "LS": (ToolSpelling("list_files"),),
    "Grep": (ToolSpelling("search_files", {"pattern": "regex", "glob": "file_pattern"}),),
    "WebFetch": (ToolSpelling("web_fetch"),),
    "WebSearch": (ToolSpelling("web_search"),),
    "ReadMcpResourceTool": (ToolSpelling("access_mcp_resource", {"server": "server_name"}),),
}

_LONGEST: Final = 64
_KEPT: Final = 55
"""The length of a name, and how much of a longer one stays before `_` and its hash, as in Cline's SDK."""
_REPLACED: Final = re.compile(r"[^a-zA-Z0-9_-]")


def mcp_tool_name(server: str, tool: str) -> str:
    """The name that Cline gives to a server's tool."""
    name = _REPLACED.sub("_", f"{server}__{tool}")
    if len(name) <= _LONGEST:
        return name
    from hashlib import sha1  # few tools have such a name

    return f"{name[:_KEPT]}_{sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"


_SUFFIXES: Final = ("", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".ps1")
_INTERPRETERS: Final = {
    **dict.fromkeys((".js", ".mjs", ".cjs"), ("node",)),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("bun", "run")),
    ".py": ("python3",),
}
"""What runs a file without a shebang, by the suffix of its name; bash runs all others."""

_POWERSHELL: Final = ".ps1"
_FIRST_LINE: Final = 256
"""Bytes: more than any system reads of a shebang."""
_BY_NAME: Final = {name.lower(): name for name in (*EVENTS, *UNAVAILABLE_EVENTS)}


def read_folder(path: str, _files: Files) -> FolderContent | None:
    """The hooks of a folder, sorted by name; None if none of its files has the name of an event.

    In a folder of another name there must be no hook file of another form: programs beside it may be its own.
    """
    found = os.listdir(path)
    if not path.endswith(tuple(f"/{folder}" for folder in FOLDERS)) and any(map(_is_hook_file, found)):
        return None
    names = sorted(name for name in found if _event_of(name) and not os.path.isdir(os.path.join(path, name)))
    files = [name for name in names if not _is_twin(name, names)]
    return FolderContent(tuple(FoundFile(os.path.join(path, name)) for name in files)) if files else None


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of one program. Raises ConfigError if it cannot be one.

    There are no matchers: the program decides by the name of the tool that it reads.
    """
    name = os.path.basename(file.path)
    event_name = _event_of(name)
    if not event_name:
        names = ", ".join(EVENTS)
        hint = shared_hook_file.suggestion(os.path.splitext(name)[0], _BY_NAME.values()) or f"the events are {names}"
        raise ConfigError(file.path, "a hook of Cline is a program that is named by its event", hint)
    if event_name in UNAVAILABLE_EVENTS:
        reason = UNAVAILABLE_EVENTS[event_name]
        return HookList((), remarks=(f"{file.path} {CANNOT_FIRE}: {reason}",))
    if name.endswith(_POWERSHELL):
        return HookList((), (f"{file.path} does not run: it is for PowerShell, which is not supported",))
    return hooks_of(event_name, file.path, _argv(file.path), file.project_dir)


def hooks_of(event_name: str, source: str, argv: tuple[str, ...], project_dir: str, timeout: float = 0.0) -> HookList:
    """The hooks of a program for this event; timeout 0: the usual one, in seconds."""
    event = EVENTS[event_name]
    usual = shared_hook_file.SESSION_END_TIMEOUT if event is Event.SESSION_END else TIMEOUT
    hook = HookSpec(
        dialect=NAME,
        source=source,
        event=event,
        label=labels.argv_label(list(argv)),
        argv=argv,
        cwd=project_dir,
        timeout=timeout or usual,
        event_name=event_name,
    )
    if event is Event.POST_TOOL_USE:
        return HookList((hook, replace(hook, event=Event.POST_TOOL_USE_FAILURE)))
    return HookList((hook,))


def _is_hook_file(name: str) -> bool:
    return name.endswith((".json", ".toml", ".yaml", ".yml", ".hook"))


def _event_of(name: str) -> str:
    """The event of a file with this name; empty: it has none. Upper and lower case are the same."""
    stem, suffix = os.path.splitext(name)
    return _BY_NAME.get(stem.lower(), "") if suffix in _SUFFIXES else ""


def _is_twin(name: str, names: list[str]) -> bool:
    """Whether this is the PowerShell version of another hook of the folder, for Windows."""
    return name.endswith(_POWERSHELL) and any(
        other != name and not other.endswith(_POWERSHELL) and _event_of(other) == _event_of(name) for other in names
    )


def _argv(path: str) -> tuple[str, ...]:
    """The program, or what runs it: its shebang, else what the suffix stands for. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            line = file.readline(_FIRST_LINE)
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", "check its name and its permissions") from None
    executable = os.access(path, os.X_OK)
    if line.startswith(b"#!"):
        interpreter = tuple(line[2:].decode(errors="replace").split())
        return (path,) if executable or not interpreter else (*interpreter, path)
    if executable and b"\0" in line:  # a compiled program
        return (path,)
    return (*_INTERPRETERS.get(os.path.splitext(path)[1], ("bash",)), path)
