"""Generates parts of the pages from the code, and reports what is not current: `scripts/docs [--write]`.

A page may have hand-written text around generated parts, which are between `<!-- made: NAME -->` and `<!-- end -->`.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import agent_sides
import agents
import cases
import dialects
import index
import keys
import picture
import policies
import pre_commit
import presets
import schema
import tables
import verbs

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # some parts are what tests have found

from tests.hooks import broken_outputs  # noqa: E402

PRE_COMMIT = ROOT / ".pre-commit-hooks.yaml"
INDEX = ROOT / "hookproxy" / "dialects" / "index.py"

MARKS = re.compile(r"(?<=<!-- made: )(\S+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)

PARTS: dict[str, Callable[[], str]] = {
    "agent-sides": agent_sides.agent_sides,
    "gone-entries": agent_sides.gone_entries,
    "agents": agents.agents,
    "systems": tables.systems,
    "followed": tables.followed,
    "events": tables.events,
    "fields": tables.fields,
    "failures": broken_outputs.page_table,
    "summary": verbs.summary,
    "verbs": verbs.verbs,
    "keys": keys.keys,
    "gateway-keys": keys.gateway_keys,
    "policies": policies.policies,
    "case-keys": cases.case_keys,
    "presets": presets.presets,
    **dialects.parts(),
}
"""The generated parts, by the name in their mark."""

WHOLE: dict[str, Callable[[], str]] = {
    "hookproxy/dialects/index.py": index.index,
    "hookproxy/hookproxy.schema.json": schema.schema,
    "hookproxy/gateway.schema.json": schema.gateway_schema,
    "docs/blocked.svg": picture.picture,
}
"""Files that are generated completely."""


def pages() -> Iterator[tuple[Path, str]]:
    """Each file with generated parts, and its text as it should be."""
    for name, make in WHOLE.items():
        yield ROOT / name, make()
    for place, text in dialects.new_pages():
        yield ROOT / place, text
    yield ROOT / "mkdocs.yml", dialects.navigation((ROOT / "mkdocs.yml").read_text("utf-8"))
    yield PRE_COMMIT, pre_commit.with_pattern(PRE_COMMIT.read_text("utf-8"))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text("utf-8")
        made = MARKS.sub(lambda part: f"{part[1]}{part[2]}{PARTS[part[1]]()}\n", text)
        yield path, tables.counted(made) if path.name == "README.md" and path.parent == ROOT else made


def main(arguments: list[str]) -> int:
    """0: all is current; 1: something was not."""
    status = 0
    for path, text in pages():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        if arguments == ["--write"]:
            path.write_text(text, "utf-8")
            if path == INDEX:  # from now on all dialects are known
                os.execv(sys.executable, (sys.executable, *sys.argv))
        else:
            print(f"{path.relative_to(ROOT)} is not current: run scripts/docs --write")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
