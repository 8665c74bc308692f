"""The gallery of policies: each folder of configs/policies with its first comment as the text, and its files."""

import re
from collections.abc import Iterator
from pathlib import Path

POLICIES = Path(__file__).resolve().parents[2] / "configs" / "policies"


def policies() -> str:
    """A section for each policy."""
    return "\n".join(line for folder in sorted(POLICIES.iterdir()) for line in _section(folder))


def _section(folder: Path) -> Iterator[str]:
    configuration = (folder / "hookproxy.toml").read_text("utf-8")
    _, comment, rest = configuration.split("\n\n", 2)
    title, text = re.sub(r"(?m)^# ?", "", comment).split(": ", 1)
    yield f"## {title}\n\n{text[0].upper()}{text[1:]}\n\n`hookproxy init {folder.name}` writes it.\n"
    for name, shown in (("hookproxy.toml", rest), *((file.name, file.read_text("utf-8")) for file in _scripts(folder))):
        yield f"`configs/policies/{folder.name}/{name}`:\n"
        language = name.rpartition(".")[2].replace("py", "python")
        yield f"<!-- block: example -->\n```{language}\n{shown.rstrip()}\n```\n"


def _scripts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.py"))
