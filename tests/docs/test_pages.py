"""Everything that is generated from the code is current: pages, tables, the JSON Schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from hookproxy.cli.main import VERBS
from hookproxy.cli.run import build_parser
from hookproxy.dialects.claude import hook_file, output
from hookproxy.dialects.registry import DIALECTS

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
CLAUDES: Final = (DOCS / "dialects" / "claude.md").read_text("utf-8")
CONCEPTS: Final = (DOCS / "concepts.md").read_text("utf-8")
PAGES: Final = sorted((ROOT / "docs").rglob("*.md"))


def test_generated_pages_are_current() -> None:
    ended = subprocess.run([sys.executable, ROOT / "scripts" / "pages"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_each_dialect_has_a_page_that_names_it() -> None:
    for name in DIALECTS:
        page = ROOT / "docs" / "dialects" / f"{name.partition('@')[0]}.md"
        assert f"<!-- made: {name} -->\n`--hooks {name}=FILE`" in page.read_text("utf-8")


def test_the_targets_of_links_exist() -> None:
    for page in [ROOT / "README.md", *PAGES]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def in_code(text: str) -> set[str]:
    """The text between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def test_the_list_of_systems_names_every_dialect() -> None:
    text = (DOCS / "dialects" / "README.md").read_text("utf-8")
    assert set(DIALECTS) <= in_code(text.split("\n## Systems\n")[1].split("\n## ")[0])


def test_the_reference_has_every_verb_and_the_usage_of_run() -> None:
    text = (DOCS / "reference.md").read_text("utf-8")
    assert f"`{build_parser().usage}`" in text
    for verb in VERBS:
        assert f"\n### hookproxy {verb}\n\n`hookproxy {verb}" in text
        assert f"| `hookproxy {verb}` |" in text


def test_the_table_of_claudes_fields_is_complete() -> None:
    named = in_code(CLAUDES)
    answered = {*output._MEMBERS, *output._Specific.__struct_encode_fields__}
    assert answered - {"hookEventName", "hookSpecificOutput"} <= named
    assert {*hook_file._HOOK_KEYS, "matcher", "disableAllHooks"} <= named
    for event in hook_file.EVENTS.values():
        assert re.search(rf"\b{event}\b", CLAUDES)


def test_hooks_get_the_documented_input(tmp_path: Path) -> None:
    groups = [{"hooks": [{"type": "command", "command": "cat >>recorded.jsonl"}]}]
    (tmp_path / "all.json").write_text(json.dumps({"hooks": {"PreToolUse": groups, "PostToolUse": groups}}))
    server = [sys.executable, str(Path(__file__).with_name("tiny_server.py"))]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}}
    command = [
        sys.executable,
        "-m",
        "hookproxy",
        "run",
        "--hooks",
        "claude=all.json",
        "--audit",
        "audit.jsonl",
        "--",
        *server,
    ]
    subprocess.run(command, cwd=tmp_path, input=json.dumps(call).encode() + b"\n", capture_output=True, check=True)
    documents = [json.loads(line) for line in (tmp_path / "recorded.jsonl").read_text("utf-8").splitlines()]
    read = {key for document in documents for key in document} - {"hook_event_name"}
    assert read <= in_code(CLAUDES)
    (line,) = msgspec.json.Decoder(dict[str, object]).decode_lines((tmp_path / "audit.jsonl").read_bytes())
    hooks = msgspec.convert(line["hooks"], list[dict[str, object]])
    assert {*line, *hooks[0]} <= in_code(CONCEPTS)
