"""Which commands a Python program starts, by Python's own grammar.

A process is started by a function with a known name (`_STARTS`), in whatever way the program came by it. So a program
is unreadable if it calls such a function with what is not literal, or names one without calling it, or uses what can
reach any name or run any text (`exec`, `getattr` with a name that is not harmless, `sys.modules`, modules such as
`timeit`). All else cannot start anything (law 1), apart from modules that are not Python's own: these are scripts that
are started by name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .programs import Code, Foreign, Started, Unreadable
from .words import HOLE, PRIVATE, SPLIT, Command, Word, literal

if TYPE_CHECKING:
    import ast

LONGEST: Final = 20_000
"""Characters of a program: parsing more takes 20 ms and longer."""
_STARTS: Final = frozenset({
    "system", "popen", "popen2", "popen3", "popen4", "Popen", "spawn", "spawnl", "spawnv", "spawnlp", "spawnvp",
    "spawnle", "spawnve", "spawnlpe", "spawnvpe", "spawnv_passfds",
    "execl", "execv", "execlp", "execvp", "execle", "execve",
    "execlpe", "execvpe", "check_output", "check_call", "getoutput", "getstatusoutput", "posix_spawn",
    "posix_spawnp", "create_subprocess_exec", "create_subprocess_shell", "run_process", "open_process",
    "exec_command", "subprocess_exec", "subprocess_shell", "fork", "forkpty", "startfile", "fork_exec",
})  # fmt: skip
"""Functions that start a process, whatever module they are of."""
_SUBPROCESS: Final = frozenset({"run", "call"})
"""Functions that start one if they are of `subprocess`: others are called so, too."""
_RUNS_TEXT: Final = frozenset({"exec", "eval", "compile", "__import__", "open_code", "breakpoint"})
_STARTS_OR_RUNS: Final = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_REACHES_ALL: Final = frozenset({"vars", "globals", "locals", "__builtins__", "__loader__", "__spec__"})
_HIDING_ATTRIBUTES: Final = frozenset({
    "__dict__", "__globals__", "__builtins__", "__getattribute__", "__subclasses__", "__loader__", "__spec__",
    "__import__", "__self__", "__code__", "__closure__", "__reduce__", "__reduce_ex__", "import_module", "exec_module",
    "load_module", "run_path", "run_module", "resolve_name", "locate", "getmembers", "getattr_static", "attrgetter",
    "methodcaller", "dictConfig", "fileConfig", "modules", "interact", "runsource", "runcode", "f_builtins",
    "f_globals", "f_locals", "get_objects", "get_referents", "get_referrers", "get_field",
})  # fmt: skip
"""Names with which every other one can be reached, or text can be run."""
_HIDING_MODULES: Final = frozenset({
    "_ctypes", "_osx_support", "_pickle", "_posixsubprocess", "_pyrepl", "_xxsubinterpreters", "antigravity", "bdb",
    "builtins", "cPickle", "cProfile", "cffi", "cloudpickle", "code", "codeop", "commands", "ctypes", "delegator",
    "dill", "distutils", "doctest", "ensurepip", "fabric", "gdb", "idlelib", "imp", "invoke", "lldb", "marshal", "pdb",
    "pexpect", "pickle", "pip", "plumbum", "popen2", "profile", "pty", "ptyprocess", "pydoc", "runpy", "sh", "shelve",
    "timeit", "trace", "turtledemo", "venv", "webbrowser", "xonsh", "zipimport",
})  # fmt: skip
"""Modules that are for starting processes, or that run text or what they load."""
_OF_INTEREST: Final = (
    _STARTS | _RUNS_TEXT | _REACHES_ALL | _HIDING_ATTRIBUTES | _HIDING_MODULES | {"getattr", "setattr", "delattr", "py"}
)
_WORD: Final = re.compile(r"\w+")
_ODD: Final = re.compile(r"['\"]\s*[A-Za-z]{0,3}['\"]|[\\#]|^\s*[!%]|subprocess|spawn|fork|popen", re.MULTILINE)
"""What may put a name together, or is about processes."""
_MOST_AT_A_GLANCE: Final = 1000  # characters: Python reads so many, however they are nested
_IDENTIFIER: Final = re.compile(r"(?!__)[A-Za-z_]\w*")


def commands_in(text: str) -> Iterator[Started] | None:
    """Return what a program starts; None if this is not Python 3."""
    if len(text) <= _MOST_AT_A_GLANCE and starts_nothing(text):
        return iter(())
    import ast  # some 4 ms, and only for lines with such a program

    if len(text) > LONGEST:
        return iter((Unreadable("a program in python is too long"),))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    except (RecursionError, MemoryError):
        return iter((Unreadable("a program in python is nested too deep"),))
    program = _Program()
    for node in ast.walk(tree):
        program.look_at(node)
    return program.started()


def starts_nothing(text: str) -> bool:
    """True if it is certain at a glance: no name of interest stands in the program, not even in parts."""
    return text.isascii() and not _ODD.search(text) and _OF_INTEREST.isdisjoint(_WORD.findall(text))


def speaks_of_starting(text: str) -> bool:
    """True if a name with which a process can be started stands anywhere in a program, even inside of its strings."""
    names = _STARTS_OR_RUNS.findall(text)
    return any(name in _STARTS or name in _RUNS_TEXT for name in names)


class _Program:
    """Collects what is of interest in one program. The order of its parts does not matter."""

    def __init__(self) -> None:
        self._calls: Final[list[ast.Call]] = []
        self._used: Final[list[tuple[ast.AST, str, str]]] = []
        """Each name and attribute: where, the name, and of which module or value it is an attribute."""
        self._modules: Final[dict[str, str]] = {}
        """The modules by the names that they are imported as."""
        self._imported: Final[dict[str, str]] = {}
        """Functions by the names that they are imported as."""
        self._strings: Final[list[str]] = []
        self._hides = False

    def look_at(self, node: ast.AST) -> None:
        """Note one part of the program."""
        import ast

        match node:
            case ast.Call():
                self._calls.append(node)
            case ast.Name(id=name):
                self._used.append((node, name, ""))
            case ast.Attribute(value=value, attr=name):
                self._used.append((node, name, value.id if isinstance(value, ast.Name) else "?"))
            case ast.MatchClass(kwd_attrs=names):
                self._used.extend((node, name, "?") for name in names)
            case ast.Import(names=names):
                self._modules.update((alias.asname or alias.name.partition(".")[0], alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names):
                self._import_names(module or "", [(alias.name, alias.asname or alias.name) for alias in names])
            case ast.Constant() if (text := _text(node)) is not None:
                self._strings.append(text)
            case _:
                pass

    def _import_names(self, module: str, names: Sequence[tuple[str, str]]) -> None:
        self._modules.setdefault(f"from {module}", module)
        for name, as_name in names:
            self._imported[as_name] = name
            if name in _HIDING_ATTRIBUTES or name in _HIDING_MODULES:
                self._hides = True

    def started(self) -> Iterator[Started]:
        """Yield what is started."""
        called = {id(call.func): call for call in self._calls}
        self._hides |= any(self._is_hiding(module) for module in self._modules.values())
        started: list[Started] = []
        for node, name, of in self._used:
            call = called.get(id(node))
            if self._starts(name, of):
                if call is None:
                    self._hides = True
                elif call.args or call.keywords:
                    started += self._of_call(call)
            elif self._reaches(name, of, call):
                self._hides = True
        yield from started
        if self._hides:
            yield from (Code(text, True) for text in self._strings if not PRIVATE.search(text))
            yield from (Foreign("python", text, True) for text in self._strings if "(" in text)
            yield Unreadable("a program in python starts something")

    def _is_hiding(self, module: str) -> bool:
        return module.partition(".")[0] in _HIDING_MODULES or f"{module}.py" in self._strings

    def _starts(self, name: str, of: str) -> bool:
        """True if this name, of this module or value, starts a process."""
        if not of:
            name = self._imported.get(name, name)
        if name in _STARTS:
            return True
        if name not in _SUBPROCESS or not any("subprocess" in module for module in self._modules.values()):
            return name in _SUBPROCESS and of == "subprocess"
        return (
            of not in self._modules or "subprocess" in self._modules[of]
            if of
            else not self._imported.keys().isdisjoint(("*", name)) or name in self._imported.values()
        )

    def _reaches(self, name: str, of: str, call: ast.Call | None) -> bool:
        """True if this use of a name can reach any other name, or run text."""
        if of:
            return name in _HIDING_ATTRIBUTES or (name in _RUNS_TEXT and self._modules.get(of, of) != "re")
        if name in ("getattr", "setattr", "delattr"):
            return call is None or not self._gets_harmless(call)
        return name in _RUNS_TEXT or name in _REACHES_ALL or name in _HIDING_ATTRIBUTES

    def _gets_harmless(self, call: ast.Call) -> bool:
        """True for `getattr(value, "name")` with a name that starts nothing."""
        name = _text(call.args[1]) if len(call.args) > 1 else None
        return name is not None and _IDENTIFIER.fullmatch(name) is not None and not self._starts(name, "?")

    @staticmethod
    def _of_call(call: ast.Call) -> Iterator[Started]:
        """Yield what a call of a function starts that starts processes."""
        import ast

        values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("args", "cmd", "argv"))]
        sure = not any(keyword.arg in (None, "executable", "preexec_fn") for keyword in call.keywords)
        texts: list[Word] = []
        read = False
        for value in values:
            match value:
                case ast.List(elts=elements) | ast.Tuple(elts=elements):
                    words = tuple(map(_word, elements))
                    if words:
                        read = True
                        yield Command(words)
                        yield Command((*texts, *words)) if texts else Command(words[1:] or words)
                case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                    word = _word(value)
                    read = True
                    yield Code(word.source, word.literal)
                    texts.append(word)
                case ast.Constant() | ast.Attribute():
                    sure = sure and (isinstance(value, ast.Constant) or read or "P_" in value.attr)
                case _:
                    sure = sure and read
        yield from (Command(tuple(texts[at:])) for at in range(len(texts)))
        if not sure or not read:
            yield Unreadable("a program in python starts something")


def _text(node: ast.expr) -> str | None:
    """The text of a literal; None if it is not one."""
    import ast

    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.Constant(value=bytes() as value):
            return value.decode("latin-1")
        case _:
            return None


def _word(node: ast.expr) -> Word:
    """A value as a word of a command."""
    import ast

    text = _text(node)
    if text is not None and not PRIVATE.search(text):
        return literal(text)
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part) for part in node.values]
        return Word("".join(HOLE if part is None else part for part in parts), "".join(part or "{…}" for part in parts))
    return Word(SPLIT if isinstance(node, ast.Starred) else HOLE, "…")
