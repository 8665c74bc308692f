"""The configuration in force, with the place of each part; lines that add a rule; and rules that are only tried."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..checks.report import FailureEffect, alias_origin, names_of_tools
from ..checks.startup_notes import KeyLines
from ..config.load import KEYS_OF_SETTINGS, SPELLINGS, Loaded
from ..config.parse import read_tables, validated
from ..config.toml_text import TABLES, ask_fallback, setting_line
from ..hooks.watched import parts as watched_parts
from ..hooks.watched import summary as watched_summary
from ..model.aliases import Alias
from ..model.errors import ConfigError
from ..model.settings import Settings
from ..wrapping.syntax_tree import quoted

__all__ = [
    "ask_fallback",
    "names_of_tools",
    "watched_parts",
    "watched_summary",
]  # the page's template gets them from here

RULES: Final = ("deny", "ask", "allow")
"""The kinds of permission rules, the strongest first."""

FAILURES: Final = {
    FailureEffect.BLOCK: "the call is refused",
    FailureEffect.WITHHOLD: "the result is withheld",
    FailureEffect.INFORM_MODEL: "the result passes, with a note to the model",
    FailureEffect.CONTINUE: "everything continues",
}
"""What a hook's failure leads to."""

_LISTED_APART: Final = frozenset(
    {*RULES, "default_permission", "agent_rules", "aliases", "limits", "prompter", "console"}
)
"""Settings that have tables of their own, or are shown with another one."""

_TYPED: Final = "the lines"
_TYPED_KEY: Final = "permissions"


class Setting(Struct, frozen=True):
    """One setting that counts."""

    key: str
    """As in hookproxy.toml."""
    value: str
    place: str
    """File and line, or an option; empty: it is the default."""
    layer: str


class Rule(Struct, frozen=True):
    """One permission rule or limit that counts."""

    decision: str
    text: str
    place: str
    layer: str


def layer_of(loaded: Loaded, file: str) -> str:
    """Whose file this is, in a few words."""
    if loaded.managed is not None and file in loaded.managed.files:
        return "administrator"
    if file in loaded.by_option:
        return "command line"
    if file == loaded.path:
        return "hookproxy.toml"
    return "named by hookproxy.toml" if loaded.path else "hook file"


def settings_in_force(loaded: Loaded) -> list[Setting]:
    """All settings, those that a file or an option sets first."""
    lines, default = KeyLines(), Settings()
    settings = []
    for name, key in KEYS_OF_SETTINGS.items():
        if name in _LISTED_APART:
            continue
        value = _fallback(loaded.settings) if name == "on_ask_fallback" else getattr(loaded.settings, name)
        file, line = _split(loaded.set_by.get(name, ""))
        place = _place(file, line, lines)
        if not place and value != getattr(default, name):
            place = "the default with an audit in the state folder"
        if name in TABLES:
            shown = setting_line(loaded.settings, name).partition(" = ")[2] or "none"
        else:
            shown = SPELLINGS.get(name, {}).get(value) or _shown(value)
        settings.append(Setting(key, shown, place, layer_of(loaded, file) if file else ""))
    return sorted(settings, key=lambda setting: not setting.place)


def _fallback(settings: Settings) -> str:
    """What follows if the agent cannot ask: three fields of the settings are one key."""
    if settings.prompter:
        return f"command {shlex.join(settings.prompter)}"
    return settings.console or settings.on_ask_fallback


def _split(place: str) -> tuple[str, str]:
    """The file and the key of a place; an option stays whole."""
    file, colon, key = place.rpartition(": ")
    return (file, key) if colon else (place, "")


def _place(file: str, key: str, lines: KeyLines) -> str:
    line = lines.line(file, key) if key else None
    return f"{file}:{line}" if line else file


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"


def rules_in_force(loaded: Loaded) -> Iterator[Rule]:
    """The permission rules and rate limits, the administrator's first."""
    of_packs = ((rules, rules.called) for rules in loaded.settings.pack_rules)
    for settings, layer in ((loaded.settings.managed, "administrator"), *of_packs, (loaded.settings, "")):
        if settings is None:
            continue
        for decision in RULES:
            for text in getattr(settings, decision):
                place = settings.rule_places.get(f"{decision} {text}", "") or loaded.set_by.get(decision, "")
                yield Rule(decision, text, place, layer or layer_of(loaded, loaded.path))
        if settings.default_permission != "allow":
            place = settings.rule_places.get("default", "")
            yield Rule("default", settings.default_permission, place, layer or layer_of(loaded, loaded.path))
        for rule in settings.agent_rules:
            yield Rule(rule.decision, rule.text, rule.place, layer or "agent's settings")
        for limit in settings.limits:
            yield Rule("limit", limit.summary, limit.place or limit.by, layer or layer_of(loaded, loaded.path))


def origin(alias: Alias) -> str:
    """Where a tool's other name comes from, and its arguments' other names."""
    renamed = ", ".join(f"{name} for {hook_name}" for hook_name, name in alias.arguments.items())
    return "; ".join(text for text in (alias_origin(alias), renamed) if text)


# --- rules to add and to try ---


class Lines(Struct, frozen=True):
    """Lines for a person to copy, and where they belong."""

    text: str
    where: str


def rule_name(server: str, tool: str) -> str:
    """The pattern that stands for this one tool of this server in a rule."""
    name = f"mcp__{server}__{tool}" if server else tool
    return glob.escape(name).replace("(", "?").replace(")", "?")


def lines_for(loaded: Loaded, decision: str, rule: str) -> Lines:
    """The lines of hookproxy.toml that add a permission rule. If there is such a list already, the whole new list."""
    own: list[str] = [*getattr(loaded.settings, decision)] if loaded.path else []
    file, key = _split(loaded.set_by.get(decision, ""))
    listed = f"{decision} = [{', '.join(map(quoted, dict.fromkeys((*own, rule))))}]"
    if own and file == loaded.path and key:
        line = KeyLines().line(file, key)
        return Lines(f"{listed}\n", f"in [permissions] of {file}, in place of line {line}" if line else f"in {file}")
    return Lines(f"[permissions]\n{listed}\n", f"in {loaded.path}" if loaded.path else "in a new hookproxy.toml")


def with_rules(loaded: Loaded, text: str) -> Loaded:
    """The configuration with the permission rules of these lines added; nothing else may be in them.

    Rules are not code: trying them runs nothing that is not configured. Raises ConfigError.
    """
    if not text.strip():
        return loaded
    from ..config.models import ConfigFile
    from ..config.validate import check_patterns

    tables = read_tables(_TYPED, text)
    if other := [key for key in tables if key != _TYPED_KEY]:
        hint = "hooks and other settings are tried from a file that the console was started with: --compare FILE"
        raise ConfigError(_TYPED, f"{other[0]}: only [permissions] can be tried here", hint)
    file = validated(_TYPED, text, tables, ConfigFile)
    check_patterns(file, _TYPED)
    added: dict[str, object] = {
        name: (*getattr(loaded.settings, name), *getattr(file.permissions, name)) for name in RULES
    }
    typed = tables.get(_TYPED_KEY)
    if isinstance(typed, dict) and "default" in typed:
        added["default_permission"] = file.permissions.default
    return replace(loaded, settings=replace(loaded.settings, **added))
