"""Shows which tools of a server hooks see, under which names: a table of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..checks.report import CheckedServer, HookEntry, NameOfTool, names_of_tools
from ..hooks.coverage import MethodCoverage
from ..model.counts import counted
from .layout import MARGIN, Page, Part, alias_text
from .words import columns, wrap

_WIDTH: Final = 80  # columns, also on wider screens: longer lines of a table are hard to read
_MAX_TOOL_WIDTH: Final = 24  # most tools' names
_MIN_HOOKS_WIDTH: Final = 16  # for the label of a hook
_MIN_WIDTH: Final = 7  # of a cell, however narrow the terminal is
_MAX_SHOWN: Final = 200  # characters of a cell: servers choose the names of their tools, which may be very long
_MAKES_BASH: Final = 'guards for Bash do not judge these; as = "Bash" in [tools.NAME] of hookproxy.toml changes that'
_UNREAD: Final = ": requests that nothing judges, because no hook and no rule names their method"
_MAX_UNSEEN: Final = 40  # tools that no hook sees, by name: some lines of them


def print_server(page: Page, server: CheckedServer, entries: Sequence[HookEntry]) -> None:
    """Print what hooks see of the server, or why that is not known."""
    coverage = server.coverage
    if coverage is None:
        page.section(f"tools of {server.name}", iter([("failure", server.failure)]))
        return
    info = f" ({_cut(server.info)})" if server.info not in ("", server.name) else ""
    ruled = [tool for tool in coverage.tools if tool in coverage.ruled]
    of_all = f"of {counted(len(coverage.tools), 'tool')}"
    only_rules = bool(ruled) and not entries
    seen = f"rules are about {len(ruled)} {of_all}" if only_rules else f"hooks see {len(coverage.seen)} {of_all}"
    page.line((f"tools of {server.name}{info}: {seen}", "bold"))
    names = names_of_tools(entries)
    _table(page, [
        ("" if number else tool, _seen_as(name), _hooks(name.hooks))
        for tool in coverage.tools
        for number, name in enumerate(names.get(tool, ()))
    ])  # fmt: skip
    if only_rules:  # that no hook sees the tools is no news where there are no hooks
        _names(page, "no rule", [tool for tool in coverage.tools if tool not in coverage.ruled])
    else:
        _names(page, "unseen", [tool for tool in coverage.tools if tool not in names])
    _names(page, "rules", ruled)
    for covered in server.flow:
        _names(page, covered.kind, covered.tools, f": {covered.summary}")
    _names(page, "hidden", coverage.hidden, ": every call of them would be refused, so the agent does not see them")
    _names(page, "no tool", server.idle_rules, ": rules that match no tool of this server")
    _names(page, "no such", server.unknown_tools, ": tools of [tools.X] that this server does not list")
    _names(page, "values", server.restoring, ": tools that get secrets in the place of placeholders")
    _names(page, "no tool", server.idle_secrets, ": tables that match no tool of this server")
    _names(page, "other", coverage.left_out, f": {_MAKES_BASH}")
    _names(page, "methods", [_judged_by(method) for method in coverage.methods if method.covered])
    flowing = {name for covered in server.flow for name in covered.tools}
    unread = [method.method for method in coverage.methods if not method.covered and method.method not in flowing]
    _names(page, "unread", unread, _UNREAD)
    page.line()


def _judged_by(method: MethodCoverage) -> str:
    """A method, and what judges its requests."""
    names = dict.fromkeys(
        spec.label if name == method.method else f"{spec.label} as {name}" for spec, name in method.seen
    )
    return f"{method.method} by {' and '.join([*names, *(['rules'] if method.ruled else [])])}"


def _seen_as(name: NameOfTool) -> str:
    """A tool's name for hooks, and where it comes from."""
    alias = name.seen.alias
    return name.seen.name if alias is None else alias_text(alias).removeprefix("as ")


def _hooks(entries: Sequence[HookEntry]) -> str:
    """The labels of the hooks, each with its events."""
    events: dict[str, dict[str, None]] = {}
    for entry in entries:
        events.setdefault(entry.label, {})[entry.event] = None
    return ", ".join(f"{label} ({', '.join(names)})" for label, names in events.items())


def _names(page: Page, label: str, tools: Sequence[str], about: str = "") -> None:
    """A row with the names of tools, and what is to be said about them."""
    if not tools:
        return
    more = f" and {len(tools) - _MAX_UNSEEN} more" if len(tools) > _MAX_UNSEEN else ""
    text = ", ".join(_cut(tool) for tool in tools[:_MAX_UNSEEN]) + more + about
    _columns(page, [((label, "dim"), MARGIN - 4), ((text, ""), _width(page) - MARGIN)])


def _table(page: Page, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print a table with a row for each name of a tool."""
    if not rows:
        return
    room = _width(page) - 6  # without the two blanks before each cell
    tool_width = min(max(len(_cut(tool)) for tool, _, _ in rows), _MAX_TOOL_WIDTH)
    name_width = min(max(len(_cut(name)) for _, name, _ in rows), room - tool_width - _MIN_HOOKS_WIDTH)
    widths = (tool_width, name_width, room - tool_width - name_width)
    for cells, style in ((("tool", "seen as", "by"), "dim"), *((cells, "") for cells in rows)):
        _columns(page, [((_cut(cell), style), width) for cell, width in zip(cells, widths, strict=True)])


def _columns(page: Page, cells: Sequence[tuple[Part, int]]) -> None:
    """Print cells side by side, each with its width. What is too long for a cell goes on below.

    A word that is wider than its cell is not broken: the cells after it go on below.
    """
    widths = [max(width, _MIN_WIDTH) for _, width in cells]
    wrapped = [wrap(page.visible(text), width) for ((text, _), _), width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        parts: list[Part] = []
        used = start = 0
        for lines, ((_, style), _), width in zip(wrapped, cells, widths, strict=True):
            start += 2
            if number < len(lines):
                if used > start - 2:
                    page.line(*parts)
                    parts, used = [], 0
                text = lines[number].rstrip()
                parts += [(" " * (start - used), ""), (text, style)]
                used = start + columns(text)
            start += width
        page.line(*parts)


def _width(page: Page) -> int:
    return min(page.width or _WIDTH, _WIDTH)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
