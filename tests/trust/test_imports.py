"""What Python finds beside a script, and what a script imports."""

from __future__ import annotations

import os
from pathlib import Path

from hookproxy.trust.scripts import imported_names, module_files


def test_modules_and_packages_of_these_names_are_found(tmp_path: Path) -> None:
    for name in ("a.py", "a.cpython-311.so", "b/__init__.py", "b/c/d.py", "b/data.txt", "e/f.py", "g.py", "a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b/__pycache__").mkdir()
    (tmp_path / "b/__pycache__/d.cpython-311.pyc").touch()
    found = sorted(path.removeprefix(f"{tmp_path}/") for path in module_files(str(tmp_path), {"a", "b", "e"}))
    assert found == ["a.cpython-311.so", "a.py", "b/__init__.py", "b/c/d.py"]
    assert module_files(str(tmp_path / "gone"), {"a"}) == []


def test_the_names_in_import_statements(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_bytes(b"import os.path, json as j\n  from .rules import deny\n\xff\nimportant = 1\n")
    assert imported_names(str(script)) >= {"os", "json", "rules", "deny"}
    assert "important" not in imported_names(str(script))
    os.mkfifo(tmp_path / "pipe")
    assert imported_names(str(tmp_path / "pipe")) == imported_names(str(tmp_path / "gone")) == frozenset()
