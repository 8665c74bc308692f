"""Merges the user's layer with the administrator's: the managed settings take precedence, and conflicts are noted.

Pure. Managed groups come last. A managed setting has the managed value, unless the user's value is stricter and the
setting has an order of strictness. Among the administrator's own files the later one wins; rules and hooks add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model import secret_settings, shown_tools
from ..model.aliases import Alias
from ..model.errors import ConfigError
from ..model.settings import DEFAULTS, ConsoleUse, OnAsk, OnFailure, Results, RootsRule, Settings
from ..trust.sources import Layer, ManagedSummary

_RULES: Final = ("deny", "ask", "allow", "agent_rules", "limits", "flow_sources", "flow_sinks")
_REDACTIONS: Final = ("audit_redact", "audit_redact_keys")
_LISTS: Final = (*_RULES, *_REDACTIONS, "aliases", "shown_tools", "secrets")
"""Settings that add up instead of replacing each other."""
_OF_EACH_LAYER: Final = ("default_permission",)
"""Settings of which both layers have their own: a call must pass both. To apply the administrator's to the user's rules
would refuse what managed rules allow, and the user's rules open nothing of what the administrator's refuses."""
_ON_FAILURE_ORDER: Final = (OnFailure.ALLOW, OnFailure.DIALECT, OnFailure.DENY)
_STRICTNESS: Final[dict[str, tuple[object, ...]]] = {
    "on_failure": _ON_FAILURE_ORDER,
    "on_ask": (OnAsk.ALLOW, OnAsk.ELICIT, OnAsk.DENY),
    "strict": (False, True),
    "audit_enabled": (False, True),
    "on_cut_input": (OnFailure.ALLOW, OnFailure.DENY),
    "audit_required": (False, True),
    "audit_begun": (False, True),
    "audit_results": tuple(Results),
    "audit_all_calls": (False, True),
    "audit_chain": (False, True),
    "hide_denied": (False, True),
    "hold_notifications": (False, True),
    "unreadable": ("allow", "ask", "deny"),
    "check_types": (False, True),
    "guard_fail_closed": (False, True),
    "auto_aliases": (False, True),
}
"""The values of these settings from the laxest to the strictest. A user may be stricter than the administrator."""

_MANAGED_AS_A_WHOLE: Final = {"audit_file": "audit_", "otel": "otel_"}
"""If the first setting is managed, all settings with this prefix are managed too.

Otherwise a user could empty the administrator's audit with a pattern of secrets that matches everything, or send the
spans to another address.
"""
_FALLBACK: Final = ("on_ask_fallback", "prompter", "console")
_OF_MANAGED: Final = (
    "on_ask_fallback", "prompter", "approvals", "on_cut_input", "allow", "ask", "deny", "rule_places", "agent_rules",
    "default_permission", "hide_denied", "unreadable", "check_types", "aliases", "auto_aliases", "limits",
    "flow_sources", "flow_sinks", "watched_rules",
)  # fmt: skip
"""The settings of managed hooks and rules that are the administrator's alone."""

T = TypeVar("T")


def merge(user: Layer, managed: Sequence[Layer]) -> tuple[Settings, tuple[Group, ...], tuple[str, ...], ManagedSummary]:
    """Merge a user's layer with the administrator's layers, of which there is at least one.

    Returns the settings, the groups in their order, the notes for start-up, and what is managed. Raises ConfigError for
    hooks of the user that could turn off the managed ones.
    """
    admin = _merge_managed(managed)
    settings, notes = _merge_settings(user, admin)
    managed_only = [layer.source for layer in managed if layer.managed_only]
    groups, group_notes = _merge_groups(user, admin, managed_only[0] if managed_only else "")
    return (
        replace(settings, managed=_settings_of_managed(user, admin)),
        (*groups, *admin.groups),
        (*user.notes, *admin.notes, *notes, *group_notes),
        ManagedSummary(tuple(layer.source for layer in managed), admin.set_by, bool(managed_only)),
    )


def _merge_managed(managed: Sequence[Layer]) -> Layer:
    """The administrator's files as one layer."""
    merged = Layer(next(layer.source for layer in reversed(managed)))
    for layer in managed:
        values = {name: getattr(layer.settings, name) for name in layer.set_by if name not in _LISTS}
        lists: dict[str, object] = {
            name: getattr(merged.settings, name) + getattr(layer.settings, name) for name in (*_RULES, *_REDACTIONS)
        }
        places = {**merged.settings.rule_places, **layer.settings.rule_places}
        stricter = max(merged.settings, layer.settings, key=lambda one: DEFAULTS.index(one.default_permission))
        if "default" in stricter.rule_places:
            places["default"] = stricter.rule_places["default"]
        values["default_permission"] = stricter.default_permission
        lists["rule_places"] = places
        lists["aliases"] = _merge_aliases(merged.settings, layer.settings)
        if layer.settings.watched_rules is not None:
            lists["watched_rules"] = merged_rules(merged.settings.watched_rules, layer.settings.watched_rules)
        lists["shown_tools"] = shown_tools.merged(merged.settings.shown_tools, layer.settings.shown_tools)
        lists["secrets"] = secret_settings.merged(merged.settings.secrets, layer.settings.secrets)
        merged = replace(
            merged,
            settings=replace(merged.settings, **values, **lists),
            set_by={**merged.set_by, **layer.set_by},
            groups=merged.groups + tuple(_managed_group(group, layer) for group in layer.groups),
            notes=merged.notes + layer.notes,
        )
    return replace(merged, set_by={**_set_as_a_whole(merged.set_by), **merged.set_by})


def _set_as_a_whole(set_by: Mapping[str, str]) -> dict[str, str]:
    """The settings that are managed together with another one, each with where that one is set."""
    return {
        name: set_by[first]
        for first, prefix in _MANAGED_AS_A_WHOLE.items()
        if first in set_by
        for name in Settings.__struct_fields__
        if name.startswith(prefix)
    }


def _managed_group(group: Group, layer: Layer) -> Group:
    """A managed group fails closed, unless its file sets `on_failure`."""
    on_failure = layer.settings.on_failure if "on_failure" in layer.set_by else OnFailure.DENY
    return replace(group, managed=True, on_failure=group.on_failure or on_failure)


def _settings_of_managed(user: Layer, admin: Layer) -> Settings:
    """The settings for managed hooks and rules. When they ask a person, no setting of the user answers instead."""
    return replace(
        Settings(),
        **{name: getattr(admin.settings, name) for name in _OF_MANAGED},
        on_failure=admin.settings.on_failure if "on_failure" in admin.set_by else OnFailure.DENY,
        on_ask=_stricter("on_ask", admin.settings.on_ask, user.settings.on_ask),
        # Who runs the agent may open a console.
        console=admin.settings.console if "console" in admin.set_by else ConsoleUse.NEVER,
        ask_seconds=min(admin.settings.ask_seconds, user.settings.ask_seconds),
    )


def merged_rules(first: Settings | None, second: Settings | None) -> Settings | None:
    """The rules of two layers that are only watched: they add up, and of other settings the second layer's count."""
    if first is None or second is None:
        return second or first
    added: dict[str, object] = {name: getattr(first, name) + getattr(second, name) for name in ("deny", "ask", "allow")}
    places = {**first.rule_places, **second.rule_places}
    stricter = max(second, first, key=lambda one: DEFAULTS.index(one.default_permission))
    if "default" in stricter.rule_places:
        places["default"] = stricter.rule_places["default"]
    return replace(second, **added, rule_places=places, default_permission=stricter.default_permission)


# --- settings ---


def _merge_settings(user: Layer, admin: Layer) -> tuple[Settings, list[str]]:
    """The user's settings with the managed ones applied, and a note for each attempt to weaken one."""
    values: dict[str, object] = {
        "aliases": _merge_aliases(user.settings, admin.settings),
        "shown_tools": shown_tools.merged(user.settings.shown_tools, admin.settings.shown_tools),
        "secrets": secret_settings.merged(user.settings.secrets, admin.settings.secrets),
    }
    notes: list[str] = []
    if admin.settings.secrets is not None and user.settings.secrets is not None and user.settings.secrets.opens:
        notes.append(_not_used(f"{user.set_by['secrets']}: what it opens", admin.set_by["secrets"]))
    for name in _REDACTIONS:
        wanted = getattr(user.settings, name)
        if wanted and "audit_file" in admin.set_by:  # a pattern that matches everything would empty the managed audit
            notes.append(_not_used(user.set_by[name], admin.set_by[name]))
            wanted = ()
        values[name] = wanted + getattr(admin.settings, name)
    apart = (*_LISTS, *_OF_EACH_LAYER)
    for name in (name for name in Settings.__struct_fields__ if name in admin.set_by and name not in apart):
        wanted, managed = getattr(user.settings, name), getattr(admin.settings, name)
        if name not in user.set_by:
            values[name] = managed
            continue
        if name == "roots":
            values[name] = _merge_roots(wanted, managed)
        else:
            values[name] = _merge_fallback(user, admin, name) if name in _FALLBACK else _stricter(name, managed, wanted)
        if values[name] != wanted:
            notes.append(_not_used(user.set_by[name], admin.set_by[name]))
    notes += [
        f"{user.set_by['allow']}: {rule!r} allows nothing: {admin.set_by[key]} has the same rule"
        for key in ("deny", "ask")
        for rule in getattr(admin.settings, key)
        if rule in user.settings.allow
    ]
    return replace(user.settings, **values), list(dict.fromkeys(notes))


def _merge_aliases(first: Settings, second: Settings) -> tuple[Alias, ...]:
    """One alias for each tool. The second settings take precedence."""
    return tuple({alias.tool: alias for alias in (*first.aliases, *second.aliases)}.values())


def _not_used(wanted: str, managed: str) -> str:
    return f"{wanted} is not used: {managed} takes precedence, because it is managed"


def _merge_fallback(user: Layer, admin: Layer, name: str) -> object:
    """One key sets all three. The user's value counts if it denies without asking, or if the managed one allows."""
    own = user.settings
    refuses = own.on_ask_fallback is OnFailure.DENY and not own.prompter and not own.console
    uses_own = refuses or admin.settings.on_ask_fallback is OnFailure.ALLOW
    return getattr(user.settings if uses_own else admin.settings, name)


def _merge_roots(wanted: RootsRule, managed: RootsRule) -> RootsRule:
    """The managed list, or else the user's, and only what both allow."""
    given = wanted.given if managed.given is None else managed.given
    return RootsRule(given, (*wanted.allowed, *managed.allowed))


def _stricter(name: str, managed: T, wanted: T) -> T:
    """The managed value, unless the user's value is stricter."""
    order = _STRICTNESS.get(name)
    return wanted if order and _rank(order, wanted) > _rank(order, managed) else managed


def _rank(order: tuple[object, ...], value: object) -> int:
    """A higher one is stricter. A console and the agent both ask a person: neither replaces the other."""
    return order.index(OnAsk.ELICIT if value is OnAsk.CONSOLE else value)


# --- groups ---


def _merge_groups(user: Layer, admin: Layer, by: str) -> tuple[tuple[Group, ...], list[str]]:
    """The user's groups that may run, and notes about the rest. `by` is the file that sets managed_only, if any."""
    if by:
        return (), [f"{group.source}: its hooks do not run: {by} sets managed_only" for group in user.groups]
    for spec in (spec for group in user.groups for spec in group.hooks if spec.type == "python"):
        raise ConfigError(
            spec.source,
            "is a Python function: it would run in hookproxy's own process, where it could turn off what is managed",
            'run it as a separate program: type = "worker", or a command',
        )
    if "on_failure" not in admin.set_by:
        return user.groups, []
    minimum, place = admin.settings.on_failure, admin.set_by["on_failure"]
    notes: list[str] = []
    return tuple(_with_minimum(group, minimum, place, notes) for group in user.groups), notes


def _with_minimum(group: Group, minimum: OnFailure, place: str, notes: list[str]) -> Group:
    """The group with every laxer `on_failure` replaced by the administrator's, which is set at this place."""

    def strict_enough(wanted: OnFailure | None, where: str) -> OnFailure | None:
        if wanted is None or _ON_FAILURE_ORDER.index(wanted) >= _ON_FAILURE_ORDER.index(minimum):
            return wanted
        notes.append(_not_used(where, place))
        return minimum

    hooks = [
        replace(spec, on_failure=strict_enough(spec.on_failure, f"{spec.source}: on_failure")) for spec in group.hooks
    ]
    on_failure = strict_enough(group.on_failure, f"{group.source}: its on_failure")
    return replace(group, hooks=tuple(hooks), on_failure=on_failure)
