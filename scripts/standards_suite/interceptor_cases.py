"""Plays the working group's cases of MCP interceptors: our server answers, our client asks, and our chain decides.

The cases and how they are played are described by `conformance/ADAPTER.md` of
modelcontextprotocol/experimental-ext-interceptors (Apache-2.0). Nothing of them is kept here.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from hookproxy.model.hooks import Event, HookSpec
from hookproxy.protocol import interceptors as wire
from hookproxy.runners.interceptor_chain import run_chain
from hookproxy.runners.interceptor_server import InterceptorServer, ProcessConnection

PAGE = Path(__file__).resolve().parents[2] / "docs/standards.md"
ROW = re.compile(r"(?<=\| MCP interceptors \(SEP-2624\) \| )[^|]*(?= \|)")
BEHAVIOURS = Path(__file__).parent / "behaviours.py"
SECONDS = 30
"""For one case: its server starts in a second on a busy machine."""


def cases_in(folder: Path) -> dict[str, dict[str, Any]]:
    """All cases below a folder, by their ids: one in a file, or a list `fixtures` of several."""
    cases: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        several = document.get("fixtures", [document]) if isinstance(document, dict) else []
        for case in several:
            if isinstance(case, dict) and "steps" in case:
                cases[case["id"]] = case
    return cases


async def play(case: dict[str, Any]) -> list[str]:
    """What the case found wrong, a sentence each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.json"
        file.write_text(json.dumps(case), "utf-8")
        argv = (sys.executable, str(BEHAVIOURS), str(file))
        spec = HookSpec("hookproxy", "case", Event.PRE_TOOL_USE, case["id"], argv=argv, type="interceptor")
        connection = ProcessConnection(spec, lambda _spec, _text: None)
        server = InterceptorServer(connection)
        connection.on_end = server.forget
        try:
            async with asyncio.timeout(SECONDS):
                await server.descriptors()
                return [wrong for step in case["steps"] for wrong in await failures(case, step, connection, server)]
        finally:
            await server.aclose()


async def failures(
    case: dict[str, Any], step: dict[str, Any], connection: ProcessConnection, server: InterceptorServer
) -> list[str]:
    """What one step found wrong."""
    expected, volatile = step["expect"], set(case.get("volatile", ()))
    if step["op"] in ("chain", "apply"):
        return await chain_failures(step, server)
    if step["op"] == "list":
        params = {} if step.get("event") is None else {"event": step["event"]}
        answer = await connection.request(wire.LIST, params)
    else:
        answer = await connection.request(wire.INVOKE, step["params"])
    given = {key: msgspec.json.decode(value) for key, value in answer.items()}
    if "errorCode" in expected:
        code = given.get("error", {}).get("code")
        return [] if code == expected["errorCode"] else [f"error {code} instead of {expected['errorCode']}"]
    wanted = json.loads(expected["canonical"]) if "canonical" in expected else expected["result"]
    result = without(given.get("result"), volatile)
    return [] if result == wanted else [f"{canonical(result)} instead of {canonical(wanted)}"]


async def chain_failures(step: dict[str, Any], server: InterceptorServer) -> list[str]:
    """As `failures`, of a step in which all interceptors judge a message."""
    expected = step["expect"]
    descriptors = await server.descriptors()
    context = step.get("context") or {}

    async def invoke(place: int, payload: bytes) -> wire.Outcome:
        descriptor = descriptors[place]
        params = wire.invocation(descriptor.name, step["event"], step["phase"], payload, SECONDS, context)
        return await server.invoke(descriptor, step["phase"], params)

    payload = json.dumps(step["payload"]).encode()
    result = await run_chain(descriptors, step["event"], step["phase"], payload, invoke, lambda *_: None)
    decision = "deny" if result.blocked else "allow"
    if decision != expected["decision"]:
        return [f"{decision} instead of {expected['decision']} {result.blocked}"]
    final = json.loads(result.payload)
    text = canonical(final)
    wrong = []
    if "finalPayload" in expected and final != expected["finalPayload"]:
        wrong.append(f"{text} instead of {canonical(expected['finalPayload'])}")
    wrong += [f"{each!r} is still there" for each in expected.get("forbids", ()) if each in text]
    return wrong + [f"{each!r} is missing" for each in expected.get("requires", ()) if each not in text]


def without(value: object, volatile: set[str]) -> object:
    """The value without the members that may differ."""
    if isinstance(value, list):
        return [without(item, volatile) for item in value]
    if isinstance(value, dict):
        return {key: without(item, volatile) for key, item in value.items() if key not in volatile}
    return value


def canonical(value: object) -> str:
    """As RFC 8785 writes it, for what occurs in cases."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def main(folder: Path, *, write: bool) -> int:
    """Play all cases in the folder. Returns the exit status: 0 all passed, 1 some did not, 2 there is none."""
    passed, cases = 0, cases_in(folder)
    for name, case in sorted(cases.items()):
        try:
            wrong = asyncio.run(play(case))
        except Exception as problem:  # a case that cannot be played has failed
            wrong = [repr(problem)]
        passed += not wrong
        print(f"{'FAILED' if wrong else 'passed'}  {name}", *(f"        {text}" for text in wrong), sep="\n")
    if not cases:
        print(f"error: no case in {folder}\nhint: it holds *.json files with steps", file=sys.stderr)
        return 2
    print(f"{passed} of {len(cases)} passed")
    if write:
        PAGE.write_text(ROW.sub(f"{passed} of {len(cases)}", PAGE.read_text("utf-8")), "utf-8")
    return 0 if passed == len(cases) else 1
