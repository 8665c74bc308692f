"""Paths stay below the project."""

from pathlib import PurePosixPath

from hookproxy.hooks.api import Occasion, deny


def check(occasion: Occasion) -> dict[str, object] | None:
    path = PurePosixPath(str(occasion.tool_input.get("path", "")))
    if path.is_absolute() or ".." in path.parts:
        return deny(f"{path} is outside of the project.")
    return None
