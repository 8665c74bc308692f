"""What tests of `[flow]` share: calls through a proxy, our own hooks, and labels that cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.own import OWN
from hookproxy.flow.session_labels import SessionLabels
from hookproxy.model.flow import KnownLabels, Reading
from hookproxy.model.hooks import HookSpec
from hookproxy.model.settings import ToolNames
from hookproxy.policy.shared_state import StoreUnavailable
from tests.support.proxy_rig import Rig


async def call(proxy: Rig, number: int, tool: str, **arguments: str) -> None:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    await proxy.agent.send(json.dumps(message).encode() + b"\n")


async def answer(proxy: Rig, text: str) -> dict[str, Any]:
    """The server answers its next call; what the agent gets."""
    request = await proxy.server.message()
    result = {"content": [{"type": "text", "text": text}]}
    await proxy.server.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")
    return await proxy.agent.message()


def text_of(message: dict[str, Any]) -> str:
    return str(message["result"]["content"][-1]["text"])


def own_group(*specs: HookSpec, managed: bool = True) -> Group:
    own = [replace(spec, dialect="hookproxy", fails_closed=True, withholds=True) for spec in specs]
    return Group(OWN, "hooks.toml", tuple(own), ToolNames.BARE, managed=managed)


class AwayLabels(SessionLabels):
    """Labels in a store that cannot be reached."""

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        raise StoreUnavailable("it is away")

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        raise StoreUnavailable("it is away")
