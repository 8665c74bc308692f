"""Published servers are recorded in a hookproxy.lock and started many times, and none of them seems to have changed.

Each start spells otherwise what the server says: the order of entries and keys, pages, blanks, escapes. The agent must
get every tool, prompt and template as it is recorded, and hookproxy report nothing.

`restarts.py --permute SEED COMMAND...` is what stands between hookproxy and a server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent import LONGEST_LINE, SECONDS, Agent

LISTS = {
    "tools/list": ("tools", "tools", "name"),
    "prompts/list": ("prompts", "prompts", "name"),
    "resources/templates/list": ("resourceTemplates", "resource_templates", "uriTemplate"),
}
"""By method: the member of its result, that of the lock, and the member that tells entries apart."""
LONGEST_PAGE = 7
"""Entries: most servers have more, so that their lists have several pages."""
BLANKS = ("", "", "", " ", "\t", "  ", "\r")
ESCAPED = (0, 0, 0.01, 0.5)
"""How often a character is an escape, of which a text has one."""
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}, "sampling": {}}
"""What `hookproxy lock` declares: some servers list more then."""
AT_A_TIME = 2
"""Servers: as many as this project's machines have cores."""
AT_START = "no hook and no permission rule is configured"
"""What hookproxy reports here anyhow."""

Message = dict[str, Any]


# --- between hookproxy and a server ---


class Speller:
    """Spells JSON in one of many ways, as its seed has it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def spelled(self, value: object) -> str:
        """The JSON of a value."""
        if isinstance(value, dict):
            members = [f"{self.spelled(key)}{self._blank()}:{self.spelled(of)}" for key, of in value.items()]
            self.random.shuffle(members)
            text = f"{{{self._blank()}{','.join(members)}}}"
        elif isinstance(value, list):
            text = f"[{','.join(map(self.spelled, value))}]"
        elif isinstance(value, str):
            often, as_ascii = self.random.choice(ESCAPED), self.random.random() < 0.5
            text = f'"{"".join(self._character(character, often, as_ascii) for character in value)}"'
        else:
            text = json.dumps(value)
        return f"{self._blank()}{text}{self._blank()}"

    def _blank(self) -> str:
        return self.random.choice(BLANKS)

    def _character(self, character: str, often: float, as_ascii: bool) -> str:
        if self.random.random() >= often:
            return json.dumps(character, ensure_ascii=as_ascii)[1:-1]
        units = character.encode("utf-16-be").hex()
        return "\\/" if character == "/" else "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class PermutingServer:
    """A server whose lists have another order and other pages, and whose messages are spelled otherwise."""

    def __init__(self, seed: int, server: asyncio.subprocess.Process) -> None:
        assert server.stdin
        assert server.stdout
        self._speller = Speller(seed)
        self._to_server, self._from_server = server.stdin, server.stdout
        self._asked: dict[str, asyncio.Future[Message]] = {}  # what we have asked the server, by our ids
        self._left: dict[str, list[Message]] = {}  # what is left of a list, by the cursor

    async def pass_requests(self, agent: asyncio.StreamReader) -> None:
        """Pass the agent's messages on; what it wants listed is asked for here."""
        async with asyncio.TaskGroup() as tasks:
            while line := await agent.readline():
                message = json.loads(line)
                if message.get("method") in LISTS:
                    tasks.create_task(self._list(message))
                else:
                    self._to_server.write(line)
        self._to_server.close()

    async def pass_responses(self) -> None:
        """Pass the server's messages on, but the responses to us."""
        while line := await self._from_server.readline():
            message = json.loads(line)
            asked = None if "method" in message else self._asked.get(str(message.get("id")))
            if asked is None:
                self._send(message)
            else:
                asked.set_result(message)

    async def _list(self, request: Message) -> None:
        method, params = request["method"], request.get("params") or {}
        member, _, _ = LISTS[method]
        if (left := self._left.get(params.get("cursor", ""))) is None:
            left, cursor = [], {}
            while cursor is not None:
                response = await self._ask(method, {**params, **cursor})
                if "error" in response:
                    self._send({**response, "id": request["id"]})
                    return
                left += response["result"][member]
                cursor = {"cursor": after} if (after := response["result"].get("nextCursor")) else None
            self._speller.random.shuffle(left)
        size = self._speller.random.randint(1, LONGEST_PAGE)
        page: Message = {member: left[:size]}
        if left[size:]:
            page["nextCursor"] = f"{member} {request['id']}"
            self._left[page["nextCursor"]] = left[size:]
        self._send({"jsonrpc": "2.0", "id": request["id"], "result": page})

    async def _ask(self, method: str, params: Message) -> Message:
        own_id = f"permuting {len(self._asked)}"
        self._asked[own_id] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": own_id, "method": method, "params": params}
        self._to_server.write(json.dumps(request).encode() + b"\n")
        return await self._asked[own_id]

    def _send(self, message: Message) -> None:
        sys.stdout.buffer.write(self._speller.spelled(message).encode() + b"\n")
        sys.stdout.buffer.flush()


async def permute(seed: int, command: Sequence[str]) -> int:
    """Stand between standard input and output and a server. Returns its exit status."""
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST_LINE)
    permuting, agent = PermutingServer(seed, server), asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(agent), sys.stdin)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(permuting.pass_requests(agent))
        tasks.create_task(permuting.pass_responses())
    return await server.wait()


# --- the servers, started again and again ---


class Seen(NamedTuple):
    """What the starts of one server were like."""

    entries: int
    """How many are recorded."""
    alarms: list[str]
    """What hookproxy has reported, with the number of the start."""
    missing: list[str]
    """What the agent did not get as it is recorded."""


async def restart_all(
    commands: Mapping[str, Sequence[str]], hookproxy: Path, work: Path, folder: Path, times: int
) -> int:
    """Record these servers, start each this many times in `work`, and print what was seen. Returns the exit status."""
    slots = asyncio.Semaphore(AT_A_TIME)

    async def restart(name: str) -> bool:
        async with slots:
            seen = await _restart(name, commands[name], hookproxy, work, folder, times)
        print(f"{name}: {seen.entries} entries, {times} starts, {len(seen.alarms)} alarms, {len(seen.missing)} missing")
        print("".join(f"{line}\n" for line in (*seen.alarms[:20], *seen.missing[:20])), end="", flush=True)
        return bool(seen.alarms or seen.missing)

    return int(any(await asyncio.gather(*map(restart, commands))))


async def _restart(name: str, command: Sequence[str], hookproxy: Path, work: Path, folder: Path, times: int) -> Seen:
    lock, config, log = (folder / f"{name}.{ending}" for ending in ("lock", "toml", "log"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "PWD": str(work)}
    options = ["--file", lock, "--name", name, "--timeout", str(SECONDS)]
    with log.open("wb") as errors:
        recording = await asyncio.create_subprocess_exec(
            hookproxy, "lock", *options, "--", *command, cwd=work, env=environment, stdout=errors, stderr=errors
        )
        if await recording.wait():
            return Seen(0, [log.read_text()], [])
    config.write_text(f'[lock]\nfile = "{lock.name}"\n')
    recorded = json.loads(lock.read_text())["servers"][name]
    wanted = {(member, key): pin["text"] for _, member, _ in LISTS.values() for key, pin in recorded[member].items()}
    alarms, missing = [], []
    for number in range(times):
        log.unlink()
        permuting = [sys.executable, __file__, "--permute", str(number), *command]
        run = [hookproxy, "run", "--config", config, "--name", name, "--", *permuting]
        async with Agent(run, work, log, CAPABILITIES) as agent:
            listed = [entry async for entry in _listed(agent)]
        lines = [
            line for line in log.read_text().splitlines() if line.startswith("hookproxy: ") and AT_START not in line
        ]
        alarms += [f"start {number}: {line}" for line in lines]
        got = dict(listed)
        differing = {key for key in wanted.keys() | got.keys() if wanted.get(key) != got.get(key)}
        missing += [f"start {number}: {key}" for key in sorted(differing)]
        if len(got) != len(listed):
            missing.append(f"start {number}: something came twice")
    return Seen(len(wanted), alarms, missing)


async def _listed(agent: Agent) -> AsyncIterator[tuple[tuple[str, str], Message]]:
    """All that the agent gets of the server's lists."""
    for method, (member, of_lock, key) in LISTS.items():
        cursor: Message | None = {}
        while cursor is not None:
            result = (await agent.request(method, cursor)).get("result") or {}
            for entry in result.get(member, ()):
                yield (of_lock, entry[key]), entry
            cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None


if __name__ == "__main__":
    sys.exit(asyncio.run(permute(int(sys.argv[2]), sys.argv[3:])))
