"""Decide for which calls a hook runs: matchers over tool names, and permission rules over whole calls."""

from __future__ import annotations

import fnmatch
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.late_pattern import late_pattern
from . import methods
from .globs import COMMAND_SEPARATORS, PREFIX_ENDINGS, WorkBudget, command_pattern, glob, path_spellings

_PLAIN: Final = late_pattern(r"[A-Za-z0-9_\- ,|]*")
"""A matcher of only these characters is a name or a list of names. Any other matcher is a regular expression."""

_JAVASCRIPT: Final = late_pattern(
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
"""The parts of a regular expression that JavaScript spells differently than Python, and parts that must be skipped."""

_IN_PYTHON: Final = {"any": r"[\s\S]", "none": r"(?!)", "group": "(?P<", "end": r"\Z", "brace": r"\{"}


def claude_matcher(pattern: str) -> Callable[[str], bool]:
    """Return Claude Code's matcher: all, a name, a list of names, or an unanchored JavaScript regular expression.

    It is for the names of tools: globs that name methods, such as `prompts/*`, are left out (`methods`).
    Raises re.error or OverflowError for a regular expression that cannot be used.
    """
    tools = methods.without_methods(pattern)
    if tools is None:
        return lambda _name: False
    pattern = tools
    if pattern in ("", "*"):
        return lambda _name: True
    if _PLAIN.fullmatch(pattern):
        names = frozenset(plain_names(pattern))
        return lambda name: name in names
    return javascript_regex(pattern)


def javascript_regex(pattern: str) -> Callable[[str], bool]:
    """Return the test of an unanchored JavaScript regular expression. Raises re.error or OverflowError."""
    expression = _compile(_JAVASCRIPT.sub(_python_spelling, pattern))
    return lambda name: expression.search(name) is not None


_ONLY_IN_PYTHON: Final = ("look-behind requires", "bad escape", "unknown extension", "cannot refer to", "global flags")
"""The beginnings of Python's error messages about what JavaScript may accept."""

_RULE_AS_MATCHER: Final = late_pattern(r"[A-Za-z]\w*\([^()|]*\)")
_NEVER_IN_A_NAME: Final = late_pattern(r"[\s:/]")


def is_no_expression(error: re.error) -> bool:
    """True if JavaScript refuses the pattern, too: then Claude Code's matcher matches nothing."""
    return not error.msg.startswith(_ONLY_IN_PYTHON)


def is_rule(pattern: str) -> bool:
    """True if a matcher is a permission rule, such as `Bash(git push:*)`, which matches no tool's name.

    As a regular expression it may even be valid.
    """
    if not _RULE_AS_MATCHER.fullmatch(pattern):
        return False
    try:
        claude_matcher(pattern)
    except (re.error, OverflowError, RecursionError):
        return True
    return _NEVER_IN_A_NAME.search(pattern) is not None


def plain_names(pattern: str) -> list[str]:
    """Return the names that a matcher lists; none if it is a regular expression."""
    if not _PLAIN.fullmatch(pattern):
        return []
    return [name for part in re.split(r"[|,]", pattern) if (name := part.strip())]


def is_server(name: str) -> bool:
    """True for `mcp__SERVER`: in a permission rule it stands for all tools of the server; no tool has this name."""
    return name.startswith("mcp__") and "__" not in name[5:]


def _python_spelling(token: re.Match[str]) -> str:
    if token["reference"]:
        return f"(?P={token['reference']})"
    return _IN_PYTHON.get(token.lastgroup or "", token[0])


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile the pattern so that `\\d`, `\\w` and `\\b` are ASCII, as in JavaScript."""
    with warnings.catch_warnings():
        # `[[` means the same as in JavaScript today; Python warns that this may change.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, re.ASCII)


_RULE: Final = late_pattern(r"(?P<name>[^()\s]+)(?:\((?P<specifier>.*)\))?", re.DOTALL)

_SERVER: Final = late_pattern(r"\Amcp__(?:(?!__).)*", re.DOTALL)
_JOINS: Final = ("_", "-", "__")
"""What agents put between a server's name and a tool's."""
_REPLACED: Final = late_pattern(r"[^A-Za-z0-9_*?\[\]!-]|(?<!\[)!")
"""The characters of a server's name that Claude Code replaces in the name of a tool, except those of globs."""
_SEVERAL_RULES: Final = late_pattern(r"\)\s*(?:&&|\|\||,)\s*[^()\s]+\(")
"""`Tool(a) && Tool(b)`: several rules that would be read as one meaningless rule."""

OF_SOME_SERVER: Final = "mcp____"
"""What a tool's name begins with if its server is not known: that of a server without a name."""
_ANY_SERVER: Final = "*"
COMPOSED: Final = "mcp___"
"""What a name begins with that the agent has composed of server and tool, so that one cannot tell them apart."""

JUDGED_ARGUMENT: Final = {
    "Bash": "command",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Read": "file_path",
    "WebFetch": "url",
    "Write": "file_path",
}
"""The argument that a rule judges in Claude Code's own tools. In any other tool, a rule judges every text argument."""

_READS_RESOURCES: Final = "ReadMcpResourceTool"
"""The familiar name of `resources/read`."""

COMMAND_ARGUMENT: Final = late_pattern(r"command|cmd|(?<![a-z])(?:script|shell)", re.IGNORECASE)
"""In an argument's name: its value is a command line."""

_HIDES_COMMANDS: Final = late_pattern(r"[`<>()\r]|\$[({]")
"""It matches a command line that may run, read or write something that its words do not name."""

ARGUMENT_OF_PLACE: Final = late_pattern(r"(?!domain:|file:)(?P<name>[A-Za-z_]\w+):(?=/(?!/)|~/|\.{1,2}/|domain:)")
"""In `path:/srv/*` and `url:domain:example.com`: the name of the argument that the rule is about."""

WRITTEN_ARGUMENTS: Final = frozenset({
    "content", "contents", "text", "filetext", "filecontent", "filecontents", "newcontent", "oldcontent", "newtext",
    "oldtext", "newstring", "oldstring", "newstr", "oldstr", "edits", "message", "commitmessage", "description",
    "encoding",
})  # fmt: skip
"""Arguments, without signs and capitals, whose texts a server writes or compares and never opens: where an allow rule
names the argument that it is about, they may be anything."""

_WRITTEN_PARTS: Final = WRITTEN_ARGUMENTS | frozenset({
    "old", "new", "search", "replace", "find", "replacement", "before", "after", "original", "updated", "insert",
    "type", "operation", "line", "lines", "newlines", "oldlines",
})  # fmt: skip
"""The members of objects in such an argument, such as the edits of a file. Any other may name another file."""

_SIGNS: Final = str.maketrans("", "", "_-")

_LEAVES_FOLDER: Final = late_pattern(r"\.\.|%(?:25)*2e", re.IGNORECASE)
"""It matches a path or an address that may leave the folder with which it begins."""

_MAC: Final = sys.platform == "darwin"  # its file systems ignore case, unless somebody has made one that does not
_LONGEST_COVERED: Final = 65_536  # bytes


class Rule(Struct, frozen=True):
    """A permission rule in its parts: `Tool` or `Tool(specifier)`."""

    text: str
    name: re.Pattern[str]
    """It matches the names of the rule's tools."""
    specifier: str
    """The part in parentheses, as written; empty: the rule is about all calls."""
    folded: re.Pattern[str]
    """The same as `name`, for case-folded names."""
    names_methods: bool = False
    """Its glob names methods: the others are about tools only."""
    of_servers: tuple[tuple[str, str], ...] = ()
    """The globs of servers and of their tools that the rule may name, case-folded."""

    def names_tool(self, tool: str) -> bool:
        """True if the rule names this tool, or this method."""
        return self.name.fullmatch(tool) is not None and (self.names_methods or not methods.is_method(tool))

    def may_name_tool(self, tool: str) -> bool:
        """True if the rule names this tool, or a tool whose name a server may treat as the same; or this method."""
        if methods.is_method(tool) and not self.names_methods:
            return False
        bare = tool.strip()
        if self.names_tool(tool) or self.names_tool(bare) or self.folded.fullmatch(bare.casefold()) is not None:
            return True
        return tool.startswith(COMPOSED) and self._may_name_tool_of_some_server(bare)

    def _may_name_tool_of_some_server(self, tool: str) -> bool:
        """As `may_name_tool`, for a name without a server, or one in which nobody knows where the server's ends."""
        if tool.startswith(OF_SOME_SERVER):
            globs = [of_tool for _, of_tool in self.of_servers]
            tool = tool.removeprefix(OF_SOME_SERVER)
        else:
            globs = [sign.join(names) for names in self.of_servers for sign in _JOINS]
            # as Augment joins them
            globs += [f"{of_tool}_{server}" for server, of_tool in self.of_servers if server != _ANY_SERVER]
            tool = tool.removeprefix(COMPOSED)
        return any(_name_pattern(glob).fullmatch(tool.casefold()) for glob in globs)

    def named(self, names: Sequence[str]) -> list[str]:
        """Those of the names of one tool, or of one method with its familiar names, that the rule may name."""
        if names and methods.is_method(names[0]):
            familiar = [name for name in names[1:] if methods.matches_familiar(self.may_name_tool, name)]
            return [*filter(self.may_name_tool, names[:1]), *familiar]
        return [*filter(self.may_name_tool, names)]


def rule(text: str) -> Rule:
    """Parse a permission rule. Raises ValueError if the text is not a rule."""
    parts = _RULE.fullmatch(text.strip())
    if parts is None:
        raise ValueError(f"{text!r} is not a permission rule: write Tool or Tool(specifier)")
    if parts["specifier"] and _SEVERAL_RULES.search(parts["specifier"]):
        raise ValueError(f"{text!r} is not a permission rule but several: write each rule separately")
    specifier = "" if parts["specifier"] in (None, "*") else parts["specifier"]
    name = _SERVER.sub(lambda server: _REPLACED.sub("_", server[0]), parts["name"], count=1)
    names_methods = methods.glob_names_method(name)
    folded_name = name.casefold()
    of_servers = tuple(_servers_and_tools(folded_name))
    return Rule(text.strip(), _name_pattern(name), specifier, _name_pattern(folded_name), names_methods, of_servers)


def _servers_and_tools(name: str) -> Iterator[tuple[str, str]]:
    """Each way to divide the glob of a rule's name into those of a server and of its tools.

    A star may stand for the end of the server's name together with the beginning of the tool's.
    """
    if not name.startswith("mcp__"):
        yield _ANY_SERVER, name
        return
    rest = name[5:]
    divided = [(rest[:at], rest[at + 2 :]) for at in range(len(rest)) if rest.startswith("__", at)]
    before, star, after = rest.partition("*")
    if star and "__" not in before:
        divided.append((f"{before}*", f"*{after}"))
    yield from divided or [(rest, "*")]


def permission_rule(text: str, *, fold: bool = _MAC) -> Callable[[str, bytes], bool]:
    """Return the function for Claude Code's `if`: whether a hook runs for a tool's name and arguments, a JSON object.

    The rule is `Tool`, `Tool(exact)`, `Tool(prefix:*)` or `Tool(prefix *)`; `*` stands for anything in both parts. It
    saves needless runs and allows nothing, so a call that it cannot judge matches; with `fold`, which is for file
    systems that ignore it, so does another spelling of a path. Raises ValueError.
    """
    parts = rule(text)

    def names_tool(tool: str) -> bool:
        return parts.may_name_tool(tool) if tool.startswith(COMPOSED) else parts.names_tool(tool)

    if not parts.specifier:
        return lambda tool, _arguments: names_tool(tool)
    spelled = folded if fold and is_path(parts.specifier) else str
    value = value_pattern(spelled(parts.specifier))
    return lambda tool, arguments: (
        names_tool(tool)
        and (_may_match(parts, value, tool, arguments, spelled) or _may_match_uri(parts.specifier, tool, arguments))
    )


def allow_rule(text: str) -> Callable[[str, bytes], bool]:
    """Return the function for an allow rule: whether it certainly covers a call. It never covers what it cannot judge.

    The syntax is that of `permission_rule`. The rule must cover every text argument, because an agent can add arguments
    to the one that matters, and every single command of a command line. A rule that names its argument
    (`write_file(path:/srv/*)`) needs that argument, and covers any text in WRITTEN_ARGUMENTS. Raises ValueError.
    """
    parts = rule(text)
    if not parts.specifier:
        return lambda tool, _arguments: parts.names_tool(tool)
    return lambda tool, arguments: (
        parts.names_tool(tool) and _covers(parts.specifier, arguments) and _covers_uri(parts.specifier, tool, arguments)
    )


def allowed_as(names: Sequence[str]) -> Sequence[str]:
    """Return the names to which allow rules apply: not the first, the tool's own, if it imitates another server's."""
    return names[1:] if names and names[0].startswith("mcp__") else names


def _covers(specifier: str, arguments: bytes) -> bool:
    """True if the rule covers every text of a call, because any of them may matter to the server, and there is one."""
    if len(arguments) > _LONGEST_COVERED:
        return False
    try:
        values = {key: bytes(raw) for key, raw in raw_json.fields(arguments).items()}
    except ValueError:
        return False
    if named := ARGUMENT_OF_PLACE.match(specifier):
        if named["name"] not in values:
            return False
        specifier = specifier[named.end() :]
        values = {key: raw for key, raw in values.items() if key == named["name"] or not _only_writes(key, raw)}
    texts = {key: text for key, raw in values.items() if (text := raw_json.text(raw)) is not None}
    others = len([raw for raw in values.values() if raw[:1] in (b'"', b"[", b"{")]) - len(texts)
    # the others are lists, objects and half of a surrogate pair
    return (
        bool(texts) and not others and all(_covered(specifier, text, _is_command(key)) for key, text in texts.items())
    )


def _covered(specifier: str, text: str, is_command: bool) -> bool:
    if specifier.startswith("domain:"):
        host = re.fullmatch(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#]\S*)?", text)
        return host is not None and re.fullmatch(glob(specifier[7:]), host[1], re.IGNORECASE) is not None
    if _HIDES_COMMANDS.search(text) or _LEAVES_FOLDER.search(text):
        return False
    if is_path_or_address(specifier) and _has_other_dots(text):
        return False
    commands = [command for part in COMMAND_SEPARATORS.split(text) if (command := part.strip())]
    if not commands or not all(map(command_pattern(specifier).fullmatch, commands)):
        return False
    return not is_command or _says_all(text)


def _says_all(line: str) -> bool:
    from ..shell.commands import says_all  # only for rules about commands

    return says_all(line)


def _name_pattern(name: str) -> re.Pattern[str]:
    """Compile a glob with `*`, `?` and `[…]`. A whole server (`mcp__github`) stands for all its tools."""
    pattern = fnmatch.translate(name).removesuffix(r"\Z").removesuffix(r"\z")
    return re.compile(pattern + ("(?:__.*)?" if is_server(name) else ""), re.DOTALL)


def value_pattern(specifier: str) -> re.Pattern[str]:
    """Return the pattern for an argument: a path in any folder, a URL of a domain, or a command."""
    if specifier.startswith("domain:"):
        return re.compile(r".*\b" + glob(specifier[7:]) + r"\b.*", re.DOTALL)
    if specifier.endswith(PREFIX_ENDINGS):
        return command_pattern(specifier)
    return re.compile("|".join(map(_in_any_folder, path_spellings(specifier))), re.DOTALL)


def _in_any_folder(specifier: str) -> str:
    path = re.sub(r"^(?:~|\.)?/+", "", specifier)
    first, star, _ = path.partition("*")
    begin = (
        f"(?>(?:|.*?/){re.escape(first)})" if star else f"(?:.*/)?{re.escape(first)}"
    )  # the first match is as good as any
    return f"{glob(specifier)}|{begin}{glob(path[len(first) :])}"


def _may_match(
    parts: Rule, pattern: re.Pattern[str], tool: str, arguments: bytes, spelled: Callable[[str], str]
) -> bool:
    try:
        members = {key: bytes(value) for key, value in raw_json.fields(arguments).items()}
    except ValueError:
        return True
    judged = JUDGED_ARGUMENT.get(tool)
    values = members if judged is None else {judged: members.get(judged, b"{}")}
    texts = {key: text for key, value in values.items() if (text := raw_json.text(value)) is not None}
    if len(texts) < len([value for value in values.values() if value[:1] in (b'"', b"[", b"{")]):
        return True  # a list, an object or half of a surrogate pair, or the argument is missing
    return any(
        pattern.fullmatch(spelled(text).strip()) or (_is_command(key) and _may_run(parts.specifier, text))
        for key, text in texts.items()
    )


def _may_match_uri(specifier: str, tool: str, arguments: bytes) -> bool:
    """True if a request for a resource has a URI that a server may read as one that the specifier names."""
    if not (methods.has_uri(tool) or tool == _READS_RESOURCES):
        return False
    from . import resource_uris  # only for requests about resources

    try:
        uri = resource_uris.of_arguments(arguments)
        return uri is not None and any(map(resource_uris.matcher(specifier), resource_uris.readings(uri).folded))
    except (ValueError, RecursionError):
        return True


def _covers_uri(specifier: str, tool: str, arguments: bytes) -> bool:
    """False for a request for a resource whose URI a server may read as one that the specifier does not name."""
    if not methods.has_uri(tool):
        return True
    from . import resource_uris  # only for requests about resources

    uri = resource_uris.of_arguments(arguments)
    return uri is None or resource_uris.all_match(specifier, uri)


def _may_run(specifier: str, line: str) -> bool:
    """True if a command line runs a command that a specifier names, or cannot be read."""
    from .shell_commands import command_matcher  # only for rules about commands

    runs = command_matcher(specifier)(line, WorkBudget())
    return runs.certain or bool(runs.unreadable)


def _is_command(argument: str) -> bool:
    return COMMAND_ARGUMENT.search(argument) is not None


def is_written(argument: str) -> bool:
    """True if the texts in an argument of this name are written or compared, and never name what is opened."""
    return _is_named(argument, WRITTEN_ARGUMENTS)


def _only_writes(argument: str, raw: bytes) -> bool:
    """True if this argument of a call is written, and so is all that is in it."""
    return is_written(argument) and names_nothing_else(raw)


def names_nothing_else(raw: bytes) -> bool:
    """True if in a value that is written there is no object with a member that may name something to open."""
    if raw[:1] not in (b"[", b"{"):
        return True
    try:
        return _are_written_parts(msgspec.json.decode(raw))
    except (ValueError, RecursionError, UnicodeError):
        return False


def _are_written_parts(value: object) -> bool:
    """True if every member of the objects in a value is one that is only written, or a number, a flag or nothing."""
    if isinstance(value, list):
        return all(map(_are_written_parts, value))
    if not isinstance(value, dict):
        return True
    return all(
        not isinstance(part, str | list | dict) or (_is_named(name, _WRITTEN_PARTS) and _are_written_parts(part))
        for name, part in value.items()
    )


def _is_named(argument: str, names: frozenset[str]) -> bool:
    return argument.translate(_SIGNS).casefold() in names


def _has_other_dots(text: str) -> bool:
    """True if a server that normalises texts would find `..` in it, written in another alphabet."""
    if text.isascii():
        return False
    from ..jsonrpc.unicode_text import normalized

    return _LEAVES_FOLDER.search(normalized("NFKC", text).replace("\u3002", ".")) is not None


def is_path_or_address(specifier: str) -> bool:
    """True if the rule is about a path or an address, which is never split into commands."""
    return specifier.startswith("domain:") or "/" in specifier.split(" ")[0]


def folded(text: str) -> str:
    """The text as file systems compare paths that ignore case and the composition of characters, such as a Mac's."""
    if text.isascii():
        return text.casefold()
    from ..jsonrpc.unicode_text import normalized

    return normalized("NFC", normalized("NFC", text).casefold())


def is_path(specifier: str) -> bool:
    """True if the rule is about a path. No server ignores the end of a path."""
    return "/" in specifier and not specifier.startswith("domain:") and "://" not in specifier and " " not in specifier


def unquoted(text: str) -> str:
    """Decode the percent signs of an address."""
    from urllib.parse import unquote  # 5 ms, only for runs with such rules

    return unquote(text)


_LEFT_OUT_OF_ADDRESSES: Final = str.maketrans(
    "",
    "",
    "\t\r\n'\"\\\u00ad\u034f\u180b\u180c\u180d\u180f\u200b\u2060\u2064\ufeff"
    + "".join(map(chr, range(0xFE00, 0xFE10))),
)
"""By whoever reads an address as browsers do, which leave out what is not seen in a name (UTS 46), or a command line as
a shell does."""
_NUMBER_OF_HOST: Final = late_pattern(
    r"//(?:[^/?#\s@]*@)?(?:\[([0-9a-f:.]+)\]|((?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}))\.?(?![\w.-])"
)


def _with_readable_labels(text: str) -> str:
    """The text with the labels of domains that are in Punycode as people write them."""
    return _PUNYCODE.sub(_readable_label, text) if "xn--" in text else text


def _readable_label(match: re.Match[str]) -> str:
    try:
        return match[1].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError):
        return match[0]


def _as_four_numbers(match: re.Match[str]) -> str:
    """The address of a host as people write it: `//2130706433`, `//0x7f.1` and `//[::ffff:7f00:1]` are 127.0.0.1."""
    import ipaddress  # for rules about such addresses only
    import socket

    try:
        if match[2] is not None:
            return f"//{socket.inet_ntoa(socket.inet_aton(match[2]))}"
        mapped = ipaddress.IPv6Address(match[1]).ipv4_mapped
    except (OSError, ValueError):
        return match[0]
    return match[0] if mapped is None else f"//{mapped}"


_PUNYCODE: Final = late_pattern(r"(?<![\w-])xn--([a-z0-9-]{1,59})(?![\w-])")


def has_domain(domain: str, text: str) -> bool:
    """True if the text may be an address of this domain."""
    from ..jsonrpc.unicode_text import normalized

    text = _with_readable_labels(normalized("NFKC", unquoted(text)).casefold().replace("\u3002", "."))
    domain = _with_readable_labels(domain)
    if domain[:1].isdigit():
        text = _NUMBER_OF_HOST.sub(_as_four_numbers, text)
    if text != (joined := text.translate(_LEFT_OUT_OF_ADDRESSES)) and has_domain(domain, joined):
        return True
    if len(text) > 4096:
        return all(part in text for part in domain.split("*"))
    first, star, _ = domain.partition("*")
    begin = rf".*?(?<![\w-]){re.escape(first)}"
    pattern = f"(?>{begin})" if star else begin  # before a star, the first match is as good as any
    return re.fullmatch(rf"{pattern}{glob(domain[len(first) :])}(?![\w-]).*", text, re.DOTALL) is not None
