"""One command line from the arguments of a tool that takes a program and a list of words, and a rewritten one back.

A tool may take its command in parts: `{"command": "git", "args": ["push"]}`, `{"argv": ["git", "push"]}`, or
`{"commands": ["git add .", "git push"]}`. Hooks and rules know one text, so the parts are joined as a shell would have
to read them: the words of a list are quoted, several commands stand on lines of their own (law 1). Where it is not
certain how the server reads the parts, there are several readings, and the first one is what hooks get.

What hooks rewrite is divided again only where that is exact. Everything else is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from .late_pattern import late_pattern

_SUFFIX: Final = "string|text|str|line|lines|list|array|input|to_?run|to_?execute|to_?exec|args|argv|arguments"
_POLICY: Final = "allow|block|den[iy]|forbid|ban|white|black|safe|known|support|disable|enable|exclude|list"
_COMMAND: Final = late_pattern(
    rf"(?!(?:{_POLICY})[a-z]*_(?:list_)?(?:commands|cmds)$)"
    rf"(?:[a-z_]*(?<!sub)(?<!sub_))?(?:(?:command|cmd)s?_?(?:{_SUFFIX})?|(?:shell|bash|terminal|powershell|pwsh)_?"
    rf"(?:script|code|{_SUFFIX})|argv|bash)",
)
"""The name of an argument that is a command by its name, in lower case: `shell_cmd`, `commandLine`, `argv`."""
_SIGNS: Final = late_pattern(r"[^a-z]+")
_BORDER: Final = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")

_WORDS: Final = (
    "subcommand", "args", "arguments", "argv", "arg", "argument", "params", "parameters", "argslist", "arglist",
    "argsarray", "argumentlist", "argumentslist", "cmdargs", "cmdarguments", "commandargs", "commandarguments",
    "programargs", "programarguments", "extraargs", "flags", "options", "switches",
)  # fmt: skip
"""The names of arguments with further words of a command, without case and signs, in the order in which they follow."""

_PROGRAMS: Final = frozenset({
    "program", "executable", "exe", "exec", "binary", "bin", "prog", "programname", "commandname", "cmdname",
    "executablepath", "programpath", "commandpath", "binarypath", "file", "interpreter",
})  # fmt: skip
"""The names of arguments with a program, where a list of words stands beside them."""

_SHELL: Final = late_pattern(r"(?:use|in|run_?in|via|with|as)?_?shell(?:_?(?:mode|true|execute))?")
"""The name of an argument that says whether a shell reads the command, in lower case."""

_PLAIN_WORD: Final = late_pattern(r"[\w@%+=:,./-]+", re.ASCII)
_QUOTED: Final = r"'[^']*'|\"[^\"$`\\!]*\""
_LITERAL: Final = late_pattern(rf"[ \t]*(?:(?:[\w@%+:,./-]|{_QUOTED})(?:[\w@%+=:,./-]|{_QUOTED})*[ \t]*)+")
"""A line of which every shell makes the same words, without expansions, operators and assignments."""

_MOST_WORDS: Final = 10_000  # in one list, at any depth: more than a system takes for one program
_DEEPEST: Final = 8  # lists and objects in each other: people write two


class Parts(Struct, frozen=True):
    """The arguments of one tool that are its command, under the server's names."""

    commands: tuple[str, ...]
    """Each is a command: a text, a list of words, a list of commands, or the program to which `words` belong."""
    words: tuple[str, ...] | None = ()
    """Further words of the command, in their order; None: it is not known which arguments the tool has, so those of the
    call are read by their names, as if they counted and as if they did not."""
    program: str = ""
    """The program that the tool itself may be, such as `git` with `args`; empty: not known."""
    shell: tuple[str, ...] = ()
    """The arguments that say that a shell reads the words, such as `shell`; unless a call says no in them, it does."""


class Composed(Struct, frozen=True):
    """The command of one call as one text."""

    lines: tuple[str, ...]
    """Each reading of it; the first one is for hooks."""
    arguments: Mapping[str, bytes]
    """The arguments of which it is made, as they were sent."""


# --- names ---


def is_command(argument: str) -> bool:
    """True if an argument of this name is a command, whatever its tool is called."""
    spelled = _SIGNS.sub("_", _BORDER.sub("_", argument).lower()).strip("_")
    return _COMMAND.fullmatch(spelled) is not None


def is_program(argument: str) -> bool:
    """True if an argument of this name is a program, if a list of words stands beside it."""
    return _plain(argument) in _PROGRAMS


def is_code(argument: str) -> bool:
    """True if an argument of this name is a whole program in some language: no further words follow it."""
    return _plain(argument).endswith(("code", "script", "content", "source"))


def shell_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Those of these arguments that say whether a shell reads the words of a command."""
    return tuple(own for own in arguments if _SHELL.fullmatch(own.replace("-", "_").lower()))


def word_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Those of these arguments that hold further words of a command, in the order in which they follow."""
    named = sorted((_WORDS.index(plain), own) for own in arguments if (plain := _plain(own)) in _WORDS)
    return tuple(own for _, own in named)


def _plain(argument: str) -> str:
    return _SIGNS.sub("", argument.lower())


# --- from parts to one text ---


def compose(arguments: Mapping[str, bytes | msgspec.Raw], parts: Parts, text_in: str = "") -> Composed | None:
    """Return the command of a call; None: there is none, or only a text in `text_in`. Raises Unreadable for others."""
    commands = [name for name in parts.commands if name in arguments and _may_be_command(name, bytes(arguments[name]))]
    words = _given_words(arguments, parts)
    if not commands and not words:
        return None
    is_text = len(commands) == 1 and not words and not parts.program and bytes(arguments[commands[0]])[:1] == b'"'
    if is_text and commands[0] == text_in:
        return None
    used = {name: bytes(arguments[name]) for name in (*commands, *words)}
    values = {name: _decoded(raw) for name, raw in used.items()}
    values |= {name: _commands_of(name, values[name]) for name in commands}
    tail = [values[name] for name in words]
    if len(commands) > 1:
        of_each = [readings(name, values[name], ()) for name in commands] + ([readings("", None, tail)] if tail else [])
        lines = ["\n".join(part[0] for part in of_each), *(line for part in of_each for line in part[1:])]
    else:
        name = commands[0] if commands else ""
        lines = readings(name, values.get(name), tail)
        if tail and name and parts.words is None:
            lines += readings(name, values[name], ())
        if name:
            lines += _of_argv(name, values[name], {part: values[part] for part in words})
        lines = _in_shell(lines, [values[part] for part in (name, *words) if part], _shell_of(arguments, parts))
        lines = _with_program(lines, parts.program, first=not commands and _plain(words[0]) != "argv")
    return Composed(tuple(dict.fromkeys(lines)), used)


def _of_argv(name: str, command: object, words: Mapping[str, object]) -> list[str]:
    """The readings of a program beside an `argv`: that may be the whole command, and its first word not an operand."""
    lines: list[str] = []
    for own, value in words.items():
        if _plain(own) == "argv" and isinstance(value, list) and value:
            rest = [value[1:] if argument == own else words[argument] for argument in words]
            lines += [*readings("", None, [value]), *readings(name, command, rest if has_words(value[1:]) else ())]
    return lines


def _shell_of(arguments: Mapping[str, bytes | msgspec.Raw], parts: Parts) -> bool | None:
    """Whether a shell reads the words; None: it may."""
    stated = {bytes(arguments.get(name, b"null")) for name in parts.shell}
    if stated <= {b"false", b'""', b'"false"', b"0"}:
        return False
    return None if stated & {b"null"} else True


def _in_shell(lines: list[str], values: Sequence[object], shell: bool | None) -> list[str]:
    """The readings with the one of a shell that gets all words joined by blanks."""
    items = [word for value in values for word in _flat(value)]
    if shell is False or any(isinstance(item, dict) or item is None for item in items):
        return lines
    joined = " ".join(map(_word, items))
    return [joined, *lines] if shell else [*lines, joined]


def _may_be_command(name: str, raw: bytes) -> bool:
    """False for null, and for an object or a list with other things that is not named like a command."""
    if raw[:1] not in (b"{", b"["):
        return raw != b"null"
    return is_command(name) or is_program(name) or _commands_of(name, _decoded(raw)) not in ([], None)


def _commands_of(name: str, value: object) -> object:
    """The value; of an object or a list of objects that is not named like a command, what has a command in it."""
    if is_command(name) or is_program(name):
        return value
    objects = list(_objects_with_commands(value))
    if isinstance(value, dict) or objects:
        return objects or None
    return value


def has_command_inside(value: object) -> bool:
    """True if a value, or anything in it at any depth, is an object with a member that is named like a command."""
    return next(_objects_with_commands(value), None) is not None


def _objects_with_commands(value: object) -> Iterator[dict[str, object]]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if any(map(is_command, part)):
                yield part
            waiting += [member for name, member in reversed(part.items()) if not is_command(name)]
        elif isinstance(part, list):
            waiting += reversed(part)


def _with_program(lines: list[str], program: str, *, first: bool) -> list[str]:
    """The readings with the tool's own program before them: it is the likely one where no argument is the program."""
    if not program:
        return lines
    added = [f"{program} {line}" for line in lines if line.split(" ", 1)[0] != program]
    return [*added, *lines] if first else [*lines, *added]


def _given_words(arguments: Mapping[str, bytes | msgspec.Raw], parts: Parts) -> list[str]:
    if parts.words == ():
        return []
    named = word_arguments(arguments) if parts.words is None else parts.words
    given = [name for name in named if name in arguments and name not in parts.commands]
    return [name for name in given if has_words(_decoded(bytes(arguments[name])))]


def has_words(value: object) -> bool:
    """True if a value may be words of a command: a text, or a list with at least one. Objects are something else."""
    if isinstance(value, list):
        return any(isinstance(item, str | int | float) for item in _flat(value))
    return isinstance(value, str) or _is_numbered(value)


def _is_numbered(value: object) -> bool:
    """True for an object that stands for a list, as some languages send it: its names are numbers."""
    return isinstance(value, dict) and bool(value) and all(name.isdigit() for name in value)


def _flat(value: object, depth: int = 0) -> list[object]:
    """The items of a list, and of the lists in it, which some servers flatten; a list of one for any other value."""
    if depth > _DEEPEST:
        raise raw_json.Unreadable("a command is nested too deep to be judged")
    if _is_numbered(value) and isinstance(value, dict):
        value = list(value.values())
    return [word for item in value for word in _flat(item, depth + 1)] if isinstance(value, list) else [value]


def readings(name: str, command: object, words: Sequence[object]) -> list[str]:
    """Return the lines that a command with further words may be; the first one is the most likely.

    `command` is the decoded value of the argument `name`: a text, a list or an object; None: there are only words.
    Raises Unreadable.
    """
    tail = [_tail(part) for part in words]
    if command is None:
        return [" ".join(tail)]
    if isinstance(command, list):
        lists = _list_readings(name, command, 0)
        return [" ".join([part, *tail]) for part in lists]
    if isinstance(command, dict):
        return [" ".join([part, *tail]) for part in _object_readings(command, 0)]
    text = _word(command)
    if not tail:
        return [text]
    exact = " ".join([_quote(text), *tail])
    return [exact] if _PLAIN_WORD.fullmatch(text) else [" ".join([text, *tail]), exact]


def _tail(value: object) -> str:
    """The text of further words: those of a list are quoted, a text is what a shell reads."""
    if isinstance(value, list) or _is_numbered(value):
        return _joined(_flat(value))
    if isinstance(value, dict):
        raise raw_json.Unreadable("a command has words that are an object")
    return _word(value)


def _list_readings(name: str, items: list[object], depth: int) -> list[str]:
    """A list is the words of one command, or a list of commands: what its name and its first item say comes first."""
    if not items:
        return [""]
    if depth > _DEEPEST or len(items) > _MOST_WORDS:
        raise raw_json.Unreadable("a command has too many words to be judged")
    nested = any(isinstance(item, list | dict) for item in items)
    lines = "\n".join(_line_of(item, depth) for item in items)
    if nested:
        return [lines]
    words = _joined(items)
    several = _plain(name).endswith(("commands", "cmds", "lines"))
    if several:
        options = any(isinstance(item, str) and item.startswith("-") for item in items[1:])
        return list(dict.fromkeys((words, lines) if options else (lines, words)))
    first = _word(items[0])
    return [words] if _PLAIN_WORD.fullmatch(first) else list(dict.fromkeys((lines, words)))


def _line_of(item: object, depth: int) -> str:
    if isinstance(item, list):
        return _list_readings("", item, depth + 1)[0]
    return _object_readings(item, depth + 1)[0] if isinstance(item, dict) else _word(item)


def _object_readings(item: dict[str, object], depth: int) -> list[str]:
    if depth > _DEEPEST:
        raise raw_json.Unreadable("a command is nested too deep to be judged")
    words = word_arguments(item)
    commands = [name for name in item if name not in words and (is_command(name) or is_program(name))]
    if len(commands) != 1:
        raise raw_json.Unreadable("a command is an object, and it is not known what in it is the command")
    value = item[commands[0]]
    if isinstance(value, list) and not words:
        return _list_readings(commands[0], value, depth + 1)
    return readings(commands[0], value, [item[name] for name in words if item[name] is not None])


def _joined(items: Sequence[object]) -> str:
    if len(items) > _MOST_WORDS:
        raise raw_json.Unreadable("a command has too many words to be judged")
    return " ".join(_quote(_word(item)) for item in items)


def _word(value: object) -> str:
    """The text of one word. Raises Unreadable for anything that no program can get as a word."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise raw_json.Unreadable("a command has a word that is not a text")


def _quote(word: str) -> str:
    if _PLAIN_WORD.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _decoded(raw: bytes) -> object:
    """The value. Raises Unreadable, such as for half of a surrogate pair."""
    if (value := raw_json.decoded(raw)) is None and raw != b"null":
        raise raw_json.Unreadable("a command is not a text that can be read")
    return value


# --- from a rewritten text to parts ---


def divide(line: str, composed: Composed, parts: Parts) -> dict[str, msgspec.Raw]:
    """Return the server's arguments for a line that a hook has rewritten. Raises Unreadable unless that is exact."""
    if line == composed.lines[0]:
        return {name: msgspec.Raw(raw) for name, raw in composed.arguments.items()}
    commands = [name for name in parts.commands if name in composed.arguments]
    words = [name for name in composed.arguments if name not in commands]
    values = {name: _decoded(raw) for name, raw in composed.arguments.items()}
    divided = None
    program = f"{parts.program} " if parts.program and not commands else ""
    if composed.lines[0].startswith(program) and line.startswith(program) and max(len(commands), len(words)) <= 1:
        command, tail = (values[names[0]] if names else None for names in (commands, words))
        divided = _divided(line.removeprefix(program), commands, command, words, tail)
    if divided is None:
        used = " and ".join(map(repr, composed.arguments))
        raise raw_json.Unreadable(
            f"the server takes the command in {used}, and the new line cannot be divided among them exactly: "
            "it must be one command of plain or quoted words, without expansions and operators"
        )
    return {name: msgspec.Raw(raw_json.encode(value)) for name, value in divided.items()}


def _divided(
    line: str, commands: Sequence[str], command: object, words: Sequence[str], tail: object
) -> dict[str, object] | None:
    """The arguments by their names; None if the line does not say what they are."""
    literal = _literal_words(line)
    if isinstance(command, list):
        value = _lines(line, command) or (literal if _is_flat(command) else [])
        return {commands[0]: value} if value and not words else None
    if command is None and words and isinstance(tail, list) and literal:
        return {words[0]: literal}
    if isinstance(command, str) and not words:
        return {commands[0]: line}
    if not (isinstance(command, str) and literal and _PLAIN_WORD.fullmatch(command)):
        return None
    if isinstance(tail, list):
        return {commands[0]: literal[0], words[0]: literal[1:]}
    first, _, rest = line.strip().partition(" ")
    return {commands[0]: first, words[0]: rest} if _PLAIN_WORD.fullmatch(first) else None


def _is_flat(command: list[object]) -> bool:
    """The items are the words of one command."""
    nested = any(isinstance(item, list | dict) for item in command)
    return not nested and (not command or _PLAIN_WORD.fullmatch(_word(command[0])) is not None)


def _lines(line: str, command: list[object]) -> list[str] | None:
    """The commands of a list of lines, each on a line of its own as before; None if they are not known for certain."""
    texts = [text for text in command if isinstance(text, str)]
    if len(texts) < 2 or len(texts) < len(command) or any("\n" in text for text in texts):
        return None
    if _is_flat(command) and "\n" not in line:
        return None
    pieces = line.split("\n")
    return pieces if len(pieces) == len(texts) else None


def _literal_words(line: str) -> list[str]:
    """The words of a line that every shell reads alike; none if it is not such a line."""
    if not _LITERAL.fullmatch(line):
        return []
    import shlex  # only for rewrites of such tools

    words = shlex.split(line)
    return [] if "=" in words[0] else words  # an assignment, unless it is quoted
