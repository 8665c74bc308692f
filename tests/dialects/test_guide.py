"""The dialect of the guide in docs/development.md is a dialect."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from hookproxy.dialects.dialect import Dialect, HookFile
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, Permission, Session

PAGE = Path(__file__).parents[2] / "docs" / "development.md"


@pytest.fixture(scope="module")
def acorn() -> Dialect:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code is not None
    assert code[1].count("\n") <= 60
    spec = spec_from_loader("hookproxy.dialects.acorn", loader=None)
    assert spec is not None
    module = module_from_spec(spec)
    assert module.__name__ not in sys.modules
    exec(compile(code[1], "acorn.py", "exec"), module.__dict__)
    dialect = module.DIALECT
    assert isinstance(dialect, Dialect)
    return dialect


def test_the_dialect_of_the_guide_reads_files_writes_documents_and_reads_output(acorn: Dialect) -> None:
    entry = {"type": "command", "command": "./guard.sh"}
    members: dict[str, object] = {"hooks": {"PreToolUse": [{"matcher": "shell|mcp__.*", "hooks": [entry]}]}}
    assert acorn.recognises(members)
    (hook,) = acorn.read_hook_file(HookFile("/repo/.acorn/acorn.json", json.dumps(members), "/repo")).hooks
    assert (hook.event, hook.shell, hook.timeout) == (Event.PRE_TOOL_USE, "./guard.sh", 30.0)
    assert hook.matches(acorn.mcp_tool_name("files", "read"))
    assert not hook.matches("read")
    context = EventContext(
        Event.PRE_TOOL_USE, Session("s", "files", "/repo", "/repo"), "read", arguments=b'{"path":"x"}'
    )
    document = json.loads(acorn.write_input(hook, context).stdin)
    assert document == {"event": "PreToolUse", "cwd": "/repo", "tool_name": "", "tool_input": {"path": "x"}}
    verdict = acorn.read_output(hook, HookResult(Ended.EXITED, 2, b"", b"not here"))
    assert (verdict.permission, verdict.reason) == (Permission.DENY, "not here")
