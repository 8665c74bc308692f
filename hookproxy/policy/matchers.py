"""Which calls a hook runs for: matchers over tool names, and permission rules over whole calls."""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json

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
"""What JavaScript spells differently than Python, and what must be skipped to find it."""

_IN_PYTHON: Final = {"any": r"[\s\S]", "none": r"(?!)", "group": "(?P<", "end": r"\Z", "brace": r"\{"}


def claude_matcher(pattern: str) -> Callable[[str], bool]:
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

_SERVER: Final = re.compile(r"\Amcp__(?:(?!__).)*", re.DOTALL)
_REPLACED: Final = re.compile(r"[^A-Za-z0-9_*?\[\]!-]|(?<!\[)!")
"""In a server's name: what Claude Code replaces when it composes a tool's, but for the signs of globs."""
_SEVERAL_RULES: Final = re.compile(r"\)\s*(?:&&|\|\||,)\s*[^()\s]+\(")
"""`Tool(a) && Tool(b)`: several rules that would be read as one meaningless rule."""

JUDGED_ARGUMENT: Final = {
    "Bash": "command",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Read": "file_path",
    "WebFetch": "url",
    "Write": "file_path",
}
"""The argument that a rule judges in Claude Code's own tools; in any other tool it is whichever text fits."""

_RUNS_HIDDEN_COMMANDS: Final = re.compile(r"\$\(|`|[<>]\(")
"""A command line that runs what a rule cannot see."""

_HIDES_COMMANDS: Final = re.compile(r"[`<>()\r]|\$[({]")
"""A command line that runs, reads or writes what its words do not name."""

_LEAVES_FOLDER: Final = re.compile(r"\.\.|%2e", re.IGNORECASE)
"""A path or an address that may leave the folder it begins with."""

COMMAND_SEPARATORS: Final = re.compile(r"&&|\|\||[;|&\n]")
PREFIX_ENDINGS: Final = (":*", " *")
"""How a rule ends that is about the beginning of a command."""

_LONGEST_COVERED: Final = 65_536  # bytes
_ASSIGNMENTS: Final = re.compile(r"\s*(?:\w+=\S*\s+)*")


class Rule(Struct, frozen=True):
    """A permission rule in its parts: `Tool` or `Tool(specifier)`."""

    text: str
    name: re.Pattern[str]
    """The tools that it names."""
    specifier: str
    """The part in parentheses, as written; empty: the rule is about all calls."""

    folded: re.Pattern[str]
    """The same, of case-folded names."""

    def names_tool(self, tool: str) -> bool:
        """True if it names this tool."""
        return self.name.fullmatch(tool) is not None

    def may_name_tool(self, tool: str) -> bool:
        """True if it names this tool, or a server may take that name for one that it names."""
        bare = tool.strip()
        return self.names_tool(tool) or self.names_tool(bare) or self.folded.fullmatch(bare.casefold()) is not None


class BudgetExceeded(Exception):
    """Judging this call would take too long."""


class WorkBudget:
    """The steps that judging one call may still take, about ten nanoseconds each: the agent chooses the arguments."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = 2_000_000  # 20 ms

    def spend(self, steps: int) -> None:
        """Spend some steps. Raises BudgetExceeded."""
        self._left -= steps
        if self._left < 0:
            raise BudgetExceeded


def rule(text: str) -> Rule:
    """The rule in its parts. Raises ValueError for what is none."""
    parts = _RULE.fullmatch(text.strip())
    if parts is None:
        raise ValueError(f"{text!r} is not a permission rule: write Tool or Tool(what)")
    if parts["wanted"] and _SEVERAL_RULES.search(parts["wanted"]):
        raise ValueError(f"{text!r} is not a permission rule but several: write each by itself")
    wanted = "" if parts["wanted"] in (None, "*") else parts["wanted"]
    name = _SERVER.sub(lambda found: _REPLACED.sub("_", found[0]), parts["name"], count=1)
    return Rule(text.strip(), _name_pattern(name), wanted, _name_pattern(name.casefold()))


def permission_rule(text: str) -> Callable[[str, bytes], bool]:
    """Claude Code's `if`: whether a hook is for a call, by the tool's name and its arguments, a JSON object.

    `Tool`, `Tool(exact)`, `Tool(prefix:*)`, `Tool(prefix *)`; `*` for anything in both parts. A rule saves
    needless runs and allows nothing, so a call that it cannot judge counts as meant. Raises ValueError.
    """
    one = rule(text)
    if not one.specifier:
        return lambda tool, _arguments: one.names_tool(tool)
    value = value_pattern(one.specifier)
    return lambda tool, arguments: one.names_tool(tool) and _may_match(value, tool, arguments)


def allow_rule(text: str) -> Callable[[str, bytes], bool]:
    """Whether a permission rule certainly covers a call: what it cannot judge is not covered.

    Written as `permission_rule` takes it. Every argument that is a text must be covered, for an agent chooses which
    ones it sends beside the one that counts; of a command line each single command. Raises ValueError.
    """
    one = rule(text)
    if not one.specifier:
        return lambda tool, _arguments: one.names_tool(tool)
    return lambda tool, arguments: one.names_tool(tool) and _covers(one.specifier, arguments)


def allowed_as(names: Sequence[str]) -> Sequence[str]:
    """The names that allow rules may go by: not a tool's own, the first, if it poses as another server's tool."""
    return names[1:] if names and names[0].startswith("mcp__") else names


def _covers(wanted: str, arguments: bytes) -> bool:
    """Every text of a call is covered, whichever of them its server goes by, and there is at least one."""
    if len(arguments) > _LONGEST_COVERED:
        return False
    try:
        values = [bytes(raw) for raw in raw_json.fields(arguments).values()]
    except ValueError:
        return False
    texts = [text for raw in values if (text := raw_json.text(raw)) is not None]
    others = len([raw for raw in values if raw[:1] in (b'"', b"[", b"{")]) - len(texts)  # lists, objects, half pairs
    return bool(texts) and not others and all(_covered(wanted, text) for text in texts)


def _covered(wanted: str, text: str) -> bool:
    if wanted.startswith("domain:"):
        host = re.fullmatch(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#].*)?", text, re.DOTALL)
        return host is not None and re.fullmatch(glob(wanted[7:]), host[1], re.IGNORECASE) is not None
    if _HIDES_COMMANDS.search(text) or _LEAVES_FOLDER.search(text):
        return False
    commands = [command for part in COMMAND_SEPARATORS.split(text) if (command := part.strip())]
    return bool(commands) and all(map(command_pattern(wanted).fullmatch, commands))


def _name_pattern(name: str) -> re.Pattern[str]:
    """A glob with `*`, `?` and `[…]`; a whole server (`mcp__github`) stands for all its tools."""
    pattern = fnmatch.translate(name).removesuffix(r"\Z").removesuffix(r"\z")
    return re.compile(pattern + ("(?:__.*)?" if is_server(name) else ""), re.DOTALL)


def value_pattern(wanted: str) -> re.Pattern[str]:
    """What a rule says about an argument: of a path, wherever its folder lies; of an URL's domain; of a command."""
    if wanted.startswith("domain:"):  # of an URL
        return re.compile(r".*\b" + glob(wanted[7:]) + r"\b.*", re.DOTALL)
    if wanted.endswith(PREFIX_ENDINGS):
        return command_pattern(wanted)
    path = re.sub(r"^(?:~|\.)?/+", "", wanted)  # a path is meant wherever its folder lies
    first, star, _ = path.partition("*")
    begin = f"(?>(?:|.*?/){re.escape(first)})" if star else f"(?:.*/)?{re.escape(first)}"  # the first is as good as any
    return re.compile(f"{glob(wanted)}|{begin}{glob(path[len(first) :])}", re.DOTALL)


def command_pattern(wanted: str) -> re.Pattern[str]:
    """What a rule says about one command."""
    if wanted.endswith(PREFIX_ENDINGS):  # `ls` itself and `ls -la`, but not `lsof`
        return re.compile(glob(wanted[:-2]) + r"(?:\s.*)?", re.DOTALL)
    return re.compile(glob(wanted), re.DOTALL)


def glob(text: str) -> str:
    """A regular expression in which `*` stands for anything; what is between two is sought once, from the left."""
    first, *parts = (re.escape(part) for part in re.split(r"\*+", text))
    return first + "".join(f"(?>.*?{part})" for part in parts[:-1]) + "".join(f".*{part}" for part in parts[-1:])


def _may_match(pattern: re.Pattern[str], tool: str, arguments: bytes) -> bool:
    try:
        members = {key: bytes(value) for key, value in raw_json.fields(arguments).items()}
    except ValueError:
        return True
    judged = JUDGED_ARGUMENT.get(tool)
    values = list(members.values()) if judged is None else [members.get(judged, b"{}")]
    texts = [text for value in values if (text := raw_json.text(value)) is not None]
    if len(texts) < len([value for value in values if value[:1] in (b'"', b"[", b"{")]):
        return True  # a list, an object, half a surrogate pair, or not there
    if judged == "command":
        return any(map(_RUNS_HIDDEN_COMMANDS.search, texts)) or any(map(pattern.fullmatch, _commands(texts)))
    return any(pattern.fullmatch(text.strip()) for text in texts)


def _commands(lines: list[str]) -> Iterator[str]:
    """Each command line whole, and each single command in it without the variables set for it."""
    for line in lines:
        yield line.strip()
        for command in COMMAND_SEPARATORS.split(line):
            yield _ASSIGNMENTS.sub("", command, count=1).strip()


def is_path_or_address(wanted: str) -> bool:
    """The rule is about a path or an address: such a text has no parts."""
    return wanted.startswith("domain:") or "/" in wanted.split(" ")[0]


def is_path(wanted: str) -> bool:
    """The rule is about a path, which has no end that nobody reads."""
    return "/" in wanted and not wanted.startswith("domain:") and "://" not in wanted and " " not in wanted


def unquoted(text: str) -> str:
    """Without the percent signs of an address."""
    from urllib.parse import unquote  # 5 ms, for those who have such rules only

    return unquote(text)


def has_domain(domain: str, text: str) -> bool:
    """Whether a text may be an address of this domain."""
    from unicodedata import normalize

    text = normalize("NFKC", unquoted(text)).casefold()
    if len(text) > 4096:
        return all(part in text for part in domain.split("*"))
    first, star, _ = domain.partition("*")
    begin = rf".*?(?<![\w-]){re.escape(first)}"
    pattern = f"(?>{begin})" if star else begin  # before a star, the first is as good as any
    return re.fullmatch(rf"{pattern}{glob(domain[len(first) :])}(?![\w-]).*", text, re.DOTALL) is not None
