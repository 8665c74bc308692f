"""`docs/verify_receipt.py`, which people copy and run alone, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final

PROGRAM: Final = Path(__file__).resolve().parents[2] / "docs" / "verify_receipt.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_receipt", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VERIFIER: Final = _loaded()
