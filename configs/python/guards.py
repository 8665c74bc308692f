"""Paths stay below the project."""

from pathlib import PurePosixPath

from hookproxy.hooks.api import HookInput, deny


def check(hook_input: HookInput) -> dict[str, object] | None:
    path = PurePosixPath(str(hook_input.tool_input.get("path", "")))
    if path.is_absolute() or ".." in path.parts:
        return deny(f"{path} is outside of the project.")
    return None
