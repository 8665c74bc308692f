"""Kiro's names of tools, and its matchers: globs in agent files, else regular expressions and categories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings
from ...policy import matchers

SHELL: Final = ("execute_bash", "execute_pwsh", "shell")
READ: Final = ("fs_read", "read_file", "read")
CREATE: Final = ("fs_write", "create_file", "write")
EDIT: Final = ("str_replace", "fs_write", "edit_file", "write")
_WEB: Final = ("web_fetch", "web_search", "use_web")
"""The names of Kiro's own tools in its versions, the most usual of each form first: the CLI's and the IDE's."""

_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": (*READ, "list_directory", "grep_search", "file_search"),
    "write": (*CREATE, *EDIT),
    "shell": SHELL,
    "web": _WEB,
    "spec": (),
}


def _named(*names: str) -> tuple[ToolSpelling, ...]:
    return tuple(map(ToolSpelling, names))


TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": _named(*SHELL),
    "Read": _named(*READ),
    "LS": _named("list_directory", "fs_read", "read"),
    "Glob": _named("file_search", "fs_read", "read"),
    "Grep": _named("grep_search", "fs_read", "read"),
    "Write": _named(*CREATE),
    "Edit": _named(*EDIT),
    "MultiEdit": _named(*EDIT),
    "WebFetch": _named("web_fetch", "use_web"),
    "WebSearch": _named("web_search", "use_web"),
}
"""Arguments keep Claude Code's names here: `input` gives them the form that each of Kiro's tools has."""

BUILT_IN: Final = frozenset(spelling.name for spellings in TOOL_SPELLINGS.values() for spelling in spellings)


def mcp_tool_name(server: str, tool: str) -> str:
    """The name that Kiro gives to a server's tool."""
    return f"@{server}/{tool}"


_GLOB: Final = re.compile(
    r"""
      (?P<folders>(?:^|(?<=/))\*\*/)                 # any number of folders, or none
    | (?P<any>\*+)                                   # any text, with slashes
    | \[(?P<negated>[!^]?)(?P<class>\]?[^\]]*)\]
    | \\(?P<escaped>.)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _glob_expression(pattern: str) -> str:
    """A glob as a regular expression. Raises re.error."""
    parts: list[str] = []
    depth = 0
    for token in _GLOB.finditer(pattern):
        if token["class"] is not None:
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", token["class"])
            parts.append(f"[{'^' if token['negated'] else ''}{members}]")
        elif token["other"] is None:
            parts.append("(?:.*/)?" if token["folders"] else ".*" if token["any"] else re.escape(token["escaped"]))
        else:
            character = token["other"]
            depth += {"{": 1, "}": -1}.get(character, 0)
            in_braces = {"{": "(?:", "}": ")", ",": "|"} if depth or character == "}" else {}
            parts.append({"?": ".", **in_braces}.get(character) or re.escape(character))
            if depth < 0 or character in "[\\":
                raise re.error(f"the glob has {character} without its other half")
    if depth:
        raise re.error("the glob has { without its other half")
    return "".join(parts)


def agent_matcher(pattern: str) -> Callable[[str], bool]:
    """A matcher of an agent file: all, `@builtin`, `@server`, or a tool's name, in which `*` and `?` are wild.

    A name with one of these is a glob of Rust's globset, also with `{a,b}`, `[a-c]`, `[!a]`, `[^a]` and `\\`. Raises
    re.error for one that is not valid.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    if pattern == "@builtin":
        return lambda name: not name.startswith("@")
    if not {"*", "?"}.isdisjoint(pattern):
        glob = re.compile(_glob_expression(pattern), re.DOTALL)
        return lambda name: glob.fullmatch(name) is not None
    if pattern.startswith("@") and "/" not in pattern:
        return lambda name: name.startswith(f"{pattern}/")
    return lambda name: name == pattern


def regex_matcher(pattern: str) -> Callable[[str], bool]:
    """A matcher of the other forms: categories of Kiro's own tools, and a regular expression for the rest of it.

    Kiro's pages do not say how a prefix (`@mcp`, `@powers`, `@builtin`) and the expression after it combine, nor how an
    expression sees the name of a server's tool. It matches if it does so in one of the ways that there are: a guard
    that runs once too often is better than one that does not run. Raises re.error, OverflowError.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    words = [word.strip() for word in pattern.split("|")]
    names = frozenset(name for word in words for name in _CATEGORIES.get(word, ()))
    if "*" in words:
        return lambda _name: True
    rest = "|".join(word for word in words if word not in _CATEGORIES) if names or "spec" in words else pattern
    if not rest:
        return lambda name: name in names
    matches = matchers.javascript_regex(rest)
    return lambda name: name in names or any(map(matches, _spellings(name)))


def any_of(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A list of such matchers, as IDE 0.x has them. Raises re.error, OverflowError."""
    compiled = [regex_matcher(pattern) for pattern in patterns]
    return lambda name: not compiled or any(matches(name) for matches in compiled)


def _spellings(name: str) -> Iterator[str]:
    """What an expression may be tried on for a tool of this name."""
    yield name
    server, slash, tool = name.removeprefix("@").partition("/")
    if name.startswith("@") and slash:
        yield tool
        yield f"mcp_{server}_{tool}"
        for prefix in ("@mcp", "@powers"):  # a power's servers are MCP servers, too
            for between in ("/", "_", "__"):
                yield between.join((prefix, server, tool))
    else:
        yield f"@builtin/{name}"
