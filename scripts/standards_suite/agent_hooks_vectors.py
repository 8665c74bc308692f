"""The vectors of AGENT-HOOKS-0.1: which hookproxy passes, and which are out of its reach, each with the reason."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent_hooks.ctk.runner import VectorResult, load_vectors, run_vector
from agent_hooks_host import HookproxyHost

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/standards.md"
BLOCK: Final = re.compile(r"(?<=<!-- vectors: agent-hooks -->\n).*?(?=<!-- end -->)", re.DOTALL)

DECLARATION: Final = "a host declaration: `hookproxy.toml` is the configuration, and other documents are not read"
STREAMING: Final = "output of a model that is released in parts: it does not pass through MCP"
MODEL: Final = "what an agent does at its own points (`input`, the model's, `output`), which never pass through MCP"
SESSION: Final = (
    "a session that is refused at `agent_startup`: hookproxy reports the denial, and refuses calls, not sessions"
)
FAULT: Final = "an identity provider of the host's own that fails: `jcs-sha256` is the only one here"
NUMBERS: Final = (
    "large numbers in the response of the model, where the provider refuses them first; hookproxy refuses them at"
    " `pre_tool_call`"
)
STARTUP: Final = (
    "all eight points of one host, the tools known at `agent_startup`, and a `sequence` from 0: in MCP, tools are"
    " listed later"
)

OUT_OF_REACH: Final[Mapping[str, str]] = {
    f"AH-CTK-{number}": reason
    for reason, numbers in {
        STARTUP: "001",
        MODEL: "002 003 011 012",
        NUMBERS: "090 091",
        SESSION: "022 074",
        FAULT: "096",
        STREAMING: "110 111 112 113",
        DECLARATION: " ".join(map(str, range(120, 144))),
    }.items()
    for number in numbers.split()
}
"""The vectors that are not played, with what they are about."""


def vectors() -> dict[str, dict[str, Any]]:
    """All vectors of the SDK by their ids."""
    return {vector["id"]: vector for vector in load_vectors()}


def play(vector: dict[str, Any]) -> VectorResult:
    """Run hookproxy for a vector."""
    return asyncio.run(run_vector(HookproxyHost(), vector))


def table(results: Mapping[str, VectorResult], known: Mapping[str, dict[str, Any]]) -> str:
    """The block of the page."""
    passed = [name for name, result in results.items() if result.status == "pass"]
    rows = [f"| passed | {len(passed)} | {_short(passed)} |"]
    for reason in dict.fromkeys(OUT_OF_REACH.values()):
        names = [name for name, why in OUT_OF_REACH.items() if why == reason]
        rows.append(f"| {reason} | {len(names)} | {_short(names)} |")
    about = (
        f"{len(passed)} of {len(known)} vectors pass. The others are out of reach; a row says what they are about:\n"
    )
    return "\n".join((about, "| | vectors | AH-CTK- |", "|---|---|---|", *rows, ""))


def _short(names: list[str]) -> str:
    return ", ".join(name[-3:] for name in sorted(names))


def main(*, write: bool) -> int:
    """Play all vectors that are in reach. Returns the exit status: 1 if one of them fails."""
    known = vectors()
    results = {name: play(vector) for name, vector in known.items() if name not in OUT_OF_REACH}
    for name, result in results.items():
        print(result.status, name, *result.failures, sep="\n        " if result.failures else "  ")
    passed = sum(result.status == "pass" for result in results.values())
    print(f"{passed} of {len(known)} passed, {len(OUT_OF_REACH)} are out of reach")
    if write:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(BLOCK.sub(lambda _found: table(results, known), text), "utf-8")
    return 0 if passed == len(results) else 1
