"""The registry of runners: only what hooks need is imported, and stateful runners are closed."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.runners import command
from hookproxy.runners.registry import RUNNERS, Runners

pytestmark = pytest.mark.anyio

IMPORTED = """
import sys
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.runners.registry import Runners
Runners([HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "x", type=name, **more) for name, more in TYPES], print)
watched = ("h11", "cedarpy", "typer", "prompt_toolkit")
print(*sorted(name for name in sys.modules if name.startswith("hookproxy.runners.") or name in watched))
"""

_OPTIONAL: Final = {
    "worker", "warm", "python", "http", "cel", "cedar", "opa", "policy", "h11", "cedarpy", "typer", "prompt_toolkit",
}  # fmt: skip
"""`typer` and `prompt_toolkit` are what the package around the compiled module of CEL would import."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("types", "there"),
    [
        ([("command", {})], set()),
        ([("worker", {})], {"worker"}),
        ([("warm", {})], {"warm"}),
        ([("python", {"call": "os.path:basename", "cwd": "/"})], {"python"}),
        ([("cel", {"expression": "true"})], {"cel", "policy", "worker"}),
        ([("cedar", {"policy": "permit(principal, action, resource);"})], {"cedar", "policy", "worker", "cedarpy"}),
        ([("opa", {"url": "http://localhost/v1/data/a"})], {"opa", "http"}),
    ],
)
def test_only_what_is_configured_is_imported(types: list[object], there: set[str]) -> None:
    code = IMPORTED.replace("TYPES", repr(types))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert found & _OPTIONAL == there


async def test_a_command_needs_no_stateful_runner() -> None:
    spec = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "x", shell="true")
    async with Runners([spec], lambda _spec, _text: None) as runners:
        assert runners.by_type == RUNNERS
        assert (set(RUNNERS), RUNNERS["command"]) == ({"command", "absent"}, command.run_command)


@pytest.mark.usefixtures("forgets_hooks")
def test_a_hook_that_cannot_run_is_a_configuration_error() -> None:
    spec = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "x", type="python", call="no_such_module_here:f", cwd="/")
    with pytest.raises(ConfigError, match="no_such_module_here"):
        Runners([spec], lambda _spec, _text: None)
