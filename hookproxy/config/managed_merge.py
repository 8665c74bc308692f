"""Many layers, one configuration: what the administrator's files say holds, and each attempt to weaken it is told.

Pure. Managed groups come last. A key that is managed has the managed value, unless another layer is stricter where one
value can be stricter than another. Among the administrator's own files the later one wins, and rules and hooks add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.aliases import Alias
from ..model.errors import ConfigError
from ..model.hooks import HookSpec
from ..model.settings import OnAsk, OnFailure, Settings
from ..trust.sources import Layer, ManagedSummary

_RULES: Final = ("deny", "ask", "allow", "limits")
_REDACTED: Final = ("audit_redact", "audit_redact_keys")
_LISTS: Final = (*_RULES, *_REDACTED, "aliases")
"""Settings that do not take each other's place."""
_FAILURE_ORDER: Final = (OnFailure.ALLOW, OnFailure.DIALECT, OnFailure.DENY)
_STRICTNESS: Final[dict[str, tuple[object, ...]]] = {
    "on_failure": _FAILURE_ORDER,
    "on_ask": (OnAsk.ALLOW, OnAsk.ELICIT, OnAsk.DENY),
    "audit_required": (False, True),
    "audit_all_calls": (False, True),
    "audit_chain": (False, True),
    "hide_denied": (False, True),
}
"""Of these settings the values from the laxest to the strictest: to be stricter than what is managed weakens none."""

_WHOLE: Final = {"audit_file": "audit_", "otel": "otel_"}
"""Whoever names the audit, or a collector, says all about it: a pattern of secrets that fits everything, or another
address, would empty it. By the setting that names it: how the names of the others begin."""

T = TypeVar("T")


def joined(
    given: Layer, managed: Sequence[Layer]
) -> tuple[Settings, tuple[Group, ...], tuple[str, ...], ManagedSummary]:
    """What a user's layer comes to under the administrator's, of which there is at least one: all that is configured.

    The settings, the groups in their order, what start-up says, and what is managed. Raises ConfigError for hooks of
    the user's that could undo it.
    """
    ruling = _ruling(managed)
    settings, notes = _held(given, ruling)
    groups, dropped = _groups(given, ruling, next((one.source for one in managed if one.managed_only), ""))
    return (
        replace(settings, managed=_of_managed(given, ruling)),
        (*groups, *ruling.groups),
        (*given.notes, *ruling.notes, *notes, *dropped),
        ManagedSummary(tuple(one.source for one in managed), ruling.set_by, any(one.managed_only for one in managed)),
    )


def _ruling(managed: Sequence[Layer]) -> Layer:
    """The administrator's files as one."""
    whole = Layer(next(one.source for one in reversed(managed)))
    for one in managed:
        values = {name: getattr(one.settings, name) for name in one.set_by if name not in _LISTS}
        rules = {name: getattr(whole.settings, name) + getattr(one.settings, name) for name in (*_RULES, *_REDACTED)}
        rules["aliases"] = _aliases(whole.settings, one.settings)
        whole = replace(
            whole,
            settings=replace(whole.settings, **values, **rules),
            set_by={**whole.set_by, **one.set_by},
            groups=whole.groups + tuple(_managed(group, one) for group in one.groups),
            notes=whole.notes + one.notes,
        )
    return replace(whole, set_by={**_implied(whole.set_by), **whole.set_by})


def _implied(given: Mapping[str, str]) -> dict[str, str]:
    """The settings that are given with another, each with where that is."""
    return {
        name: given[naming]
        for naming, beginning in _WHOLE.items()
        if naming in given
        for name in Settings.__struct_fields__
        if name.startswith(beginning)
    }


def _managed(group: Group, layer: Layer) -> Group:
    """A managed group fails closed, unless its file says otherwise."""
    otherwise = layer.settings.on_failure if "on_failure" in layer.set_by else OnFailure.DENY
    return replace(group, managed=True, on_failure=group.on_failure or otherwise)


def _of_managed(given: Layer, ruling: Layer) -> Settings:
    """What holds for managed hooks and rules: nothing of the user's can answer for a person whom they want asked."""
    own = ruling.settings
    return Settings(
        on_failure=own.on_failure if "on_failure" in ruling.set_by else OnFailure.DENY,
        on_ask=_stricter("on_ask", own.on_ask, given.settings.on_ask),
        on_ask_fallback=own.on_ask_fallback,
        prompter=own.prompter,
        allow=own.allow,
        ask=own.ask,
        deny=own.deny,
        hide_denied=own.hide_denied,
        aliases=own.aliases,
        limits=own.limits,
    )


# --- settings ---


def _held(given: Layer, ruling: Layer) -> tuple[Settings, list[str]]:
    """The user's settings with those that are managed in their place; a sentence for each attempt to weaken one."""
    values: dict[str, object] = {"aliases": _aliases(given.settings, ruling.settings)}
    notes: list[str] = []
    for name in _REDACTED:
        own = getattr(given.settings, name)
        if (
            own and "audit_file" in ruling.set_by
        ):  # a pattern that fits everything would empty the administrator's audit
            notes.append(_told(given.set_by[name], ruling.set_by[name]))
            own = ()
        values[name] = own + getattr(ruling.settings, name)
    for name in (one for one in Settings.__struct_fields__ if one in ruling.set_by and one not in _LISTS):
        wanted, held = getattr(given.settings, name), getattr(ruling.settings, name)
        if name not in given.set_by:
            values[name] = held
            continue
        values[name] = _fallback(given, ruling, name) if name in _FALLBACK else _stricter(name, held, wanted)
        if values[name] != wanted:
            notes.append(_told(given.set_by[name], ruling.set_by[name]))
    notes += [
        f"{given.set_by['allow']}: {rule!r} allows nothing: {ruling.set_by[kind]} has the same rule"
        for kind in ("deny", "ask")
        for rule in getattr(ruling.settings, kind)
        if rule in given.settings.allow
    ]
    return replace(given.settings, **values), list(dict.fromkeys(notes))


def _aliases(first: Settings, second: Settings) -> tuple[Alias, ...]:
    """One for a tool: the second's."""
    return tuple({one.tool: one for one in (*first.aliases, *second.aliases)}.values())


def _told(wanted: str, held: str) -> str:
    return f"{wanted} is not used: {held} holds, for it is managed"


_FALLBACK: Final = ("on_ask_fallback", "prompter")


def _fallback(given: Layer, ruling: Layer, name: str) -> object:
    """One key sets both: the user's holds where it denies without asking anybody, or where all would be allowed."""
    user, own = given.settings, ruling.settings
    refuses = user.on_ask_fallback is OnFailure.DENY and not user.prompter
    return getattr(user if refuses or own.on_ask_fallback is OnFailure.ALLOW else own, name)


def _stricter(name: str, held: T, wanted: T) -> T:
    """The value that holds: the managed one, unless the other is stricter."""
    order = _STRICTNESS.get(name, ())
    return wanted if held in order and order.index(wanted) > order.index(held) else held


# --- groups ---


def _groups(given: Layer, ruling: Layer, only: str) -> tuple[tuple[Group, ...], list[str]]:
    """The user's groups as they may run, and what is to be said about that; `only` is who wants no others, if any."""
    if only:
        return (), [f"{group.source}: its hooks are not run: {only} says managed_only" for group in given.groups]
    for spec in (spec for group in given.groups for spec in group.hooks if spec.type == "python"):
        raise ConfigError(
            spec.source,
            "is a Python function: it would run in hookproxy's own process, where it could switch off what is managed",
            'as a program of its own it may run: type = "worker", or a command',
        )
    if "on_failure" not in ruling.set_by:
        return given.groups, []
    floor = _Floor(ruling.settings.on_failure, ruling.set_by["on_failure"])
    notes: list[str] = []
    return tuple(floor.under(group, notes) for group in given.groups), notes


class _Floor(Struct, frozen=True):
    """The least that trouble with any hook leads to, and where that is said."""

    least: OnFailure
    place: str

    def under(self, group: Group, notes: list[str]) -> Group:
        """The group without choices that are laxer."""
        hooks = tuple(self._held(spec, notes) for spec in group.hooks)
        if group.on_failure is None or not self._is_laxer(group.on_failure):
            return replace(group, hooks=hooks)
        notes.append(_told(f"{group.source}: its on_failure", self.place))
        return replace(group, hooks=hooks, on_failure=self.least)

    def _held(self, spec: HookSpec, notes: list[str]) -> HookSpec:
        if spec.on_failure is None or not self._is_laxer(spec.on_failure):
            return spec
        notes.append(_told(f"{spec.source}: on_failure", self.place))
        return replace(spec, on_failure=self.least)

    def _is_laxer(self, wanted: OnFailure) -> bool:
        return _FAILURE_ORDER.index(wanted) < _FAILURE_ORDER.index(self.least)
