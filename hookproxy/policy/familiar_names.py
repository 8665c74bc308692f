"""Recognises tools that do what a tool of Claude Code does, by their names and arguments.

Adds names, never takes one away (law 4): hooks that match a tool's own name run as before. Nothing here knows a server;
`presets` does. Where a name and its arguments do not clearly say what a tool does, it gets no familiar name, because
rules and hooks that allow `Read` would then allow something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.command_line import has_command_inside
from . import command_tools

FAMILIAR_NAMES: Final = ("Bash", "Write", "Edit", "MultiEdit", "Read", "WebFetch", "WebSearch", "Grep", "Glob", "LS")
"""The tools of Claude Code for which tools of servers can stand, as messages list them."""

# --- words of a tool's name ---

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of snake_case, kebab-case, camelCase, dots and spaces. Digits are ignored."""


@cache
def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _in_order(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_SPELLINGS: Final = {
    **dict.fromkeys(("cmd", "cmds", "commands", "commandline"), ("command",)),
    **dict.fromkeys(("exec", "executes"), ("execute",)),
    **dict.fromkeys(("dir", "dirs", "directories", "folder", "folders"), ("directory",)),
    **dict.fromkeys(("files", "txt"), ("file",)),
    **dict.fromkeys(("contents",), ("content",)),
    **dict.fromkeys(("urls", "link", "uri"), ("url",)),
    "runcommand": ("run", "command"),
    "executecommand": ("execute", "command"),
    "execcommand": ("execute", "command"),
    "runshell": ("run", "shell"),
    "readfile": ("read", "file"),
    "writefile": ("write", "file"),
    "createfile": ("create", "file"),
    "editfile": ("edit", "file"),
    "listdir": ("list", "directory"),
    "listfiles": ("list", "file"),
    "searchfiles": ("search", "file"),
    "findfiles": ("find", "file"),
    "webfetch": ("fetch", "web"),
    "websearch": ("web", "search"),
    "webpage": ("web", "page"),
    "website": ("web", "site"),
    "goto": ("navigate",),
    "ripgrep": ("grep",),
    "rg": ("grep",),
}
"""Words that are other spellings of a word in the tables below, and pairs of words that are often written as one."""


def _words(tool: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(tool):
        lower = word.lower()
        found += _SPELLINGS.get(lower, (lower,))
    return found


class _Phrase(Struct, frozen=True):
    """Names of tools: a verb, and what it acts on. What stands before that is the server's or the product's name."""

    verbs: frozenset[str]
    objects: frozenset[str] = frozenset()
    """At least one of them stands after the verb, or directly before it."""
    fillers: frozenset[str] = frozenset()
    """Other words that may stand after the verb. Any further word (`read_file_metadata`) means something else."""
    alone: frozenset[str] = frozenset()
    """Verbs that need no object if nothing else follows."""
    not_before: frozenset[str] = frozenset()
    """Words that mean something else when they stand anywhere before the verb."""

    def fits(self, words: Sequence[str]) -> bool:
        """Whether a tool with these words in its name is meant; the time grows with their number only."""
        barred = next((at for at, word in enumerate(words) if word in self.not_before), len(words))
        has_object, only_links = False, True  # of the words after the verb
        for at in reversed(range(len(words))):
            word = words[at]
            if word in self.verbs and at <= barred:
                beside = at > 0 and words[at - 1] in self.objects
                if has_object or beside or (word in self.alone and only_links):
                    return True
            if word not in self.objects and word not in self.fillers:
                break
            has_object = has_object or word in self.objects
            only_links = only_links and word in _LINK
        return False


_LINK: Final = _set("a an the of to in on from for at by with and or as new tool")
_ELSEWHERE: Final = _set(
    "git github gitlab bitbucket repo repository gist issue pr pull commit branch wiki jira confluence notion slack "
    "drive gdrive onedrive sharepoint dropbox bucket blob sftp ftp remote cloud sql db database mysql postgres "
    "postgresql sqlite mongo mongodb redis duckdb table collection query graph graphql memory prompt resource email "
    "mail message comment ticket calendar event excel workbook worksheet sheet slide presentation workflow secret kv "
    "consul etcd zookeeper"
)
"""Words of tools that act on something else than this machine."""
_OTHER_VERBS: Final = _set(
    "get list kill stop check search find explain validate describe delete remove create update set add move copy "
    "rename watch cancel abort is can should allow block dont not never history suggest generate preview parse "
    "analyze lint test register define schedule"
)

_BASH: Final = (
    _Phrase(
        _set("run execute spawn launch start invoke bash shell terminal powershell pwsh zsh repl"),
        _set("command shell bash sh zsh terminal process script code python powershell pwsh console cli program node")
        | _set("applescript osascript ruby perl php snippet ssh sudo background async container docker pod sandbox"),
        _LINK
        | _set("run execute local system os host remote sync safe unsafe secure interactive wait line file simple")
        | _set("windows linux wsl mac macos"),
        alone=_set("run execute bash shell terminal powershell pwsh zsh repl"),
        not_before=_ELSEWHERE - _set("remote cloud")
        | _OTHER_VERBS
        | _set("read write edit browser page tab vscode ide editor"),
    ),
    _Phrase(
        _set("command"),
        _set("shell bash ssh terminal powershell system sudo privileged remote"),
        _LINK,
        not_before=_ELSEWHERE - _set("remote") | _OTHER_VERBS | _set("read write edit"),
    ),
    _Phrase(
        _set("write send type operate"),
        _set("terminal shell bash console"),
        _LINK | _set("command input text"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("read edit"),
    ),
)
_COMMAND: Final = _in_order("command cmd commandline shellcommand bashcommand script scriptcontent code pythoncode")

_FILE: Final = _set("file text content document note notes")
_WRITE: Final = (
    _Phrase(
        _set("write create save overwrite append put"),
        _FILE,
        _LINK | _set("update overwrite local code source raw whole full"),
        alone=_set("write"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("read edit run execute"),
    ),
)
_READ: Final = (
    _Phrase(
        _set("read view cat"),
        _FILE | _set("media image pdf markdown docx source"),
        _LINK | _set("line lines range chunk raw path local partial full numbers section part page pages all"),
        alone=_set("read view cat"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("write edit run execute"),
    ),
    _Phrase(_set("extract"), _set("line lines"), _LINK | _set("file"), not_before=_ELSEWHERE | _OTHER_VERBS),
    _Phrase(
        _set("get"),
        _set("file"),
        _LINK | _set("content text lines range raw path"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("write edit run execute"),
    ),
)
_LS: Final = (
    _Phrase(
        _set("list ls"),
        _set("directory file tree"),
        _LINK | _set("content path sizes size recursive recursively structure entries local"),
        alone=_set("ls"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("list"),
    ),
    _Phrase(
        _set("tree"),
        _set("directory file"),
        _LINK | _set("view"),
        alone=_set("tree"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("list get"),
    ),
)
_GLOB: Final = (
    _Phrase(
        _set("glob find search"),
        _set("file glob"),
        _LINK | _set("path paths name names keyword pattern directory local recursive recursively search find"),
        alone=_set("glob"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("find search"),
    ),
)
_GREP: Final = (
    _Phrase(
        _set("grep"),
        _set("file"),
        _LINK | _set("content text code search pattern directory project recursive advanced"),
        alone=_set("grep"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("find search"),
    ),
    _Phrase(
        _set("search find"),
        _set("code text content regex pattern in file"),
        _LINK | _set("path directory project workspace string strings local advanced"),
        alone=_set("search"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("find search"),
    ),
)
_PAGE: Final = _set("url page web site html http browser tab readable markdown json")
_WEB_FETCH: Final = (
    _Phrase(
        _set("fetch navigate visit browse scrape crawl map get"),
        _PAGE | _set("file text content transcript"),
        _LINK | _set("raw convert extract clean youtube video"),
        alone=_set("fetch navigate visit browse scrape crawl map get"),
        not_before=_ELSEWHERE | _OTHER_VERBS - _set("get") | _set("post put patch"),
    ),
    _Phrase(
        _set("open read go load retrieve extract new request"),
        _PAGE,
        _LINK | _set("content text raw"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("post put patch"),
    ),
)
_ENGINES: Final = _set(
    "web internet online google bing duckduckgo ddg brave tavily exa firecrawl kagi searx searxng serper"
)
_WEB_SEARCH: Final = (
    _Phrase(
        _set("search"),
        _ENGINES,
        _LINK | _set("query advanced"),
        not_before=_ELSEWHERE | _OTHER_VERBS,
    ),
)
_PART: Final = (
    _Phrase(
        _set("insert replace update edit patch"),
        _set("file line lines symbol block code"),
        _LINK | _set("text content body before after range"),
        not_before=_ELSEWHERE | _OTHER_VERBS | _set("read"),
    ),
)
"""Names of tools that write a part of a file, by its place or its symbol: new text, and no old one."""
_EDIT_VERBS: Final = _set("edit edits replace patch modify change substitute update str editor")
_NOT_EDITED: Final = _ELSEWHERE - _set("text") | _set("delete remove rename move copy list get cell node entity symbol")

# --- what arguments say ---

_PATH: Final = _in_order(
    "filepath path file filename relativepath targetfile absolutepath abspath fullpath targetpath notepath "
    "pathinproject pathname relativeworkspacepath"
)
_DIRECTORY: Final = _in_order(
    "path directory dir directorypath dirpath folder folderpath relativepath root rootpath basepath searchpath cwd "
    "searchdirectory subdirectoryrelativepath targetdirectory workingdirectory pathinproject directorytosearch"
)
_CONTENT: Final = _in_order("content contents text data filecontent filecontents filetext textcontent body")
_OLD: Final = _in_order(
    "oldstring oldstr oldtext oldcontent oldcode searchstring searchtext findtext find search needle"
)
_OLD_OF_A_REPLACEMENT: Final = [*_OLD, "original", "originaltext", "pattern", "regex", "text"]
_NEW: Final = _in_order(
    "newstring newstr newtext newcontent newcode replacestring replacetext replacewith replacement replace repl"
)
_EDITS: Final = _in_order("edits changes replacements patches")
_URL: Final = _in_order("url uri href pageurl targeturl websiteurl weburl")
_PATTERN: Final = _in_order(
    "pattern query regex regexp regexpattern searchpattern searchtext search searchterm substringpattern text"
)
_NAME_PATTERN: Final = _in_order(
    "pattern glob globpattern filepattern namepattern filemask filenamepattern searchpattern namekeyword"
)
_FILE_FILTER: Final = _in_order(
    "glob include includeglob filepattern fileglob filemask globpattern includepattern pathsincludeglob"
)
_ABOUT_CONTENT: Final = _set("regex contextlines filepattern fileglob include includepattern caseinsensitive")
"""Arguments that a search for names of files does not have beside its pattern."""
_QUERY: Final = _in_order("query q searchquery searchterm")

_REMOTE: Final = _set(
    "owner repo repository reponame repoid repositoryid projectid projectkey branch ref sha bucket database collection "
    "table vault channel channelid pageid driveid siteid spreadsheetid workbook connection "
    "connectionid connectionname host hostname server servername sandboxid container containerid issuenumber vmid"
)
"""Arguments that say that a path is not one of this machine's: hooks for Write would judge the wrong file."""


class _Tool(Struct, frozen=True):
    """What is known of a tool; arguments also by their names without case, `_` and `-`."""

    name: str
    words: list[str]
    types: Mapping[str, str]
    names: Mapping[str, str]
    required: frozenset[str] | None = None
    """The arguments that every call has, without case, `_` and `-`; None: not known, so it may be all of them."""

    def lacks(self, names: frozenset[str]) -> bool:
        """True if no argument that rules a name out is one of these."""
        return names.isdisjoint(self.names if self.required is None else self.required)

    @property
    def is_editor(self) -> bool:
        return _is_editor(self.words)

    def named(self, names: Iterable[str], kind: str = "string") -> str:
        """The tool's own name of the first of these arguments that has this type or an unknown one; empty: none."""
        return next(self.all_named(names, kind), "")

    def all_named(self, names: Iterable[str], kind: str = "string") -> Iterator[str]:
        """The tool's own names of all these arguments that have this type or an unknown one."""
        for name in names:
            own = self.names.get(name)
            if own is not None and self.types[own] in (kind, ""):
                yield own

    def alias(self, name: str, required: Mapping[str, str], optional: Mapping[str, str]) -> Alias | None:
        """The alias, by hooks' name of each argument; None where a name would have two meanings."""
        if not all(required.values()):
            return None
        own_names = dict(required)
        for known, own in optional.items():
            if own and known not in self.types and own not in own_names.values():
                own_names[known] = own
        renamed = {known: own for known, own in own_names.items() if known != own}
        if len(set(own_names.values())) < len(own_names) or any(known in self.types for known in renamed):
            return None
        if renamed and self._confusable({*renamed, *renamed.values()}):
            return None
        return Alias(self.name, name, renamed, automatic=True, needed=frozenset(required.values()))

    def _confusable(self, known: set[str]) -> bool:
        """True if another argument may be taken for one of these: a call with it would be refused for the alias."""
        folded = {raw_json.folded_key(name) for name in known}
        return any(name not in known and raw_json.folded_key(name) in folded for name in self.types)


def _plain(argument: str) -> str:
    return argument.lower().replace("_", "").replace("-", "")


def _read_tool(
    name: str, words: list[str], types: Mapping[str, str], required: frozenset[str] | None = None
) -> _Tool | None:
    names: dict[str, str] = {}
    for own in types:
        if names.setdefault(_plain(own), own) != own:
            return None  # two spellings of one name: it is not known which one the server uses
    return _Tool(name, words, types, names, required)


def _unclear_tool(name: str, words: list[str], types: Mapping[str, str], required: Collection[str] | None) -> _Tool:
    """A tool of which two arguments may have the same name, for recognition that does not depend on this."""
    names = {_plain(own): own for own in types}
    return _Tool(name, words, types, names, None if required is None else frozenset(map(_plain, required)))


# --- the rules ---


def possible_names(tool: str) -> frozenset[str]:
    """The familiar names that a tool of this name may get, whatever its arguments are: never fewer than it gets.

    `may_be_command` says for which other tools arguments may add `Bash`.
    """
    return frozenset(_possible(_words(tool)))


def may_be_command(tool: str) -> bool:
    """True if a tool of this name is Bash where an argument is named like a command."""
    return bool(command_tools.guessed_aliases(tool, _words(tool), {"shell_command": "string"}))


class ToolArguments(Struct, frozen=True):
    """The arguments of a tool."""

    types: Mapping[str, str]
    """The JSON type of each; "" for an unknown one, or where it may have several."""
    required: frozenset[str] | None = None
    """Those that every call has; None: not known."""
    choices: frozenset[str] = frozenset()
    """Those with a few fixed values, such as the actions of an editor."""
    nested: tuple[str, ...] = ()
    """Those that are objects, or lists of objects, with a member that is named like a command."""
    known: bool = True
    """These are all arguments, even if there are none; False: only a call shows them."""
    open: bool = False
    """A call may have others, or values of which the schema does not say what is in them, and so a command in them."""


def familiar_aliases(
    tool: str,
    arguments: Mapping[str, str],
    annotations: bytes = b"",
    required: Collection[str] | None = None,
) -> tuple[Alias, ...]:
    """Return the aliases that fit a tool with these arguments (JSON type by name), the most specific first.

    Several, where one tool does several things: `aliases_for_call` chooses by a call's arguments.
    A list of edits is both `MultiEdit` and `Edit`. An empty type stands for an unknown one.
    An argument that says that something else is meant rules a name out only if it is `required`: the agent chooses the
    others. None: not known, so each of them does.

    Annotations are what the server says of itself, so they only ever make recognition stricter where a familiar name
    may allow a call: for a tool that says that it destroys, names of tools that only read are good for refusing alone.
    """
    words = _words(tool)
    possible = _possible(words)
    if not possible or not arguments:
        return ()
    found = _recognised(tool, words, arguments, possible)
    if not found and required is not None:
        found = _recognised(tool, words, arguments, possible, frozenset(map(_plain, required)))
    if "Bash" in possible and all(one.name != "Bash" for one in found):  # two of its arguments have the same name
        found += _bash(_unclear_tool(tool, words, arguments, required))
    if b"destructiveHint" in annotations and _destroys(annotations):
        found = [replace(one, guessed=True) if one.name in _READ_ONLY else one for one in found]
    return tuple(found)


def _recognised(
    tool: str,
    words: list[str],
    arguments: Mapping[str, str],
    possible: set[str],
    required: frozenset[str] | None = None,
) -> list[Alias]:
    found: list[Alias] = []
    for name, recognise in _RECOGNISE.items():
        ruling_out = _RULED_OUT_BY.get(name, _REMOTE)
        given = arguments if required is None else _without_optional(arguments, ruling_out, required)
        known = _read_tool(tool, words, given, required) if name in possible else None
        if known is not None:
            found += (one for one in recognise(known) if one is not None)
    known = _read_tool(tool, words, arguments, required)
    if not found and known is not None and any(each.fits(words) for each in _PART):
        found += (one for one in _edit_of_a_part(known) if one is not None)
    return found


def _without_optional(
    arguments: Mapping[str, str], ruling_out: frozenset[str], required: frozenset[str]
) -> Mapping[str, str]:
    return {own: kind for own, kind in arguments.items() if _plain(own) in required or _plain(own) not in ruling_out}


def listed_aliases(tool: str, arguments: ToolArguments, annotations: bytes = b"") -> tuple[Alias, ...]:
    """Return the aliases of a tool whose arguments are listed, with `Bash` where it may run commands: to refuse them.

    Calls have no say in this: an agent chooses what it sends.
    """
    found = familiar_aliases(tool, arguments.types, annotations, arguments.required or ())
    if any(one.name == "Bash" for one in found) or _has_actions(tool, arguments):
        return found
    words, required = _words(tool), arguments.required or ()
    guessed = command_tools.guessed_aliases(
        tool, words, arguments.types, arguments.choices, required, nested=arguments.nested
    )
    return (*found, *guessed)


def _has_actions(tool: str, arguments: ToolArguments) -> bool:
    """One tool that views, creates and edits files: its `command` says which of these."""
    return _is_editor(_words(tool)) and not {_plain(own) for own in arguments.types}.isdisjoint(_PATH)


def is_left_out(tool: str, arguments: ToolArguments) -> bool:
    """True for a tool that looks like one that runs commands, and is not Bash: for a database, in another language."""
    types = {own: kind for own, kind in arguments.types.items() if own not in arguments.choices}
    if _has_actions(tool, arguments) or listed_aliases(tool, arguments):
        return False
    return command_tools.looks_like_command(_words(tool), types)


def aliases_of_open(tool: str, arguments: Mapping[str, str], nested: Sequence[str]) -> tuple[Alias, ...]:
    """Return the alias as `Bash`, to refuse, of a call that has arguments which its tool does not list.

    `arguments` are those alone, `nested` those of them that hold a command.
    """
    words = _words(tool)
    if "Bash" in _possible(words):
        nested = [
            own for own, kind in arguments.items() if own in nested or (kind == "object" and _plain(own) in _COMMAND)
        ]
    return tuple(command_tools.guessed_aliases(tool, words, arguments, nested=nested, listed=False))


def aliases_of_unlisted(tool: str, arguments: Mapping[str, str], nested: Sequence[str] = ()) -> tuple[Alias, ...]:
    """As `familiar_aliases`, for a tool whose arguments only a call shows: the agent chooses them.

    So no argument rules a name out: each name is recognised by the arguments that it needs, and the others are ignored.
    `nested` ones hold a command.
    """
    words = _words(tool)
    possible = _possible(words)
    spellings = _spellings(arguments)
    found: list[Alias] = []
    for name, recognise in _RECOGNISE.items():
        if name == "Bash" and name in possible:
            found += _bash(_unclear_tool(tool, words, arguments, ()), listed=False)
            continue
        shown = _of_any_type(_shown(arguments, spellings, _NEEDED[name])) if name in possible else {}
        known = _read_tool(tool, words, shown) if shown else None
        if known is not None:
            found += (one for one in recognise(known) if one is not None)
    if _is_editor(words) and any(arguments.get(name) == "string" for name in _ACTIONS):
        known = _read_tool(tool, words, _shown(arguments, spellings, (_PATH,)))
        reading = known.alias("Read", {"file_path": _local_path(known)}, {}) if known is not None else None
        found += [reading] if reading is not None and all(one.name != "Read" for one in found) else []
    found = found or list(familiar_aliases(tool, arguments))
    if any(one.name == "Bash" for one in found) or _has_actions(tool, ToolArguments(arguments)):
        return tuple(found)
    return (*found, *command_tools.guessed_aliases(tool, words, arguments, nested=nested, listed=False))


def _of_any_type(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments as if each had the type that it needs: an agent that has sent another one takes no name away."""
    return {own: "array" if _plain(own) in _EDITS else "" for own in arguments}


def _shown(
    arguments: Mapping[str, str], spellings: Mapping[str, Sequence[str]], needed: Iterable[Sequence[str]]
) -> dict[str, str]:
    """The first argument of each of these meanings, a string if there is one."""
    shown: dict[str, str] = {}
    for same in needed:
        found = [own for name in same for own in spellings.get(name, ()) if own not in shown]
        found.sort(key=lambda own: arguments[own] not in ("string", ""))
        shown.update((own, arguments[own]) for own in found[:1])
    return shown


def _spellings(arguments: Iterable[str]) -> dict[str, list[str]]:
    """The arguments by their names without case, `_` and `-`."""
    found: dict[str, list[str]] = {}
    for own in arguments:
        found.setdefault(_plain(own), []).append(own)
    return found


def action_of(aliases: Sequence[Alias], arguments: bytes) -> str | None:
    """What a call asks a tool to do that reads and writes: its `command`, `action` or `operation` in lower case.

    Empty: that is no text. None: the call has no such argument, or the tool does not both read and write.
    """
    names = {one.name for one in aliases}
    if "Read" not in names or not (_is_editor(_words(aliases[0].tool)) or names & _WRITING):
        return None
    try:
        members = raw_json.fields(arguments)
        stated = [bytes(members[name]) for name in _ACTIONS if name in members]
        return (raw_json.text(stated[0]) or "").lower() if stated else None
    except ValueError:
        return ""


def aliases_for_call(aliases: Sequence[Alias], keys: Container[str], action: str | None = None) -> tuple[Alias, ...]:
    """The aliases whose needed arguments the call has, else the first of all; none if there are no aliases.

    A tool keeps a familiar name for calls with other arguments: its hooks run, and see what is there. A hook for any of
    these names concerns the call. `action`, from `action_of`, says whether a call that only names a file reads it: an
    action that is known to write does not, and one that is unknown may do both.
    """
    fitting = tuple(one for one in aliases if all(name in keys for name in one.needed))
    if action is None or action in _READING_ACTIONS:
        return fitting or tuple(aliases[:1])
    every = tuple(one for one in aliases if one.name != "Read")
    writing = tuple(one for one in fitting if one.name != "Read") or every
    if action in _WRITING_ACTIONS:
        return writing
    return (*writing, *(one for one in fitting if one.name == "Read"))


def rival_arguments(aliases: Sequence[Alias], arguments: Iterable[str], listed: Container[str]) -> list[str]:
    """The arguments of a call that may all be the one on which an alias depends; none if it is clear which one it is.

    It is clear if `listed`, the tool's arguments in tools/list, has them. Otherwise the server may ignore one of them,
    and hooks would judge that one: an agent could add `command` to a call whose tool reads `cmd`.
    """
    spellings = _spellings(arguments)
    for same in (_COMMAND, _PATH, _CONTENT, _NEW, _URL):
        rivals = [own for name in same for own in spellings.get(name, ())]
        concerned = any(not one.needed.isdisjoint(rivals) for one in aliases)
        if concerned and len(rivals) > 1 and not all(own in listed for own in rivals):
            return rivals
    return _unlisted_commands(aliases, arguments, listed)


def _unlisted_commands(aliases: Sequence[Alias], arguments: Iterable[str], listed: Container[str]) -> list[str]:
    """What a call of a listed tool that is Bash has beside its command, as if it were another one, or words of it."""
    commands = [own for one in aliases if one.name == "Bash" for own in one.needed if own in listed]
    unlisted = [own for own in arguments if own not in listed]
    others = [own for own in unlisted if command_tools.is_command(own) or _plain(own) in _COMMAND]
    others += command_tools.word_arguments(unlisted)
    return [commands[0], *others] if commands and others else []


def rival_commands(aliases: Sequence[Alias], arguments: Mapping[str, str], listed: Container[str]) -> list[str]:
    """The arguments of a call that may all be run as a command; none if there is at most one.

    All are listed, so the server may run each of them, and a hook for Bash would look at one.
    """
    if not any(one.name == "Bash" for one in aliases):
        return []
    spellings = _spellings(own for own, kind in arguments.items() if kind in ("string", "array", "object"))
    found = [own for name in _COMMAND for own in spellings.get(name, ()) if own in listed]
    return found if len(found) > 1 else []


_READ_ONLY: Final = _set("Read LS Glob Grep WebSearch")
"""Names of tools that only read: people often allow every call of them."""

_WRITING: Final = _set("Write Edit MultiEdit")

_ACTIONS: Final = _in_order("command action operation")
"""Arguments of one tool that views, creates and edits files: which of these it does."""
_READING_ACTIONS: Final = _set("view read open show cat")
_WRITING_ACTIONS: Final = _set(
    "create write save overwrite append insert str_replace replace edit update undo_edit undo redo delete remove "
    "rename move"
)

_PHRASES: Final = {
    "Bash": _BASH,
    "Write": _WRITE,
    "Read": _READ,
    "LS": _LS,
    "Glob": _GLOB,
    "Grep": _GREP,
    "WebFetch": _WEB_FETCH,
    "WebSearch": _WEB_SEARCH,
}


def _possible(words: list[str]) -> set[str]:
    names = {name for name, phrases in _PHRASES.items() if any(each.fits(words) for each in phrases)}
    if not _EDIT_VERBS.isdisjoint(words) and _NOT_EDITED.isdisjoint(words):
        names |= {"Edit", "MultiEdit"}
        if _is_editor(words):
            names |= {"Write", "Read"}
    if any(each.fits(words) for each in _PART):
        names.add("Edit")
    return names


def _is_editor(words: list[str]) -> bool:
    """True for one tool that views, creates and edits files, depending on its arguments."""
    return "editor" in words or ("edit" in words and "tool" in words)


def _bash(tool: _Tool, *, listed: bool = True) -> list[Alias]:
    """Every argument with a command gives an alias: a call usually has one of them (see `rival_commands`)."""
    if not tool.lacks(command_tools.DATABASE_ARGUMENTS):
        return []
    named = {own: None for name in _COMMAND for own, kind in tool.types.items() if _plain(own) == name}
    texts = [own for own in named if tool.types[own] in ("string", "array", "") or not listed]
    commands = list(dict.fromkeys([*texts, *command_tools.named_commands(tool.types, listed=listed)]))
    if not commands and not command_tools.has_words_alone(tool.types):
        return []
    optional = {
        "timeout": _own_name(tool.types, ("timeoutms",), "number"),
        "run_in_background": _own_name(tool.types, _BACKGROUND, "boolean"),
    }
    return list(command_tools.command_aliases(tool.name, commands, tool.types, optional, listed=listed))


def _own_name(types: Mapping[str, str], names: Sequence[str], kind: str) -> str:
    """The tool's own name of the first of these arguments that has this type or an unknown one; empty: none."""
    spelled = ((own, _plain(own)) for own, found in types.items() if found in (kind, ""))
    return next((own for own, plain in spelled if plain in names), "")


def _edit(tool: _Tool) -> Iterable[Alias | None]:
    path, new = _local_path(tool), tool.named(_NEW)
    old = tool.named(_OLD_OF_A_REPLACEMENT)
    required = {"file_path": path, "old_string": old, "new_string": new}
    every = tool.named(("replaceall",), "boolean")
    edit = tool.alias("Edit", required, {"replace_all": every})
    if edit is not None:
        # a call that deletes text may have no new one, and one that inserts has no old one
        yield Alias(tool.name, "Edit", edit.arguments, automatic=True, needed=frozenset({path, old}))
        inserted = tool.named(("insertline", "inserttext"), "number") or tool.named(("inserttext",))
        for own in (new, inserted):
            if own and tool.is_editor:
                yield Alias(tool.name, "Edit", edit.arguments, automatic=True, needed=frozenset({path, own}))


def _edit_of_a_part(tool: _Tool) -> Iterable[Alias | None]:
    text = tool.named(("codeedit", *_NEW, *_CONTENT))
    yield tool.alias("Edit", {"file_path": _local_path(tool), "new_string": text}, {})


def _multi_edit(tool: _Tool) -> Iterable[Alias | None]:
    path, edits = _local_path(tool), tool.named(_EDITS, "array")
    if tool.types.get(edits) != "array":
        return
    multiple = tool.alias("MultiEdit", {"file_path": path, "edits": edits}, {})
    if multiple is not None:
        multiple = replace(multiple, edits=edits)
        yield multiple
        yield replace(multiple, name="Edit")


def _write(tool: _Tool) -> Iterable[Alias | None]:
    if tool.named(_NEW) and not tool.is_editor:
        return
    yield tool.alias("Write", {"file_path": _local_path(tool), "content": tool.named(_CONTENT)}, {})


def _read(tool: _Tool) -> Iterable[Alias | None]:
    editor = tool.is_editor
    if editor and not tool.named(("viewrange",), "array"):
        return
    if not editor and (tool.named(_CONTENT) or tool.named(_NEW)):
        return
    yield tool.alias("Read", {"file_path": _local_path(tool)}, {})


def _ls(tool: _Tool) -> Iterable[Alias | None]:
    if tool.lacks(_REMOTE) and not tool.named(_CONTENT):
        yield tool.alias("LS", {"path": tool.named(_DIRECTORY)}, {})


def _glob(tool: _Tool) -> Iterable[Alias | None]:
    pattern = tool.named(_NAME_PATTERN)
    beside = _ABOUT_CONTENT.intersection(name for name, own in tool.names.items() if own != pattern)
    if tool.lacks(_REMOTE) and (not beside or "glob" in tool.words):
        yield tool.alias("Glob", {"pattern": pattern}, {"path": tool.named(_DIRECTORY)})


def _grep(tool: _Tool) -> Iterable[Alias | None]:
    pattern, place, files = tool.named(_PATTERN), tool.named(_DIRECTORY), tool.named(_FILE_FILTER)
    if not tool.lacks(_REMOTE) or not ("grep" in tool.words or place or files):
        return
    names_only = _set("code text content regex pattern in grep").isdisjoint(tool.words)
    if names_only and _ABOUT_CONTENT.isdisjoint(name for name, own in tool.names.items() if own != pattern):
        return  # search_files: by their names
    yield tool.alias("Grep", {"pattern": pattern}, {"path": place, "glob": files})


def _web_fetch(tool: _Tool) -> Iterable[Alias | None]:
    if tool.lacks(_RULED_OUT_BY["WebFetch"]):
        yield tool.alias("WebFetch", {"url": tool.named(_URL)}, {})


def _web_search(tool: _Tool) -> Iterable[Alias | None]:
    yield tool.alias("WebSearch", {"query": tool.named(_QUERY)}, {})


_RECOGNISE: Final = {
    "MultiEdit": _multi_edit,
    "Edit": _edit,
    "Write": _write,
    "Bash": _bash,
    "Read": _read,
    "Glob": _glob,
    "Grep": _grep,
    "LS": _ls,
    "WebFetch": _web_fetch,
    "WebSearch": _web_search,
}
"""Whether arguments fit a name, the most specific first."""


_RULED_OUT_BY: Final[Mapping[str, frozenset[str]]] = {
    "Write": _REMOTE.union(_NEW),
    "Read": _REMOTE.union(_CONTENT, _NEW),
    "LS": _REMOTE.union(_CONTENT),
    "Glob": _REMOTE | _ABOUT_CONTENT,
    "WebFetch": _set("owner repo body path filepath outputpath destination"),
}
"""Arguments that say that something else is meant, without case, `_` and `-`; of all other names, `_REMOTE`."""

_BACKGROUND: Final = ("isbackground", "background")
_NEEDED: Final[Mapping[str, tuple[Sequence[str], ...]]] = {
    "MultiEdit": (_PATH, _EDITS),
    "Edit": (_PATH, _OLD_OF_A_REPLACEMENT, _NEW),
    "Write": (_PATH, _CONTENT),
    "Read": (_PATH, ("viewrange",)),
    "Glob": (_NAME_PATTERN, _DIRECTORY),
    "Grep": (_PATTERN, _DIRECTORY, _FILE_FILTER),
    "LS": (_DIRECTORY,),
    "WebFetch": (_URL,),
    "WebSearch": (_QUERY,),
}
"""The arguments by which each name is recognised, each with the names that it may have."""


def _local_path(tool: _Tool) -> str:
    return tool.named(_PATH) if tool.lacks(_REMOTE) else ""


def _destroys(annotations: bytes) -> bool:
    try:
        hints = msgspec.json.decode(annotations, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return bytes(hints.get("destructiveHint", b"")) == b"true" and bytes(hints.get("readOnlyHint", b"")) != b"true"


# --- types of arguments ---

_TYPES: Final = {"string": "string", "array": "array", "object": "object", "boolean": "boolean"} | dict.fromkeys(
    ("number", "integer"), "number"
)
_BY_FIRST_BYTE: Final = {0x22: "string", 0x5B: "array", 0x7B: "object", 0x74: "boolean", 0x66: "boolean"}
_DEPTH: Final = 8
"""How many schemas inside schemas are followed: more than any listed tool has around one argument."""
_MAX_PARTS: Final = 10_000
"""How many parts of one schema are read: far more than any listed tool has, and a few milliseconds."""


_NOT_LISTED: Final = ToolArguments({}, frozenset(), known=False)


def listed_arguments(schema: bytes) -> ToolArguments:
    """Return the arguments in a listed inputSchema.

    An unreadable schema has no arguments, nor has one with too many parts: then the arguments of a call say what the
    tool does. References to other documents are not followed.
    """
    try:
        root: object = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _NOT_LISTED
    reader = _SchemaReader(root)
    properties = reader.properties(root, _DEPTH)
    types = {name: reader.type_of(each, _DEPTH) for name, each in properties.items()}
    choices = frozenset(name for name, each in properties.items() if reader.has_choices(each))
    required = root.get("required") if isinstance(root, dict) else None
    names = frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
    known = bool(properties) or (isinstance(root, dict) and isinstance(root.get("properties"), dict))
    nested = tuple(name for name, each in properties.items() if reader.holds_command(each))
    is_open = _takes_others(root, properties) or any(
        reader.is_open(each) or (command_tools.is_command(name) and types[name] not in command_tools.TEXTS)
        for name, each in properties.items()
    )
    return ToolArguments(types, names, choices, nested, known, is_open) if reader.parts_left > 0 else _NOT_LISTED


_OTHERS: Final = ("patternProperties", "dependentSchemas", "dependencies", "if", "then", "else", "$dynamicRef")
"""Keywords with arguments of which `properties` says nothing."""


def _takes_others(root: object, properties: Mapping[str, object]) -> bool:
    """The schema invites arguments that it does not list: it says so, or it lists none and does not forbid any."""
    if not isinstance(root, dict):
        return False
    additional = root.get("additionalProperties")
    if additional is not None and additional is not False:
        return True
    return (not properties and additional is None) or any(key in root for key in _OTHERS)


def argument_types(schema: bytes) -> Mapping[str, str]:
    """Return the JSON type of each argument in a listed inputSchema, as `listed_arguments`."""
    return listed_arguments(schema).types


def commands_inside(arguments: bytes) -> tuple[str, ...]:
    """Return those of a call's arguments that are or hold objects with a member named like a command.

    Raises nothing: of what cannot be read there are none.
    """
    if b"{" not in arguments[1:]:
        return ()
    try:
        values = msgspec.json.decode(arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    return tuple(name for name, value in values.items() if has_command_inside(value))


def types_of(arguments: bytes) -> Mapping[str, str]:
    """Return the JSON type of each of a call's arguments; "" for null. Without a JSON object there are none."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return {name: _value_type(bytes(value)) for name, value in values.items()}


def _value_type(value: bytes) -> str:
    return "" if value == b"null" else _BY_FIRST_BYTE.get(value[0], "number")


class _SchemaReader:
    """Reads the parts of one schema. The server wrote it, so the number of parts that are read is limited."""

    def __init__(self, root: object) -> None:
        self._root = root
        self.parts_left = _MAX_PARTS
        """How many parts may still be read; none: what has been read is incomplete."""

    def properties(self, schema: object, depth: int) -> dict[str, object]:
        """The properties of an object's schema and of its alternatives."""
        members = self._members(schema, depth)
        properties = members.get("properties")
        found: dict[str, object] = dict(properties) if isinstance(properties, dict) else {}
        for part in _parts(members):
            found = self.properties(part, depth - 1) | found
        return found

    def type_of(self, schema: object, depth: int) -> str:
        """The JSON type of a schema's values; "" if it says none or several."""
        members = self._members(schema, depth)
        kinds: set[str] = set()
        stated = members.get("type")
        for kind in stated if isinstance(stated, list) else [stated]:
            if isinstance(kind, str) and kind != "null":
                kinds.add(_TYPES.get(kind, ""))
        if not kinds and isinstance(values := members.get("enum", [members.get("const")]), list):
            kinds = {_value_type(msgspec.json.encode(value)) for value in values if value is not None}
        if not kinds:
            alternatives = [each for each in _parts(members) if each != {"type": "null"}]
            kinds = {self.type_of(each, depth - 1) for each in alternatives}
        return kinds.pop() if len(kinds) == 1 else ""

    def holds_command(self, schema: object, depth: int = _DEPTH) -> bool:
        """True if the schema's values are or hold objects with a member that is named like a command."""
        if not depth:
            return False
        properties = self.properties(schema, depth)
        texts = {name: self.type_of(each, depth) for name, each in properties.items() if not self.has_choices(each)}
        if command_tools.named_commands(texts):
            return True
        items = self._members(schema, depth).get("items")
        inside = (*properties.values(), *([items] if isinstance(items, dict) else ()))
        return any(self.holds_command(each, depth - 1) for each in inside)

    def is_open(self, schema: object) -> bool:
        """True if the schema's values are objects, or lists of objects, of which it does not say what is in them."""
        if self.type_of(schema, _DEPTH) not in ("object", "array"):
            return False
        members = self._members(schema, _DEPTH)
        if "items" in members:
            return self.is_open(members["items"])
        return not self.properties(schema, _DEPTH) and members.get("additionalProperties") is not False

    def has_choices(self, schema: object, depth: int = _DEPTH) -> bool:
        """True if the schema's values are a few fixed texts, whichever of its alternatives counts."""
        members = self._members(schema, depth)
        if "enum" in members or "const" in members:
            return True
        if any(self.has_choices(each, depth - 1) for each in _listed_in(members, "allOf")):
            return True
        alternatives = [
            each for each in (*_listed_in(members, "anyOf"), *_listed_in(members, "oneOf")) if not _is_null(each)
        ]
        return bool(alternatives) and all(self.has_choices(each, depth - 1) for each in alternatives)

    def _members(self, schema: object, depth: int) -> Mapping[str, object]:
        """The members of a schema, of the one that its `$ref` points to; none if it has none or may not be read."""
        self.parts_left -= 1
        if not depth or self.parts_left <= 0:
            return {}
        schema = _followed(schema, self._root, depth)
        return schema if isinstance(schema, dict) else {}


def _parts(schema: Mapping[str, object]) -> list[object]:
    return [part for key in ("anyOf", "oneOf", "allOf") for part in _listed_in(schema, key)]


def _listed_in(schema: Mapping[str, object], key: str) -> list[object]:
    parts = schema.get(key)
    return parts if isinstance(parts, list) else []


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _followed(schema: object, root: object, depth: int) -> object:
    """The schema that `$ref` points to in the same document; None where it cannot be followed."""
    for _ in range(depth):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            return schema
        schema = root
        for part in reference.removeprefix("#").split("/")[1:]:
            schema = schema.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(schema, dict) else None
    return None
