"""Makes hookproxy/dialects/index.py: what must be known of all dialects without importing one, from the dialects."""

import subprocess
import sys
import textwrap
from importlib import import_module, util
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from hookproxy import dialects
from hookproxy.dialects.agent_side import AgentSide

HEAD = '''"""Made by scripts/docs --write from the dialects: what must be known of all of them without importing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

'''


def index() -> str:
    """The text of the file."""
    modules = [import_module(f"{dialects.__name__}.{info.name}") for info in iter_modules(dialects.__path__)]
    found = {module.DIALECT.name: module for module in modules if hasattr(module, "DIALECT")}
    names = [
        name for name, module in found.items() for name in (name, f"{name}@current")[: 1 + hasattr(module, "CURRENT")]
    ]
    sides = {name: side for name, module in found.items() if (side := _agent_side(module))}
    signs = {name: (side.documents.has, side.documents.lacks, side.documents.values) for name, side in sides.items()}
    variables = sorted({variable for module in found.values() for variable in module.DIALECT.variables})
    signs_type = "Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Mapping[str, tuple[str, ...]]]]"
    text = (
        f"NAMES: Final = (\n{_words(names)}\n)  # fmt: skip\n"
        f'"""All dialects."""\n\nDOCUMENTS: Final[{signs_type}] = {signs}\n'
        f'"""By the names of the dialects that have an agent: the `DocumentSigns` of its documents."""\n\n'
        f"VARIABLES: Final = frozenset((\n{_words(variables)}\n))  # fmt: skip\n"
        f'"""The identity variables of all dialects."""\n'
    )
    format_command = (sys.executable, "-m", "ruff", "format", "--stdin-filename", str(Path(__file__)), "-")
    return subprocess.run(format_command, input=HEAD + text, capture_output=True, text=True, check=True).stdout


def _words(words: list[str]) -> str:
    """Strings with commas, as many on each line as fit."""
    text = ", ".join(f'"{word}"' for word in words)
    return textwrap.fill(text, 118, break_on_hyphens=False, initial_indent="    ", subsequent_indent="    ")


def _agent_side(module: ModuleType) -> AgentSide | None:
    name = f"{module.__name__}.agent_side"
    if not hasattr(module, "AGENT_SIDE") and hasattr(module, "__path__") and util.find_spec(name):
        module = import_module(name)
    return getattr(module, "AGENT_SIDE", None)
