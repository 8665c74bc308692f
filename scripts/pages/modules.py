"""What each module is, by its own first sentence, on the floor where tests/test_layout.py has it."""

import ast
from pathlib import Path

from tables import row

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hookproxy"
TITLES = {
    0: "Floor 0: what everything may know",
    1: "Floor 1: the core, pure and synchronous",
    2: "Floor 2: the edges: files, processes, descriptors",
    3: "Floor 3: what joins them",
    4: "Floor 4: the command line",
}


def modules() -> str:
    """A table for each floor, from the top down: where a reader begins."""
    floors = _floors()
    return "\n\n".join(_floor(number, floors) for number in sorted(TITLES, reverse=True))


def _floors() -> dict[str, int]:
    """The table of floors, as the test has it."""
    tree = ast.parse((ROOT / "tests" / "test_layout.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "FLOORS":
            floors: dict[str, int] = ast.literal_eval(node.value)
            return floors
    raise AssertionError("tests/test_layout.py has no FLOORS")


def _floor(number: int, floors: dict[str, int]) -> str:
    rows = [row("module", "what it is"), row("---", "---")]
    for name in sorted(name for name, floor in floors.items() if floor == number):
        path = PACKAGE / f"{name}.py"
        if path.exists():
            rows.append(row(f"`{name}.py`", _sentence(path)))
            continue
        for file in sorted((PACKAGE / name).glob("*.py")):
            shown = f"{name}/" if file.stem == "__init__" else f"{name}/{file.name}"
            rows.append(row(f"`{shown}`", _sentence(file)))
    return f"## {TITLES[number]}\n\n" + "\n".join(rows)


def _sentence(path: Path) -> str:
    """The first paragraph of its docstring, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
