"""What `try` and `explain` say of a gateway's file is what the gateway does: the same calls by a real agent."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.end.agent import HOOKPROXY, SERVER, Scene, call, refused, text_of
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

ME: Final = pwd.getpwuid(os.geteuid()).pw_name
CONFIG: Final = f"""
[permissions]
deny = ["Bash(rm:*)"]

[[permissions.for]]
users = ["{ME}"]
deny = ["mine"]

[[permissions.for]]
users = ["@no-such-group", "nobody-of-this-name"]
deny = ["echo"]

[servers.tools]
command = {json.dumps(SERVER)}
sandbox = "off"

[servers.tools.permissions]
deny = ["of_server"]

[[servers.tools.hooks.PreToolUse]]
matcher = "hooked"
command = "./guard.sh"
"""
CALLS: Final[tuple[tuple[str, dict[str, object], str, str], ...]] = (
    ("echo", {"a": 1}, "allow", "try"),
    ("mine", {}, "deny", "try"),
    ("of_server", {}, "deny", "explain"),
    ("run_command", {"command": "rm -rf /"}, "deny", "explain"),
    ("run_command", {"command": "ls"}, "allow", "explain"),
    ("hooked", {"who": "me"}, "deny", "try"),
)
"""Tools with arguments, what becomes of the call, and the verb that is asked, too."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    (folder / "guard.sh").write_text('#!/bin/sh\n[ "$HOOKPROXY_USER" ] && echo "not for $HOOKPROXY_USER" >&2\nexit 2\n')
    (folder / "guard.sh").chmod(0o755)
    gateway = GatewayProcess(folder, CONFIG)
    try:
        yield gateway
        assert gateway.end() == 0
    finally:
        gateway.kill()


async def test_offline_and_at_the_gateway_the_same_is_decided(gateway: GatewayProcess, scene: Scene) -> None:
    agent = scene.start([HOOKPROXY, "connect", "tools", "--socket", str(gateway.socket)])
    await agent.initialize()
    who = ["--config", str(gateway.path), "--user", ME]
    for number, (tool, arguments, decision, verb) in enumerate(CALLS):
        response = await agent.ask(call(number + 10, tool, **arguments))
        assert text_of(response) if decision == "allow" else refused(response)
        document = json.loads(scene.complete([HOOKPROXY, verb, tool, json.dumps(arguments), "--json", *who]).stdout)
        said = document if verb == "try" else document["explanations"][0]["tools"][0]
        assert said["decision"] == decision, tool
        if tool == "hooked":
            assert f"not for {ME}" in said["reason"]
            assert f"not for {ME}" in refused(response)
    agent.end_input()
    assert await agent.ended() == 0
