"""The list of presets in the reference."""

from tables import row

from hookproxy.policy.presets import PRESETS, Preset


def presets() -> str:
    """A row for each preset: its server, and its tools by their familiar names."""
    rows = [row(f"`{name}`", preset.server, _familiar(preset)) for name, preset in PRESETS.items()]
    return "\n".join([row("preset", "server", "familiar names"), row(*["---"] * 3), *rows])


def _familiar(preset: Preset) -> str:
    by_name: dict[str, list[str]] = {}
    for one in preset.tools:
        by_name.setdefault(one.name or "own names, other arguments", []).append(f"`{one.tool}`")
    return "; ".join(f"{name}: {', '.join(tools)}" for name, tools in by_name.items()) or "none"
