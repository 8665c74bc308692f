"""The picture of a blocked call, as SVG: a part of what a real run of `hookproxy demo` shows."""

import os
import re
import subprocess
import sys
import textwrap
from html import escape

COLUMN, LINE, MARGIN = 8.43, 20, 20  # pixels: a character of 14 pixels' monospace, a line, the frame
NAMES = 17  # columns for who it is about
COLUMNS = 84  # the demo's 80, and a margin


def picture() -> str:
    """Raises CalledProcessError if the demo does not run."""
    command = [sys.executable, "-m", "hookproxy", "demo"]
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=os.environ | {"COLUMNS": "80"}
    ).stdout
    scene = re.split(r"(?m)^\d  \w+ -*\n", shown)[3].strip("\n")
    lines = ["hookproxy demo", "", *_without_times(scene)]
    texts = "\n".join(_line(number, line) for number, line in enumerate(lines))
    width, height = round(COLUMNS * COLUMN), 2 * MARGIN + LINE * len(lines)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>An agent's call is blocked by a hook: the server receives nothing, and the agent reads why.</title>
<style>
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre; }}
.title {{ fill: #7f8c9b; }} .name {{ fill: #88c0d0; }} .blocked {{ fill: #ff8a80; font-weight: bold; }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1b2028"/>
{texts}
</svg>
"""


def _without_times(scene: str) -> list[str]:
    """The lines of the scene, wrapped again without times, so that the picture is the same each time."""
    blanks = " " * NAMES
    rows = re.sub(rf"\n{blanks}(?=\S)", " ", scene).splitlines()
    told = [re.sub(r", \d+ ms", "", row) for row in rows]
    return [line for row in told for line in textwrap.wrap(row, 80, subsequent_indent=blanks) or [""]]


def _line(number: int, line: str) -> str:
    """One line of text: who it is about, and what happens."""
    if not line:
        return ""
    name, rest = line[:NAMES].rstrip(), line[NAMES:]
    if number == 0:
        return _text(number, 0, "title", f"$ {line}")
    marked = "blocked" if "block" in rest.casefold() or rest == "nothing" else ""
    parts = [_text(number, 0, "name", name)] if name else []
    return "\n".join([*parts, _text(number, NAMES, marked, rest)])


def _text(number: int, column: int, style: str, text: str) -> str:
    x, y = round(MARGIN + column * COLUMN, 1), MARGIN + LINE * number + 14
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{kind} textLength="{round(len(text) * COLUMN, 1)}">{escape(text, quote=False)}</text>'
