"""The guards that hookproxy ships hold against other spellings of what they refuse, as scripts and as rules."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from hookproxy.model.settings import Settings
from hookproxy.policy.rules import Rules

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("jq") is None, reason="the guards need jq"),
]

ROOT: Final = Path(__file__).resolve().parents[2]

DELETIONS: Final = [
    "rm -rf x", "rm -r -f x", "rm -fr x", "rm -f -r x", "rm -R x", "rm --recursive --force x", "rm x -rf",
    "rm --force --recursive x",
    "rm -v -rf x", "env rm -rf x", "sudo rm -r x", "'rm' -rf x", 'r"m" -rf x', "r\\m -rf x", "rm '-rf' x",
    "/bin/rm -rf x", "cd x && rm -rf y", "timeout 5 rm -rf x", "xargs rm -rf", "sh -c 'rm -rf x'", "A=1 rm -rf x",
]  # fmt: skip
PUSHES: Final = [
    "git push --force", "git push -f", "git -C x push --force", "git push origin main --force", "git push origin -f",
    "git 'push' --force", "env git push -f", "git push --quiet --force origin",
]  # fmt: skip
HARMLESS: Final = [
    "ls -r",
    "git push",
    "git push origin main",
    "rm x",
    "echo form -r",
    "git log --format=x",
    "npm run r",
]


def arguments(line: str) -> list[dict[str, object]]:
    """Calls that run this line: as a text, as a list, and with a list of words."""
    import shlex

    calls: list[dict[str, object]] = [{"command": line}, {"cmd": line}, {"shell_cmd": line}, {"commands": ["ls", line]}]
    if "&&" not in line and "A=1" not in line:
        words = shlex.split(line)
        calls += [
            {"command": words[0], "args": words[1:]},
            {"argv": words},
            {"program": words[0], "arguments": words[1:]},
        ]
    return calls


def refuses(script: str, tool_input: dict[str, object]) -> bool:
    document = json.dumps({"tool_name": "x", "tool_input": tool_input})
    ended = subprocess.run([ROOT / script], input=document, capture_output=True, text=True, timeout=30)
    assert ended.returncode in (0, 2), ended.stderr
    return ended.returncode == 2


def rules_of(path: str) -> Rules:
    file = tomllib.loads((ROOT / path).read_text("utf-8"))
    return Rules.of(Settings(deny=tuple(file["permissions"]["deny"])))


@pytest.mark.parametrize("line", [*DELETIONS, *PUSHES])
def test_the_guard_refuses_every_spelling(line: str) -> None:
    for one in arguments(line):
        assert refuses("configs/guard/hooks/guard.sh", one), one


@pytest.mark.parametrize("line", [*DELETIONS, *PUSHES])
def test_its_rules_refuse_every_spelling(line: str) -> None:
    rules = rules_of("configs/guard/hookproxy.toml")
    ruling = rules.judge(("Bash",), json.dumps({"command": line}).encode())
    assert ruling is not None
    assert ruling.permission.name == "DENY"


@pytest.mark.parametrize("line", HARMLESS)
def test_what_is_harmless_passes(line: str) -> None:
    assert not refuses("configs/guard/hooks/guard.sh", {"command": line, "cwd": "/x"})
    rules = rules_of("configs/guard/hookproxy.toml")
    assert rules.judge(("Bash",), json.dumps({"command": line}).encode()) is None


@pytest.mark.parametrize("line", DELETIONS)
def test_the_guards_of_other_systems_refuse_every_spelling(line: str) -> None:
    assert refuses("configs/kiro/.kiro/hooks/keep-folders.sh", {"command": line})


def test_the_guards_of_other_systems_have_the_same_test() -> None:
    scripts = [path for path in (ROOT / "configs").rglob("*") if path.name in ("keep-folders.sh", "PreToolUse")]
    tests = {text for path in scripts for text in path.read_text("utf-8").splitlines() if "| join(" in text}
    assert len(scripts) >= 14
    assert {text.partition("| join(")[2] for text in tests} == {r'" ") | gsub("[\"\\\\\u0027]"; "")'}
