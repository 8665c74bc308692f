"""The methods beside `tools/call` that hooks, rules, limits and the audit can be about, and which patterns name one.

A judged message of another method goes the way of a tool call: the method stands in the place of the tool's name, and
its params in the place of the arguments. No tool call with such a name is judged, so a name says which of both it is.
Whoever selects by names asks here what a pattern means for a method:

- `resources/read`, `prompts/*`, `*/*`: a pattern with a slash names methods, as a glob or, in a matcher, as a part of
  a regular expression.
- `*`, an absent matcher, and whatever else matches every name, mean tools only.
- A familiar name (`Read`, `ReadMcpResourceTool`) means the method, too, unless the pattern matches every name.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from enum import Enum
from typing import Final

from ..model.late_pattern import late_pattern

TOOLS_CALL: Final = "tools/call"
"""The method of tool calls: hooks and rules know these by the tools' names."""


class Direction(Enum):
    """Who sends the requests of a method."""

    FROM_AGENT = "the agent's requests"
    FROM_SERVER = "the server's requests"


JUDGED: Final = {
    "resources/list": Direction.FROM_AGENT,
    "resources/read": Direction.FROM_AGENT,
    "resources/subscribe": Direction.FROM_AGENT,
    "prompts/get": Direction.FROM_AGENT,
    "completion/complete": Direction.FROM_AGENT,
    "sampling/createMessage": Direction.FROM_SERVER,
    "elicitation/create": Direction.FROM_SERVER,
    "roots/list": Direction.FROM_SERVER,
}
"""The methods that can be judged, besides tool calls: all others pass unseen. `subscriptions/listen` (2026-07-28) is
known as `resources/subscribe`."""

SUBSCRIBE: Final = "resources/subscribe"
ROOTS: Final = "roots/list"
_OF_RESOURCES: Final = frozenset({"resources/read", SUBSCRIBE})

UNSEEN: Final = frozenset({
    TOOLS_CALL, "tools/list", "prompts/list", "resources/templates/list", "resources/unsubscribe",
    "subscriptions/listen", "logging/setLevel", "server/discover", "tasks/get", "tasks/result", "tasks/list",
    "tasks/cancel", "tasks/update",
})  # fmt: skip
"""Methods of the protocol by which nothing is judged."""

_NO_NAME: Final = "\0"
"""A name that no tool and no method has: what matches it matches every name."""

_GLOB: Final = late_pattern(r"[\w*?-]+/[\w*?-]+")
_PLAIN: Final = late_pattern(r"[\w -]*")


def is_method(name: str) -> bool:
    """True if this is the name of a method, not of a tool."""
    return name in JUDGED


def has_uri(name: str) -> bool:
    """True if the requests of this method have the URI of a resource."""
    return name in _OF_RESOURCES


def glob_names_method(pattern: str, method: str = "") -> bool:
    """True if the glob over names, as rules and rate limits have it, names this method (empty: some method)."""
    return "/" in pattern and any(fnmatch.fnmatchcase(name.casefold(), pattern.casefold()) for name in _those(method))


def pattern_names_method(pattern: str, method: str = "") -> bool:
    """True if a hook's matcher names this method (empty: some method): by name, as a glob, or as a regular expression.

    Never raises: what is not a regular expression names no method as one.
    """
    if "/" not in pattern:
        return False
    parts = _parts(pattern)
    if any(_GLOB.fullmatch(part) and glob_names_method(part, method) for part in parts):
        return True
    if all(_GLOB.fullmatch(part) or _PLAIN.fullmatch(part) for part in parts):
        return False
    try:
        search = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError):
        return False
    return any(map(search, _those(method))) and not search(_NO_NAME)


def matches_familiar(matches: Callable[[str], bool], name: str) -> bool:
    """True if a pattern means the method that this familiar name stands for: if it does not match every name."""
    return matches(name) and not matches(_NO_NAME)


def without_methods(pattern: str) -> str | None:
    """Return what a matcher says of tools, without the globs that name methods; None: it says nothing of tools.

    A matcher without such a glob stays as it is.
    """
    if "/" not in pattern:
        return pattern
    parts = _parts(pattern)
    others = [part for part in parts if not (_GLOB.fullmatch(part) and glob_names_method(part))]
    if len(others) == len(parts):
        return pattern
    return "|".join(others) if any(others) else None


def _parts(pattern: str) -> list[str]:
    """The alternatives of a matcher; between the names of a list may be commas, too."""
    listed = [part.strip() for part in re.split("[|,]", pattern)]
    if all(_GLOB.fullmatch(part) or _PLAIN.fullmatch(part) for part in listed):
        return listed
    return pattern.split("|")


def _those(method: str) -> tuple[str, ...]:
    return (method,) if method else tuple(JUDGED)
