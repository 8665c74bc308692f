"""`hookproxy demo`: shows an agent, a server and three hooks at work. Everything that it shows has really happened.

The agent's side is what the agent sent and got. The hooks' verdicts come from the audit file that `run` writes. What
the server received comes from the server's own record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import msgspec
from msgspec import Struct

from ..audit.records import CallRecord, HookRun, read
from ..demo.received import FOLDER, Received
from .common import show
from .layout import Page, new_page
from .options import Parser
from .progress import waiting

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

Step: TypeAlias = tuple[str, str, str]
"""Who did something, what it was, and the style of that."""

_MARGIN: Final = 17  # the width of labels: "server received" and two blanks
_WIDTH: Final = 80  # columns of a heading, where there is no terminal


class DemoCall(Struct, frozen=True):
    """One call as the agent, the hooks and the server saw it."""

    tool: str
    arguments: dict[str, object]
    record: CallRecord
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
    options = build_parser().parse_args(list(arguments))
    with TemporaryDirectory(prefix="hookproxy-demo-") as folder, waiting("the agent's calls"):
        calls = anyio.run(_make_calls, Path(folder))
    page = new_page(short=not options.verbose)
    show_calls(page, calls)
    show(page.text)
    return 0


def show_calls(page: Page, calls: Sequence[DemoCall]) -> None:
    """Show what happened: all of it, or where there is room for some lines only, what makes the calls differ."""
    if page.most:
        page.line("An agent calls the tools of a server. Three hooks stand between them:")
        for number, call in enumerate(calls, 1):
            _show_call(page, number, call, _decisive_steps(call))
        page.begin_end()
        page.line(("hookproxy demo --verbose shows every step, and where these hooks are", "dim"))
        return
    page.line("An agent calls the tools of a server through")
    page.line(("  hookproxy run --hooks claude=settings.json --fail-closed -- SERVER", "bold"))
    page.line("The server, the three hooks and their settings.json are in")
    page.line(f"  {FOLDER}")
    page.line()
    for number, call in enumerate(calls, 1):
        _show_call(page, number, call, _steps(call))
        page.line()


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser("demo", "Show an agent, a server and three hooks at work.")
    parser.add_common("--verbose")
    return parser


async def _make_calls(folder: Path) -> list[DemoCall]:
    """Make the calls through a real `hookproxy run`, and collect what each side has seen."""
    from mcp import Client  # takes half a second, which --help does not need

    audit, record_file = folder / "audit.jsonl", folder / "received.jsonl"
    record_file.touch()  # it stays empty if hooks block every call
    with anyio.fail_after(TIMEOUT):
        async with Client(_server(folder, audit, record_file)) as agent:
            results = [await agent.call_tool(tool, arguments) for tool, arguments in CALLS]
    records = [record for record in read(str(audit)) if isinstance(record, CallRecord)]
    received = {call.id: call for call in msgspec.json.Decoder(Received).decode_lines(record_file.read_bytes())}
    return [
        DemoCall(tool, arguments, record, received.get(msgspec.json.decode(record.id, type=int | str)), result)
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


def _show_call(page: Page, number: int, call: DemoCall, steps: Iterable[Step]) -> None:
    """Show these steps of a call below a heading."""
    outcome, colour = call.outcome
    heading = f"{number}  {outcome}"
    page.line((heading, f"bold {colour}"), (f" {'-' * ((page.width or _WIDTH) - len(heading) - 1)}", colour))
    for label, text, style in steps:
        page.row((label.ljust(_MARGIN), "dim"), text, style)


def _decisive_steps(call: DemoCall) -> Iterator[Step]:
    """What was sent, what hooks said to it, and what came of it: at the server if a hook has changed it on the way."""
    yield "agent sent", _call_text(call.tool, call.arguments), ""
    for hook in call.record.hooks:
        if hook.verdict != "none":
            yield _hook_step(hook, with_details=False)
    if call.received is None:
        yield "server received", "nothing", "red"
    elif call.received.arguments != call.arguments:
        yield "server received", _call_text(call.received.tool, call.received.arguments), "yellow"
    else:
        yield from _result_steps(call)


def _steps(call: DemoCall) -> Iterator[Step]:
    """All that was done."""
    yield "agent sent", _call_text(call.tool, call.arguments), ""
    yield from map(_hook_step, (hook for hook in call.record.hooks if hook.event == "PreToolUse"))
    if call.received is None:
        yield "server received", "nothing", "red"
    else:
        text, same = _call_text(call.received.tool, call.received.arguments), call.received.arguments == call.arguments
        yield "server received", f"{text}  ({'unchanged' if same else 'rewritten'})", "" if same else "yellow"
    yield from map(_hook_step, (hook for hook in call.record.hooks if hook.event != "PreToolUse"))
    yield from _result_steps(call)
    yield from (("  and", comment, "cyan") for comment in call.comments)


def _result_steps(call: DemoCall) -> Iterator[Step]:
    """What the agent got, without what hooks added to it."""
    result = "\n".join(call.texts[: -len(call.comments) or None])
    yield "agent got", f"{result}  (isError)" if call.result.is_error else result, "red" * call.result.is_error


def _hook_step(hook: HookRun, *, with_details: bool = True) -> Step:
    """The name of a hook's script, and its verdict with its reason or comments."""
    verdict, style = _VERDICTS[hook.verdict]
    comments = "\n".join(filter(None, (hook.reason, *hook.feedback)))
    details = f"{verdict} ({hook.event}, exit {hook.exit}, {hook.ms:.0f} ms)" if with_details else verdict
    return Path(hook.command.split()[-1]).name, f"{details}: {comments}" if comments else details, style


def _call_text(tool: str, arguments: dict[str, object]) -> str:
    """A call on one line."""
    return "  ".join((tool, *(f"{name}={json.dumps(value)}" for name, value in arguments.items())))
