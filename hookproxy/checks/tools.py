"""What is to be known of the names by which hooks know tools: what a preset leaves alone, and names that meet."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.settings import Settings
from .report import Finding


def remarks(settings: Settings) -> Iterator[Finding]:
    """Sentences about aliases; they are about no file, for several may have a say in them."""
    used = dict.fromkeys(one.preset for one in settings.aliases if one.preset)
    if used:
        from ..policy.presets import PRESETS

        for name in used:
            preset = PRESETS[name]
            if preset.others:
                text = f"hooks know these of {preset.server} by their own names alone: {', '.join(preset.others)}"
                yield Finding("", None, "preset", f"preset {name}: {text}")
            yield from (Finding("", None, "preset", f"preset {name}: {note}") for note in preset.notes)
    tools = {one.tool for one in settings.aliases}
    for one in settings.aliases:
        if one.name in tools and one.name != one.tool:
            text = f"hooks know {one.tool} as {one.name}, which is another tool's own name: what is for one is for both"
            yield Finding("", None, f"tools.{one.tool}", text)
