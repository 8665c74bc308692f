"""The shape of the code, read from its imports: rooms on floors, no circles, a docstring and tests for each module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "hookproxy"

FLOORS: Final = {
    "": 11,  # what `hookproxy` and `python -m hookproxy` start, and the former name of `hooks.api`
    "cli": 10,
    "console": 9,
    "trial": 8,
    "gateway": 8,
    "session": 7,
    "checks": 7,
    "wrapping": 7,
    "convert": 7,
    "hooks": 6,
    "config": 6,
    "live": 5,
    "trust": 5,
    "audit": 5,
    "runners": 5,
    "transports": 5,
    "authorization": 5,
    "protocol": 4,
    "dialects": 4,
    "policy": 3,
    "processes": 3,
    "model": 2,
    "files": 1,
    "jsonrpc": 1,
    "shell": 1,
    "demo": 1,
}
"""A room imports from itself and from lower floors."""

MODULES: Final = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py"))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))


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


def own(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, as `from ..dialects import registry` or `from .registry import X`."""
    for name in imported(module):
        top, *path = name.split(".")
        if top == "hookproxy":
            candidates = ["/".join(path), "/".join(path[:-1])]
            modules = [each for one in candidates for each in (one, f"{one}/__init__".lstrip("/"))]
            found = [each for each in modules if each in MODULES]
            assert found, f"{module} imports {name}, which is not there"
            yield found[0]


def room(module: str) -> str:
    return module.split("/")[0] if "/" in module else ""


@pytest.mark.parametrize("module", [module for module in MODULES if module != "__init__"])
def test_a_room_imports_from_lower_floors(module: str) -> None:
    here = room(module)
    for other in own(module):
        there = room(other)
        assert other == "__init__" or there == here or FLOORS[there] < FLOORS[here], f"{module} imports {other}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter({module: set(own(module)) - {module} for module in MODULES}).prepare()


def test_the_rooms_are_those_of_the_table() -> None:
    assert {room(module) for module in MODULES} == set(FLOORS)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(tree(module)), "a module begins with a docstring"


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/**/*.py")), ids=str)
def test_a_test_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def reached(*modules: str) -> set[str]:
    """These modules and all that they import, one by another."""
    todo, seen = list(modules), set[str]()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo.extend(own(module))
    return seen


def users(package: str) -> set[str]:
    return {module for module in MODULES if any(name.split(".")[0] == package for name in imported(module))}


def test_the_way_of_run_imports_no_sdk() -> None:
    """`mcp` costs half a second, and its models drop what they do not know."""
    assert not reached("__main__", "cli/main", "cli/run") & users("mcp")


def test_pydantic_is_imported_only_where_a_hookproxy_toml_is_read() -> None:
    assert {room(module) for module in users("pydantic")} == {"config"}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("**/*.py")), ids=str)
def test_no_pattern_repeats_a_group_possessively(path: Path) -> None:
    r"""Python 3.11.2, which is Debian's, goes on from amid a group that failed: `(?:ab|c)*+` takes `a` of `ax`.

    `(?>(?:ab|c)*)` says the same, and is understood by all.
    """
    if path.name == "re2_regex.py":  # it reads such patterns, and refuses them
        return
    found = [line for line in path.read_text("utf-8").splitlines() if re.search(r"\)(?:[*+?]|\{[0-9,]+\})\+", line)]
    assert not found
