"""Whom a hook is for: matchers over tool names, and permission rules over whole calls."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Final

from . import wire

_PLAIN: Final = re.compile(r"[A-Za-z0-9_\- ,|]*")
"""A matcher of only these characters is a name or a list of names; any other is a regular expression."""

_JAVASCRIPT: Final = re.compile(
    r"""
      \\k<(?P<reference>\w+)>            # a reference to a named group
    | \\.                                # an escape: the same in both languages
    | (?P<any>\[\^\])                    # a class that excludes nothing
    | (?P<none>\[\])                     # a class that holds nothing
    | \[(?:\\.|[^\]\\])*\]               # a class: the same in both
    | (?P<group>\(\?<(?![=!]))           # the start of a named group, not a look-behind
    | (?P<end>\$)                        # the end, never before a last line feed
    | (?P<brace>\{(?=,))                 # no quantifier, but a brace
    """,
    re.VERBOSE | re.DOTALL,
)
"""What JavaScript spells otherwise than Python does, and what must be stepped over to find it."""

_IN_PYTHON: Final = {"any": r"[\s\S]", "none": r"(?!)", "group": "(?P<", "end": r"\Z", "brace": r"\{"}


def claude(pattern: str) -> Callable[[str], bool]:
    """Claude Code's matcher: all, a name, a list of names, or an unanchored JavaScript regular expression.

    Raises re.error or OverflowError for a regular expression that cannot be used.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    if _PLAIN.fullmatch(pattern):
        names = frozenset(plain_names(pattern))
        return lambda name: name in names
    expression = _compiled(_JAVASCRIPT.sub(_translated, pattern))
    return lambda name: expression.search(name) is not None


def plain_names(pattern: str) -> list[str]:
    """The names that a matcher lists; none if it is a regular expression."""
    if not _PLAIN.fullmatch(pattern):
        return []
    return [name for part in re.split(r"[|,]", pattern) if (name := part.strip())]


def is_server(name: str) -> bool:
    """True for `mcp__SERVER`: the name of no tool, but in a permission rule all of the server's tools."""
    return name.startswith("mcp__") and "__" not in name[5:]


def _translated(token: re.Match[str]) -> str:
    if token["reference"]:
        return f"(?P={token['reference']})"
    return _IN_PYTHON.get(token.lastgroup or "", token[0])


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled so that `\\d`, `\\w` and `\\b` are ASCII, as they are in JavaScript."""
    with warnings.catch_warnings():
        # `[[` means today what it means in JavaScript; Python warns that it may change.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, re.ASCII)


_RULE: Final = re.compile(r"(?P<name>[^()\s]+)(?:\((?P<wanted>.*)\))?", re.DOTALL)

_SEVERAL: Final = re.compile(r"\)\s*(?:&&|\|\||,)\s*[^()\s]+\(")
"""`Tool(a) && Tool(b)`, which reads as one rule about nonsense."""

_JUDGED: Final = {
    "Bash": "command",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Read": "file_path",
    "WebFetch": "url",
    "Write": "file_path",
}
"""The argument that a rule judges in Claude Code's own tools; in any other tool it is whichever text fits."""

_TOO_COMPLEX: Final = re.compile(r"\$\(|`|[<>]\(")
"""A command line that runs what a rule cannot see."""

_HIDES_COMMANDS: Final = re.compile(r"[`<>\r]|\$[({]")
"""A command line that runs, reads or writes what its words do not name."""

_BETWEEN_COMMANDS: Final = re.compile(r"&&|\|\||[;|&\n]")
_ASSIGNMENTS: Final = re.compile(r"\s*(?:\w+=\S*\s+)*")


def permission_rule(rule: str) -> Callable[[str, bytes], bool]:
    """Claude Code's `if`: whether a hook is for a call, by the tool's name and its arguments, a JSON object.

    `Tool`, `Tool(exact)`, `Tool(prefix:*)`, `Tool(prefix *)`; `*` for anything in both parts. A rule saves
    needless runs and allows nothing, so a call that it cannot judge counts as meant. Raises ValueError.
    """
    parts = _RULE.fullmatch(rule.strip())
    if parts is None:
        raise ValueError(f"{rule!r} is no permission rule: write Tool or Tool(what)")
    name, wanted = _name_pattern(parts["name"]), parts["wanted"]
    if wanted and _SEVERAL.search(wanted):
        raise ValueError(f"{rule!r} is no permission rule but several: give each a hook of its own")
    if wanted in (None, "", "*"):
        return lambda tool, _arguments: name.fullmatch(tool) is not None
    value = _value_pattern(wanted)
    return lambda tool, arguments: name.fullmatch(tool) is not None and _means(value, tool, arguments)


def allow_rule(rule: str) -> Callable[[str, bytes], bool]:
    """Whether a permission rule certainly covers a call: what it cannot judge is not covered.

    Written as `permission_rule` takes it. The argument is `command`, or that of the tool's which Claude Code judges,
    else the first text; of a command line each single command must be covered. Raises ValueError.
    """
    parts = _RULE.fullmatch(rule.strip())
    if parts is None or (parts["wanted"] and _SEVERAL.search(parts["wanted"])):
        raise ValueError(f"{rule!r} is no permission rule: write Tool or Tool(what)")
    name, wanted = _name_pattern(parts["name"]), parts["wanted"]
    if wanted in (None, "", "*"):
        return lambda tool, _arguments: name.fullmatch(tool) is not None
    return lambda tool, arguments: name.fullmatch(tool) is not None and _covers(wanted, tool, arguments)


def _covers(wanted: str, tool: str, arguments: bytes) -> bool:
    try:
        texts = {
            key: text for key, raw in wire.fields(arguments).items() if (text := wire.text(bytes(raw))) is not None
        }
    except ValueError:
        return False
    judged = _JUDGED.get(tool) or ("command" if "command" in texts else next(iter(texts), ""))
    value = texts.get(judged)
    if value is None:
        return False
    if wanted.startswith("domain:"):
        host = re.fullmatch(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#].*)?", value, re.DOTALL)
        return host is not None and re.fullmatch(_glob(wanted[7:]), host[1], re.IGNORECASE) is not None
    if judged == "command":
        pattern = _value_pattern(wanted) if wanted.endswith((":*", " *")) else re.compile(_glob(wanted), re.DOTALL)
        commands = [command.strip() for command in _BETWEEN_COMMANDS.split(value)]
        return not _HIDES_COMMANDS.search(value) and all(map(pattern.fullmatch, filter(None, commands)))
    return ".." not in value and re.fullmatch(_glob(wanted), value, re.DOTALL) is not None


def _name_pattern(name: str) -> re.Pattern[str]:
    """A glob; a whole server (`mcp__github`) stands for all its tools."""
    return re.compile(_glob(name) + ("(?:__.*)?" if is_server(name) else ""), re.DOTALL)


def _value_pattern(wanted: str) -> re.Pattern[str]:
    if wanted.startswith("domain:"):  # of an URL
        return re.compile(r".*\b" + _glob(wanted[7:]) + r"\b.*", re.DOTALL)
    if wanted.endswith((":*", " *")):  # `ls` itself and `ls -la`, but not `lsof`
        return re.compile(_glob(wanted[:-2]) + r"(?:\s.*)?", re.DOTALL)
    path = re.sub(r"^(?:~|\.)?/+", "", wanted)  # a path is meant wherever its folder lies
    return re.compile(f"{_glob(wanted)}|(?:.*/)?{_glob(path)}", re.DOTALL)


def _glob(text: str) -> str:
    return ".*".join(re.escape(part) for part in re.split(r"\*+", text))


def _means(pattern: re.Pattern[str], tool: str, arguments: bytes) -> bool:
    try:
        members = {key: bytes(value) for key, value in wire.fields(arguments).items()}
    except ValueError:
        return True
    judged = _JUDGED.get(tool)
    values = list(members.values()) if judged is None else [members.get(judged, b"{}")]
    texts = [text for value in values if (text := wire.text(value)) is not None]
    if len(texts) < len([value for value in values if value[:1] in (b'"', b"[", b"{")]):
        return True  # a list, an object, half a surrogate pair, or not there
    if judged == "command":
        return any(map(_TOO_COMPLEX.search, texts)) or any(map(pattern.fullmatch, _commands(texts)))
    return any(pattern.fullmatch(text.strip()) for text in texts)


def _commands(lines: list[str]) -> Iterator[str]:
    """Each command line whole, and each single command in it without the variables set for it."""
    for line in lines:
        yield line.strip()
        for command in _BETWEEN_COMMANDS.split(line):
            yield _ASSIGNMENTS.sub("", command, count=1).strip()
