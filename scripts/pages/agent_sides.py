"""The generated table of what agents let hooks do."""

from __future__ import annotations

from hookproxy.dialects.agent_side import Can, convertible, side_of

TEXTS = {
    Can.ALLOW: "allow",
    Can.ASK: "ask the person",
    Can.REWRITE: "rewrite arguments",
    Can.TELL_BEFORE: "tell the model before a call",
    Can.TELL_AFTER: "tell the model after a call",
    Can.REPLACE: "replace the output",
    Can.BLOCK_AFTER: "reject a result",
}


def agent_sides() -> str:
    """A row for each agent and for the hosts of each standard: the hook file, and what hooks can do beyond refusing."""
    rows = ["| `--to` | its hook file | its hooks refuse calls, and can |", "|---|---|---|"]
    for name in convertible():
        side = side_of(name)
        assert side is not None
        can = ", ".join(text for ability, text in TEXTS.items() if ability in side.can) or "nothing else"
        rows.append(f"| `{name}` | `{side.file}` | {can} |")
    return "\n".join(rows)
