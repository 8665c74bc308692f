"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import hookproxy
from hookproxy.model.late_pattern import late_pattern

PACKAGE: Final = Path(hookproxy.__file__).parent


def test_it_is_compiled_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_pattern = re.compile

    def note(text: str, flags: int) -> re.Pattern[str]:
        compiled.append(text)
        return compile_pattern(text, flags)

    monkeypatch.setattr(re, "compile", note)
    pattern = late_pattern(r"(?P<word>b+)c", re.IGNORECASE)
    assert not compiled
    found = pattern.search("aBBc")
    assert found is not None
    assert found["word"] == "BB"
    assert pattern.search("aBc")
    assert len(compiled) == 1


def test_it_has_all_that_a_pattern_has() -> None:
    pattern, eager = late_pattern(rb"-?(\d+)", re.ASCII), re.compile(rb"-?(\d+)", re.ASCII)
    assert (pattern.pattern, pattern.flags, pattern.groups) == (eager.pattern, eager.flags, eager.groups)
    assert pattern.sub(rb"<\1>", b"1 -2") == b"<1> <2>"
    assert pattern.fullmatch(b"x") is None


@pytest.mark.slow
def test_each_late_pattern_of_the_package_can_be_compiled() -> None:
    found = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id == "late_pattern"
                and isinstance(node.target, ast.Name)
            ):
                module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
                assert getattr(module, node.target.id).pattern, f"{path}: {node.target.id}"
                found += 1
    assert found > 50
