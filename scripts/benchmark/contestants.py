"""Who is measured, and how each is started."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent import Fault, Peer, Placement, Session, Spawner, time_limit

HERE = Path(__file__).resolve().parent
OWN_ENVIRONMENT = HERE.parents[1] / ".bench"
"""Made by scripts/bench: fastmcp, and the echo server where it could be compiled."""

DIRECT, FLOOR, FASTMCP, SPAWN = "direct", "floor", "fastmcp", "spawn + wait"
PLAIN, UNMATCHED = "hookproxy", "hookproxy unmatched"
PRE_HOOK, POST_HOOK = "hookproxy /bin/true", "hookproxy reader"

DRAINED = "drained"
"""The file in which the reading hook leaves how many bytes it got."""

Hooks = dict[str, tuple[str, str]]
"""Event → matcher and command, of a settings.json."""


@dataclass(frozen=True)
class Contestant:
    """A way to reach the echo server; `argv` makes the command from the server's."""

    name: str
    argv: Callable[[list[str]], list[str]]
    slow: bool = False
    """Measured less often, with fewer messages."""
    foreign: bool = False
    """Not ours: its faults are shown, and fail nothing."""


def echo_server() -> list[str]:
    """The echo server's command: the compiled one, else its twin."""
    compiled = OWN_ENVIRONMENT / "echo_server"
    return [str(compiled)] if compiled.exists() else [sys.executable, str(HERE / "echo_server.py")]


def bin_true() -> str:
    """Where the least of all programs is."""
    return "/bin/true" if Path("/bin/true").exists() else "/usr/bin/true"


def drain(folder: Path) -> list[str]:
    """A hook that reads its document to the end, and leaves its length in a file of the folder."""
    return [*echo_server(), "--drain", str(folder / DRAINED)]


def hookproxy(name: str, folder: Path, hooks: Hooks) -> Contestant:
    """The hookproxy of this environment, with the hooks in a settings.json of their own."""
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run"]
    if hooks:
        groups = {
            event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
            for event, (matcher, command) in hooks.items()
        }
        file = folder / f"settings-{len(list(folder.iterdir()))}.json"
        file.write_text(json.dumps({"hooks": groups}, indent=2))
        argv += ["--hooks", f"claude={file}"]
    return Contestant(name, lambda server: [*argv, "--", *server])


def all_contestants(folder: Path) -> dict[str, Contestant]:
    """By name; hook files are written into the folder."""
    true, elsewhere = bin_true(), "mcp__other__.*"
    fastmcp = [str(OWN_ENVIRONMENT / "bin" / "python"), str(HERE / "fastmcp_proxy.py")]
    floor = [sys.executable, str(HERE / "floor.py")]
    listed = [
        Contestant(DIRECT, lambda server: server),
        Contestant(FLOOR, lambda server: floor + server),
        hookproxy(PLAIN, folder, {}),
        hookproxy(UNMATCHED, folder, {"PreToolUse": (elsewhere, true), "PostToolUse": (elsewhere, true)}),
        hookproxy(PRE_HOOK, folder, {"PreToolUse": ("mcp__.*__echo", true)}),
        hookproxy(POST_HOOK, folder, {"PostToolUse": ("mcp__.*__many", shlex.join(drain(folder)))}),
        Contestant(SPAWN, lambda _: [sys.executable, str(HERE / "spawner.py")]),
        Contestant(FASTMCP, lambda server: fastmcp + server, slow=True, foreign=True),
    ]
    return {contestant.name: contestant for contestant in listed}


def start(contestant: Contestant, placement: Placement, folder: Path, boot_ms: int = 0) -> Peer:
    """Start it in front of a fresh echo server; raises Fault. Its standard error goes to the folder."""
    server = echo_server() + placement.server_options
    if boot_ms:
        server += ["--boot-ms", str(boot_ms)]
    kind = Spawner if contestant.name == SPAWN else Session
    log = folder / f"{contestant.name.replace('/', '-')}.stderr"
    with time_limit():
        return kind(contestant.argv(server), placement, log)


def try_out(contestant: Contestant, placement: Placement, folder: Path) -> str | None:
    """Why the contestant cannot take part, if so. Afterwards its compiled modules are cached and warm."""
    peer = None
    try:
        peer = start(contestant, placement, folder)
        with time_limit():
            if isinstance(peer, Session):
                peer.latencies(1)
        return None
    except Fault as fault:
        return str(fault)
    finally:
        if peer:
            peer.stop()
