"""`hookproxy demo`: shows an agent, a server and three hooks at work. Everything that it shows has really happened.

The agent's side is what the agent sent and got. The hooks' verdicts come from the audit file that `run` writes. What
the server received comes from the server's own record.
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
from .common import show
from .options import Parser

if TYPE_CHECKING:
    from mcp import StdioServerParameters, types

TIMEOUT: Final = 30.0  # seconds: the demo takes two; after this time, something hangs for ever

CALLS: Final[Sequence[tuple[str, dict[str, object]]]] = (
    ("write_file", {"path": "todo.md", "text": "- buy milk"}),
    ("write_file", {"path": "keys.md", "text": "key: sk-live-51Hx9TqLm27\n"}),
    ("delete_file", {"path": ".env"}),
    ("read_file", {"path": "plan.md"}),
)
"""The agent's calls: this is all that the demo prescribes. Everything else follows from it."""

_VERDICTS: Final = {
    "none": ("gives no verdict", "dim"),
    "comment": ("comments", "cyan"),
    "replace": ("replaces", "yellow"),
    "rewrite": ("rewrites", "yellow"),
    "allow": ("allows", "green"),
    "ask": ("asks", "yellow"),
    "deny": ("blocks", "red"),
    "trouble": ("failed", "red"),
}

_MARGIN: Final = " " * 17  # the width of labels: "server received" and two blanks


class HookRecord(msgspec.Struct, frozen=True):
    """One hook's part in a call, as the audit file has it."""

    event: str
    command: str
    exit: int
    ms: float
    verdict: str
    reason: str
    feedback: list[str]

    @property
    def name(self) -> str:
        """The name of its script."""
        return Path(self.command.split()[-1]).name


class AuditRecord(msgspec.Struct, frozen=True):
    """One line of the audit file."""

    id: int | str
    hooks: list[HookRecord]
    changed: list[str]
    decision: str
    result: str


class DemoCall(Struct, frozen=True):
    """One call as the agent, the hooks and the server saw it."""

    tool: str
    arguments: dict[str, object]
    record: AuditRecord
    received: Received | None
    """None if the call did not reach the server."""
    result: types.CallToolResult

    @property
    def outcome(self) -> tuple[str, str]:
        """The outcome in a word, and its colour."""
        if self.record.decision == "deny":
            return "blocked", "red"
        if self.record.result == "error":
            return "failed", "magenta"
        if "arguments" in self.record.changed:
            return "rewritten", "yellow"
        return "allowed", "green"

    @property
    def texts(self) -> list[str]:
        """The texts that the agent's model reads."""
        return [block.text for block in self.result.content if block.type == "text"]

    @property
    def comments(self) -> list[str]:
        """The texts that hooks added to the server's result."""
        return self.texts[len(self.received.texts) :] if self.received else []


def main(arguments: Sequence[str]) -> int:
    """Make the calls and show what happened. Returns the exit status."""
    build_parser().parse_args(list(arguments))
    with TemporaryDirectory(prefix="hookproxy-demo-") as folder:
        calls = anyio.run(_make_calls, Path(folder))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(_introduction())
        for number, call in enumerate(calls, 1):
            _show(console, number, call)
    show(captured.get())  # rich itself would exit with status 1 if nobody reads the output
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    return Parser("demo", "hookproxy demo", "Show an agent, a server and three hooks at work.")


async def _make_calls(folder: Path) -> list[DemoCall]:
    """Make the calls through a real `hookproxy run`, and collect what each side has seen."""
    from mcp import Client  # takes half a second, which --help does not need

    audit, record_file = folder / "audit.jsonl", folder / "received.jsonl"
    record_file.touch()  # it stays empty if hooks block every call
    with anyio.fail_after(TIMEOUT):
        async with Client(_server(folder, audit, record_file)) as agent:
            results = [await agent.call_tool(tool, arguments) for tool, arguments in CALLS]
    records = msgspec.json.Decoder(AuditRecord).decode_lines(audit.read_bytes())
    received = {call.id: call for call in msgspec.json.Decoder(Received).decode_lines(record_file.read_bytes())}
    return [
        DemoCall(tool, arguments, record, received.get(record.id), result)
        for (tool, arguments), record, result in zip(CALLS, records, results, strict=True)
    ]


def _server(folder: Path, audit: Path, record_file: Path) -> StdioServerParameters:
    """What an agent's configuration would contain: hookproxy's command line, and then the server's."""
    from mcp import StdioServerParameters

    hookproxy = ["-m", "hookproxy", "run", "--name", "files", "--hooks", f"claude={FOLDER / 'settings.json'}"]
    project = ["--project", str(FOLDER)]  # the hooks are written for this folder, and are started in another one
    server = [sys.executable, "-m", "hookproxy.demo.server", str(record_file)]
    return StdioServerParameters(
        command=sys.executable,
        args=[*hookproxy, *project, "--fail-closed", "--audit", str(audit), "--", *server],
        cwd=folder,  # in the user's folder, `-m` would first find the user's own modules
        env={
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),  # python3
            "XDG_CONFIG_HOME": str(folder),  # so that the user's own hooks do not run
            "XDG_STATE_HOME": str(folder),  # so that nothing is left behind
        },
    )


def _introduction() -> Text:
    return Text.assemble(
        "An agent calls the tools of a server through\n  ",
        ("hookproxy run --hooks claude=settings.json --fail-closed -- SERVER", "bold"),
        f"\nThe server, the three hooks and their settings.json are in\n  {FOLDER}\n",
    )


def _show(console: Console, number: int, call: DemoCall) -> None:
    """Print the steps of a call in their order."""
    outcome, colour = call.outcome
    console.print(Rule(f"[bold {colour}]{number}  {outcome}[/]", style=colour, align="left"))
    for label, text in _rows(call):
        lines = text.wrap(console, max(console.width - len(_MARGIN), 20))
        for at, line in enumerate(lines):
            console.print((label if at == 0 else "").ljust(len(_MARGIN)), style="dim", end="")
            line.rstrip()
            console.print(line, soft_wrap=True)
    console.print()


def _rows(call: DemoCall) -> Iterator[tuple[str, Text]]:
    before = [hook for hook in call.record.hooks if hook.event == "PreToolUse"]
    after = [hook for hook in call.record.hooks if hook.event != "PreToolUse"]
    yield "agent sent", _call_text(call.tool, call.arguments, call.arguments)
    for hook in before:
        yield hook.name, _hook_text(hook)
    yield "server received", _received_text(call)
    for hook in after:
        yield hook.name, _hook_text(hook)
    result = "\n".join(call.texts[: -len(call.comments) or None])
    yield "agent got", Text.assemble(result, ("  (isError)", "red") if call.result.is_error else "")
    for comment in call.comments:
        yield "  and", Text(comment, "cyan")


def _hook_text(hook: HookRecord) -> Text:
    """One hook's verdict, with its reason or comments."""
    verdict, colour = _VERDICTS[hook.verdict]
    comments = "\n".join(text for text in (hook.reason, *hook.feedback) if text)
    details = f" ({hook.event}, exit {hook.exit}, {hook.ms:.0f} ms)"
    return Text.assemble((verdict, colour), (details, "dim"), f": {comments}" if comments else "")


def _received_text(call: DemoCall) -> Text:
    if call.received is None:
        return Text("nothing", "red")
    text = _call_text(call.received.tool, call.received.arguments, call.arguments)
    same = call.received.arguments == call.arguments
    return text.append("  (unchanged)" if same else "  (rewritten)", "dim" if same else "yellow")


def _call_text(tool: str, arguments: dict[str, object], sent: dict[str, object]) -> Text:
    """A call on one line. Arguments that differ from what the agent sent are highlighted."""
    text = Text.assemble((tool, "bold"))
    for name, value in arguments.items():
        text.append(f"  {name}=").append(json.dumps(value), "" if value == sent.get(name) else "yellow")
    return text
