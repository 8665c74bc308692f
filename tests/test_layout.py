"""The shape of the code, read from its text: rooms on floors, no circles, a docstring for each module.

Each law is one test that fails with the list of those who break it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow  # all files of the package are parsed

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "hookproxy"

FLOORS: Final = {
    "": 11,  # what `hookproxy` and `python -m hookproxy` start, and the former name of `hooks.api`
    "cli": 10,
    "console": 9,
    "policy_tests": 9,
    "interceptors": 9,
    "trial": 8,
    "guard": 8,
    "gateway": 8,
    "session": 7,
    "checks": 7,
    "wrapping": 7,
    "convert": 7,
    "hooks": 6,
    "config": 6,
    "learning": 6,
    "approvals": 6,
    "live": 5,
    "trust": 5,
    "bundles": 5,
    "packs": 5,
    "audit": 5,
    "runners": 5,
    "transports": 5,
    "authorization": 5,
    "network": 4,
    "protocol": 4,
    "lock": 4,
    "sandbox": 4,
    "dialects": 4,
    "flow": 4,
    "policy": 3,
    "signing": 3,
    "archives": 3,
    "processes": 3,
    "secrets": 3,
    "model": 2,
    "files": 1,
    "jsonrpc": 1,
    "shell": 1,
    "demo": 1,
}
"""A room imports from itself and from lower floors."""

FILES: Final = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES: Final = frozenset(FILES)
MISSING: Final = "a missing module: "


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text("utf-8"))


@cache
def imported(module: str) -> frozenset[str]:
    """Dotted names of all that a module imports, wherever in its text; relative ones as absolute ones."""
    package = ["hookproxy", *module.split("/")[:-1]]
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return frozenset(names)


@cache
def own(module: str) -> frozenset[str]:
    """The modules of ours that a module imports, as `from ..dialects import registry` or `from .registry import X`."""
    modules: set[str] = set()
    for name in imported(module):
        top, *path = name.split(".")
        if top == "hookproxy":
            parents = ["/".join(path), "/".join(path[:-1])]
            candidates = [spelling for parent in parents for spelling in (parent, f"{parent}/__init__".lstrip("/"))]
            modules.add(next((candidate for candidate in candidates if candidate in MODULES), f"{MISSING}{name}"))
    return frozenset(modules)


def room(module: str) -> str:
    return module.split("/")[0] if "/" in module else ""


def offenders(modules: Iterable[str]) -> str:
    return "\n".join(["", *sorted(modules)])


def test_every_import_of_ours_is_there() -> None:
    missing = {f"{module} imports {name}" for module in FILES for name in own(module) if name.startswith(MISSING)}
    assert not missing, offenders(missing)


def test_a_room_imports_from_lower_floors() -> None:
    upwards = {
        f"{module} imports {other}"
        for module in MODULES - {"__init__"}
        for other in own(module) & MODULES - {"__init__"}
        if room(other) != room(module) and FLOORS[room(other)] >= FLOORS[room(module)]
    }
    assert not upwards, offenders(upwards)


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter({module: own(module) - {module} for module in MODULES}).prepare()


def test_the_rooms_are_those_of_the_table() -> None:
    assert {room(module) for module in MODULES} == set(FLOORS)


def test_a_module_says_what_it_is() -> None:
    silent = {module for module in MODULES if not ast.get_docstring(tree(module))}
    assert not silent, f"a module begins with a docstring: {offenders(silent)}"


def test_a_test_file_says_what_it_is() -> None:
    begins = re.compile(r'(\s|#.*\n)*"""[^"]')  # not parsed: it takes seconds for so many
    silent = {str(path) for path in ROOT.glob("tests/**/*.py") if not begins.match(path.read_text("utf-8"))}
    assert not silent, f"a test file begins with a docstring: {offenders(silent)}"


def test_no_error_is_raised_without_a_hint() -> None:
    bare = {
        f"{module}:{node.lineno}"
        for module in FILES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("UserError", "ConfigError")
        for hint in node.args[1 if node.func.id == "UserError" else 2 :][:1]
        if isinstance(hint, ast.Constant) and not hint.value
    }
    assert not bare, offenders(bare)


def reached(*modules: str) -> set[str]:
    """These modules and all that they import, one by another."""
    todo, seen = list(modules), set[str]()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo.extend(own(module) & MODULES)
    return seen


def users(package: str) -> set[str]:
    return {module for module in MODULES if any(name.split(".")[0] == package for name in imported(module))}


def test_the_way_of_run_imports_no_sdk() -> None:
    """`mcp` costs half a second, and its models drop what they do not know."""
    assert not reached("__main__", "cli/main", "cli/run") & users("mcp")


def test_only_its_verb_learns_policies() -> None:
    users_of_learning = {module for module in MODULES for other in own(module) if room(other) == "learning"}
    assert {room(module) for module in users_of_learning} == {"learning", "cli"}
    assert [module for module in users_of_learning if room(module) == "cli"] == ["cli/learn"]


def test_pydantic_is_imported_only_where_a_hookproxy_toml_is_read() -> None:
    assert {room(module) for module in users("pydantic")} == {"config"}


def test_toml_of_others_is_read_in_one_place() -> None:
    """Which refuses what would hold the parser for minutes; the others read what is in the package."""
    own_data = {"learning/commands", "lock/names", "secrets/detectors", "secrets/rules"}
    assert users("tomllib") == {"model/toml", *own_data}


def test_no_pattern_repeats_a_group_possessively() -> None:
    r"""Python 3.11.2, which is Debian's, goes on from amid a group that failed: `(?:ab|c)*+` takes `a` of `ax`.

    `(?>(?:ab|c)*)` says the same, and is understood by all.
    """
    possessive = {
        f"{module}:{number}: {line.strip()}"
        for module in MODULES
        if not module.endswith("re2_regex")  # it reads such patterns, and refuses them
        for number, line in enumerate(FILES[module].read_text("utf-8").splitlines(), 1)
        if re.search(r"\)(?:[*+?]|\{[0-9,]+\})\+", line)
    }
    assert not possessive, offenders(possessive)
