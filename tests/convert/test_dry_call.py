"""The one call that each entry of a converted file judges before the file is written."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.convert.dry_call import failures
from hookproxy.convert.hook_file import Place, convert
from hookproxy.dialects.agent_side import names, side_of
from hookproxy.trust.sources import FileContext

pytestmark = pytest.mark.slow

START = (sys.executable, "-P", "-m", "hookproxy")


def dry_call(folder: Path, target: str, event: str = "PreToolUse", *hooks: tuple[str, str]) -> list[str]:
    """The failures of a file of Claude Code with these matchers and commands, converted for the target."""
    groups = [{"matcher": matcher, "hooks": [{"type": "command", "command": line}]} for matcher, line in hooks]
    path = folder / "settings.json"
    path.write_text(json.dumps({"hooks": {event: groups}}))
    loaded = read_use(parse_option(f"claude={path}", str(folder)), FileContext({}, str(folder)))
    side = side_of(target)
    assert side is not None
    converted = convert([one.group for one in loaded], side, Place(str(folder), str(folder), START))
    return failures(converted, side, str(folder), os.environ)


@pytest.mark.parametrize("target", [*names(), "agent-hooks"])
def test_each_hook_of_each_agent_sees_a_harmless_call_by_the_names_that_it_knows(target: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    line = f"cat >> {seen}; echo >> {seen}"
    assert dry_call(tmp_path, target, "PreToolUse", ("Bash", line), ("mcp__files__read", f"true; {line}")) == []
    documents = [json.loads(text) for text in seen.read_text().splitlines() if text]
    called = {document["tool_name"]: document["tool_input"] for document in documents}
    assert called["Bash"]["command"] == "true"
    assert any("read" in name for name in called)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("./missing.sh", "not found"),
        ("exit 3", "exited with status 3"),
        ("kill -9 $$", "sigkill"),
        ("echo '{\"decision\": 5}'", "decision"),
    ],
)
def test_a_hook_that_fails_is_reported_in_one_line(line: str, why: str, tmp_path: Path) -> None:
    (failure,) = dry_call(tmp_path, "copilot", "PreToolUse", ("Bash", line))
    assert failure.startswith("PreToolUse: a dry call of bash failed: ")
    assert why in failure.lower()
    assert "\n" not in failure


def test_what_the_hooks_decide_is_no_failure(tmp_path: Path) -> None:
    for line in ("echo no >&2; exit 2", 'echo \'{"decision": "block", "reason": "sh: not found"}\'', "true"):
        assert dry_call(tmp_path, "kimi", "PreToolUse", ("", line)) == []


def test_hooks_of_a_session_are_not_tried(tmp_path: Path) -> None:
    assert dry_call(tmp_path, "copilot", "SessionStart", ("", f"touch {tmp_path}/started; exit 9")) == []
    assert not (tmp_path / "started").exists()


def test_hookproxy_that_is_missing_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}))
    loaded = read_use(parse_option(f"claude={path}", str(tmp_path)), FileContext({}, str(tmp_path)))
    groups = [one.group for one in loaded]
    for target in ("copilot", "cline", "claw"):
        side = side_of(target)
        assert side is not None
        for fails_closed in (True, False):
            place = Place(str(tmp_path), str(tmp_path), ("/missing/hookproxy",), fails_closed=fails_closed)
            (failure,) = failures(convert(groups, side, place), side, str(tmp_path), os.environ)
            assert "/missing/hookproxy: not found" in failure
