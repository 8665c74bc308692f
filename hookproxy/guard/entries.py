"""What `hookproxy guard install` writes into an agent's hook file: an entry per event that starts the client. Pure."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from ..dialects.agent_side import AgentSide, event_names
from ..dialects.dialect import WrittenEntry
from ..dialects.registry import DIALECTS
from ..model.hooks import Event
from .client import OPEN, PLACES, SECONDS

CLIENT: Final = os.path.join(os.path.dirname(__file__), "client.py")
"""The file that agents start. Its path in a hook file shows that an entry is the guard's."""

INTERPRETER: Final = os.path.realpath(sys.executable)
"""Itself: that of a virtual environment looks for its packages, which the client does not need."""

EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.PERMISSION_REQUEST,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.SESSION_START,
    Event.SESSION_END,
)
"""The events that the guard judges or whose hooks it runs."""

_SECONDS: Final = 600.0  # that the agent waits, where its entries say so: Claude Code's and Codex's own timeout
_SHARE: Final = 0.9  # of that, after which the client gives up: it must say so while the agent still listens

CLOSED: Final = "the guard could not judge this call, so it is refused (fail_closed)"
"""The reason of a refusal without the guard, for agents that read it with the refusal."""


def places(environ: Mapping[str, str]) -> list[str]:
    """The words of a command line that say where the person's configuration is, as it is in this environment."""
    named = (name.removesuffix("=") for name in PLACES)
    return [f"{name}={environ[name]}" for name in named if os.path.isabs(environ.get(name, ""))]


def command(side: AgentSide, socket: str, program: str, where: Sequence[str] = (), *, fails_closed: bool) -> str:
    """The command line of the client for this agent; `program` is the path of hookproxy, `where` are its `places`."""
    words = [INTERPRETER, "-I", "-S", "-E", CLIENT, side.name, socket, program, *where]
    words.append(f"{SECONDS}{patience(side) * _SHARE:g}")
    refusal = side.refuse(CLOSED)
    words += [*([] if fails_closed else [OPEN]), str(refusal.status), refusal.stdout.decode()]
    return shlex.join(words)


def files(side: AgentSide, line: str) -> Mapping[str, str]:
    """The texts of the agent's hook files with nothing but the guard's entries, by their paths in a project."""
    return side.write_hook_file([WrittenEntry(name, line, timeout=_SECONDS) for name in names(side)])


def patience(side: AgentSide) -> float:
    """Seconds that the agent waits for the client: what an entry of ours says, or the system's own timeout."""
    event = names(side)[:1]
    texts = [side.write_hook_file([WrittenEntry(name, "x", timeout=t) for name in event]) for t in (0.0, _SECONDS)]
    return _SECONDS if texts[0] != texts[1] else min(DIALECTS[side.name].default_timeout or _SECONDS, _SECONDS)


def names(side: AgentSide) -> Sequence[str]:
    """The agent's names of the events that it gets entries for."""
    return tuple(dict.fromkeys(name for event in EVENTS for name in event_names(side, event)))
