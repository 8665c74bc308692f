"""docs/opentelemetry.md is correct: its configuration sends what the page says to a collector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.otlp_receiver import Receiver, attributes, receiver

__all__ = ["receiver"]

pytestmark = pytest.mark.slow

TEXT: Final = (ROOT / "docs" / "opentelemetry.md").read_text("utf-8")
ADDRESS: Final = 'endpoint = "http://localhost:4318"\n'
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
HOOK: Final = '\n[[hooks.PreToolUse]]\nname = "guard"\ncommand = "true"\n'


def make_call(configuration: str, folder: Path, env: dict[str, str]) -> None:
    (folder / "hookproxy.toml").write_text(configuration + HOOK)
    params = {
        "name": "delete_all",
        "arguments": {"word": "a secret"},
        "_meta": {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"},
    }
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}) + "\n"
    command = [sys.executable, "-m", "hookproxy", "run", "--config", "hookproxy.toml", "--name", "files", "--", "cat"]
    ended = subprocess.run(
        command, cwd=folder, env=os.environ | env, input=line, capture_output=True, encoding="utf-8", timeout=60
    )
    assert (ended.returncode, json.loads(ended.stdout)["result"]["isError"]) == (0, True), ended.stderr


@pytest.mark.parametrize("named", ["in the file", "in the environment"])
def test_a_call_becomes_a_span_of_the_agents_trace(named: str, receiver: Receiver, tmp_path: Path) -> None:
    (shown,) = (block.text for block in blocks(TEXT) if block.name == "hookproxy.toml")
    assert ADDRESS in shown
    if named == "in the file":
        make_call(shown.replace("http://localhost:4318", receiver.endpoint), tmp_path, {})
    else:
        make_call(shown.replace(ADDRESS, ""), tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint})
    (span,) = receiver.spans
    assert span.trace_id.hex() == TRACE
    found = attributes(span.attributes)
    assert (found["hookproxy.decision"], found["gen_ai.tool.name"]) == ("deny", "delete_all")
    assert found["hookproxy.server"] == "files"
    (event,) = span.events
    assert attributes(event.attributes)["hookproxy.hook"] == "guard"
    assert receiver.metrics.keys() <= set(TEXT.replace("`", " ").split())
    assert len(receiver.metrics) == 2
    assert "a secret" not in str((receiver.spans, receiver.metrics, receiver.resource))
