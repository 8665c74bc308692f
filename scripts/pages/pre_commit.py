"""The pattern of `.pre-commit-hooks.yaml`: the hook files of projects, of every dialect whose files are read."""

from __future__ import annotations

import re

from hookproxy.dialects.registry import DIALECTS

INDENTATION = " " * 6


def places() -> list[str]:
    """The places of hook files in a project, `*` for a part of a name."""
    others = ["hookproxy.toml", ".lime/settings.json"]  # `setup` proposes Lime's other file alone
    return others + [
        place for dialect in DIALECTS.values() if not dialect.executables for place in sorted(dialect.project_files)
    ]


def pattern() -> str:
    """An alternative on a line for each."""
    lines = dict.fromkeys(re.escape(place).replace(r"\*", "[^/]*") for place in places())
    return "\n".join(f"{INDENTATION}{'| ' if at else ''}{line}" for at, line in enumerate(lines))


def with_pattern(text: str) -> str:
    """The file with today's pattern: what stands between `^(.*/)?(` and `)$`."""
    before, _, rest = text.partition("^(.*/)?(\n")
    _, end, after = rest.partition("\n    )$")
    return f"{before}^(.*/)?(\n{pattern()}{end}{after}"
