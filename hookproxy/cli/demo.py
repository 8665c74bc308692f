"""`hookproxy demo`: an agent, a server and three hooks at work. All that it shows has happened: nothing is made up.

The agent's side is what the agent sent and got; what hooks said stands in the audit that `run` writes; what the
server received, in the server's own record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from ..demo.received import FOLDER, Received
from .common import parser, show

if TYPE_CHECKING:
    import argparse

    from mcp import StdioServerParameters, types

LONGEST: Final = 30.0  # seconds: the demo takes two; what hangs longer than this would hang for ever

CALLS: Final[Sequence[tuple[str, dict[str, object]]]] = (
    ("write_file", {"path": "todo.md", "text": "- buy milk"}),
    ("write_file", {"path": "keys.md", "text": "key: sk-live-51Hx9TqLm27\n"}),
    ("delete_file", {"path": ".env"}),
    ("read_file", {"path": "plan.md"}),
)
"""What the agent wants: all that the demo fixes. Everything else follows from it."""

_VERDICTS: Final = {
    "none": ("said nothing", "dim"),
    "comment": ("comments", "cyan"),
    "replace": ("replaces", "yellow"),
    "rewrite": ("rewrites", "yellow"),
    "allow": ("allows", "green"),
    "ask": ("asks", "yellow"),
    "deny": ("blocks", "red"),
    "trouble": ("failed", "red"),
}

_MARGIN: Final = " " * 17  # what labels take: "server received" and two blanks


class Said(msgspec.Struct, frozen=True):
    """One hook's part in a call, as the audit has it."""

    event: str
    command: str
    exit: int
    ms: float
    verdict: str
    reason: str
    feedback: list[str]

    @property
    def name(self) -> str:
        """The file that it is written in."""
        return Path(self.command.split()[-1]).name


class Audited(msgspec.Struct, frozen=True):
    """One line of the audit."""

    id: int | str
    hooks: list[Said]
    changed: list[str]
    decision: str
    result: str


class Call(Struct, frozen=True):
    """One call as each of the four saw it."""

    tool: str
    arguments: dict[str, object]
    audited: Audited
    received: Received | None
    """None: it never reached the server."""
    got: types.CallToolResult

    @property
    def outcome(self) -> tuple[str, str]:
        """What became of it, in a word, and the colour of that."""
        if self.audited.decision == "deny":
            return "blocked", "red"
        if self.audited.result == "error":
            return "failed", "magenta"
        if "arguments" in self.audited.changed:
            return "rewritten", "yellow"
        return "allowed", "green"

    @property
    def texts(self) -> list[str]:
        """What the agent's model reads."""
        return [block.text for block in self.got.content if block.type == "text"]

    @property
    def comments(self) -> list[str]:
        """What it reads beyond what the server answered."""
        return self.texts[len(self.received.answer) :] if self.received else []


def main(arguments: Sequence[str]) -> int:
    """Play the demo and show it."""
    options().parse_args(list(arguments))
    with TemporaryDirectory(prefix="hookproxy-demo-") as folder:
        calls = anyio.run(_play, Path(folder))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(_introduction())
        for number, call in enumerate(calls, 1):
            _show(console, number, call)
    show(captured.get())  # rich itself would end us with 1 where nobody reads
    return 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    return parser("demo", "hookproxy demo", "Show an agent, a server and three hooks at work.")


async def _play(folder: Path) -> list[Call]:
    """Make the calls through a real `hookproxy run`, and gather what each side has seen."""
    from mcp import Client  # half a second, which --help need not pay

    audit, record = folder / "audit.jsonl", folder / "received.jsonl"
    record.touch()  # it stays empty where hooks block every call
    with anyio.fail_after(LONGEST):
        async with Client(_server(folder, audit, record)) as agent:
            results = [await agent.call_tool(tool, arguments) for tool, arguments in CALLS]
    audited = msgspec.json.Decoder(Audited).decode_lines(audit.read_bytes())
    received = {one.id: one for one in msgspec.json.Decoder(Received).decode_lines(record.read_bytes())}
    return [
        Call(tool, arguments, line, received.get(line.id), result)
        for (tool, arguments), line, result in zip(CALLS, audited, results, strict=True)
    ]


def _server(folder: Path, audit: Path, record: Path) -> StdioServerParameters:
    """What an agent's configuration would say: the server's command line, after hookproxy's own."""
    from mcp import StdioServerParameters

    hookproxy = ["-m", "hookproxy", "run", "--name", "files", "--hooks", f"claude={FOLDER / 'settings.json'}"]
    server = [sys.executable, "-m", "hookproxy.demo.server", str(record)]
    return StdioServerParameters(
        command=sys.executable,
        args=[*hookproxy, "--audit", str(audit), "--", *server],
        cwd=folder,  # `-m` would find modules of the user's in the user's folder first
        env={
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),  # python3
            "XDG_CONFIG_HOME": str(folder),  # the user's own hooks stay out of it
        },
    )


def _introduction() -> Text:
    return Text.assemble(
        "An agent calls the tools of a server through\n  ",
        ("hookproxy run --hooks claude=settings.json -- SERVER", "bold"),
        f"\nThe server, the three hooks and their settings.json are in\n  {FOLDER}\n",
    )


def _show(console: Console, number: int, call: Call) -> None:
    """Print a call from top to bottom, as it went."""
    word, colour = call.outcome
    console.print(Rule(f"[bold {colour}]{number}  {word}[/]", style=colour, align="left"))
    for label, text in _rows(call):
        lines = text.wrap(console, max(console.width - len(_MARGIN), 20))
        for at, line in enumerate(lines):
            console.print((label if at == 0 else "").ljust(len(_MARGIN)), style="dim", end="")
            line.rstrip()
            console.print(line, soft_wrap=True)
    console.print()


def _rows(call: Call) -> Iterator[tuple[str, Text]]:
    before = [said for said in call.audited.hooks if said.event == "PreToolUse"]
    after = [said for said in call.audited.hooks if said.event != "PreToolUse"]
    yield "agent sent", _called(call.tool, call.arguments, call.arguments)
    for said in before:
        yield said.name, _said(said)
    yield "server received", _received(call)
    for said in after:
        yield said.name, _said(said)
    own = "\n".join(call.texts[: -len(call.comments) or None])
    yield "agent got", Text.assemble(own, ("  (isError)", "red") if call.got.is_error else "")
    for comment in call.comments:
        yield "  and", Text(comment, "cyan")


def _said(said: Said) -> Text:
    """What one hook said: its verdict and what it gave as reason or comment."""
    verdict, colour = _VERDICTS[said.verdict]
    words = "\n".join(text for text in (said.reason, *said.feedback) if text)
    run = f" ({said.event}, exit {said.exit}, {said.ms:.0f} ms)"
    return Text.assemble((verdict, colour), (run, "dim"), f": {words}" if words else "")


def _received(call: Call) -> Text:
    if call.received is None:
        return Text("nothing", "red")
    text = _called(call.received.tool, call.received.arguments, call.arguments)
    same = call.received.arguments == call.arguments
    return text.append("  (unchanged)" if same else "  (rewritten)", "dim" if same else "yellow")


def _called(tool: str, arguments: dict[str, object], sent: dict[str, object]) -> Text:
    """A call in one line; what the agent did not send stands out."""
    text = Text.assemble((tool, "bold"))
    for name, value in arguments.items():
        text.append(f"  {name}=").append(json.dumps(value), "" if value == sent.get(name) else "yellow")
    return text
