"""Which commands a program in another language starts, as far as they are literal (`python -c`, `awk`, `sed`, …).

Text that may start processes in any other way is unreadable (law 1). What such a program does by itself, such as
deleting a file, is not a command, and nothing here sees it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from . import python_code
from .programs import Code, Foreign, Started, Unreadable, setting
from .words import PRIVATE, Command, literal

_STRING: Final = re.compile(
    r"""[rbuRBU]{0,2}(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""",
    re.DOTALL,
)
_BACKQUOTED: Final = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_STRING_OR_BACKQUOTED: Final = re.compile(f"{_STRING.pattern}|{_BACKQUOTED.pattern}", re.DOTALL)
_PERL_QUOTED: Final = re.compile(
    r"(?:\b(?:qx|q|qq|qw)|%x|\bqqx)\s*(?:\{([^{}]*)\}|\(([^()]*)\)|\[([^\[\]]*)\]|<([^<>]*)>|([^\w\s=,;>)])(.*?)\5)",
    re.DOTALL,
)
_IMPORTED: Final = re.compile(
    r"\bfrom\s+[\w.]+\s+import\s+(?:\([\w\s,]+\)|\w+(?:\s*,\s*\w+)*)(?!\s+as\b)(?=\s*(?:[;\n#]|\Z))|\{[\w\s,]+\}(?=\s*(?:=|from\b))"
)
"""An import of names as they are: it calls nothing and hides nothing."""
_MARK: Final = "\ue009"
"""Stands for a literal in masked text."""
_LITERAL_CALL: Final = re.compile(rf"[\w.]*\s*(?:\(\s*)?(?:\[\s*)?{_MARK}(?:\s*,\s*{_MARK})*\s*(?:[\]);,]|\Z|\n)")


class _Language(NamedTuple):
    starts: re.Pattern[str]
    """Names with which a process is started."""
    hides: re.Pattern[str]
    """Names with which any other name can be reached, and names with which a process is started that are not called."""
    modules: re.Pattern[str] = re.compile(r"(?!)")
    """Modules that are for nothing but starting processes."""
    common: frozenset[str] = frozenset()
    """Names that start one only beside such a module: other things are called so, too."""
    uncalled: re.Pattern[str] = re.compile(r"(?!)")
    """Beside such a module, a name of `starts` that is not called."""
    comments: re.Pattern[str] = re.compile(r"(?!)")
    backquotes: bool = False
    """Text in backquotes is a command; otherwise it is a string."""


_LANGUAGES: Final = {
    "python": _Language(
        re.compile(
            r"\b(?:system|popen\d?|Popen|spawn\w*|exec[lv]p?e?|check_output|check_call|getoutput|getstatusoutput|call|"
            r"posix_spawnp?|create_subprocess_\w+|run|fork\w*)\s*\((?!\s*\))"
        ),
        re.compile(
            r"(?<![.\w])(?:exec|eval|compile|__import__|getattr|vars|globals|locals|open_code)\s*\(|\b(?:import_module|ctypes|"
            r"runpy|marshal|pickle|codeop|cffi|pty|__builtins__|__getattribute__|__dict__|__subclasses__)\b|"
            r"\b(?:system|popen|Popen|check_output|check_call|getoutput|execvp?e?|execlp?e?|posix_spawnp?)\b(?!\s*\()"
        ),
        modules=re.compile(r"\bsubprocess\b"),
        common=frozenset({"run", "call"}),
        uncalled=re.compile(r"(?<=\.)(?:run|call)\b(?!\s*\()"),
        comments=re.compile(r"#.*"),
    ),
    "javascript": _Language(
        re.compile(r"\b(?:exec|execSync|spawn|spawnSync|execFile|execFileSync|fork|run|Command|execa|system)\s*\("),
        re.compile(
            r"\b(?:eval|Function|constructor|binding|dlopen|createRequire)\b|\b(?:require|import)\s*\((?!\s*\ue009\s*\))|"
            r"\$\s*\ue009"
        ),
        modules=re.compile(r"\b(?:child_process|execa|shelljs|zx|cross-spawn|Bun|Deno)\b"),
        common=frozenset({"exec", "fork", "run", "Command"}),
        uncalled=re.compile(r"\b(?:exec|spawn)(?:File)?(?:Sync)?\b(?!\s*\()"),
    ),
    "other": _Language(
        re.compile(
            r"\b(?:system\w*|exec\w*|popen|spawn|shell_exec|passthru|proc_open|pcntl_exec|execute|syscmd|esyscmd|shell|"
            r"call-process|shell-command|run|do shell script)\b|^\s*!|\\!|^\s*\.(?:sh|sy)\w*|^\s*\.\w+\s+\S*\|"
        ),
        re.compile(
            r"\b(?:eval|fork|send|instance_eval|public_send|create_function|call_user_func\w*|loadstring|syscall|open[23]?e?|readpipe|capture\w*|method|define_method|const_get|Fiddle|loadfile|dofile|pairs|_G|_ENV|ffi|edit)\b|\|\s*\ue009|\ue009\s*\|"
        ),
        backquotes=True,
    ),
    "editor": _Language(
        re.compile(
            r"!|\b(?:system|systemlist|shell|sh|terminal|term?|mak?e?|lmak?e?|grep|gr|job_start|termopen|jobstart|makeprg|mp|grepprg|gp|formatprg|fp|"
            r"equalprg|ep|keywordprg|kp|vim\.fn|io\.popen|os\.execute)\b"
        ),
        re.compile(r"\b(?:execute|exe|eval|python\w*|py\w*|lua|perl|ruby|tcl|normal|norm|feedkeys|call|source|so)\b"),
    ),
}


READ_BY_NAMES: Final = frozenset({"other", "editor"})
"""Languages of which only the names are known with which a process is started: there may be further ones."""


def commands_in(program: Foreign) -> Iterator[Started]:
    """Yield what a program in another language starts."""
    if not program.whole:
        yield Unreadable(f"a program in {program.language} is not literal")
    if PRIVATE.search(program.text):
        return
    reader = _READERS.get(program.language)
    if reader is not None:
        yield from reader(program.text)
    else:
        yield from _by_names(program.text, _LANGUAGES.get(program.language, _LANGUAGES["other"]), program.language)


def _python(text: str) -> Iterator[Started]:
    started = python_code.commands_in(text)
    yield from _other_python(text) if started is None else started


def _other_python(text: str) -> Iterator[Started]:
    """Read what is not Python of the version that runs here: another version may see more, such as in f-strings."""
    yield from _by_names(text, _LANGUAGES["python"], "python")
    if re.search(r"^\s*[!%]", text, re.MULTILINE) or python_code.speaks_of_starting(text):
        yield Unreadable("a program in python is of another version")


_START_NAME: Final = re.compile(r"(?:[\w.]+[.:])?(?:system|exec|execute|shell_exec|passthru|popen|proc_open|spawn|sh)")
"""A text that is the name of a function which starts a process: it may be called by this name."""


def _by_names(text: str, language: _Language, name: str) -> Iterator[Started]:
    if language.backquotes:
        yield from _backquoted(text)
    masked, strings = _masked(text, _STRING if language.backquotes else _STRING_OR_BACKQUOTED)
    code = language.comments.sub("", masked)
    starts, hides = _starts(code, language, has_module=language.modules.search(text) is not None)
    hides = hides or (language.backquotes and any(map(_START_NAME.fullmatch, strings)))
    if not starts and not hides:
        return
    yield from _of_strings(masked, strings)
    if name == "editor":
        yield Code(re.sub(r"^.*?(?:!|shell\b|terminal\b)", "", text, count=1, flags=re.DOTALL), not hides)
    elif hides or not all(_LITERAL_CALL.match(code, start.start()) for start in starts):
        yield Unreadable(
            f"a program in {name if name in _LANGUAGES and name != 'other' else 'another language'} starts something"
        )


def _starts(masked: str, language: _Language, *, has_module: bool) -> tuple[list[re.Match[str]], bool]:
    """Where processes are started by name, and whether they may be started otherwise."""
    checked = _IMPORTED.sub(" ", masked)
    starts = [
        start
        for start in language.starts.finditer(masked)
        if has_module or start[0].rstrip("( \t\n") not in language.common
    ]
    if has_module and (not starts or language.uncalled.search(checked)):
        return starts, True
    return starts, language.hides.search(checked) is not None


def _masked(text: str, literals: re.Pattern[str]) -> tuple[str, list[str]]:
    """Put a mark in the place of each literal: the text, and what the literals are."""
    strings: list[str] = []

    def mask(literal_: re.Match[str]) -> str:
        strings.append(_unescaped(literal_[0]))
        return _MARK

    return literals.sub(mask, text), strings


def _backquoted(text: str) -> Iterator[Code]:
    """Yield what stands in backquotes and in the quotes of Perl and Ruby."""
    quoted = [next(filter(None, groups[:4] + groups[5:]), "") for groups in _PERL_QUOTED.findall(text)]
    for command in [backquoted[1:-1] for backquoted in _BACKQUOTED.findall(text)] + quoted:
        yield Code(command, not re.search(r"[$#@]", command))


def _of_strings(masked: str, strings: list[str]) -> Iterator[Started]:
    """Yield each literal as a line of shell, and those with commas between them as a command's words."""
    for string in strings:
        yield Code(string, True)
    for group in re.finditer(rf"{_MARK}(?:\s*,\s*{_MARK})+", masked):
        first = masked.count(_MARK, 0, group.start())
        words = strings[first : first + group[0].count(_MARK)]
        yield from (Command(tuple(map(literal, words[at:]))) for at in range(len(words)))


def _unescaped(string: str) -> str:
    body = re.sub(r"^[rbuRBU]{0,2}('''|\"\"\"|'|\"|`)(.*)\1$", r"\2", string, flags=re.DOTALL)
    return _ESCAPE.sub(_character, body)


_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u\{?([0-9A-Fa-f]{2,5})\}?|([0-7]{1,3})|(n)|[tvfr]|(.))", re.DOTALL)


def _character(escape: re.Match[str]) -> str:
    hexadecimal, octal, is_newline, other = escape[1] or escape[2], escape[3], escape[4], escape[5]
    if hexadecimal:
        return chr(min(int(hexadecimal, 16), 0x10FFFF))
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if is_newline:
        return "\n"
    return "" if other == "\n" else other or " "


# --- make, ssh, docker, gdb ---

_DOCKER_RUN: Final = re.compile(
    r"^\s*(?:RUN|CMD|ENTRYPOINT)\s+((?:[^\\\n]|\\.)*)", re.MULTILINE | re.IGNORECASE | re.DOTALL
)
_GDB_SHELL: Final = re.compile(r"(?:!|sh(?:e(?:ll?)?)?\b|platform\s+sh\w*\b|make\b)(.*)")
_GDB_PYTHON: Final = re.compile(r"(?:py\w*|pi|script)\b(.*)")
_GDB_STARTS: Final = re.compile(r"\||pipe\b|gu|so|command\b|.*\b(?:system|popen|exec\w*)\s*\(")


def _gdb(text: str) -> Iterator[Started]:
    """Read commands of a debugger, which may be shortened."""
    for line in map(str.strip, text.splitlines()):
        if shell := _GDB_SHELL.match(line):
            yield Code(shell[1], whole=True)
        elif python := _GDB_PYTHON.match(line):
            yield Foreign("python", python[1].strip(), whole=bool(python[1].strip()))
        elif _GDB_STARTS.match(line) or re.match(r"tar\w*\s.*\|", line):
            yield Code(line.rpartition("|")[2], whole=True)
            yield Unreadable("a command of gdb starts something")


_RECIPE: Final = re.compile(r"^(?:\t|[^\s#=:][^=\n:]*::?[^=\n;:]*;)[-@+\s]*(.+(?:\\\n.*)*)", re.MULTILINE)
_MAKE_CALLS: Final = re.compile(r"\$[({]shell\s+([^\n]*?)[)}]|(?:^|\s)\w+\s*!=\s*(.+)")
_MAKE_SETS: Final = re.compile(r"^(?:export\s+|override\s+)*([\w.-]+)\s*(?:[:+?]{0,3}=)\s*(.*)", re.MULTILINE)
_MAKE_VALUE: Final = re.compile(r"\$[({]([\w.-]+)[)}]|\$(\w)")
_MAKE_OWN: Final = {"RM": "rm -f", "CC": "cc", "CXX": "c++", "AR": "ar", "MAKE": "make"}


def _make(text: str) -> Iterator[Started]:
    """Read a makefile: its recipes and what it runs for values. A variable that it does not set is not literal."""
    values = _MAKE_OWN | dict(_MAKE_SETS.findall(text))

    def value(part: re.Match[str]) -> str:
        name = part[1] or part[2]
        return values.get(name, f"${{{name}}}")

    for calls in _MAKE_CALLS.findall(text):
        yield Code(next(filter(None, calls), ""), "$" not in "".join(calls))
    for name, command in values.items():
        if name == "SHELL":
            yield Code(command, True)
    for recipe in _RECIPE.findall(text):
        line = _MAKE_VALUE.sub(value, _MAKE_VALUE.sub(value, recipe))
        yield Code(re.sub(r"\$[@<^*?+%|]", "target", line).replace("$$", "$"), not re.search(r"\$\(\w+ ", line))


def _ssh(text: str) -> Iterator[Started]:
    """Read a configuration of ssh."""
    for line in text.splitlines():
        name, _, value = re.sub(r"^\s*(\w+)[ \t]*=?[ \t]*", r"\1=", line).partition("=")
        yield from setting(name, value, whole=True)


# --- awk ---

_AWK_REGEX: Final = re.compile(
    r"(?<=[(,~!{};&|=?:\n])(\s{0,64})/(?:[^/\\\n\[]|\\.|\[[^\]\n]{1,99}\]){0,999}/|\A(\s{0,64})/(?:[^/\\\n\[]|\\.|\[[^\]\n]{1,99}\]){0,999}/"
)
_AWK_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_AWK_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|#[^\n]*')
"""A string, or a comment: unless a regular expression has such a sign."""
_AWK_STARTS: Final = re.compile(r"\bsystem\s*\(|(?<!\|)\|&?(?!\|)|@\w+|\bgetline\s*<")


def _awk(text: str) -> Iterator[Started]:
    """Read a program as it is, without regular expressions, and without comments: these may hold a quotation mark."""
    yield from _awk_reading(text)
    if '"' not in text:
        return
    if "/" in text:
        yield from _awk_reading(_AWK_REGEX.sub(" 0 ", text))
    if "#" in text:
        yield from _awk_reading(_AWK_COMMENT.sub(lambda part: part[1] or "", text))


def _awk_reading(text: str) -> Iterator[Started]:
    masked, strings = _masked(text, _AWK_STRING)
    masked = _AWK_REGEX.sub(" 0 ", masked)
    starts = [start for start in _AWK_STARTS.finditer(masked) if not start[0].startswith("getline")]
    if not starts:
        return
    for string in strings:
        yield Code(string, True)
    for start in starts:
        behind = re.match(rf"\s*{_MARK}\s*(?:\)|;|\}}|\n|\Z)", masked[start.end() :])
        before = re.search(rf"{_MARK}\s*\Z", masked[: start.start()])
        is_read = behind or (before and re.match(r"\s*getline\b", masked[start.end() :]))
        if start[0].startswith("@") or not is_read:
            yield Unreadable("an awk program starts something that is not literal")


# --- sed ---

_SED_ADDRESS: Final = re.compile(
    r"\s*(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\.|\[[^\]\n]*\])*/[IM]*|\\(.)(?:\\.|(?!\1)[^\\])*\1[IM]*|[+~]\d+)"
)
_SED_REST: Final = frozenset("aicrwRWbtTlLqQ:v")
_SED_SHORT: Final = re.compile(r"[\n;}]")
_SED_LONG: Final = re.compile(r"(?<!\\)\n")
"""Where the argument of a command ends: a label, or a text."""
_SED_FLAGS: Final = re.compile(r"[a-vx-zA-Z0-9]*")
"""The flags of `s` but `w`, behind which a file's name stands."""


def _sed(text: str) -> Iterator[Started]:
    """Read a script of sed: its commands `e`, and `s` with the flag `e`."""
    at = 0
    while at < len(text):
        at = _skip(text, at, " \t\n;")
        address = _SED_ADDRESS.match(text, at)
        while address:
            at = _skip(text, address.end(), " \t,")
            address = _SED_ADDRESS.match(text, at)
        at = _skip(text, at, " \t!")
        if at >= len(text):
            return
        started, at = _sed_command(text, at)
        yield from started


def _sed_command(text: str, at: int) -> tuple[list[Started], int]:
    """What the command of sed at this place starts, and where it ends."""
    command = text[at]
    at += 1
    if command == "e":
        end = _end_of_line(text, at)
        code = text[at:end].strip()
        return [Code(code, True) if code else Unreadable("sed runs the lines that it reads")], end
    if command in "sy":
        return _sed_replacement(text, at, command)
    if command in _SED_REST:
        stop = (_SED_SHORT if command in "btTlLqQ:v" else _SED_LONG).search(text, at)
        return [], stop.start() if stop else len(text)
    return [], at


def _sed_replacement(text: str, at: int, command: str) -> tuple[list[Started], int]:
    """As `_sed_command`, behind the `s` or `y`."""
    end = _delimited(text, at, 2)
    if end < 0:
        return [Unreadable("a script of sed")], len(text)
    flags = _SED_FLAGS.match(text, end)
    last = flags.end() if flags else end
    after = _end_of_line(text, last) if text.startswith("w", last) else last
    if command == "s" and "e" in text[end:last]:
        return [Code(text[at + 1 : end], True), Unreadable("sed runs what it replaces")], after
    return [], after


def _end_of_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline


def _skip(text: str, at: int, signs: str) -> int:
    while at < len(text) and text[at] in signs:
        at += 1
    return at


def _delimited(text: str, at: int, parts: int) -> int:
    """The place behind the last delimiter of `s` or `y`; -1 if there is none."""
    if at >= len(text):
        return -1
    delimiter, bracket = text[at], False
    at += 1
    while at < len(text) and parts:
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "[" and parts == 2 and not bracket:
            bracket = text.find("]", at + 2) > 0 and "\n" not in text[at : text.find("]", at + 2)]
            if bracket:
                at = text.find("]", at + 2)
                bracket = False
        elif char == delimiter:
            parts -= 1
        at += 1
    return at if not parts else -1


def _shell(text: str) -> Iterator[Started]:
    yield Code(text, whole=True)


def _dockerfile(text: str) -> Iterator[Started]:
    yield from (Code(line, whole=True) for line in _DOCKER_RUN.findall(text))


_READERS: Final[dict[str, Callable[[str], Iterator[Started]]]] = {
    "awk": _awk, "dockerfile": _dockerfile, "gdb": _gdb, "make": _make, "python": _python, "sed": _sed,
    "shell": _shell, "ssh": _ssh,
}  # fmt: skip
"""The languages that are read by more than names."""
