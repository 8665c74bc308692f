"""At a gateway, what is only watched changes nothing, over HTTP and over a Unix socket, and a reload changes it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end.agent import HOOKPROXY, SERVER, Scene, text_of
from tests.end.agent import call as unix_call
from tests.end.test_gateway_http import HttpGateway, call, stateless

pytestmark = pytest.mark.slow

CONFIG: Final = f"""
[permissions]
mode = "monitor"
deny = ["{{denied}}"]

[[permissions.for]]
users = ["alice"]
deny = ["for_alice"]

[[limits]]
tool = "*"
calls = 2
per = "hour"
mode = "monitor"

[[hooks.PostToolUse]]
command = '''cat >/dev/null; echo '{{{{"decision": "block", "reason": "no"}}}}' '''
mode = "monitor"

[servers.tools]
command = {json.dumps(SERVER)}
sandbox = "off"

[audit]
file = "audit.jsonl"
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[HttpGateway]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    gateway = HttpGateway(folder, CONFIG.format(denied="echo"))
    try:
        yield gateway
        assert gateway.end() == 0
    finally:
        gateway.kill()


def watched(gateway: HttpGateway, number: int) -> list[dict[str, Any]]:
    """What is recorded of so many calls, once it is."""
    end = time.monotonic() + 30
    while len(records := [record for record in gateway.audit() if "tool" in record]) < number:
        assert time.monotonic() < end, records
        time.sleep(0.01)
    return records


def test_over_http_nothing_is_changed_and_all_is_recorded(gateway: HttpGateway) -> None:
    session = gateway.opened("alice")
    for number, tool in enumerate(("echo", "other", "for_alice"), 1):
        status, _, body = gateway.ask("alice", call(number, tool, a=1), session)
        assert (status, "Blocked" in body, "hook" in body) == (200, False, False)
    records = watched(gateway, 3)
    assert {record["decision"] for record in records} == {"allow"}
    by_tool = {record["tool"]: record["monitor"] for record in records}
    assert (by_tool["echo"]["decision"], by_tool["echo"]["by"]) == ("deny", "echo")
    assert (by_tool["for_alice"]["decision"], by_tool["for_alice"]["by"]) == ("deny", "for_alice")
    assert (by_tool["other"]["decision"], by_tool["other"]["would"]) == ("allow", ["commented on"])
    message, headers = stateless("echo", a=1)
    assert gateway.ask("alice", message, headers=headers)[0] == 200
    assert watched(gateway, 4)[-1]["monitor"]["decision"] == "deny"


async def test_over_a_unix_socket_a_reload_watches_something_else(gateway: HttpGateway, scene: Scene) -> None:
    agent = scene.start([HOOKPROXY, "connect", "tools", "--socket", str(gateway.socket)])
    await agent.initialize()
    assert text_of(await agent.ask(unix_call(1, "echo", a=1)))
    assert watched(gateway, 1)[0]["monitor"]["by"] == "echo"
    gateway.reload(CONFIG.format(denied="another"))
    assert text_of(await agent.ask(unix_call(2, "echo", a=1)))
    assert watched(gateway, 2)[1]["monitor"]["decision"] == "allow"
    gateway.reload(CONFIG.format(denied="echo").replace('mode = "monitor"', 'mode = "enforce"', 1))
    response = await agent.ask(unix_call(3, "echo", a=1))
    assert "Blocked" in json.dumps(response)
