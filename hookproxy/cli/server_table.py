"""Shows which tools of a server hooks see, under which names: a table of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ..checks.report import CheckedServer, HookEntry, NameOfTool, names_of_tools
from ..model.counts import counted
from .layout import MARGIN, alias_text, print_line, row, visible, wrap

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH: Final = 80  # columns, also on wider screens: longer lines of a table are hard to read
_MAX_TOOL_WIDTH: Final = 24  # most tools' names
_MIN_HOOKS_WIDTH: Final = 16  # for the label of a hook
_MIN_WIDTH: Final = 7  # of a cell, however narrow the terminal is
_MAX_SHOWN: Final = 200  # characters of a cell: servers choose the names of their tools, which may be very long
_MAKES_BASH: Final = 'guards for Bash do not judge these; as = "Bash" in [tools.NAME] of hookproxy.toml changes that'
_MAX_UNSEEN: Final = 40  # tools that no hook sees, by name: some lines of them


def print_server(console: Console, server: CheckedServer, entries: Sequence[HookEntry]) -> None:
    """Print what hooks see of the server, or why that is not known."""
    coverage = server.coverage
    if coverage is None:
        print_line(console, Text(visible(f"tools of {server.name}", console), "bold"))
        row(console, Text("  failure".ljust(MARGIN), "dim"), server.failure)
        print_line(console, Text())
        return
    info = f" ({_cut(server.info)})" if server.info not in ("", server.name) else ""
    seen = f"hooks see {len(coverage.seen)} of {counted(len(coverage.tools), 'tool')}"
    print_line(console, Text(visible(f"tools of {server.name}{info}: {seen}", console), "bold"))
    names = names_of_tools(entries)
    _table(console, [
        ("" if number else tool, _seen_as(one), _hooks(one.hooks))
        for tool in coverage.tools
        for number, one in enumerate(names.get(tool, ()))
    ])  # fmt: skip
    _names(console, "unseen", [tool for tool in coverage.tools if tool not in names])
    _names(console, "rules", [tool for tool in coverage.tools if tool in coverage.ruled])
    _names(console, "no tool", server.idle_rules, ": rules that are about no tool of this server")
    _names(console, "other", coverage.left_out, f": {_MAKES_BASH}")
    print_line(console, Text())


def _seen_as(one: NameOfTool) -> str:
    """A tool's name for hooks, and where it comes from."""
    alias = one.seen.alias
    return one.seen.name if alias is None else alias_text(alias).removeprefix("as ")


def _hooks(entries: Sequence[HookEntry]) -> str:
    """The labels of the hooks, each with its events."""
    events: dict[str, dict[str, None]] = {}
    for entry in entries:
        events.setdefault(entry.label, {})[entry.event] = None
    return ", ".join(f"{label} ({', '.join(names)})" for label, names in events.items())


def _names(console: Console, label: str, tools: Sequence[str], about: str = "") -> None:
    """A row with the names of tools, and what is to be said about them."""
    if not tools:
        return
    more = f" and {len(tools) - _MAX_UNSEEN} more" if len(tools) > _MAX_UNSEEN else ""
    text = ", ".join(_cut(tool) for tool in tools[:_MAX_UNSEEN]) + more + about
    _columns(console, [(label, MARGIN - 4, "dim"), (text, _width(console) - MARGIN, "")])


def _table(console: Console, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print a table with a row for each name of a tool."""
    if not rows:
        return
    room = _width(console) - 6  # without the two blanks before each cell
    tool_width = min(max(len(_cut(tool)) for tool, _, _ in rows), _MAX_TOOL_WIDTH)
    name_width = min(max(len(_cut(name)) for _, name, _ in rows), room - tool_width - _MIN_HOOKS_WIDTH)
    widths = (tool_width, name_width, room - tool_width - name_width)
    for cells, style in ((("tool", "seen as", "by"), "dim"), *((cells, "") for cells in rows)):
        _columns(console, [(_cut(cell), width, style) for cell, width in zip(cells, widths, strict=True)])


def _columns(console: Console, cells: Sequence[tuple[str, int, str]]) -> None:
    """Print cells side by side, each with its width and style. What is too long for a cell goes on below.

    A word that is wider than its cell is not broken: the cells after it go on below.
    """
    widths = [max(width, _MIN_WIDTH) for _, width, _ in cells]
    wrapped = [
        wrap(Text(visible(text, console), style), width) for (text, _, style), width in zip(cells, widths, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        line, start = Text(), 0
        for parts, width in zip(wrapped, widths, strict=True):
            start += 2
            if number < len(parts):
                if line.cell_len > start - 2:
                    print_line(console, line)
                    line = Text()
                line.append(" " * (start - line.cell_len))
                line.append_text(parts[number])
                line.rstrip()
            start += width
        print_line(console, line)


def _width(console: Console) -> int:
    return min(console.width, _WIDTH)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
